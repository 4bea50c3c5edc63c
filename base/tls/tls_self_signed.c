/* Makes a key, and the certificate that it signs. */
#include "base/tls/tls_self_signed.h"

#include "base/memory.h"
#include "base/net_address.h"
#include "base/tls/tls_internal.h"

#include <assert.h>
#include <mbedtls/asn1write.h>
#include <mbedtls/ecp.h>
#include <mbedtls/oid.h>
#include <mbedtls/rsa.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ALTERNATIVES_MAX = TLS_SELF_SIGNED_NAMES_MAX * (TLS_SELF_SIGNED_NAME_MAX + 4) + 8,
    SUBJECT_MAX = 80,
    COMMON_NAME_MAX = 64, /* RFC 5280, ub-common-name-length */
    SERIAL_SIZE = 16,
    STAMP_MAX = 32
};
#define DAY_MS (24LL * 3600 * 1000)
/* RFC 5280, GeneralName */
#define NAME_DNS     (MBEDTLS_ASN1_CONTEXT_SPECIFIC | 2)
#define NAME_ADDRESS (MBEDTLS_ASN1_CONTEXT_SPECIFIC | 7)

struct self_signed {
    struct tls *tls;
    mbedtls_pk_context key;
    mbedtls_x509write_cert writer;
};

/* --- Names ------------------------------------------------------------------------ */

/* Backwards, as all of ASN.1 is written. */
static bool
write_alternative(unsigned char **at, unsigned char *start, struct text name)
{
    struct net_address address;
    bool is_address = net_address_parse_ip(name, &address);
    struct text value = name;
    if (is_address)
        value = text_of(address.ip, address.family == NET_IPV4 ? 4 : 16);
    return mbedtls_asn1_write_raw_buffer(at, start, (const unsigned char *)value.at,
                                         value.length) >= 0 &&
           mbedtls_asn1_write_len(at, start, value.length) >= 0 &&
           mbedtls_asn1_write_tag(at, start, is_address ? NAME_ADDRESS : NAME_DNS) >= 0;
}

static bool
set_alternatives(struct self_signed *s, const struct text *names, size_t count)
{
    unsigned char *list = memory_new(ALTERNATIVES_MAX), *end = list + ALTERNATIVES_MAX,
                  *at = end;
    bool good = true;
    for (size_t i = count; i > 0 && good; i--)
        good = write_alternative(&at, list, names[i - 1]);
    good = good && mbedtls_asn1_write_len(&at, list, (size_t)(end - at)) >= 0 &&
           mbedtls_asn1_write_tag(
               &at, list, MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE) >= 0 &&
           mbedtls_x509write_crt_set_extension(
               &s->writer, MBEDTLS_OID_SUBJECT_ALT_NAME,
               MBEDTLS_OID_SIZE(MBEDTLS_OID_SUBJECT_ALT_NAME), 0, at,
               (size_t)(end - at)) == 0;
    free(list);
    return good;
}

/* A host name has no comma and no equals sign, which would mean something here. */
static bool
set_subject(struct self_signed *s, struct text name)
{
    char subject[SUBJECT_MAX];
    if (name.length <= COMMON_NAME_MAX)
        snprintf(subject, sizeof(subject), "CN=%.*s", TEXT_ARGS(name));
    else
        snprintf(subject, sizeof(subject), "O=Petrel");
    return mbedtls_x509write_crt_set_subject_name(&s->writer, subject) == 0 &&
           mbedtls_x509write_crt_set_issuer_name(&s->writer, subject) == 0;
}

/* --- Number and time -------------------------------------------------------------- */

static bool
set_serial(struct self_signed *s)
{
    unsigned char serial[SERIAL_SIZE];
    if (mbedtls_ctr_drbg_random(&s->tls->random, serial, sizeof(serial)) != 0)
        return false;
    serial[0] =
        (unsigned char)((serial[0] & 0x7f) | 0x40); /* positive, of full length */
#if MBEDTLS_VERSION_MAJOR >= 3
    return mbedtls_x509write_crt_set_serial_raw(&s->writer, serial, sizeof(serial)) ==
           0;
#else
    mbedtls_mpi number;
    mbedtls_mpi_init(&number);
    bool good = mbedtls_mpi_read_binary(&number, serial, sizeof(serial)) == 0 &&
                mbedtls_x509write_crt_set_serial(&s->writer, &number) == 0;
    mbedtls_mpi_free(&number);
    return good;
#endif
}

