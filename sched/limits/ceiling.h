/* How many sessions a site bears at once, remembered. Pure.
 *
 * After refusals the window stays at the number that was open, and one more is tried
 * again by time, not by successes (doc/scheduler.md "Ceiling and latency"): after 10 s,
 * then after twice as long with each such probe refused, to 10 minutes. A site that
 * lets five in is so asked for a sixth six times an hour, not at every fifth message.
 *
 * One refusal makes no ceiling, or a site with one broken front end among K would have
 * one: it takes CEILING_REFUSALS of them at the same number without a session greeted
 * above it between. A refusal below a ceiling says that it is none. A probe of a
 * ceiling so found fails at once. After a probe that greets the next one follows soon,
 * so that a site which bears more now is found out; the pace of probes is that of the
 * beginning again once the first of them has stood for 60 s. */
#ifndef SCHED_CEILING_H
#define SCHED_CEILING_H

#include <stdint.h>

enum {
    CEILING_REFUSALS = 4,
    CEILING_STEP_MS = 1000, /* between probes that greet */
    CEILING_HOLD_MIN_MS = 10000,
    CEILING_HOLD_MAX_MS = 600000,
    CEILING_LIVED_MS = 60000
};

struct ceiling {         /* zeroed = none known */
    int sessions;        /* 0 = none known */
    int found;           /* where refusals found it; less than sessions: probed since */
    int suspect, misses; /* refused so often at that number, and never let in beyond */
    int64_t hold_ms;     /* between probes */
    int64_t probe_at_ms; /* from then on one more is allowed */
    int64_t probed_at_ms; /* the first probe since found greeted then; 0 = none did */
};

/* A session was refused (421 greeting, RST, refused connection) or given up unanswered
 * while others greeted ones were open. others >= 1: with none open it says nothing
 * about a ceiling. Refusals of sessions that were under way when the ceiling was found
 * are no probes, and change nothing. */
void ceiling_refused(struct ceiling *c, int64_t now_ms, int others);

/* A session greeted; open = greeted ones, with it. When that is above the ceiling, it
 * is the ceiling. */
void ceiling_greeted(struct ceiling *c, int64_t now_ms, int open);

/* Sessions allowed now: INT_MAX when no ceiling is known nor suspected, one above it
 * when a probe is due, or above what was open when one was refused. */
int ceiling_allows(const struct ceiling *c, int64_t now_ms);

/* When ceiling_allows changes by itself; past once it has; INT64_MAX: never. */
int64_t ceiling_wake_ms(const struct ceiling *c);

/* The clock was set by delta_ms. */
void ceiling_shift(struct ceiling *c, int64_t delta_ms);

#endif
