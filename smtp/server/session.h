/* One connection of a client: ties the machine of server.h to a socket and to the
 * queue. */
#ifndef SMTP_SERVER_SESSION_H
#define SMTP_SERVER_SESSION_H

#include "base/net/net.h"
#include "queue/manager/manager.h"
#include "smtp/server/sanity.h"
#include "smtp/server/client_usage.h"
#include "smtp/deadline.h"
#include "smtp/server/auth_gate.h"
#include "smtp/server/policy.h"
#include "smtp/server/senders.h"
#include "smtp/server/server.h"

/* Settings as the sessions see them: shared, replaced by a reload, freed by the last
 * user. */
struct session_rules {
    unsigned users;
    struct server_rules server; /* its names are those below */
    struct policy policy;
    struct client_usage_rules clients;
    struct sanity_rules check;
    struct deadline_rules patience;
    struct networks proxies; /* who may say for whom it speaks */
    int64_t greet_delay_ms;  /* of untrusted clients */
    struct tls_server *tls;  /* NULL: none is offered */
    struct users *accounts;  /* NULL: no AUTH */
    struct senders *senders;
    int64_t lifetime_ms;      /* of mail; see redirect_date() */
    bool auth_cleartext;      /* AUTH in clear by loopback clients */
    size_t tls_session_limit; /* 0: none of its own */
    int64_t idle_timeout_ms, data_timeout_ms;
    int64_t handshake_timeout_ms; /* of TLS, as a whole */
    char hostname[256], postmaster_domain[256];
};
void session_rules_release(struct session_rules **rules);

struct server_session;

/* The mail for node (see server_node()) is to be tried now, says a client. */
typedef enum server_flush session_flush(void *context, const char *node,
                                        const char *client);

/* What the sessions of one listener share. */
struct session_host {
    struct loop *loop;
    struct log *log;
    struct queue *queue;
    struct manager *manager;          /* NULL: nobody here delivers (sendmail -bs) */
    const struct route_table *routes; /* NULL: nobody is one of our hosts */
    struct client_usage *clients;     /* NULL: nobody is counted (sendmail -bs) */
    struct session_rules *rules;      /* for new transactions */
    struct buffer out; /* replies on their way to net.h; empty between calls */
    struct server_session *sessions;
    struct server_session *shaking; /* TLS handshakes, the oldest first */
    struct server_session *idle;    /* all sessions, the longest idle first */
    bool stressed;                  /* see session_host_stress() */
    size_t count, tls_count;
    struct auth_gate *gate;    /* this and the next: made by session_host_start() */
    struct refusals *refusals; /* lines of the log about them */
    struct server_envelopes envelopes;
    /* A session is gone; peer as net_peer() said. */
    void (*on_gone)(void *context, const struct net_address *peer);
    void *context;
    session_flush *on_flush; /* NULL: nobody can */
    void *flusher;           /* its context */
    queue_stored *on_stored; /* this and the next: session.c's own */
    void (*on_login)(void *context);
};
/* host is filled in but for these. */
void session_host_start(struct session_host *host);
/* Cuts every session off. Messages being stored may or may not be; no client gets a reply. */
void session_host_stop(struct session_host *host);

/* While there are nearly too many sessions: untrusted clients have 10 s at most for
 * everything, one junk command and one error, as under Postfix's stress. */
void session_host_stress(struct session_host *host, bool stressed);
/* For a newcomer that counts as entered, an untrusted session ends that is idle, or one
 * of too many of its client; for an untrusted newcomer none of a client that has fewer
 * than it. False: there is none. */
bool session_make_place(struct session_host *host, const struct net_address *newcomer,
                        bool trusted);

/* How a listening address speaks. */
struct session_options {
    bool lmtp;
    bool tls;      /* from the first byte: the rules have it */
    bool starttls; /* may be asked for, where the rules have it */
    bool proxy;    /* a header stands before it (smtp/server/pregreet.h) */
    bool stranger; /* its address lets nobody relay: it is not the client's */
    bool legacy;   /* see smtp/server/normalize_newlines.h */
    enum endpoint_auth auth;
};
/* Takes an accepted connection and greets; or, when refusal is not NULL, says that and
 * closes. */
void session_start(struct session_host *host, struct net_connection *connection,
                   const struct session_options *options,
                   const struct refusal *refusal);
/* The same on two descriptors: trusted to relay. */
void session_start_standard(struct session_host *host, struct net *net, int in,
                            int out);
/* 421 to everybody, after the transaction that runs. */
void session_drain(struct session_host *host);
/* Whether the client is one of our hosts that may pass fragments on
 * (sched/route/peers.h). */
bool session_is_peer(const struct session_host *host, const struct net_address *client,
                     const struct session_options *options);
/* Who failed to log in too often hears nothing but that where AUTH is required. */
bool session_is_locked_out(const struct session_host *host,
                           const struct net_connection *connection,
                           const struct session_options *options);

#endif
