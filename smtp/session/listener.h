/* SMTP and LMTP server: listening sockets, one session for each connection, drafts for
 * the queue. The front door of all rooms for mail in, which never use those for mail out
 * and never deliver.
 *
 * Connects smtp/server/server.h (a machine without sockets) to base/net/net.h,
 * smtp/access/policy.h and queue/queue.h. */
#ifndef SMTP_SESSION_LISTENER_H
#define SMTP_SESSION_LISTENER_H

#include "base/crypto/digest.h"
#include "base/net/net.h"
#include "queue/manager/manager.h"
#include "smtp/session/session.h"

struct aliases;
struct event_hub;

struct listener_settings {
    struct aliases *aliases; /* of listener_serve_standard() alone; NULL: none */
    const char *hostname;
    struct text listen;      /* list of ADDRESS:PORT[?OPTION&...] or unix:PATH[?...] */
    struct text relay_from;  /* list of networks */
    struct text etrn;        /* list: see policy_read_etrn() */
    struct text mt_priority; /* see policy_read_priority() */
    int64_t future_release_ms;
    struct text tls_certificate;           /* list of PEM files; empty: no TLS */
    struct text tls_key;                   /* as many; empty: in the same files */
    struct text relay_client_certificates; /* a file: tls_clients_read(); or empty */
    bool tls_legacy;                       /* TLS 1.0 and 1.1 for profile=legacy */
    struct text auth_users;     /* a file, see smtp/access/users.h; empty: no AUTH */
    struct text auth;           /* "dovecot:PATH"; empty: auth_users, if set */
    struct text auth_cleartext; /* "no", empty, or "loopback" */
    struct text sender_login, sender_domains; /* see smtp/access/senders.h */
    int auth_failure_limit;                   /* see lockout_set_limit() */
    int server_tls_session_limit;             /* 0: no separate limit */
    bool allow_open_relay;
    int64_t message_size_limit; /* bytes; 0 = none */
    int64_t lifetime_ms;        /* of mail; see redirect_date() */
    int recipient_limit;
    struct client_usage_settings clients; /* see smtp/access/client_usage.h */
    struct text proxy_from;        /* list of networks: see smtp/session/pregreet.h */
    enum server_received received; /* see smtp/server/server.h */
    bool check_helo, check_sender; /* see smtp/access/policy.h */
    int64_t greet_delay_ms;        /* untrusted: reject early talkers; 0 = off */
    bool refuses_partial;          /* see server_rules */
    int hop_limit;                 /* Received lines; 50 */
    int error_limit;               /* bad commands before 421; 20 */
    int soft_error_limit;          /* ...before replies are delayed; 10 */
    int64_t error_delay_ms;        /* ...by this much more each time; 1 s */
    int junk_limit;        /* commands of an untrusted client without a message; 100 */
    int64_t data_rate_min; /* bytes a second of a message; 0 = any */
    int64_t idle_timeout_ms;      /* 300 s, RFC 5321 §4.5.3.2.7 */
    int64_t data_timeout_ms;      /* 180 s without a byte in DATA */
    int64_t handshake_timeout_ms; /* 20 s for a TLS handshake as a whole */
};
struct listener;
struct srs;
struct verp;

/* Checks everything, the files included, without binding; one line per error. */
bool listener_check(const struct listener_settings *settings, struct buffer *errors);

/* Binds everything; NULL with one line in error. routes is borrowed until reload. */
struct listener *listener_new(struct loop *loop, struct net *net,
                              struct event_hub *events, struct manager *manager,
                              const struct route_table *routes,
                              const struct listener_settings *settings, char *error,
                              size_t error_size);
/* The aliases by which recipients are expanded; both borrowed, and NULL: none. They may be
 * replaced at any time. */
void listener_set_aliases(struct listener *l, struct aliases *aliases,
                          const struct srs *srs);
/* The addresses to which reports come; NULL: there are none. Borrowed likewise. */
void listener_set_verp(struct listener *l, const struct verp *verp);
/* Sessions in flight keep their old settings until their next transaction. Addresses
 * are not rebound. */
void listener_reload(struct listener *l, const struct route_table *routes,
                     const struct listener_settings *settings);
/* on_flush starts the delivery that ETRN requests; without it ETRN is refused (458). */
void listener_on_flush(struct listener *l, session_flush *on_flush, void *context);
/* Accepts no more connections. Sessions between transactions get 421 4.3.2, others after
 * their transaction. drained is called after the last session has ended, at the latest
 * after grace_ms. */
void listener_drain(struct listener *l, int64_t grace_ms,
                    void (*drained)(void *context), void *context);
/* For messages without a connection (smtp/session/session_post.h). */
struct session_host *listener_host(struct listener *l);
/* New clients get 421 4.3.2; sessions get it now, or after their transaction. The ports
 * stay bound, and listener_open() ends it. */
void listener_close(struct listener *l);
void listener_open(struct listener *l);
void listener_free(struct listener **l);
/* The certificates of the settings in force; NULL: none. */
struct tls_server *listener_tls(const struct listener *l);
/* Replaces them: for connections that do not have TLS yet. *server becomes NULL. */
void listener_take_tls(struct listener *l, struct tls_server **server);
/* A listening socket, as operators see it; false: index is behind the last. */
struct listener_view {
    const struct net_address *address; /* borrowed */
    const char *kind;                  /* smtp, submission, lmtp */
    const char *tls;                   /* none, starttls, tls */
    size_t sessions;
    uint64_t accepted; /* connections */
};
bool listener_describe(const struct listener *l, size_t index,
                       struct listener_view *out);
size_t listener_sessions(const struct listener *l);
struct session_counts listener_counts(const struct listener *l);
/* The rules in force let (nearly) every address relay: networks_open(). */
bool listener_is_open_relay(const struct listener *l);
/* Users log in, and a socket of old devices takes their passwords in cleartext. */
bool listener_takes_cleartext(const struct listener *l);
/* See dovecot_auth_trouble(). */
const char *listener_auth_trouble(const struct listener *l);
/* See session_host_stress(). */
bool listener_is_stressed(const struct listener *l);

/* The clients that failed to log in. */
struct lockout *listener_lockout(const struct listener *l);

/* sendmail -bs: one session on descriptors 0 and 1 directly into queue, trusted to relay.
 * over is called after it has ended. */
void listener_serve_standard(struct loop *loop, struct net *net,
                             struct event_hub *events, struct queue *queue,
                             const struct route_table *routes,
                             const struct listener_settings *settings,
                             void (*over)(void *context), void *context);

/* The files of tls_certificate, each with that of its key. */
struct listener_pairs {
    struct tls_pair list[TLS_PAIRS_MAX];
    size_t count;
    bool old;      /* TLS 1.0 and 1.1 for old devices */
    char *clients; /* relay_client_certificates; NULL: none */
};
/* False: not as many in tls_key, or too many. listener_pairs_free() in either case. */
bool listener_pairs_read(const struct listener_settings *settings,
                         struct listener_pairs *pairs);
void listener_pairs_free(struct listener_pairs *pairs);
/* Reads the files of one pair or more; NULL with one line in error. */
struct tls_server *listener_pairs_serve(const struct listener_pairs *pairs, char *error,
                                        size_t error_size);

/* The secret for users_read(), read from the spool; created there at the first start. It
 * is kept, because the salts of unknown names must not change at a restart: those of
 * users do not. After a disk error the secret is valid for this process only. */
void listener_auth_secret(struct loop *loop, struct disk *disk,
                          unsigned char secret[DIGEST_SIZE]);

#endif
