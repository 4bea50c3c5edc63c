/* Certificates that sign themselves, as mbedTLS reads them; t/e2e/cert.t asks openssl. */
#include "base/tls/tls_self_signed.h"

#include "base/memory.h"
#include "base/tls/tls_internal.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

/* 2026-01-01 */
#define NOW_MS INT64_C(1767225600000)

static struct tls *tls;

static enum tls_key_kind kind = TLS_KEY_ECDSA;

static bool
make(const struct text *names, size_t count, mbedtls_x509_crt *certificate, mbedtls_pk_context *key)
{
    struct buffer pem, secret;
    buffer_init(&pem, TLS_SELF_SIGNED_MAX);
    buffer_init(&secret, TLS_SELF_SIGNED_MAX);
    mbedtls_x509_crt_init(certificate);
    mbedtls_pk_init(key);
    bool good = tls_self_signed_make(tls, kind, names, count, NOW_MS, NOW_MS + INT64_C(63072000000), &pem, &secret) &&
                buffer_add_byte(&pem, '\0') && buffer_add_byte(&secret, '\0');
    good = good && mbedtls_x509_crt_parse(certificate, (unsigned char *)pem.at, pem.length) == 0;
#if MBEDTLS_VERSION_MAJOR >= 3
    good = good && mbedtls_pk_parse_key(key, (unsigned char *)secret.at, secret.length, NULL, 0, mbedtls_ctr_drbg_random, &tls->random) == 0 &&
           mbedtls_pk_check_pair(&certificate->pk, key, mbedtls_ctr_drbg_random, &tls->random) == 0;
#else
    good = good && mbedtls_pk_parse_key(key, (unsigned char *)secret.at, secret.length, NULL, 0) == 0 &&
           mbedtls_pk_check_pair(&certificate->pk, key) == 0;
#endif
    buffer_free(&pem);
    buffer_free(&secret);
    return good;
}

static size_t
alternatives(const mbedtls_x509_crt *certificate)
{
    size_t count = 0;
    for (const mbedtls_x509_sequence *s = &certificate->subject_alt_names; s != NULL && s->buf.len > 0; s = s->next)
        count++;
    return count;
}

static void
drop(mbedtls_x509_crt *certificate, mbedtls_pk_context *key)
{
    mbedtls_x509_crt_free(certificate);
    mbedtls_pk_free(key);
}

int
main(void)
{
    char error[TLS_ERROR_MAX], longest[TLS_SELF_SIGNED_NAME_MAX + 1];
    struct text names[TLS_SELF_SIGNED_NAMES_MAX] = {TEXT("mail.example.org"), TEXT("*.example.org"), TEXT("192.0.2.1"), TEXT("2001:db8::1")};
    mbedtls_x509_crt one, other;
    mbedtls_pk_context key, other_key;
    uint32_t flags = 0;
    tls = tls_new(error, sizeof(error));
    ok(make(names, 4, &one, &key));
    ok(alternatives(&one) >= 2); /* 2.28 keeps no addresses */
    is_number((long)mbedtls_pk_get_bitlen(&one.pk), 256, "P-256");
    ok(one.valid_from.year == 2025 && one.valid_from.mon == 12 && one.valid_from.day == 31);
    ok(one.valid_to.year == 2028 && one.valid_to.mon == 1 && one.valid_to.day == 1);
    ok(mbedtls_x509_crt_verify(&one, &one, NULL, "mail.example.org", &flags, NULL, NULL) == 0 || flags == MBEDTLS_X509_BADCERT_FUTURE);
    ok(mbedtls_x509_crt_verify(&one, &one, NULL, "a.example.org", &flags, NULL, NULL) == 0 || flags == MBEDTLS_X509_BADCERT_FUTURE);
    ok(mbedtls_x509_crt_verify(&one, &one, NULL, "mail.example.net", &flags, NULL, NULL) != 0 && (flags & MBEDTLS_X509_BADCERT_CN_MISMATCH) != 0);
    kind = TLS_KEY_RSA;
    ok(make(names, 1, &other, &other_key));
    is_number((long)mbedtls_pk_get_bitlen(&other.pk), 2048, "RSA");
    ok(mbedtls_x509_crt_check_key_usage(&other, MBEDTLS_X509_KU_KEY_ENCIPHERMENT) == 0);
    kind = TLS_KEY_ECDSA;
    drop(&other, &other_key);
    ok(make(names, 1, &other, &other_key));
    ok(one.serial.len != other.serial.len || memcmp(one.serial.p, other.serial.p, one.serial.len) != 0);
    drop(&other, &other_key);

    /* As many as there may be, as long as they may be. */
    memset(longest, 'x', sizeof(longest) - 1);
    for (size_t i = 63; i < sizeof(longest) - 1; i += 64)
        longest[i] = '.';
    for (size_t i = 0; i < TLS_SELF_SIGNED_NAMES_MAX; i++)
        names[i] = text_of(longest, TLS_SELF_SIGNED_NAME_MAX);
    ok(make(names, TLS_SELF_SIGNED_NAMES_MAX, &other, &other_key));
    is_number((long)alternatives(&other), TLS_SELF_SIGNED_NAMES_MAX, "all of them");
    drop(&other, &other_key);
    drop(&one, &key);
    tls_free(&tls);
    return done();
}
