/* A site (the servers behind a next site) for the operator: one object, printed as a row
 * of a table or as a sentence. */
#ifndef ADMIN_VIEW_SITE_VIEW_H
#define ADMIN_VIEW_SITE_VIEW_H

#include "base/buffer.h"
#include "sched/sched.h"

#include <jansson.h>

struct options;

/* The caller's:
 *   site           its key
 *   domains        some that share it; destinations: how many do
 *   state          "alive", "probing" (it was dead; one session tries), "dead"
 *   window, limit  sessions it may have now; concurrency_limit, 0 = none
 *   sessions, busy, idle, greeting
 *                  open; of them with mail; without; not yet greeted
 *   waiting        recipients in memory; waits_s: how long the next one has waited
 *   backlogged     messages on disk until it lives or has space
 *   ceiling        sessions it was seen to bear, 0 = not known; ceiling_probe_ms: then
 *                  one more is tried
 *   rate           configured: "10/s", or ""; rate_delay_ms, transport_rate_delay_ms
 *   options        of its route, where they are not the defaults: "rate=10/s verp=1";
 *                  sites of one name differ in them
 *   learnt_rate    a second; 0 = none
 *   latency_ms, failures (connections that failed in a row)
 *   bound          what binds: a word of sched_bound_word(); bound_until_ms
 *   hosts          that share its limits; of these we have lease_tokens of shared_tokens
 *                  (transactions in 5 s), and lease_sessions of limit
 *   dead_until_ms, dead_since_ms, reason, remote (who said it)
 * Times are in ms since the epoch; those that do not apply are not there. */
json_t *site_view_make(const struct sched_site *site);

/* The bound that applies, as a sentence. delivery_session_limit: of the status. */
void site_view_explain(const json_t *site, int64_t delivery_session_limit,
                       int64_t now_ms, struct buffer *out);

/* A table with its heading. */
void site_view_print_table(const json_t *sites, int64_t now_ms);

/* Sums over all sites. */
struct site_view_totals {
    uint64_t waiting;    /* recipients in memory */
    uint64_t backlogged; /* messages on disk */
    uint64_t sites, busy;
};

/* The sites with most mail, most first, as an array of site_view_make(): at most limit,
 * without idle ones (no mail, no session, alive). Sets totals, of all sites. */
json_t *site_view_top(const struct sched *sched, size_t limit,
                      struct site_view_totals *totals);
/* count of all sites but for the first from of them, in no order; an empty array at the
 * end. Between two calls sites come and go. */
json_t *site_view_page(const struct sched *sched, size_t from, size_t count);
/* Appends the site to an array: for sched_look() and sched_walk_step(). */
void site_view_put(void *array, const struct sched_site *site);
/* Most mail first. */
json_t *site_view_sorted(const json_t *sites);

/* All sites of that name, with most mail first, as an array of site_view_make(). Letters'
 * case does not matter. */
enum { SITE_VIEW_NAMESAKES = 20 /* at most */ };
json_t *site_view_find(const struct sched *sched, const char *name);
/* `petrel status --site NAME`: the sites of that name, and the last conversation with one
 * of them that failed. A sysexits code: EX_DATAERR without such a site or conversation. */
int site_view_command(const char *name, bool json, const struct options *options);

#endif
