/* One side of a TLS connection: handshake, records, and how it ends.
 *
 * The verdict on a server is ours. tls_session_check() collects the errors while
 * mbedTLS walks the chain; when the handshake is over, tls_session_finish() decides by
 * the level. If no certificate came (`checked` is false), the session was resumed, and
 * the stored verdict counts; but only if we offered a session. TLS_LEVEL_NONE accepts
 * every certificate; whether it was valid is still known, for the log. */
#include "base/tls/tls_session.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/net_address.h"
#include "base/tls/tls_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 1024, CIPHER_MAX = 64, MANY_EMPTY = 64 };

enum state { SHAKING, OPEN, ENDED, FAILED };

struct tls_session {
    mbedtls_ssl_context ssl;
    struct tls_server *server; /* or */
    struct tls_client *client;
    struct tls_pipe pipe;
    enum state state;
    int error_number; /* FAILED: negative */
    int pipe_error;   /* the last error of the pipe, a negative errno */

    enum tls_level level;
    char *key; /* of the client's memory; NULL: none */
    /* The certificate must have one of these; the first one is named in errors. */
    char (*names)[TLS_NAME_MAX + 1];
    size_t name_count;
    bool offered;           /* a remembered session */
    bool checked;           /* a certificate came */
    struct tls_worth worth; /* not verified: the reason is in trouble */
    struct tls_dane *dane;  /* NULL: no record demands anything */

    char cipher[CIPHER_MAX];
    char *trouble; /* with the certificate */
    char *error;
};

/* mbedTLS has no codes for our errors: pipe_error keeps them, and fail_by_code()
 * prefers it. */
static int
tls_session_receive(void *context, unsigned char *to, size_t size)
{
    struct tls_session *s = context;
    ssize_t got = s->pipe.receive(s->pipe.context, (char *)to, size);
    if (got >= 0)
        return (int)got;
    if (got == -EAGAIN)
        return MBEDTLS_ERR_SSL_WANT_READ;
    s->pipe_error = (int)got;
    return MBEDTLS_ERR_SSL_INTERNAL_ERROR;
}

static int
tls_session_transmit(void *context, const unsigned char *from, size_t size)
{
    struct tls_session *s = context;
    if (s->pipe.send(s->pipe.context, text_of(from, size)))
        return (int)size;
    s->pipe_error = -ENOBUFS;
    return MBEDTLS_ERR_SSL_INTERNAL_ERROR;
}

/* A session that has failed must not be resumed (RFC 5246 §7.2). */
static void
tls_session_fail(struct tls_session *s, int error_number, const char *reason)
{
    char text[TLS_ERROR_MAX];
    assert(s->state != FAILED && error_number < 0);
    if (s->key)
        tls_client_forget(s->client, s->key);
    snprintf(text, sizeof(text), "TLS: %s", reason);
    s->state = FAILED;
    s->error_number = error_number;
    s->error = memory_string(text);
}

/* The names are those of RFC 8446 §6. */
static const char *
alert_name(int alert)
{
    static const struct {
        int code;
        const char *name;
    } names[] = {
        {0,   "close_notify"           },
        {10,  "unexpected_message"     },
        {20,  "bad_record_mac"         },
        {22,  "record_overflow"        },
        {40,  "handshake_failure"      },
        {42,  "bad_certificate"        },
        {43,  "unsupported_certificate"},
        {44,  "certificate_revoked"    },
        {45,  "certificate_expired"    },
        {46,  "certificate_unknown"    },
        {47,  "illegal_parameter"      },
        {48,  "unknown_ca"             },
        {49,  "access_denied"          },
        {50,  "decode_error"           },
        {51,  "decrypt_error"          },
        {70,  "protocol_version"       },
        {71,  "insufficient_security"  },
        {80,  "internal_error"         },
        {86,  "inappropriate_fallback" },
        {90,  "user_canceled"          },
        {109, "missing_extension"      },
        {110, "unsupported_extension"  },
        {112, "unrecognized_name"      },
        {115, "unknown_psk_identity"   },
        {116, "certificate_required"   },
        {120, "no_application_protocol"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].code == alert)
            return names[i].name;
    return "unknown alert";
}

