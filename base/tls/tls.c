/* The common part of both TLS roles: random numbers, cipher suites, PEM files.
 *
 * A server and a client hold a reference to struct tls, a session one to its server or
 * client: a reload replaces them while connections last. */
#include "base/tls/tls.h"

#include "base/disk/disk.h"
#include "base/memory.h"
#include "base/tls/tls_internal.h"

#include <assert.h>
#include <mbedtls/error.h>
#include <mbedtls/platform_util.h>
#include <mbedtls/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if MBEDTLS_VERSION_MAJOR >= 3
#include <psa/crypto.h>
#endif

const char *
tls_version(void)
{
    /* Static: the content is always the same. */
    static char name[32] = "mbedTLS ";
    mbedtls_version_get_string(name + sizeof("mbedTLS ") - 1);
    return name;
}

/* mbedTLS says "X509 - Certificate verification failed : low-level thing". */
void
tls_reason(int code, char *to, size_t size)
{
    char text[TLS_ERROR_MAX] = "";
    const char *start;
    mbedtls_strerror(code, text, sizeof(text));
    start = strstr(text, " - ");
    start = start ? start + 3 : text;
    snprintf(to, size, "%s", start);
}

bool
tls_fail(char *error, size_t error_size, const char *what, int code)
{
    char reason[TLS_ERROR_MAX];
    tls_reason(code, reason, sizeof(reason));
    snprintf(error, error_size, "%s: %s", what, reason);
    return false;
}

struct tls *
tls_new(char *error, size_t error_size)
{
    struct tls *tls = memory_new(sizeof(*tls));
    int code;
    tls->references = 1;
    mbedtls_entropy_init(&tls->entropy);
    mbedtls_ctr_drbg_init(&tls->random);
    code = mbedtls_ctr_drbg_seed(&tls->random, mbedtls_entropy_func, &tls->entropy,
                                 NULL, 0);
#if MBEDTLS_VERSION_MAJOR >= 3
    if (code == 0 && psa_crypto_init() != PSA_SUCCESS) /* TLS 1.3 needs it */
        code = MBEDTLS_ERR_CTR_DRBG_ENTROPY_SOURCE_FAILED;
#endif
    if (code == 0)
        return tls;
    tls_fail(error, error_size, "cannot start the random generator of TLS", code);
    tls_free(&tls);
    return NULL;
}

void
tls_release(struct tls *tls)
{
    assert(tls->references > 0);
    if (--tls->references)
        return;
    mbedtls_ctr_drbg_free(&tls->random);
    mbedtls_entropy_free(&tls->entropy);
    free(tls);
}

void
tls_free(struct tls **tls)
{
    if (*tls)
        tls_release(*tls);
    *tls = NULL;
}

/* ChaCha20 first: in mbedTLS it is faster than AES-GCM, even on processors with AES
 * instructions, and its time does not depend on the key on processors without. */
#if MBEDTLS_VERSION_MAJOR >= 3
#define SUITES_OF_TLS_1_3                                                              \
    MBEDTLS_TLS1_3_CHACHA20_POLY1305_SHA256, MBEDTLS_TLS1_3_AES_128_GCM_SHA256,        \
        MBEDTLS_TLS1_3_AES_256_GCM_SHA384,
#else
#define SUITES_OF_TLS_1_3
#endif
#define SUITES                                                                         \
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,                             \
        MBEDTLS_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,                           \
        MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,                               \
        MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,                                 \
        MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,                               \
        MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384

static const int suites[] = {SUITES_OF_TLS_1_3 SUITES, 0};

