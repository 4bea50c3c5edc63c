/* Carriers: what Postfix calls a transport. A route's target with its parameters, and
 * those of its sites that want a session. Internal to sched/.
 *
 * Carriers take turns (spec/scheduler.md §1.7), and within one its sites do; each list
 * is O(1). A transport rate delay is a carrier's: one delivery at a time, and a pause
 * from the beginning of one to that of the next (§1.9). */
#ifndef SCHED_CARRIER_H
#define SCHED_CARRIER_H

#include "sched/route/route.h"

#include <uthash.h>

struct site;

struct carrier {
    UT_hash_handle hh;
    size_t holders; /* destinations and sites */
    struct target target;
    struct site *sites;          /* by key */
    struct carrier *prev, *next; /* ready: it has such sites */
    struct site *ready;
    bool is_ready;
    int sessions, carrying;
    int idle;            /* of the sessions */
    unsigned generation; /* of the settings that had it last */
    bool is_gone;        /* no route leads there any more */
    int64_t pause_until_ms;
};

struct carriers {
    struct carrier *by_target, *ready;
    struct carrier *last; /* that was opened, or NULL */
};

struct carrier *carrier_open(struct carriers *set, const struct target *target);
struct carrier *carrier_share(struct carrier *c);
void carrier_close(struct carriers *set, struct carrier *c);
/* No transaction may begin: a rate delay of the transport. */
bool carrier_pauses(const struct carrier *c, int64_t now_ms);
/* One transaction has begun, or ended. */
void carrier_begin(struct carrier *c, int64_t now_ms);
void carrier_end(struct carrier *c);

#endif