/* The remedy for the refusal of a server that we call, for an operator. */
static const char *
alert_remedy(const struct tls_session *s, unsigned char alert)
{
    if (s->client == NULL || s->state != SHAKING)
        return "";
    if (alert == 40)
        return " (it has no cipher, curve or signature in common with us)";
    if (alert != 70)
        return "";
#if MBEDTLS_VERSION_NUMBER < 0x03060000
    return " (it does not take TLS 1.2, the only version of this build with mbedTLS "
           "2.28; "
           "Petrel of Debian 13 has TLS 1.3)";
#else
    return " (it takes neither TLS 1.2 nor TLS 1.3)";
#endif
}

/* mbedTLS has no function for the alert: its description is the second byte of the
 * record (RFC 8446 §6). */
static void
fail_by_alert(struct tls_session *s)
{
    char text[TLS_ERROR_MAX];
    unsigned char alert = s->ssl.MBEDTLS_PRIVATE(in_msg)[1];
    snprintf(text, sizeof(text), "the peer broke off: %s%s", alert_name(alert),
             alert_remedy(s, alert));
    tls_session_fail(s, -EPROTO, text);
}

static bool
tls_session_is_shared(const struct tls_session *s)
{
    return (s->server && s->server->secrets) || (s->client && s->client->is_shared);
}

/* A peer that does not know our secret says so, or its records cannot be decrypted. */
static bool
is_other_secret(const struct tls_session *s, int code)
{
    int alert = code == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE
                    ? s->ssl.MBEDTLS_PRIVATE(in_msg)[1]
                    : 0;
    return code == MBEDTLS_ERR_SSL_UNKNOWN_IDENTITY ||
           code == MBEDTLS_ERR_SSL_INVALID_MAC ||
           alert == MBEDTLS_SSL_ALERT_MSG_BAD_RECORD_MAC ||
           alert == MBEDTLS_SSL_ALERT_MSG_DECRYPT_ERROR ||
           alert == MBEDTLS_SSL_ALERT_MSG_UNKNOWN_PSK_IDENTITY;
}

static bool
is_no_tls(int code)
{
#ifdef MBEDTLS_ERR_SSL_BAD_HS_CLIENT_HELLO /* 2.28 */
    if (code == MBEDTLS_ERR_SSL_BAD_HS_CLIENT_HELLO)
        return true;
#endif
    return code == MBEDTLS_ERR_SSL_INVALID_RECORD;
}

/* UINT32_MAX: mbedTLS has no result. */
static bool
has_flags(const struct tls_session *s)
{
    uint32_t flags = mbedtls_ssl_get_verify_result(&s->ssl);
    return s->state == SHAKING && s->checked && s->level == TLS_LEVEL_VERIFY &&
           flags != 0 && flags != UINT32_MAX;
}

/* No version or suite in common. */
static bool
is_too_old(int code)
{
#if MBEDTLS_VERSION_MAJOR >= 3
    return code == MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION ||
           code == MBEDTLS_ERR_SSL_HANDSHAKE_FAILURE;
#else
    return code == MBEDTLS_ERR_SSL_BAD_HS_PROTOCOL_VERSION ||
           code == MBEDTLS_ERR_SSL_NO_CIPHER_CHOSEN ||
           code == MBEDTLS_ERR_SSL_NO_USABLE_CIPHERSUITE;
#endif
}

/* Old devices are the usual cause: their owner reads what to set. */
static void
explain_old(const struct tls_session *s, char *text, size_t size)
{
#if MBEDTLS_VERSION_MAJOR >= 3
    int minor = (int)mbedtls_ssl_get_version_number(&s->ssl) & 0xff;
#else
    int minor = s->ssl.minor_ver;
#endif
    if (minor > 0 && minor < 3)
        snprintf(text, size,
                 "the client speaks TLS 1.%d at most: listen = ...?profile=legacy and "
                 "tls_legacy = yes take it where mbedTLS 2.28 is used, and "
                 "?starttls=no lets it send in cleartext",
                 minor - 1);
    else
        snprintf(text, size,
                 "no cipher suite in common: an old client needs an RSA key (petrel "
                 "cert) and listen = ...?profile=legacy");
}

