/* Both roles with a shared secret (PSK) in the place of certificates. */
#include "base/tls/tls_internal.h"

#include "base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* The one suite: an ephemeral key exchange (RFC 5489, RFC 7905). */
static const int shared_suites[] = {
    MBEDTLS_TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256,
    0,
};

/* The cheapest group: anybody can have the server make a key, and has a choice otherwise. */
#if MBEDTLS_VERSION_MAJOR >= 3
static const uint16_t shared_groups[] = {
    MBEDTLS_SSL_IANA_TLS_GROUP_X25519,
    MBEDTLS_SSL_IANA_TLS_GROUP_NONE,
};
#else
static const mbedtls_ecp_group_id shared_groups[] = {
    MBEDTLS_ECP_DP_CURVE25519,
    MBEDTLS_ECP_DP_NONE,
};
#endif

/* The key is not the secret itself: mbedTLS takes 32 bytes at most, and the identity has
 * some of the secret's digest. */
void
tls_secret_make(struct tls_secret *out, const char *group, struct text secret)
{
    unsigned char digest[DIGEST_SIZE];
    int length = snprintf(out->identity, sizeof(out->identity), "%s/", group);
    assert(length > 1 && length <= TLS_GROUP_MAX + 1 && secret.length > 0);
    digest_plain(secret, digest);
    text_hex(digest, TLS_SECRET_DIGITS / 2, out->identity + length);
    digest_keyed(secret, TEXT("petrel peer door 1"), out->key);
    digest_forget(digest, sizeof(digest));
}

static int
tls_shared_configure(struct tls *tls, mbedtls_ssl_config *config, int role)
{
    int code = tls_configure(tls, config, role);
    mbedtls_ssl_conf_ciphersuites(config, shared_suites);
#if MBEDTLS_VERSION_MAJOR >= 3
    mbedtls_ssl_conf_groups(config, shared_groups);
    mbedtls_ssl_conf_max_tls_version(config, MBEDTLS_SSL_VERSION_TLS1_2);
#else
    mbedtls_ssl_conf_curves(config, shared_groups);
    mbedtls_ssl_conf_max_version(config, MBEDTLS_SSL_MAJOR_VERSION_3,
                                 MBEDTLS_SSL_MINOR_VERSION_3);
#endif
    return code;
}

/* All are compared, and every byte of them. */
static int
tls_server_find_secret(void *context, mbedtls_ssl_context *ssl,
                       const unsigned char *name, size_t length)
{
    const struct tls_server *server = context;
    const struct tls_secret *found = NULL;
    for (size_t i = 0; i < server->secret_count; i++) {
        const struct tls_secret *secret = &server->secrets[i];
        if (length == strlen(secret->identity) &&
            digest_same(name, secret->identity, length))
            found = secret;
    }
    if (found == NULL)
        return MBEDTLS_ERR_SSL_UNKNOWN_IDENTITY;
    return mbedtls_ssl_set_hs_psk(ssl, found->key, sizeof(found->key));
}

struct tls_server *
tls_server_new_shared(struct tls *tls, const struct tls_shared *shared, char *error,
                      size_t error_size)
{
    struct tls_server *server = memory_new(sizeof(*server));
    int code = 0;
    assert(shared->count >= 1 && shared->count <= TLS_SECRETS_MAX);
    server->references = 1;
    server->tls = tls;
    tls->references++;
    mbedtls_ssl_ticket_init(&server->tickets);
    server->secrets = memory_array(shared->count, sizeof(*server->secrets));
    server->secret_count = shared->count;
    for (size_t i = 0; i < shared->count; i++)
        tls_secret_make(&server->secrets[i], shared->group, shared->secrets[i]);
    for (int i = 0; i < TLS_PROTOCOLS; i++) {
        mbedtls_ssl_config_init(&server->config[i]);
        if (code == 0)
            code = tls_shared_configure(tls, &server->config[i], MBEDTLS_SSL_IS_SERVER);
        mbedtls_ssl_conf_psk_cb(&server->config[i], tls_server_find_secret, server);
    }
    if (code != 0) {
        tls_fail(error, error_size, "cannot set up TLS", code);
        tls_server_free(&server);
    }
    return server;
}

struct tls_client *
tls_client_new_shared(struct tls *tls, const struct tls_shared *shared, char *error,
                      size_t error_size)
{
    struct tls_client *client = memory_new(sizeof(*client));
    mbedtls_ssl_config *config = &client->config[TLS_LEVEL_NONE];
    struct tls_secret secret;
    assert(shared->count >= 1 && shared->count <= TLS_SECRETS_MAX);
    client->references = 1;
    client->tls = tls;
    client->is_shared = true;
    tls->references++;
    mbedtls_ssl_config_init(config);
    mbedtls_ssl_config_init(&client->config[TLS_LEVEL_VERIFY]);
    tls_secret_make(&secret, shared->group, shared->secrets[0]);
    int code = tls_shared_configure(tls, config, MBEDTLS_SSL_IS_CLIENT);
    mbedtls_ssl_conf_session_tickets(config, MBEDTLS_SSL_SESSION_TICKETS_DISABLED);
    if (code == 0)
        code = mbedtls_ssl_conf_psk(config, secret.key, sizeof(secret.key),
                                    (const unsigned char *)secret.identity,
                                    strlen(secret.identity));
    digest_forget(&secret, sizeof(secret));
    if (code != 0) {
        tls_fail(error, error_size, "cannot set up TLS", code);
        tls_client_free(&client);
    }
    return client;
}
