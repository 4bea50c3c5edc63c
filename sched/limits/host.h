/* The health of the server addresses of all sites: good, suspect, or held. Pure.
 *
 * A failing address is put aside alone, and its site goes on with the others
 * (doc/scheduler.md "Sites"). An address that was good within the last minute is only
 * suspect for its first HOSTS_SLIPS failures in a row, since one of the K front ends
 * behind it may fail now and then. Otherwise it is held for 30 s, twice as long with
 * each further failure, at most 15 minutes, and up to a tenth more at random. After
 * that it is suspect until it is good or fails. Failures while it is held change
 * nothing: they are of sessions that were under way. */
#ifndef SCHED_LIMITS_HOST_H
#define SCHED_LIMITS_HOST_H

#include "base/text.h"

enum {
    HOSTS_MAX = 4096, /* addresses kept; beyond that the one longest unreported goes */
    HOSTS_ADDRESS_MAX = 255,
    HOSTS_SLIPS = 2,
    HOSTS_HOLD_MIN_MS = 30000,
    HOSTS_HOLD_MAX_MS = 900000,
    HOSTS_FRESH_MS = 60000 /* for this time failures of a good one are forgiven */
};

struct hosts; /* by address as text: "192.0.2.1", "2001:db8::1", or a path */

struct hosts *hosts_new(void);
void hosts_free(struct hosts **hosts);

/* The address accepted a session, and greeted after service_ms. An address has 1 to
 * HOSTS_ADDRESS_MAX bytes, here and below. */
void hosts_good(struct hosts *hosts, int64_t now_ms, struct text address,
                int64_t service_ms);

/* The address refused, never answered, or hung up. random as in retry_jitter_ms. */
void hosts_bad(struct hosts *hosts, int64_t now_ms, struct text address,
               uint64_t *random);

/* Puts the addresses into the order in which a new session tries them: order[] gets
 * their indexes. They come in groups of equal preference (groups does not decrease). In
 * each group the addresses that are not suspect come first, at random, weighted with 1
 * / service time. One never measured counts as the fastest of its group, so that
 * without measurements the order is a shuffle. The suspect ones of the group follow.
 * Held addresses come behind all groups, in the order in which their holds end. */
void hosts_order(const struct hosts *hosts, int64_t now_ms,
                 const struct text *addresses, const int *groups, size_t count,
                 uint64_t *random, size_t *order);

/* The clock was set by delta_ms. */
void hosts_shift(struct hosts *hosts, int64_t delta_ms);

#endif
