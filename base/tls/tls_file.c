/* Reads the file, and verifies the chain as a client would. */
#include "base/tls/tls_file.h"

#include "base/crypto/digest.h"
#include "base/tls/tls_internal.h"

#include <stdio.h>
#include <string.h>

static void
tls_file_digest(const mbedtls_x509_crt *certificate, char out[TLS_FILE_DIGEST_MAX])
{
    unsigned char digest[DIGEST_SIZE];
    digest_plain(text_of(certificate->pk_raw.p, certificate->pk_raw.len), digest);
    text_hex(digest, sizeof(digest), out);
}

/* The caller judges the dates. */
static bool
tls_file_is_whole(mbedtls_x509_crt *chain, const struct tls_client *anchors)
{
    uint32_t flags = 0;
    const uint32_t dates = MBEDTLS_X509_BADCERT_EXPIRED | MBEDTLS_X509_BADCERT_FUTURE;
    if (anchors == NULL || !tls_client_has_anchors(anchors))
        return false;
    (void)mbedtls_x509_crt_verify(chain, &anchors->anchors->chain, NULL, NULL, &flags,
                                  NULL, NULL);
    return (flags & ~dates) == 0;
}

bool
tls_file_read(const char *path, struct text host, const struct tls_client *anchors,
              struct tls_file *out, char *error, size_t error_size)
{
    mbedtls_x509_crt chain;
    char *content;
    size_t length;
    struct text matched;
    if (!tls_read_file(path, &content, &length, error, error_size))
        return false;
    mbedtls_x509_crt_init(&chain);
    bool good =
        tls_parse_certificates(&chain, path, content, length, error, error_size);
    tls_forget_file(content, length);
    *out = (struct tls_file){.name = ""};
    if (good) {
        out->begins_ms = tls_time_ms(&chain.valid_from);
        out->expires_ms = tls_time_ms(&chain.valid_to);
        tls_copy_name(out->name, sizeof(out->name), tls_certificate_name(&chain));
        out->names_host = tls_certificate_names(&chain, host, &matched);
        out->is_own_issuer =
            text_equal(text_of(chain.issuer_raw.p, chain.issuer_raw.len),
                       text_of(chain.subject_raw.p, chain.subject_raw.len));
        out->is_whole = tls_file_is_whole(&chain, anchors);
        tls_file_digest(&chain, out->key_digest);
    }
    mbedtls_x509_crt_free(&chain);
    return good;
}
