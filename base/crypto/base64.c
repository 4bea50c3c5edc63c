/* Base64 (RFC 4648) by mbedTLS, whose timing does not depend on the data. */
#include "base/crypto/base64.h"

#include "base/crypto/digest.h"

#include <assert.h>
#include <mbedtls/base64.h>
#include <string.h>

bool
base64_encode(struct text t, struct buffer *out)
{
    size_t length = BASE64_LENGTH(t.length), written;
    /* The library needs space for a NUL behind the result. */
    char *at = buffer_reserve(out, length + 1);
    if (at == NULL)
        return false;
    int error = mbedtls_base64_encode((unsigned char *)at, length + 1, &written,
                                      (const unsigned char *)t.at, t.length);
    assert(error == 0 && written == length);
    out->length += written;
    return true;
}

void
base64_write_url(const void *bytes, size_t size, char *out)
{
    char encoded[BASE64_LENGTH(BASE64_URL_MAX) + 1];
    size_t length;
    int error = mbedtls_base64_encode((unsigned char *)encoded, sizeof(encoded),
                                      &length, bytes, size);
    assert(error == 0);
    for (const char *at = encoded; *at != '\0' && *at != '='; at++)
        *out++ = *at == '+' ? '-' : *at == '/' ? '_' : *at;
    *out = '\0';
    digest_forget(encoded, sizeof(encoded));
}

/* The library skips spaces and line ends; we do not. */
static bool
is_strict(struct text t)
{
    for (size_t i = 0; i < t.length; i++)
        if (t.at[i] <= ' ')
            return false;
    return t.length % 4 == 0;
}

/* The last character before the padding may have bits that decoding ignores. */
static bool
is_canonical(struct text t, const unsigned char *decoded, size_t length)
{
    unsigned char again[5];
    size_t written, tail = length % 3;
    if (tail == 0)
        return true;
    int error = mbedtls_base64_encode(again, sizeof(again), &written,
                                      decoded + length - tail, tail);
    assert(error == 0 && written == 4);
    return memcmp(again, t.at + t.length - 4, 4) == 0;
}

bool
base64_decode(struct text t, void *to, size_t size, size_t *length)
{
    *length = 0;
    if (!is_strict(t))
        return false;
    if (t.length == 0)
        return true;
    int error =
        mbedtls_base64_decode(to, size, length, (const unsigned char *)t.at, t.length);
    return error == 0 && is_canonical(t, to, *length);
}