/* The error of mbedTLS as text. From the cause to the symptom: an error of the pipe,
 * the end or an alert of the peer, our verdict on the certificate, and only then the
 * code, which for a refused certificate says no more than that. */
static void
fail_by_code(struct tls_session *s, int code)
{
    char text[TLS_ERROR_MAX];
    if (s->pipe_error) {
        tls_session_fail(s, s->pipe_error, strerror(-s->pipe_error));
    } else if (s->state == SHAKING && tls_session_is_shared(s) &&
               is_other_secret(s, code)) {
        tls_session_fail(s, -EPROTO,
                         "the other host does not know the secret of the group");
    } else if (code == 0 || code == MBEDTLS_ERR_SSL_CONN_EOF) {
        /* Not the same as close_notify: an attacker may have cut the connection off
         * (RFC 8446 §6.1). */
        tls_session_fail(s, -ECONNRESET,
                         s->state == SHAKING
                             ? "the peer ended the connection in the handshake"
                             : "the peer ended the connection without close_notify");
    } else if (code == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY) {
        tls_session_fail(s, -EPROTO, "the peer broke off: close_notify");
    } else if (code == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE) {
        fail_by_alert(s);
    } else if (s->trouble && s->level == TLS_LEVEL_VERIFY && s->state == SHAKING) {
        tls_session_fail(s, -EPROTO, s->trouble);
    } else if (has_flags(s)) { /* of usage: check() does not report it */
        mbedtls_x509_crt_verify_info(text, sizeof(text), "",
                                     mbedtls_ssl_get_verify_result(&s->ssl));
        text[strcspn(text, "\n")] = '\0';
        tls_session_fail(s, -EPROTO, text);
    } else if (s->state == SHAKING && is_no_tls(code)) {
        tls_session_fail(s, -EPROTO, "the peer does not speak TLS");
    } else if (s->server != NULL && is_too_old(code)) {
        explain_old(s, text, sizeof(text));
        tls_session_fail(s, -EPROTO, text);
    } else {
        tls_reason(code, text, sizeof(text));
        tls_session_fail(s, -EPROTO, text);
    }
}

static bool
is_named(struct tls_session *s, const mbedtls_x509_crt *certificate)
{
    struct text matched;
    for (size_t i = 0; i < s->name_count; i++) {
        if (tls_certificate_names(certificate, text_from(s->names[i]), &matched)) {
            tls_copy_name(s->worth.name, sizeof(s->worth.name), matched);
            return true;
        }
    }
    tls_copy_name(s->worth.name, sizeof(s->worth.name),
                  tls_certificate_name(certificate));
    return false;
}

/* From the anchor's end of the chain down to the peer's own (depth 0). mbedTLS compares
 * with one name only, and 2.28 with no addresses, so this function does both. Returns 0
 * in any case: another value would end the handshake, at any level. */
static int
tls_session_check(void *context, mbedtls_x509_crt *certificate, int depth,
                  uint32_t *flags)
{
    struct tls_session *s = context;
    char text[TLS_ERROR_MAX];
    if (depth == 0) {
        s->checked = true;
        *flags &= ~(uint32_t)MBEDTLS_X509_BADCERT_CN_MISMATCH;
        if (!is_named(s, certificate))
            *flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
    }
    /* The first one alone: an untrusted issuer matters more than an error below it. */
    if (*flags && !s->trouble) {
        tls_explain(certificate, depth, *flags,
                    text_from(s->name_count ? s->names[0] : "anybody"), text,
                    sizeof(text));
        s->trouble = memory_string(text);
    }
    return 0;
}

