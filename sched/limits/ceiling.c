/* The learnt number of sessions that a site bears, and probes above it.
 *
 * `found` is the number at which sessions were refused, `sessions` the number allowed
 * now: it rises above found while probes succeed. `suspect` and `misses` count refusals
 * that do not make a ceiling yet: a single refusal may be chance. */
#include "sched/limits/ceiling.h"

#include <assert.h>
#include <limits.h>

static void
ceiling_hold(struct ceiling *c, int64_t now_ms)
{
    /* A ceiling above which a session has lived for long has moved; its probes begin
     * again with short intervals. */
    if (c->hold_ms == 0 ||
        (c->probed_at_ms != 0 && now_ms - c->probed_at_ms >= CEILING_LIVED_MS))
        c->hold_ms = CEILING_HOLD_MIN_MS;
    else
        c->hold_ms *= 2;
    if (c->hold_ms > CEILING_HOLD_MAX_MS)
        c->hold_ms = CEILING_HOLD_MAX_MS;
    c->probe_at_ms = now_ms + c->hold_ms;
    c->probed_at_ms = 0;
    c->misses = 0;
}

/* A refusal below the ceiling: there is none, or a lower one. */
static void
doubt(struct ceiling *c, int others)
{
    c->sessions = c->found = 0;
    c->suspect = others;
    c->misses = 0;
}

void
ceiling_refused(struct ceiling *c, int64_t now_ms, int others)
{
    assert(others >= 1);
    /* The refusal of a probe is expected and confirms the ceiling. */
    if (c->sessions > 0 && c->sessions == c->found && others >= c->sessions) {
        if (now_ms >= c->probe_at_ms)
            ceiling_hold(c, now_ms);
        return;
    }
    if (c->sessions > 0 && others < c->sessions)
        doubt(c, others);
    if (c->misses == 0 || others != c->suspect) {
        c->suspect = others;
        c->misses = 0;
    }
    if (++c->misses < CEILING_REFUSALS) {
        if (c->sessions > 0 && c->probe_at_ms < now_ms + CEILING_STEP_MS)
            c->probe_at_ms = now_ms + CEILING_STEP_MS;
        return;
    }
    c->sessions = c->found = c->suspect;
    ceiling_hold(c, now_ms);
}

void
ceiling_greeted(struct ceiling *c, int64_t now_ms, int open)
{
    /* A greeted session above the suspected number disproves it. */
    if (open > c->suspect)
        c->misses = 0;
    if (c->sessions == 0 || open <= c->sessions)
        return;
    c->sessions = open;
    c->probe_at_ms = now_ms + CEILING_STEP_MS;
    if (c->probed_at_ms == 0)
        c->probed_at_ms = now_ms;
}

int
ceiling_allows(const struct ceiling *c, int64_t now_ms)
{
    if (c->sessions == 0 && c->misses > 0) /* one at a time */
        return c->suspect < INT_MAX ? c->suspect + 1 : INT_MAX;
    if (c->sessions == 0 || c->sessions == INT_MAX)
        return INT_MAX;
    return c->sessions + (now_ms >= c->probe_at_ms); /* one probe at a time */
}

int64_t
ceiling_wake_ms(const struct ceiling *c)
{
    return c->sessions == 0 ? INT64_MAX : c->probe_at_ms;
}

void
ceiling_shift(struct ceiling *c, int64_t delta_ms)
{
    if (c->sessions == 0)
        return;
    c->probe_at_ms += delta_ms;
    if (c->probed_at_ms != 0)
        c->probed_at_ms += delta_ms;
}
