/* A certificate of ours and its key, as servers and clients have them: reads and compares
 * both. */
#include "base/tls/tls_internal.h"

#include <stdio.h>
#include <string.h>

static int
tls_own_parse_key(struct tls *tls, mbedtls_pk_context *key, const char *content,
                  size_t length)
{
    const unsigned char *at = (const unsigned char *)content;
#if MBEDTLS_VERSION_MAJOR >= 3
    return mbedtls_pk_parse_key(key, at, length + 1, NULL, 0, mbedtls_ctr_drbg_random,
                                &tls->random);
#else
    (void)tls;
    return mbedtls_pk_parse_key(key, at, length + 1, NULL, 0);
#endif
}

static int
check_pair(struct tls *tls, const struct tls_own *own)
{
#if MBEDTLS_VERSION_MAJOR >= 3
    return mbedtls_pk_check_pair(&own->certificate.pk, &own->key,
                                 mbedtls_ctr_drbg_random, &tls->random);
#else
    (void)tls;
    return mbedtls_pk_check_pair(&own->certificate.pk, &own->key);
#endif
}

/* The content is overwritten: the same file may hold the key (struct tls_pair). */
static bool
read_certificate(struct tls_own *own, const char *path, char *error, size_t error_size)
{
    char *content;
    size_t length;
    bool good;
    if (!tls_read_file(path, &content, &length, error, error_size))
        return false;
    good = tls_parse_certificates(&own->certificate, path, content, length, error,
                                  error_size);
    tls_forget_file(content, length);
    return good;
}

/* A helpful text where the library has none; NULL: use the library's. */
static const char *
key_trouble(const char *content, int code)
{
    if (code == MBEDTLS_ERR_PK_PASSWORD_REQUIRED ||
        strstr(content, "ENCRYPTED") != NULL)
        return "the key has a passphrase; remove it: openssl pkey -in KEY -out NEW";
    if (strstr(content, "PRIVATE KEY-----") == NULL)
        return "has no private key (tls_key, or key= of a route, names the file of the "
               "key; unset: it is in that of the certificate)";
    return NULL;
}

static bool
read_key(struct tls *tls, struct tls_own *own, const char *path, char *error,
         size_t error_size)
{
    char *content;
    size_t length;
    int code;
    if (!tls_read_file(path, &content, &length, error, error_size))
        return false;
    code = tls_own_parse_key(tls, &own->key, content, length);
    const char *why = code != 0 ? key_trouble(content, code) : NULL;
    tls_forget_file(content, length);
    if (why != NULL)
        snprintf(error, error_size, "%s: %s", path, why);
    return code == 0 || (why == NULL && tls_fail(error, error_size, path, code));
}

bool
tls_own_read(struct tls *tls, struct tls_own *own, const struct tls_pair *pair,
             char *error, size_t error_size)
{
    mbedtls_x509_crt_init(&own->certificate);
    mbedtls_pk_init(&own->key);
    if (!read_certificate(own, pair->certificate, error, error_size) ||
        !read_key(tls, own, pair->key, error, error_size))
        return false;
    if (check_pair(tls, own) == 0)
        return true;
    snprintf(error, error_size, "the key in %s is not that of the certificate in %s",
             pair->key, pair->certificate);
    return false;
}

void
tls_own_free(struct tls_own *own)
{
    mbedtls_x509_crt_free(&own->certificate);
    mbedtls_pk_free(&own->key);
}

void
tls_own_describe(const struct tls_own *own, struct tls_certificate *out)
{
    const mbedtls_x509_crt *certificate = &own->certificate;
    out->from_ms = tls_time_ms(&certificate->valid_from);
    out->until_ms = tls_time_ms(&certificate->valid_to);
    tls_copy_name(out->name, sizeof(out->name),
                  text_before(tls_certificate_name(certificate), TLS_NAME_MAX));
}
