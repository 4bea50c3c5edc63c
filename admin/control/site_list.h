/* All sites of the daemon, for its status. */
#ifndef ADMIN_CONTROL_SITE_LIST_H
#define ADMIN_CONTROL_SITE_LIST_H

#include "admin/control/site_view.h"

struct site_list_totals {
    uint64_t waiting;    /* recipients in memory */
    uint64_t backlogged; /* messages on disk */
    uint64_t sites, busy;
};

/* The sites with most mail, most first, as an array of site_view_make(): at most limit,
 * without idle ones (no mail, no session, alive). Sets totals, of all sites. */
json_t *site_list_top(const struct sched *sched, size_t limit,
                      struct site_list_totals *totals);
/* count of all sites but for the first from of them, in no order; an empty array at the
 * end. Between two calls sites come and go. */
json_t *site_list_page(const struct sched *sched, size_t from, size_t count);
/* Appends the site to an array: for sched_sites() and its kin. */
void site_list_put(void *array, const struct sched_site *site);
/* Most mail first. */
json_t *site_list_sorted(const json_t *sites);

#endif
