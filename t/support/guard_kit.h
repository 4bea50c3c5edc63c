/* Counts of the crash-loop guard, for its tests. */
#ifndef T_SUPPORT_GUARD_KIT_H
#define T_SUPPORT_GUARD_KIT_H

#include "queue/spool/guard_internal.h"

/* The number of ends during its processing, at most GUARD_ENDS_MAX. */
static inline unsigned
guard_ends(const struct guard *g, struct id id)
{
    for (uint64_t i = 0; g->page != NULL && i < g->page->used; i++) {
        const struct guard_row *row = &g->page->rows[i];
        if (row->hash == id.hash && row->time_ms == id.time_ms)
            return row->ends;
    }
    return 0;
}

#endif