static struct tls_session *
tls_session_new(const struct tls_pipe *pipe, const mbedtls_ssl_config *config)
{
    struct tls_session *s = memory_new(sizeof(*s));
    int code;
    s->pipe = *pipe;
    mbedtls_ssl_init(&s->ssl);
    code = mbedtls_ssl_setup(&s->ssl, config);
    if (code != 0)
        fail_by_code(s, code);
    mbedtls_ssl_set_bio(&s->ssl, s, tls_session_transmit, tls_session_receive, NULL);
    return s;
}

struct tls_session *
tls_session_serve(struct tls_server *server, enum tls_protocol protocol,
                  const struct tls_pipe *pipe)
{
    struct tls_session *s = tls_session_new(pipe, &server->config[protocol]);
    s->server = server;
    server->references++;
    return s;
}

static void
tls_session_add_name(struct tls_session *s, struct text name)
{
    assert(name.length && name.length <= TLS_NAME_MAX);
    text_copy(s->names[s->name_count++], TLS_NAME_MAX + 1, name);
}

static void
copy_names(struct tls_session *s, const struct tls_client_options *options)
{
    s->names = memory_array(options->name_count + 1, sizeof(*s->names));
    for (size_t i = 0; i < options->name_count; i++)
        tls_session_add_name(s, options->names[i]);
    if (!options->name_count && options->host.length)
        tls_session_add_name(s, options->host);
    assert(s->name_count || options->level == TLS_LEVEL_NONE);
}

/* Without a host, or with more names than KEY_MAX allows, no session is stored. */
static void
tls_session_make_key(struct tls_session *s, struct text host)
{
    struct buffer key;
    bool fits;
    buffer_init(&key, KEY_MAX);
    fits = buffer_format(&key, "%d %.*s", (int)s->level, TEXT_ARGS(host));
    for (size_t i = 0; i < s->name_count && fits; i++)
        fits = buffer_format(&key, " %s", s->names[i]);
    if (s->dane) {
        unsigned char digest[DIGEST_SIZE];
        char hex[2 * DIGEST_SIZE + 1];
        tls_dane_digest(s->dane, digest);
        text_hex(digest, sizeof(digest), hex);
        fits = fits && buffer_format(&key, " dane %s", hex);
    }
    if (fits && host.length) {
        text_lower(key.at, key.length);
        s->key = text_string(buffer_text(&key));
    }
    buffer_free(&key);
}

static int
set_host(struct tls_session *s, struct text host)
{
    char name[TLS_NAME_MAX + 1];
    struct net_address ip;
    if (host.length > 1 && host.at[host.length - 1] == '.')
        host.length--;
    text_copy(name, sizeof(name), host);
    text_lower(name, host.length); /* 3.6 resumes only if the spelling is the same */
    /* RFC 6066 §3: an address is not sent as SNI. check() compares the names. */
    if (!host.length || net_address_parse_ip(host, &ip))
        return mbedtls_ssl_set_hostname(&s->ssl, NULL);
    return mbedtls_ssl_set_hostname(&s->ssl, name);
}

/* Without a host name mbedTLS 2.28 accepts any certificate below an anchor. */
static void
assert_names(const struct tls_session *s)
{
    assert(s->level == TLS_LEVEL_NONE || (s->name_count > 0 && s->names[0][0]));
}

struct tls_session *
tls_session_call(struct tls_client *client, const struct tls_client_options *options,
                 const struct tls_pipe *pipe)
{
    struct tls_client *with = tls_client_with(client, &options->own);
    client = with != NULL ? with : client;
    struct tls_session *s = tls_session_new(pipe, &client->config[options->level]);
    int code;
    if (with == NULL && s->state != FAILED)
        tls_session_fail(s, -EPROTO, "our certificate for this host is not loaded");
    s->client = client;
    client->references++;
    s->level = options->level;
    assert(options->host.length <= TLS_NAME_MAX);
    assert(!client->is_shared ||
           (options->level == TLS_LEVEL_NONE && !options->host.length));
    copy_names(s, options);
    s->dane = tls_dane_new(options);
    assert_names(s);
    tls_session_make_key(s, options->host);
    if (s->state == FAILED)
        return s;
    /* At TLS_LEVEL_VERIFY mbedTLS refuses by the flags that are left, and sends the
     * alert. */
    mbedtls_ssl_set_verify(&s->ssl, tls_session_check, s);
    code = set_host(s, options->host);
    if (code != 0)
        fail_by_code(s, code);
    else if (s->key)
        s->offered = tls_client_recall(client, s->key, &s->ssl, &s->worth);
    return s;
}

