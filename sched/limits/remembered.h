/* What sites have taught us, over a restart: plain data, by carrier and site. Pure.
 *
 * The owner writes it down now and then (sched_remember) and gives it back at the start
 * (sched_recall); a site that is made then begins with it. */
#ifndef SCHED_REMEMBERED_H
#define SCHED_REMEMBERED_H

#include "base/outcome.h"
#include "sched/limits/bucket.h"
#include "sched/limits/ceiling.h"

#include <uthash.h>

enum { REMEMBERED_MAX = 10000, REMEMBERED_KEY_MAX = 2400 };

struct remembered {
    UT_hash_handle hh; /* the set's */
    const char *key;   /* the carrier's, a blank, the site's */
    int64_t at_ms;     /* when it was so; 0 = now */
    int window;        /* 0 = the initial one */
    struct ceiling ceiling;
    struct learnt_rate learnt;
    struct bucket bucket;
    int64_t pause_until_ms;
    bool dead;
    int64_t dead_since_ms, dead_until_ms, probe_ms;
    struct outcome reason; /* of death */
};

struct remembered_set {
    struct remembered *by_key;
};

/* Copies it; false, and nothing happens, beyond REMEMBERED_MAX. */
bool remembered_add(struct remembered_set *set, const struct remembered *r);
/* Takes it out: the caller frees it with remembered_free. NULL: none. */
struct remembered *remembered_take(struct remembered_set *set, const char *key);
void remembered_free(struct remembered **r);
void remembered_clear(struct remembered_set *set);

#endif
