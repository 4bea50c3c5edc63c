/* All sites of the daemon, for its status. */
#ifndef ADMIN_HOPS_H
#define ADMIN_HOPS_H

#include "admin/control/hop.h"

struct hops_totals {
    uint64_t waiting; /* recipients in memory */
    uint64_t parked;  /* messages on disk */
    uint64_t sites, busy;
};

/* Those with most mail, most first, as an array of hop_make(): limit at most, and none
 * that has nothing to tell (no mail, no session, alive). Sets totals, of all. */
json_t *hops_top(const struct sched *sched, size_t limit, struct hops_totals *totals);
/* count of all sites but for the first from of them, in no order; an empty array at the
 * end. Between two calls sites come and go. */
json_t *hops_page(const struct sched *sched, size_t from, size_t count);
/* Most mail first. */
json_t *hops_sorted(const json_t *hops);

#endif