static bool
write_stamp(int64_t time_ms, char out[STAMP_MAX])
{
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm parts;
    return gmtime_r(&seconds, &parts) != NULL &&
           strftime(out, STAMP_MAX, "%Y%m%d%H%M%S", &parts) == 14;
}

static bool
set_times(struct self_signed *s, int64_t now_ms, int64_t until_ms)
{
    char from[STAMP_MAX], until[STAMP_MAX];
    return write_stamp(now_ms - DAY_MS, from) && write_stamp(until_ms, until) &&
           mbedtls_x509write_crt_set_validity(&s->writer, from, until) == 0;
}

/* --- The whole -------------------------------------------------------------------- */

enum { RSA_BITS = 2048, RSA_EXPONENT = 65537 };

static bool
make_key(struct self_signed *s, enum tls_key_kind kind)
{
    if (kind == TLS_KEY_RSA)
        return mbedtls_pk_setup(&s->key, mbedtls_pk_info_from_type(MBEDTLS_PK_RSA)) ==
                   0 &&
               mbedtls_rsa_gen_key(mbedtls_pk_rsa(s->key), mbedtls_ctr_drbg_random,
                                   &s->tls->random, RSA_BITS, RSA_EXPONENT) == 0;
    return mbedtls_pk_setup(&s->key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY)) ==
               0 &&
           mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(s->key),
                               mbedtls_ctr_drbg_random, &s->tls->random) == 0;
}

static bool
self_signed_describe(struct self_signed *s, enum tls_key_kind kind)
{
    /* Old devices encrypt the secret of the session with it. */
    unsigned char usage = MBEDTLS_X509_KU_DIGITAL_SIGNATURE;
    if (kind == TLS_KEY_RSA)
        usage |= MBEDTLS_X509_KU_KEY_ENCIPHERMENT;
    mbedtls_x509write_crt_set_version(&s->writer, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(&s->writer, MBEDTLS_MD_SHA256);
    mbedtls_x509write_crt_set_subject_key(&s->writer, &s->key);
    mbedtls_x509write_crt_set_issuer_key(&s->writer, &s->key);
    return mbedtls_x509write_crt_set_basic_constraints(&s->writer, 0, -1) == 0 &&
           mbedtls_x509write_crt_set_key_usage(&s->writer, usage) == 0;
}

static bool
write_pem(struct self_signed *s, struct buffer *certificate, struct buffer *key)
{
    unsigned char *pem = memory_new(TLS_SELF_SIGNED_MAX);
    bool good =
        mbedtls_x509write_crt_pem(&s->writer, pem, TLS_SELF_SIGNED_MAX,
                                  mbedtls_ctr_drbg_random, &s->tls->random) == 0 &&
        buffer_add(certificate, text_from((char *)pem));
    good = good && mbedtls_pk_write_key_pem(&s->key, pem, TLS_SELF_SIGNED_MAX) == 0 &&
           buffer_add(key, text_from((char *)pem));
    digest_forget(pem, TLS_SELF_SIGNED_MAX);
    free(pem);
    return good;
}

bool
tls_self_signed_make(struct tls *tls, enum tls_key_kind kind, const struct text *names,
                     size_t count, int64_t now_ms, int64_t until_ms,
                     struct buffer *certificate, struct buffer *key)
{
    struct self_signed s = {.tls = tls};
    assert(count > 0 && count <= TLS_SELF_SIGNED_NAMES_MAX);
    mbedtls_pk_init(&s.key);
    mbedtls_x509write_crt_init(&s.writer);
    bool good = make_key(&s, kind) && self_signed_describe(&s, kind) &&
                set_serial(&s) && set_subject(&s, names[0]) &&
                set_times(&s, now_ms, until_ms) && set_alternatives(&s, names, count) &&
                write_pem(&s, certificate, key);
    mbedtls_x509write_crt_free(&s.writer);
    mbedtls_pk_free(&s.key);
    return good;
}
