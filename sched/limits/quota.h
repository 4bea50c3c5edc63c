/* Quotas: the recipients of any second, minute, hour or day. Pure.
 *
 * A bucket would not do: with a burst of N it passes 2N in a day, and providers count
 * rolling days. The use of each period is counted in 25 slots, each a 24th of the period,
 * which together cover every window that ends now. So a recipient counts for up to a 24th
 * longer than the period, and no window ever has more than the quota.
 *
 * A reservation counts until it is settled, after any time: it is sent at some time
 * between the two, and counts in all windows that may contain that time. */
#ifndef SCHED_LIMITS_QUOTA_H
#define SCHED_LIMITS_QUOTA_H

#include "base/text.h"

enum { QUOTA_SLOTS = 25, QUOTA_AMOUNT_MAX = 100000000 };

enum quota_period { QUOTA_SECOND, QUOTA_MINUTE, QUOTA_HOUR, QUOTA_DAY, QUOTA_PERIODS };
/* 0: no quota for that period. All 0: none at all. */
struct quota {
    uint32_t amounts[QUOTA_PERIODS];
    /* A ramp: amounts[QUOTA_DAY] is that of its last day. */
    uint32_t first; /* the amount of day 0, and before; 0: there is no ramp */
    uint32_t days;  /* from day 0 to the last */
    int64_t since_ms;
    double growth; /* from day to day */
};
enum { QUOTA_RAMP_DAYS_MAX = 365 };

/* "N/s", "N/m" ("min"), "N/h", "N/d", several with commas between them, each period
 * once; or "none". N is 1 or more. False: not a quota, and *out is unchanged. */
bool quota_parse(struct text t, struct quota *out) __attribute__((warn_unused_result));
/* The same, or "N/d..M/d in 30d since 2026-12-01" in the place of N/d, with + for each
 * space: a ramp from N to the greater M. Its days begin at midnight (UTC), and need no
 * state: each is as many times the one before. */
bool quota_parse_ramp(struct text t, struct quota *out)
    __attribute__((warn_unused_result));
/* The quota of that time (since 1970), without a ramp. */
struct quota quota_on(const struct quota *q, int64_t wall_ms);
/* The time at which its amount grows next; INT64_MAX: it does not. */
int64_t quota_grows_ms(const struct quota *q, int64_t wall_ms);
bool quota_is_none(const struct quota *q);
/* "second", "minute", "hour", "day" */
const char *quota_period_word(enum quota_period period);
int64_t quota_period_ms(enum quota_period period);

/* Zeroed: nothing is used. Counts for all periods, so that a new quota knows the past.
 * Times must not go back; if they do nothing is forgotten until they have caught up. */
struct quota_use {
    struct quota_window {
        int64_t slot;                 /* the newest, since the epoch of the times */
        uint32_t counts[QUOTA_SLOTS]; /* the newest first */
    } windows[QUOTA_PERIODS];
    uint32_t reserved;
};

/* The number of a window of that period, with those reserved. */
uint32_t quota_used(const struct quota_use *use, enum quota_period period,
                    int64_t now_ms);
/* How many more may be reserved now; QUOTA_AMOUNT_MAX: no quota. */
uint32_t quota_left(const struct quota_use *use, const struct quota *q, int64_t now_ms);
/* When count may be reserved, as far as can be known: <= now_ms: now; INT64_MAX: never,
 * the quota is smaller. period: the one that decides, unless it is now. */
int64_t quota_ready_ms(const struct quota_use *use, const struct quota *q,
                       uint32_t count, int64_t now_ms, enum quota_period *period);

void quota_reserve(struct quota_use *use, uint32_t count);
/* Ends the reservation of count; `sent` of them were sent by now. */
void quota_settle(struct quota_use *use, uint32_t count, uint32_t sent, int64_t now_ms);

/* To be kept over a restart: the counts of a window, newest first, and the time at which
 * its newest slot ends. False: it is empty. */
bool quota_keep(const struct quota_use *use, enum quota_period period, int64_t now_ms,
                uint32_t counts[QUOTA_SLOTS], int64_t *end_ms);
/* Takes it back into a window without use; end_ms may be of another epoch, shifted to
 * ours. Counts that are impossible are limited. */
void quota_restore(struct quota_use *use, enum quota_period period, int64_t now_ms,
                   const uint32_t counts[QUOTA_SLOTS], int64_t end_ms);

#endif
