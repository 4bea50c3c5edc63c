/* Sites that have died, or work again, until the owner of the scheduler asks. Pure.
 *
 * A site is dead from its first death until a transaction shows that it works, however
 * often it is probed meanwhile. */
#ifndef SCHED_SITE_CHANGE_H
#define SCHED_SITE_CHANGE_H

#include "base/outcome.h"

#include <stddef.h>
#include <stdint.h>

struct site_changes;

enum {
    SITE_CHANGES_MAX = 64, /* that wait; further ones are only counted */
    SITE_CHANGE_NAME_MAX = 256
};

struct site_change {
    char site[SITE_CHANGE_NAME_MAX]; /* its key, cut if it is longer */
    bool is_dead;
    int64_t dead_ms;    /* works again: how long it was dead; else 0 */
    struct outcome why; /* of its death */
};

/* *changes is made when the first comes. why: NULL when it works again. */
void site_changes_add(struct site_changes **changes, const char *site, int64_t dead_ms,
                      const struct outcome *why);
/* The oldest. False: there is none. */
bool site_changes_take(struct site_changes *changes, struct site_change *out);
void site_changes_free(struct site_changes **changes);

#endif