#if MBEDTLS_VERSION_MAJOR >= 3
static void
configure_version(mbedtls_ssl_config *config)
{
    static const uint16_t groups[] = {
        MBEDTLS_SSL_IANA_TLS_GROUP_X25519,    MBEDTLS_SSL_IANA_TLS_GROUP_SECP256R1,
        MBEDTLS_SSL_IANA_TLS_GROUP_SECP384R1, MBEDTLS_SSL_IANA_TLS_GROUP_SECP521R1,
        MBEDTLS_SSL_IANA_TLS_GROUP_NONE,
    };
    /* PKCS #1 first: 3.6.6 offers PSS to servers of TLS 1.2, too, and then refuses it.
     * Servers of TLS 1.3 ignore PKCS #1. */
    static const uint16_t signatures[] = {
        MBEDTLS_TLS1_3_SIG_ECDSA_SECP256R1_SHA256,
        MBEDTLS_TLS1_3_SIG_ECDSA_SECP384R1_SHA384,
        MBEDTLS_TLS1_3_SIG_ECDSA_SECP521R1_SHA512,
        MBEDTLS_TLS1_3_SIG_RSA_PKCS1_SHA256,
        MBEDTLS_TLS1_3_SIG_RSA_PKCS1_SHA384,
        MBEDTLS_TLS1_3_SIG_RSA_PKCS1_SHA512,
        MBEDTLS_TLS1_3_SIG_RSA_PSS_RSAE_SHA256,
        MBEDTLS_TLS1_3_SIG_RSA_PSS_RSAE_SHA384,
        MBEDTLS_TLS1_3_SIG_RSA_PSS_RSAE_SHA512,
        MBEDTLS_TLS1_3_SIG_NONE,
    };

    mbedtls_ssl_conf_sig_algs(config, signatures);
    mbedtls_ssl_conf_min_tls_version(config, MBEDTLS_SSL_VERSION_TLS1_2);
    mbedtls_ssl_conf_groups(config, groups);
#if defined(MBEDTLS_SSL_PROTO_TLS1_3)
    /* Resumed sessions make a key exchange, too: a ticket alone gives no forward
     * secrecy (RFC 8446 §2.2). */
    mbedtls_ssl_conf_tls13_key_exchange_modes(
        config, MBEDTLS_SSL_TLS1_3_KEY_EXCHANGE_MODE_EPHEMERAL_ALL);
#endif
}
#else
static void
configure_version(mbedtls_ssl_config *config)
{
    static const mbedtls_ecp_group_id groups[] = {
        MBEDTLS_ECP_DP_CURVE25519, MBEDTLS_ECP_DP_SECP256R1, MBEDTLS_ECP_DP_SECP384R1,
        MBEDTLS_ECP_DP_SECP521R1,  MBEDTLS_ECP_DP_NONE,
    };
    mbedtls_ssl_conf_min_version(config, MBEDTLS_SSL_MAJOR_VERSION_3,
                                 MBEDTLS_SSL_MINOR_VERSION_3);
    mbedtls_ssl_conf_curves(config, groups);
}
#endif

/* Without forward secrecy, or with CBC: for devices of ten years ago, whose owner has
 * chosen that for them. */
static const int old_suites[] = {
    SUITES_OF_TLS_1_3 SUITES,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
    MBEDTLS_TLS_RSA_WITH_AES_128_GCM_SHA256,
    MBEDTLS_TLS_RSA_WITH_AES_256_GCM_SHA384,
    MBEDTLS_TLS_RSA_WITH_AES_128_CBC_SHA256,
    MBEDTLS_TLS_RSA_WITH_AES_256_CBC_SHA256,
    MBEDTLS_TLS_RSA_WITH_AES_128_CBC_SHA,
    MBEDTLS_TLS_RSA_WITH_AES_256_CBC_SHA,
    0,
};

void
tls_configure_old(mbedtls_ssl_config *config)
{
    mbedtls_ssl_conf_ciphersuites(config, old_suites);
}

int
tls_configure(struct tls *tls, mbedtls_ssl_config *config, int role)
{
    int code = mbedtls_ssl_config_defaults(config, role, MBEDTLS_SSL_TRANSPORT_STREAM,
                                           MBEDTLS_SSL_PRESET_DEFAULT);
    if (code != 0)
        return code;
    mbedtls_ssl_conf_rng(config, mbedtls_ctr_drbg_random, &tls->random);
    mbedtls_ssl_conf_ciphersuites(config, suites);
    mbedtls_ssl_conf_renegotiation(config, MBEDTLS_SSL_RENEGOTIATION_DISABLED);
    configure_version(config);
    return 0;
}

bool
tls_read_file(const char *path, char **content, size_t *length, char *error,
              size_t error_size)
{
    int result = disk_read_regular(path, TLS_FILE_MAX, content, length);
    if (result == 0)
        return true;
    char why[DISK_REASON_MAX];
    snprintf(error, error_size, "cannot read %s: %s", path,
             disk_explain_file(path, result, why));
    return false;
}

bool
tls_parse_certificates(mbedtls_x509_crt *chain, const char *path, char *content,
                       size_t length, char *error, size_t error_size)
{
    /* For PEM mbedTLS counts the NUL. */
    int code = mbedtls_x509_crt_parse(chain, (unsigned char *)content, length + 1);
    /* A positive code is the number of certificates that could not be parsed: there
     * are others. */
    if (code >= 0)
        return true;
    if (code == MBEDTLS_ERR_X509_INVALID_FORMAT)
        snprintf(error, error_size, "no certificate in %s", path);
    else
        tls_fail(error, error_size, path, code);
    return false;
}

/* The file may hold a private key. */
void
tls_forget_file(char *content, size_t length)
{
    mbedtls_platform_zeroize(content, length);
    free(content);
}
