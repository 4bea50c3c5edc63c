/* The sessions of each client, and its rates of sessions, messages and recipients. No
 * clock, no socket.
 *
 * A client is an IPv4 address or an IPv6 /64, the network of one customer. An attacker
 * may own a /48: where sessions are scarce, those of one /48 count together. Clients of a
 * Unix socket are not counted: file permissions protect it. Times are monotonic
 * milliseconds. */
#ifndef SMTP_ACCESS_CLIENT_USAGE_H
#define SMTP_ACCESS_CLIENT_USAGE_H

#include "base/outcome.h"
#include "sched/limits/bucket.h"
#include "smtp/access/networks.h"

enum client_usage_kind {
    CLIENT_USAGE_SESSION,
    CLIENT_USAGE_MESSAGE,
    CLIENT_USAGE_RECIPIENT
};
enum {
    CLIENT_USAGE_KINDS = 3,
    /* Clients without a session, kept for their rates; beyond this number the one whose
     * last session ended first is forgotten. */
    CLIENT_USAGE_IDLE_MAX = 16384,
    /* Percent of the session limit: stress begins above the first and ends below the
     * second. */
    CLIENT_USAGE_STRESS_PERCENT = 80,
    CLIENT_USAGE_CALM_PERCENT = 60,
    CLIENT_USAGE_STRESS_MIN = 10 /* with a lower limit there is no stress */
};

/* The text of the settings: a rate (sched/limits/bucket.h) or empty. */
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

/* rules must be zeroed. Adds one line per error; false then. The caller frees rules in
 * any case. */
bool client_usage_read(struct client_usage_rules *rules,
                       const struct client_usage_settings *settings,
                       struct buffer *errors) __attribute__((warn_unused_result));
/* The most of that kind that the client may take in a moment; UINT32_MAX: any number. */
uint32_t client_usage_most(const struct client_usage_rules *rules,
                           const struct net_address *address,
                           enum client_usage_kind kind);
void client_usage_rules_free(struct client_usage_rules *rules);

struct client_usage;
struct client_usage *client_usage_new(void);
void client_usage_free(struct client_usage **clients);

/* A session begins: false with a 421 when it exceeds a limit. It counts until
 * client_usage_left() in either case. */
bool client_usage_entered(struct client_usage *clients,
                          const struct client_usage_rules *rules,
                          const struct net_address *client, int64_t now_ms,
                          struct outcome *refusal) __attribute__((warn_unused_result));
/* A session ends; client is the address of client_usage_entered(). */
void client_usage_left(struct client_usage *clients, const struct net_address *client,
                       int64_t now_ms);

/* Counts a message or a recipient of a client with a session. False: not counted, and
 * refusal is a 450 with the time of the retry. */
bool client_usage_take(struct client_usage *clients,
                       const struct client_usage_rules *rules,
                       const struct net_address *client, enum client_usage_kind kind,
                       int64_t now_ms, struct outcome *refusal)
    __attribute__((warn_unused_result));

/* Recipients that were accepted together, as members of an alias: further ones wait
 * until the client's rate has made up for them. */
void client_usage_owe(struct client_usage *clients,
                      const struct client_usage_rules *rules,
                      const struct net_address *client, unsigned recipients,
                      int64_t now_ms);

/* TLS begins or ends in a session of the client. */
void client_usage_secured(struct client_usage *clients,
                          const struct net_address *client, bool begins);
/* The client's TLS sessions; 0 for a Unix socket. */
size_t client_usage_tls(const struct client_usage *clients,
                        const struct net_address *client);

/* True: the number of sessions is near its limit. */
bool client_usage_stressed(struct client_usage *clients,
                           const struct client_usage_rules *rules);
/* Sessions of the client, for IPv6 those of its /48; 0 for a Unix socket. */
size_t client_usage_weight(const struct client_usage *clients,
                           const struct net_address *client);

size_t client_usage_sessions(const struct client_usage *clients);

#endif