void
tls_session_free(struct tls_session **session)
{
    struct tls_session *s = *session;
    if (!s)
        return;
    *session = NULL;
    mbedtls_ssl_free(&s->ssl);
    if (s->server)
        tls_server_release(s->server);
    if (s->client)
        tls_client_release(s->client);
    tls_dane_free(&s->dane);
    free(s->names);
    free(s->key);
    free(s->trouble);
    free(s->error);
    free(s);
}

/* mbedTLS writes TLS1-3-AES-128-GCM-SHA256, IANA TLS_AES_128_GCM_SHA256. */
static void
note_cipher(struct tls_session *s)
{
    struct text name = text_from(mbedtls_ssl_get_ciphersuite(&s->ssl));
    if (text_starts(name, TEXT("TLS1-3-")))
        snprintf(s->cipher, sizeof(s->cipher), "TLS-%.*s",
                 TEXT_ARGS(text_after(name, sizeof("TLS1-3-") - 1)));
    else
        text_copy(s->cipher, sizeof(s->cipher), name);
    for (char *c = s->cipher; *c; c++)
        *c = *c == '-' ? '_' : *c;
}

static void
tls_session_remember(struct tls_session *s)
{
    /* A session that has failed must not be offered again. */
    if (s->key && s->state == OPEN)
        tls_client_remember(s->client, s->key, &s->ssl, &s->worth);
}

static bool
is_tls13(const struct tls_session *s)
{
    return strcmp(mbedtls_ssl_get_version(&s->ssl), "TLSv1.3") == 0;
}

/* A resumed session has no certificate: the same records have proven the one of its
 * full handshake. False: the session has failed. */
static bool
tls_session_prove(struct tls_session *s)
{
    char why[TLS_ERROR_MAX] = "no certificate came";
    const mbedtls_x509_crt *peer = mbedtls_ssl_get_peer_cert(&s->ssl);
    if (s->checked && peer) {
        mbedtls_x509_crt chain = *peer; /* mbedTLS verifies none that is const */
        s->worth.dane = tls_dane_proves(s->dane, &chain, why, sizeof(why));
    } else if (!s->offered) {
        s->worth.dane = false;
    }
    if (s->worth.dane)
        return true;
    s->state = SHAKING;
    tls_session_fail(s, -EPROTO, why);
    return false;
}

static void
tls_session_finish(struct tls_session *s)
{
    note_cipher(s);
    s->state = OPEN;
    if (!s->client)
        return;
    if (s->checked) {
        uint32_t flags = mbedtls_ssl_get_verify_result(&s->ssl);

        s->offered = false; /* or not accepted */
        s->worth.verified = s->name_count && !s->trouble && flags == 0;
        /* Neither a certificate nor a session that we know: nothing is verified. */
    } else if (!s->offered) {
        s->worth.verified = false;
    }
    /* If no certificate came, mbedTLS had nothing to refuse. */
    if (s->level == TLS_LEVEL_VERIFY && !s->worth.verified) {
        s->state = SHAKING;
        tls_session_fail(s, -EPROTO,
                         s->trouble ? s->trouble : "the certificate was not verified");
        return;
    }
    if (s->dane && !tls_session_prove(s))
        return;
    if (!is_tls13(s)) /* in TLS 1.3 tickets come later */
        tls_session_remember(s);
}

/* Never waits to write: the pipe takes all records, or has failed. */
enum progress
tls_session_shake(struct tls_session *s)
{
    int code;
    if (s->state == SHAKING) {
        code = mbedtls_ssl_handshake(&s->ssl);
        if (code == MBEDTLS_ERR_SSL_WANT_READ)
            return PROGRESS_MORE;
        if (code == 0)
            tls_session_finish(s);
        else
            fail_by_code(s, code);
    }
    return s->state == FAILED ? PROGRESS_BAD : PROGRESS_DONE;
}

