/* The learnt limit of parallel sessions of a site. Pure.
 *
 * After refusals the window stays at the number that was open. One more session is
 * tried again by time, not by successes (doc/scheduler.md "Ceiling and latency"): after
 * 10 s, then after twice the time with each refused probe, up to 10 minutes. A site
 * that accepts five sessions is thus asked for a sixth six times an hour, not at every
 * fifth message.
 *
 * One refusal makes no ceiling, or a site with one broken front end among K would get
 * one: CEILING_REFUSALS refusals at the same number are needed, without a session
 * greeted above it in between. A refusal below a ceiling disproves that ceiling. One
 * refusal fails a probe of a known ceiling. After a probe that greets the next one
 * follows soon, so that a higher limit of the site is found quickly; the interval of
 * probes is reset once the first of them has stood for 60 s. */
#ifndef SCHED_LIMITS_CEILING_H
#define SCHED_LIMITS_CEILING_H

#include <stdint.h>

enum {
    CEILING_REFUSALS = 4,
    CEILING_STEP_MS = 1000, /* between probes that greet */
    CEILING_HOLD_MIN_MS = 10000,
    CEILING_HOLD_MAX_MS = 600000,
    CEILING_LIVED_MS = 60000
};

struct ceiling {          /* zeroed = none known */
    int sessions;         /* 0 = none known */
    int found;            /* where refusals found it; less than sessions: raised by
                          * probes since */
    int suspect, misses;  /* refusals (misses) at that number, with no session greeted
                          * above */
    int64_t hold_ms;      /* between probes */
    int64_t probe_at_ms;  /* one more is allowed from then on */
    int64_t probed_at_ms; /* when the first probe since then greeted; 0 = none did */
};

/* A session was refused (421 greeting, RST, refused connection) or given up unanswered
 * while `others` greeted ones were open. others >= 1: with none open a refusal says
 * nothing about a ceiling. Refusals of sessions that were under way when the ceiling
 * was found are not probes, and change nothing. */
void ceiling_refused(struct ceiling *c, int64_t now_ms, int others);

/* A session greeted; open: all greeted ones, including it. A number above the ceiling
 * becomes the ceiling. */
void ceiling_greeted(struct ceiling *c, int64_t now_ms, int open);

/* Sessions allowed now: INT_MAX when no ceiling is known or suspected; one above the
 * ceiling when a probe is due; one above the number open when a session was refused. */
int ceiling_allows(const struct ceiling *c, int64_t now_ms);

/* When ceiling_allows changes by itself; in the past once it has; INT64_MAX: never. */
int64_t ceiling_wake_ms(const struct ceiling *c);

/* The clock was set by delta_ms. */
void ceiling_shift(struct ceiling *c, int64_t delta_ms);

#endif
