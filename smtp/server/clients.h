/* The clients: how many sessions each has, and at what rate it may come, send messages
 * and name recipients. No clock, no socket.
 *
 * A client is an IPv4 address or an IPv6 network of 64 bits, which is what one customer
 * has. An attacker may have one of 48 bits: when sessions are short, those of one count
 * together. Of a Unix socket nobody is counted: file permissions guard it. Times are
 * monotonic milliseconds. */
#ifndef SMTP_CLIENTS_H
#define SMTP_CLIENTS_H

#include "base/outcome.h"
#include "sched/limits/bucket.h"
#include "smtp/server/networks.h"

enum clients_kind { CLIENTS_SESSION, CLIENTS_MESSAGE, CLIENTS_RECIPIENT };
enum {
    CLIENTS_KINDS = 3,
    /* Remembered clients without a session, for their rates; then the one that left
     * first is forgotten. */
    CLIENTS_IDLE_MAX = 16384,
    /* Of the sessions that there may be at a time: above the first there is stress,
     * until there are fewer than the second. */
    CLIENTS_STRESS_PERCENT = 80,
    CLIENTS_CALM_PERCENT = 60,
    CLIENTS_STRESS_MIN = 10 /* of fewer a part says nothing */
};

/* As the settings have them: a rate like sched/limits/bucket.h's, or empty. */
struct clients_settings {
    struct text each[CLIENTS_KINDS];   /* client_session_rate, _message_, _recipient_ */
    struct text all[CLIENTS_KINDS];    /* session_rate, message_rate, recipient_rate */
    struct text exempt;                /* rate_exempt: list of networks */
    int sessions, sessions_per_client; /* at a time */
};

struct clients_rules {
    struct rate each[CLIENTS_KINDS], all[CLIENTS_KINDS];
    struct networks exempt;
    int sessions, sessions_per_client;
};

/* rules is zeroed memory. One line per mistake; false then. Free in any case. */
bool clients_read(struct clients_rules *rules, const struct clients_settings *settings,
                  struct buffer *mistakes) __attribute__((warn_unused_result));
void clients_rules_free(struct clients_rules *rules);

struct clients;
struct clients *clients_new(void);
void clients_free(struct clients **clients);

/* A session begins: false with a 421 when it must not go on. In any case it counts as
 * one until clients_left(). */
bool clients_entered(struct clients *clients, const struct clients_rules *rules,
                     const struct net_address *client, int64_t now_ms,
                     struct outcome *refusal) __attribute__((warn_unused_result));
/* The address as above. */
void clients_left(struct clients *clients, const struct net_address *client,
                  int64_t now_ms);

/* A message or recipient of a client that has entered: false with a 450 that says when
 * to come again; then it does not count. */
bool clients_take(struct clients *clients, const struct clients_rules *rules,
                  const struct net_address *client, enum clients_kind kind,
                  int64_t now_ms, struct outcome *refusal)
    __attribute__((warn_unused_result));

/* A TLS session of a client that has entered begins, or ends, before it has left. */
void clients_secured(struct clients *clients, const struct net_address *client,
                     bool begins);
/* Its TLS sessions; 0 of a Unix socket. */
size_t clients_tls(const struct clients *clients, const struct net_address *client);

/* Whether there are nearly too many sessions now. */
bool clients_stressed(struct clients *clients, const struct clients_rules *rules);
/* Sessions of the client, of IPv6 those of its network of 48 bits; 0 of a Unix socket.
 */
size_t clients_weight(const struct clients *clients, const struct net_address *client);

/* Sessions of all clients. */
size_t clients_sessions(const struct clients *clients);
/* Clients that are remembered. */
size_t clients_known(const struct clients *clients);

#endif
