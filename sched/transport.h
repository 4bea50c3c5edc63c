/* Carriers: what Postfix calls a transport. A route's target with its parameters, and
 * those of its sites that want a session. Internal to sched/.
 *
 * Carriers take turns (doc/scheduler.md "Destinations"), and within one its sites do;
 * each list is O(1). A transport rate delay is a carrier's: one delivery at a time, and
 * a pause from the beginning of one to that of the next (doc/scheduler.md "Rates"). */
#ifndef SCHED_TRANSPORT_H
#define SCHED_TRANSPORT_H

#include "sched/route/route.h"

#include <uthash.h>

struct site;

struct transport {
    UT_hash_handle hh;
    size_t holders; /* destinations and sites */
    struct target target;
    struct site *sites;            /* by key */
    struct transport *prev, *next; /* ready: it has such sites */
    struct site *ready;
    bool is_ready;
    int sessions, carrying;
    int idle;            /* of the sessions */
    unsigned generation; /* of the settings that had it last */
    bool is_gone;        /* no route leads there any more */
    int64_t pause_until_ms;
};

struct carriers {
    struct transport *by_target, *ready;
    struct transport *last; /* that was opened, or NULL */
};

struct transport *transport_open(struct carriers *set, const struct target *target);
struct transport *transport_share(struct transport *c);
void transport_close(struct carriers *set, struct transport *c);
/* No transaction may begin: a rate delay of the transport. */
bool transport_pauses(const struct transport *c, int64_t now_ms);
/* One transaction has begun, or ended. */
void transport_begin(struct transport *c, int64_t now_ms);
void transport_end(struct transport *c);

#endif
