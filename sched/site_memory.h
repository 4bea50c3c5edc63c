/* The learnt state of sites, kept over a restart: plain data, by transport and site.
 * Pure.
 *
 * The owner writes it down now and then (sched_remember) and gives it back at startup
 * (sched_recall); a new site begins with it. */
#ifndef SCHED_SITE_MEMORY_H
#define SCHED_SITE_MEMORY_H

#include "base/outcome.h"
#include "sched/limits/bucket.h"
#include "sched/limits/ceiling.h"

#include <uthash.h>

enum { SITE_STATE_MAX = 10000, SITE_STATE_KEY_MAX = 2400 };

struct site_state {
    UT_hash_handle hh; /* the set's */
    const char *key;   /* the transport's key, a blank, the site's key */
    int64_t at_ms;     /* the time of this state; 0 = now */
    int window;        /* 0 = the initial one */
    struct ceiling ceiling;
    struct learnt_rate learnt;
    struct bucket bucket;
    int64_t pause_until_ms;
    bool dead;
    int64_t dead_since_ms, dead_until_ms, probe_ms;
    struct outcome reason; /* of its death */
};

struct site_state_set {
    struct site_state *by_key;
};

/* Copies it. False, and nothing changes, beyond SITE_STATE_MAX. */
bool site_state_add(struct site_state_set *set, const struct site_state *r);
/* Removes it from the set; the caller frees it with site_state_free. NULL: not
 * found. */
struct site_state *site_state_take(struct site_state_set *set, const char *key);
/* The clock was set by delta_ms. */
void site_state_shift(struct site_state_set *set, int64_t delta_ms);
void site_state_free(struct site_state **r);
void site_state_clear(struct site_state_set *set);

#endif
