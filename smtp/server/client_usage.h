/* The clients: how many sessions each has, and at what rate it may come, send messages
 * and name recipients. No clock, no socket.
 *
 * A client is an IPv4 address or an IPv6 network of 64 bits, which is what one customer
 * has. An attacker may have one of 48 bits: when sessions are short, those of one count
 * together. Of a Unix socket nobody is counted: file permissions guard it. Times are
 * monotonic milliseconds. */
#ifndef SMTP_SERVER_CLIENT_USAGE_H
#define SMTP_SERVER_CLIENT_USAGE_H

#include "base/outcome.h"
#include "sched/limits/bucket.h"
#include "smtp/server/networks.h"

enum client_usage_kind {
    CLIENT_USAGE_SESSION,
    CLIENT_USAGE_MESSAGE,
    CLIENT_USAGE_RECIPIENT
};
enum {
    CLIENT_USAGE_KINDS = 3,
    /* Remembered clients without a session, for their rates; then the one that left
     * first is forgotten. */
    CLIENT_USAGE_IDLE_MAX = 16384,
    /* Of the sessions that there may be at a time: above the first there is stress,
     * until there are fewer than the second. */
    CLIENT_USAGE_STRESS_PERCENT = 80,
    CLIENT_USAGE_CALM_PERCENT = 60,
    CLIENT_USAGE_STRESS_MIN = 10 /* of fewer a part says nothing */
};

/* As the settings have them: a rate like sched/limits/bucket.h's, or empty. */
struct client_usage_settings {
    struct text
        each[CLIENT_USAGE_KINDS]; /* client_session_rate, _message_, _recipient_ */
    struct text all[CLIENT_USAGE_KINDS]; /* server_session_rate, server_message_rate,
                                            server_recipient_rate */
    struct text exempt;                  /* rate_exempt: list of networks */
    int sessions, sessions_per_client;   /* at a time */
};

struct client_usage_rules {
    struct rate each[CLIENT_USAGE_KINDS], all[CLIENT_USAGE_KINDS];
    struct networks exempt;
    int sessions, sessions_per_client;
};

/* rules is zeroed memory. One line per error; false then. Free in any case. */
bool client_usage_read(struct client_usage_rules *rules,
                       const struct client_usage_settings *settings,
                       struct buffer *errors) __attribute__((warn_unused_result));
void client_usage_rules_free(struct client_usage_rules *rules);

struct client_usage;
struct client_usage *client_usage_new(void);
void client_usage_free(struct client_usage **clients);

/* A session begins: false with a 421 when it must not go on. In any case it counts as
 * one until client_usage_left(). */
bool client_usage_entered(struct client_usage *clients,
                          const struct client_usage_rules *rules,
                          const struct net_address *client, int64_t now_ms,
                          struct outcome *refusal) __attribute__((warn_unused_result));
/* The address as above. */
void client_usage_left(struct client_usage *clients, const struct net_address *client,
                       int64_t now_ms);

/* A message or recipient of a client that has entered: false with a 450 that says when
 * to come again; then it does not count. */
bool client_usage_take(struct client_usage *clients,
                       const struct client_usage_rules *rules,
                       const struct net_address *client, enum client_usage_kind kind,
                       int64_t now_ms, struct outcome *refusal)
    __attribute__((warn_unused_result));

/* A TLS session of a client that has entered begins, or ends, before it has left. */
void client_usage_secured(struct client_usage *clients,
                          const struct net_address *client, bool begins);
/* Its TLS sessions; 0 of a Unix socket. */
size_t client_usage_tls(const struct client_usage *clients,
                        const struct net_address *client);

/* Whether there are nearly too many sessions now. */
bool client_usage_stressed(struct client_usage *clients,
                           const struct client_usage_rules *rules);
/* Sessions of the client, of IPv6 those of its network of 48 bits; 0 of a Unix socket.
 */
size_t client_usage_weight(const struct client_usage *clients,
                           const struct net_address *client);

/* Sessions of all clients. */
size_t client_usage_sessions(const struct client_usage *clients);
/* Clients that are remembered. */
size_t client_usage_known(const struct client_usage *clients);

#endif