static bool
is_ticket(int code)
{
#ifdef MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET
    return code == MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET;
#else
    (void)code;
    return false;
#endif
}

/* 0 = try again: a record without data came. */
static ssize_t
read_once(struct tls_session *s, char *to, size_t size)
{
    int code = mbedtls_ssl_read(&s->ssl, (unsigned char *)to, size);
    if (code > 0)
        return code;
    switch (code) {
    /* 3.6 returns this, too, before it processes a ticket */
    case MBEDTLS_ERR_SSL_WANT_READ:
        return mbedtls_ssl_check_pending(&s->ssl) ? 0 : -EAGAIN;
    case MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY:
        s->state = ENDED;
        return 0;
    default:
        if (is_ticket(code)) {
            tls_session_remember(s);
            return 0;
        }
        fail_by_code(s, code);
        return s->error_number;
    }
}

ssize_t
tls_session_read(struct tls_session *s, char *to, size_t size)
{
    ssize_t got = 0;
    assert(s->state != SHAKING && size > 0);
    if (s->state == FAILED)
        return s->error_number;
    /* A normal server sends few tickets; a flood of them is an attack. */
    for (int tries = 0; tries < MANY_EMPTY && s->state == OPEN; tries++) {
        got = read_once(s, to, size);
        if (got != 0)
            return got;
    }
    if (s->state == OPEN) {
        tls_session_fail(s, -EPROTO, "the peer sends nothing but tickets");
        return s->error_number;
    }
    return 0;
}

bool
tls_session_write(struct tls_session *s, struct text bytes)
{
    assert(s->state != SHAKING);
    while (bytes.length && s->state != FAILED) {
        int code =
            mbedtls_ssl_write(&s->ssl, (const unsigned char *)bytes.at, bytes.length);

        /* At most one record at a time. */
        if (code > 0)
            bytes = text_after(bytes, (size_t)code);
        else if (is_ticket(code)) /* received earlier */
            tls_session_remember(s);
        else
            fail_by_code(s, code ? code : MBEDTLS_ERR_SSL_INTERNAL_ERROR);
    }
    return s->state != FAILED;
}

/* Also after the end of the peer: TLS 1.2 demands an answer (RFC 5246 §7.2.1). */
void
tls_session_end(struct tls_session *s)
{
    if (s->state == OPEN || s->state == ENDED)
        mbedtls_ssl_close_notify(&s->ssl);
}

/* Bytes that mbedTLS has decrypted already cause no event of the socket. */
bool
tls_session_has_more(const struct tls_session *s)
{
    switch (s->state) {
    case SHAKING:
        return false;
    case OPEN:
        return mbedtls_ssl_get_bytes_avail(&s->ssl) > 0;
    /* The end or the error is still to be read. */
    case ENDED:
    case FAILED:
        return true;
    }
    return false;
}

const char *
tls_session_error(const struct tls_session *s)
{
    return s->error ? s->error : "";
}

enum tls_client_standing
tls_session_judge_client(const struct tls_session *s, const struct tls_server *server,
                         char out[TLS_CLIENT_TEXT_MAX])
{
    if (s->server == NULL || s->state == SHAKING)
        return TLS_CLIENT_ANONYMOUS;
    return tls_clients_judge(server->clients, mbedtls_ssl_get_peer_cert(&s->ssl), out);
}

struct tls_facts
tls_session_facts(const struct tls_session *s)
{
    bool has_cipher = s->cipher[0] != '\0', has_failed = s->state == FAILED;
    return (struct tls_facts){
        .version =
            s->state == SHAKING || !has_cipher ? "" : mbedtls_ssl_get_version(&s->ssl),
        .cipher = s->cipher,
        .peer_name = s->worth.name,
        .is_verified = s->client && has_cipher && s->worth.verified && !has_failed,
        .is_dane = s->dane && has_cipher && s->worth.dane && !has_failed,
        .is_resumed = s->offered && has_cipher};
}
