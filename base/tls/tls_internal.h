/* Shared by the files of base/tls/; no other file includes this header.
 *
 * tls.c: random numbers, cipher suites, PEM files. tls_name.c: names in certificates,
 * and errors of certificates. tls_server.c, tls_client.c: the two roles.
 * tls_session.c: one connection. tls_dane.c: TLSA records. tls_self_signed.c: makes
 * certificates. tls_shared.c: both roles with a shared secret. Differences between mbedTLS
 * 2.28 and 3.6 are only in these files. */
#ifndef BASE_TLS_TLS_INTERNAL_H
#define BASE_TLS_TLS_INTERNAL_H

#include "base/crypto/digest.h"
#include "base/tls/tls.h"

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/pk.h>
#include <mbedtls/ssl.h>
#include <mbedtls/ssl_ticket.h>
#include <mbedtls/version.h>
#include <mbedtls/x509_crt.h>

#ifndef MBEDTLS_PRIVATE /* 3.x: members that may change */
#define MBEDTLS_PRIVATE(member) member
#endif

struct tls {
    unsigned references;
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
};
void tls_release(struct tls *tls);
/* Adds the suites of old devices to those of tls_configure(). */
void tls_configure_old(mbedtls_ssl_config *config);

struct tls_own {
    mbedtls_x509_crt certificate; /* and its intermediates */
    mbedtls_pk_context key;
};
/* Reads both files; *own is to be freed in either case. False: one line in error. */
bool tls_own_read(struct tls *tls, struct tls_own *own, const struct tls_pair *pair,
                  char *error, size_t error_size);
void tls_own_free(struct tls_own *own);
void tls_own_describe(const struct tls_own *own, struct tls_certificate *out);

/* A shared secret as TLS has it. */
enum { TLS_IDENTITY_SIZE = TLS_GROUP_MAX + 1 + TLS_SECRET_DIGITS + 1 };
struct tls_secret {
    char identity[TLS_IDENTITY_SIZE];
    unsigned char key[DIGEST_SIZE];
};
void tls_secret_make(struct tls_secret *out, const char *group, struct text secret);

struct tls_server {
    unsigned references;
    struct tls *tls;
    struct tls_secret *secrets; /* NULL: it has certificates */
    size_t secret_count;
    struct tls_own *own;
    size_t own_count;
    struct tls_clients *clients; /* NULL: clients are not asked for certificates */
    mbedtls_ssl_ticket_context tickets;
    mbedtls_ssl_config config[TLS_PROTOCOLS];
};
void tls_server_release(struct tls_server *server);

/* Trust anchors, of a client and of those with certificates of their own. */
struct tls_anchors {
    unsigned references;
    mbedtls_x509_crt chain;
};

struct tls_memory; /* a remembered session */
struct tls_client {
    unsigned references;
    struct tls *tls;
    bool is_shared;              /* a secret in the place of certificates */
    struct tls_anchors *anchors; /* NULL: is_shared */
    mbedtls_ssl_config config[TLS_LEVEL_VERIFY + 1]; /* by level */
    struct tls_memory *sessions; /* uthash, the least recently saved first */
    /* With a certificate: its files, and the next one of the same owner. The owner's list
     * of them has one of each pair. */
    struct tls_own *own;
    char *certificate, *key;
    struct tls_client *next, *with_own;
};
void tls_client_release(struct tls_client *client);
/* The one that presents the pair; client itself without a pair; NULL: none does. */
struct tls_client *tls_client_with(struct tls_client *client,
                                   const struct tls_pair *pair);
/* The result of verification, for resumed sessions, which have no certificate. */
struct tls_worth {
    bool verified;
    bool dane; /* proven by the records that are part of its key */
    char name[TLS_NAME_MAX + 1];
};
/* True if a session for key was found and loaded into the connection. */
bool tls_client_recall(struct tls_client *client, const char *key,
                       mbedtls_ssl_context *ssl, struct tls_worth *worth);
void tls_client_remember(struct tls_client *client, const char *key,
                         const mbedtls_ssl_context *ssl, const struct tls_worth *worth);
void tls_client_forget(struct tls_client *client, const char *key);

/* peer: the certificate that the client has presented, or NULL. out: see
 * tls_session_judge_client(). */
enum tls_client_standing tls_clients_judge(const struct tls_clients *clients,
                                           const mbedtls_x509_crt *peer,
                                           char out[TLS_CLIENT_TEXT_MAX]);

/* Protocol versions and suites of both roles. 0 or mbedTLS's error. */
int tls_configure(struct tls *tls, mbedtls_ssl_config *config, int role);
/* "what: reason" in mbedTLS' words, without its prefix; returns false. */
bool tls_fail(char *error, size_t error_size, const char *what, int code);
/* The reason alone. */
void tls_reason(int code, char *to, size_t size);
/* A whole PEM file, NUL-terminated, to be freed with tls_forget_file(). */
bool tls_read_file(const char *path, char **content, size_t *length, char *error,
                   size_t error_size);
/* Adds all certificates that can be parsed; false when there is none. */
bool tls_parse_certificates(mbedtls_x509_crt *chain, const char *path, char *content,
                            size_t length, char *error, size_t error_size);
void tls_forget_file(char *content, size_t length);

/* Whether the certificate is valid for host, a name or an IP literal. The common name
 * does not count (RFC 9525 §2). *matched: the name that matched. */
bool tls_certificate_names(const mbedtls_x509_crt *certificate, struct text host,
                           struct text *matched);
/* The first name of the certificate, for logs; may be empty. */
struct text tls_certificate_name(const mbedtls_x509_crt *certificate);
/* Calls each with the names, as tls_server_each_name() does. */
void tls_certificate_each_name(const mbedtls_x509_crt *certificate,
                               void (*each)(void *context, const char *name),
                               void *context);
int64_t tls_time_ms(const mbedtls_x509_time *time); /* since 1970 */
/* Copies; bytes that are not printable ASCII become '?'. */
void tls_copy_name(char *to, size_t size, struct text name);
/* One line on the most serious of flags. host: the name that was required. */
void tls_explain(const mbedtls_x509_crt *certificate, int depth, uint32_t flags,
                 struct text host, char *to, size_t size);

/* The demands of DANE on a peer: usable records and names, copied. NULL: none. */
struct tls_dane;
struct tls_dane *tls_dane_new(const struct tls_client_options *options);
void tls_dane_free(struct tls_dane **dane);
/* Equal for equal records in any order, and equal names. */
void tls_dane_digest(const struct tls_dane *dane, unsigned char out[DIGEST_SIZE]);
/* Whether the chain, whose first certificate is the peer's own, is proven. False: a
 * reason is in why. */
bool tls_dane_proves(const struct tls_dane *dane, mbedtls_x509_crt *chain, char *why,
                     size_t size) __attribute__((warn_unused_result));

/* Whether a name in a certificate matches host. Case and a trailing dot of host are
 * ignored; "*." stands for exactly one label and needs at least two behind it. */
bool tls_name_matches(struct text pattern, struct text host);

#endif
