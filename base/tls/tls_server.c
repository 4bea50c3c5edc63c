/* The server's role: certificates selected by name, and session tickets.
 *
 * Everything is read and checked before the server is used: a wrong file is an error at
 * startup or of the reload, with one line that names it, and not a failure of
 * handshakes later. */
#include "base/tls/tls_internal.h"

#include "base/memory.h"

#include <assert.h>
#include <mbedtls/oid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TICKET_LIFE_S = 4 * 3600 };

/* A client of another protocol was redirected here by an attacker (ALPACA). */
static const char *mail_protocols[] = {"smtp", "lmtp", NULL};
static const char *http_protocols[] = {"http/1.1", "http/1.0", NULL};
static const char **const protocols[TLS_PROTOCOLS] = {[TLS_MAIL] = mail_protocols,
                                                      [TLS_HTTP] = http_protocols,
                                                      [TLS_OLD_MAIL] = mail_protocols};

/* Clients would refuse another one, and mbedTLS does not present it. */
static bool
tls_server_read_pair(struct tls *tls, struct tls_own *own, const struct tls_pair *pair,
                     char *error, size_t error_size)
{
    if (!tls_own_read(tls, own, pair, error, error_size))
        return false;
    if (mbedtls_x509_crt_check_extended_key_usage(
            &own->certificate, MBEDTLS_OID_SERVER_AUTH,
            MBEDTLS_OID_SIZE(MBEDTLS_OID_SERVER_AUTH)) == 0)
        return true;
    snprintf(error, error_size, "the certificate in %s is not for servers",
             pair->certificate);
    return false;
}

/* All pairs whose names match the host as well as the best one does, by wildcard or
 * not: their keys may be of different types. Without a match mbedTLS keeps the first
 * pair (tls_server_configure()). */
static int
tls_server_choose(void *context, mbedtls_ssl_context *ssl, const unsigned char *name,
                  size_t length)
{
    const struct tls_server *server = context;
    struct text host = text_of(name, length), matched;
    bool is_exact = false;
    for (int wildcards = 0; wildcards < 2 && !is_exact; wildcards++) {
        for (size_t i = 0; i < server->own_count; i++) {
            struct tls_own *own = &server->own[i];
            int code;

            if (!tls_certificate_names(&own->certificate, host, &matched) ||
                text_starts(matched, TEXT("*")) != (wildcards == 1))
                continue;
            is_exact = true;
            code = mbedtls_ssl_set_hs_own_cert(ssl, &own->certificate, &own->key);
            if (code != 0)
                return code;
        }
    }
    return 0;
}

static int
tls_server_configure_for(struct tls_server *server, enum tls_protocol protocol)
{
    mbedtls_ssl_config *config = &server->config[protocol];
    struct tls *tls = server->tls;
    int code = tls_configure(tls, config, MBEDTLS_SSL_IS_SERVER);
    if (code != 0)
        return code;
    if (protocol == TLS_OLD_MAIL)
        tls_configure_old(config);
    /* Clients are not asked for certificates; but see tls_server_ask(). */
    mbedtls_ssl_conf_authmode(config, MBEDTLS_SSL_VERIFY_NONE);
    mbedtls_ssl_conf_sni(config, tls_server_choose, server);
    code = mbedtls_ssl_conf_own_cert(config, &server->own[0].certificate,
                                     &server->own[0].key);
    if (code == 0)
        code = mbedtls_ssl_conf_alpn_protocols(config, protocols[protocol]);
    /* A ticket of mail opens no session of HTTP: there are none for it. */
    if (code == 0 && protocol == TLS_MAIL)
        code = mbedtls_ssl_ticket_setup(&server->tickets, mbedtls_ctr_drbg_random,
                                        &tls->random, MBEDTLS_CIPHER_AES_256_GCM,
                                        TICKET_LIFE_S);
    if (code == 0 && protocol == TLS_MAIL)
        mbedtls_ssl_conf_session_tickets_cb(config, mbedtls_ssl_ticket_write,
                                            mbedtls_ssl_ticket_parse, &server->tickets);
    return code;
}

