/* Transports, as Postfix has them: the target of a route with its parameters, and those
 * of its sites that want a session. Internal to sched/.
 *
 * Transports take turns (doc/scheduler.md "Destinations"), and so do the sites of one;
 * each list is O(1). A transport rate delay permits one delivery at a time, and a pause
 * between the beginnings of two (doc/scheduler.md "Rates"). */
#ifndef SCHED_TRANSPORT_H
#define SCHED_TRANSPORT_H

#include "sched/hop_quota.h"
#include "sched/token.h"

#include <uthash.h>

struct site;

struct transport {
    UT_hash_handle hh;
    size_t holders; /* destinations and sites */
    struct target target;
    struct site *sites;            /* by key */
    struct transport *prev, *next; /* ready: it has sites that want a session */
    struct site *ready;
    bool is_ready;
    int sessions, carrying;
    int idle;            /* sessions that are idle */
    unsigned generation; /* of the settings that used it last */
    bool is_gone;        /* no route leads there any more */
    int64_t pause_until_ms;
    /* The provider's own limit of the account is used up: until when, and for how long
     * it was taken to be, unless the provider said. */
    int64_t quota_until_ms, quota_pause_ms;
    struct hop_quota *hop;  /* NULL: no quota is set */
    int64_t spent_until_ms; /* that quota is used up until then */
    enum quota_period spent_period;
    enum sched_token token; /* the state of its token */
};

struct transports {
    struct transport *by_target, *ready;
    struct transport *last; /* the one opened last, or NULL */
    struct token_table tokens;
    struct hop_quotas hops;
};

struct transport *transport_open(struct transports *set, const struct target *target);
struct transport *transport_share(struct transport *c);
/* The target has other scheduling parameters from now on, and is the same in all else.
 * False: there is a transport of that target. sites_parameters_changed() follows. */
bool transport_change(struct transports *set, struct transport *c,
                      const struct target *target, int64_t now_ms);
void transport_close(struct transports *set, struct transport *c);
/* Whether the transport's rate delay, its quota, or the provider's limit forbids a
 * transaction now. */
bool transport_pauses(const struct transport *c, int64_t now_ms);
/* The provider has refused mail because of the account's limit. asked_ms: the time that
 * it gave, or 0: an hour then, and twice as long each further time, up to 6 hours. It stays
 * until transport_quota_end(). */
void transport_quota_used_up(struct transport *c, int64_t now_ms, int64_t asked_ms);
/* Mail has passed, or other settings stand. May free it. */
void transport_quota_end(struct transports *set, struct transport *c);
/* One transaction has begun, or ended. */
void transport_begin(struct transport *c, int64_t now_ms);
void transport_end(struct transport *c);

#endif
