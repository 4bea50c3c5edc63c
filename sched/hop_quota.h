/* Quotas of next hops: the route option `quota`. Internal to sched/.
 *
 * The use belongs to the next hop, not to its transport: transports come and go with
 * routes, settings and mail, and several may lead to one account. Times inside are those
 * of a clock that no step sets (sites.shift_ms). */
#ifndef SCHED_HOP_QUOTA_H
#define SCHED_HOP_QUOTA_H

#include "sched/limits/quota.h"
#include "sched/route/route.h"

#include <uthash.h>

enum {
    HOP_QUOTAS_MAX = 1000 /* without a transport; then those with the least use go */
};

struct transport;

struct hop_quota {
    UT_hash_handle hh;
    size_t holders; /* transports */
    struct quota_use use;
    char key[]; /* as route_key() has it, without a domain */
};

struct hop_quotas {
    struct hop_quota *by_key;
    int64_t now_ms, shift_ms; /* now_ms - shift_ms is the time inside */
};

/* The one of the target, made if missing; NULL: the target has no quota. */
struct hop_quota *hop_quota_share(struct hop_quotas *set, const struct target *target);
/* hop may be NULL. */
void hop_quota_close(struct hop_quota *hop);
void hop_quotas_free(struct hop_quotas *set); /* no holder may be left */

/* How many recipients may be sent now; QUOTA_AMOUNT_MAX: no quota. */
uint32_t hop_quota_left(const struct hop_quotas *set, const struct transport *c);
/* A transaction begins with count recipients. The use in which it counts, so that a quota
 * may begin or end meanwhile; NULL: in none. */
struct hop_quota *hop_quota_begin(struct transport *c, uint32_t count);
/* It has ended, and sent of them are sent. hop may be NULL. */
void hop_quota_end(struct hop_quotas *set, struct hop_quota *hop, uint32_t count,
                   uint32_t sent);
/* Sets anew until when it is used up. True: that it is has changed. */
bool hop_quota_update(const struct hop_quotas *set, struct transport *c);

#endif
