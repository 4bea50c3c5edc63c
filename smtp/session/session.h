/* One connection of a client: connects the machine of server.h to a socket and the
 * queue. */
#ifndef SMTP_SESSION_SESSION_H
#define SMTP_SESSION_SESSION_H

#include "base/loop/loop.h"
#include "base/net/net.h"
#include "queue/manager/manager.h"
#include "smtp/access/client_usage.h"
#include "smtp/access/policy.h"
#include "smtp/access/senders.h"
#include "smtp/deadline.h"
#include "smtp/reply.h"
#include "smtp/server/server.h"
#include "smtp/session/auth_gate.h"

/* The results of connections of clients, since startup: for metrics. */

/* Why a connection got no session. */
enum session_refused {
    SESSION_REFUSED_SESSIONS,        /* too many in all */
    SESSION_REFUSED_CLIENT_SESSIONS, /* of its address or network */
    SESSION_REFUSED_RATE,
    SESSION_REFUSED_LOCKOUT,
    SESSION_REFUSED_PROXY, /* no PROXY header, or from a peer that may not send one */
    SESSION_REFUSED_DRAINING,
    SESSION_REFUSED_DESCRIPTORS, /* it waits in the kernel */
    SESSION_REFUSED_OTHER,
    SESSION_REFUSED_REASONS
};
const char *session_refused_word(enum session_refused reason);

enum { SESSION_ACCEPT_BOUNDS = 8 };
struct session_counts {
    uint64_t opened, logins;
    uint64_t refused[SESSION_REFUSED_REASONS];
    /* From the end of content to its 250, by session_accept_bounds_s; the last: beyond. */
    uint64_t accepts[SESSION_ACCEPT_BOUNDS + 1];
    int64_t accept_sum_us;
};
extern const double session_accept_bounds_s[SESSION_ACCEPT_BOUNDS];

void session_counts_refuse(struct session_counts *counts,
                           const struct refusal *refusal);
void session_counts_accept(struct session_counts *counts, int64_t took_us);

struct aliases;
struct event_hub;

/* The settings of sessions: shared, replaced by a reload, freed by the last user. */
struct session_rules {
    unsigned users;
    struct server_rules server; /* its texts are those below */
    struct policy policy;
    struct client_usage_rules clients;
    struct policy_checks check;
    struct deadline_rules patience;
    struct networks proxies;      /* proxy_from */
    int64_t greet_delay_ms;       /* for untrusted clients */
    struct tls_server *tls;       /* NULL: no TLS */
    struct users *accounts;       /* NULL: no AUTH, or by another server: */
    char auth_path[NET_PATH_MAX]; /* Dovecot's socket; "": none */
    struct senders *senders;
    int64_t lifetime_ms;      /* of mail; see redirect_date() */
    bool auth_cleartext;      /* cleartext AUTH for loopback clients */
    size_t tls_session_limit; /* 0: no separate limit */
    int64_t idle_timeout_ms, data_timeout_ms;
    int64_t handshake_timeout_ms; /* of TLS, as a whole */
    char hostname[256], postmaster_domain[256];
};
void session_rules_release(struct session_rules **rules);

struct server_session;
struct srs;
struct verp;

/* A client requests delivery of the mail for node (see server_node()) by ETRN. */
typedef enum server_flush session_flush(void *context, const char *node,
                                        const char *client);

/* The state shared by the sessions of a listener. */
struct session_host {
    struct loop *loop;
    struct event_hub *events;
    struct log *log; /* of these */
    struct queue *queue;
    struct manager *manager;          /* NULL: no delivery (sendmail -bs) */
    struct aliases *aliases;          /* NULL: there are none; borrowed, as the next */
    const struct srs *srs;            /* NULL: senders of forwarded mail stay */
    const struct verp *verp;          /* NULL: no reports are read */
    const struct route_table *routes; /* NULL: no peer hosts */
    struct client_usage *clients;     /* NULL: no counts (sendmail -bs) */
    struct session_rules *rules;      /* for new transactions */
    struct buffer out; /* replies not yet passed to net.h; empty between calls */
    struct server_session *sessions;
    struct server_session *shaking;           /* in TLS handshakes, the oldest first */
    struct server_session *idle[2];           /* all sessions, without and with TLS, the
                                                 longest idle first */
    struct server_session *paced, *paced_new; /* replies that wait, oldest first; new:
                                               * from here on not looked at */
    struct loop_timer pace;
    bool pace_due;
    unsigned pace_answers;  /* since the timer was started */
    int64_t pace_logged_ms; /* monotonic; 0: never */
    bool stressed;          /* see session_host_stress() */
    size_t count, tls_count;
    struct session_counts counts;
    struct lockout *lockout; /* this and the next two: made by session_host_start() */
    struct auth_gate *gate;
    struct dovecot_auth *dovecot; /* NULL: no settings have named one yet */
    struct refusals *refusals;    /* limits their log lines */
    struct server_envelopes envelopes;
    /* A session has ended; peer: from net_peer(). */
    void (*on_gone)(void *context, const struct net_address *peer);
    void *context;
    session_flush *on_flush; /* NULL: ETRN is refused */
    void *flusher;           /* its context */
    queue_stored *on_stored; /* this and the next: private to session.c */
    void (*on_login)(void *context);
};
/* The caller has set all other fields of host. */
void session_host_start(struct session_host *host);
/* Cuts all sessions off without a reply. Messages being stored may become durable. */
void session_host_stop(struct session_host *host);

/* Sends the replies that wait because mail comes faster than it leaves. */
void session_host_answer(struct session_host *host);
/* Stress begins or ends. Under stress untrusted clients have time-outs of at most 10 s,
 * one junk command and one error, as in Postfix. */
void session_host_stress(struct session_host *host, bool stressed);
/* Ends an untrusted session for a newcomer, which is counted already: an idle session,
 * or one of a client with too many. An untrusted newcomer does not displace a client that
 * has fewer sessions. False: no session ended. */
bool session_make_place(struct session_host *host, const struct net_address *newcomer,
                        bool trusted);

/* The options of a listening address. */
struct session_options {
    bool lmtp;
    bool tls;      /* from the first byte; the rules have tls */
    bool starttls; /* offered if the rules have tls */
    bool proxy;    /* a PROXY header comes first (smtp/session/pregreet.h) */
    bool stranger; /* the address is not the client's and does not permit relaying */
    bool legacy;   /* see smtp/server/normalize_newlines.h */
    enum endpoint_auth auth;
};
/* Takes an accepted connection and greets; sends refusal instead, unless NULL, and
 * closes. */
void session_start(struct session_host *host, struct net_connection *connection,
                   const struct session_options *options,
                   const struct refusal *refusal);
/* Starts a session on two descriptors, which is trusted to relay. */
void session_start_standard(struct session_host *host, struct net *net, int in,
                            int out);
/* 421 to all clients, after their current transactions. */
void session_drain(struct session_host *host);
/* True: the client is one of our hosts that may pass fragments on
 * (sched/route/peers.h). */
bool session_is_peer(const struct session_host *host, const struct net_address *client,
                     const struct session_options *options);
/* True: the client is locked out and the address requires AUTH: refuse the session. */
bool session_is_locked_out(const struct session_host *host,
                           const struct net_connection *connection,
                           const struct session_options *options);

#endif