static int
tls_server_configure(struct tls_server *server)
{
    int code = tls_server_configure_for(server, TLS_MAIL);
    if (code == 0)
        code = tls_server_configure_for(server, TLS_HTTP);
    return code != 0 ? code : tls_server_configure_for(server, TLS_OLD_MAIL);
}

bool
tls_server_allow_old(struct tls_server *server)
{
#if MBEDTLS_VERSION_MAJOR < 3 && defined(MBEDTLS_SSL_PROTO_TLS1)
    mbedtls_ssl_conf_min_version(&server->config[TLS_OLD_MAIL],
                                 MBEDTLS_SSL_MAJOR_VERSION_3,
                                 MBEDTLS_SSL_MINOR_VERSION_1);
    return true;
#else
    (void)server;
    return false;
#endif
}

/* The list of authorities is not sent: a client whose certificate counts by its
 * fingerprint would keep it back. */
void
tls_server_ask(struct tls_server *server, struct tls_clients **clients)
{
    mbedtls_ssl_config *config = &server->config[TLS_MAIL];
    tls_clients_free(&server->clients);
    server->clients = *clients;
    *clients = NULL;
    mbedtls_ssl_conf_authmode(config, MBEDTLS_SSL_VERIFY_OPTIONAL);
    mbedtls_ssl_conf_cert_req_ca_list(config, MBEDTLS_SSL_CERT_REQ_CA_LIST_DISABLED);
    mbedtls_ssl_conf_session_tickets_cb(config, NULL, NULL, NULL);
}

/* After a reload the last connection frees the old server. */
void
tls_server_release(struct tls_server *server)
{
    assert(server->references > 0);
    if (--server->references)
        return;
    for (int i = 0; i < TLS_PROTOCOLS; i++)
        mbedtls_ssl_config_free(&server->config[i]);
    mbedtls_ssl_ticket_free(&server->tickets);
    for (size_t i = 0; i < server->own_count; i++)
        tls_own_free(&server->own[i]);
    free(server->own);
    tls_clients_free(&server->clients);
    if (server->secrets != NULL)
        digest_forget(server->secrets, server->secret_count * sizeof(*server->secrets));
    free(server->secrets);
    tls_release(server->tls);
    free(server);
}

void
tls_server_free(struct tls_server **server)
{
    if (*server)
        tls_server_release(*server);
    *server = NULL;
}

struct tls_server *
tls_server_new(struct tls *tls, const struct tls_pair *pairs, size_t count, char *error,
               size_t error_size)
{
    struct tls_server *server = memory_new(sizeof(*server));
    bool good = true;
    int code;
    assert(count >= 1 && count <= TLS_PAIRS_MAX);
    server->references = 1;
    server->tls = tls;
    tls->references++;
    server->own = memory_array(count, sizeof(*server->own));
    for (int i = 0; i < TLS_PROTOCOLS; i++)
        mbedtls_ssl_config_init(&server->config[i]);
    mbedtls_ssl_ticket_init(&server->tickets);
    while (good && server->own_count < count) {
        struct tls_own *own = &server->own[server->own_count];

        /* Counted before it is read: tls_server_free() frees a half-read one, too. */
        good = tls_server_read_pair(tls, own, &pairs[server->own_count++], error,
                                    error_size);
    }
    if (good && (code = tls_server_configure(server)) != 0)
        good = tls_fail(error, error_size, "cannot set up TLS", code);
    if (!good)
        tls_server_free(&server);
    return server;
}

bool
tls_server_certificate(const struct tls_server *server, size_t index,
                       struct tls_certificate *out)
{
    if (index >= server->own_count)
        return false;
    tls_own_describe(&server->own[index], out);
    return true;
}

void
tls_server_each_name(const struct tls_server *server, size_t index,
                     void (*each)(void *context, const char *name), void *context)
{
    if (index < server->own_count)
        tls_certificate_each_name(&server->own[index].certificate, each, context);
}
