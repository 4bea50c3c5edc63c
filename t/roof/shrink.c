/* Bisection over the items of a plan. */
#include "t/roof/shrink.h"

#include "base/memory.h"

#include <stdlib.h>

struct shrinking {
    struct wishes wishes;
    struct outcome_of_run *best, *tried;
    struct plan plan; /* of the trial */
    unsigned runs, runs_max;
    double end_s; /* of apart_cpu_s() */
    bool progressed;
};

static bool
is_over(const struct shrinking *s)
{
    return s->runs == s->runs_max || apart_cpu_s() >= s->end_s;
}

/* Without items from..end-1 of a kind, too. */
static bool
try_without(struct shrinking *s, size_t kind, unsigned from, unsigned end)
{
    bool any = false;
    s->plan = s->best->plan;
    for (unsigned i = from; i < end; i++)
        any = any || !plan_omits(&s->plan.kinds[kind], i);
    if (!any || is_over(s))
        return false;
    plan_omit(&s->plan.kinds[kind], from, end, true);
    s->wishes.plan = &s->plan;
    s->runs++;
    apart_run(&s->wishes, true, s->tried);
    /* without an item that keeps much away a run may be longer */
    if (!apart_is_same(s->best, s->tried) || s->tried->events > s->best->events)
        return false;
    *s->best = *s->tried;
    s->progressed = true;
    return true;
}

/* All of them, halves, quarters ... */
static void
shrink_kind(struct shrinking *s, size_t kind)
{
    unsigned count = s->best->plan.kinds[kind].count;
    if (count > PLAN_ITEMS_MAX)
        count = PLAN_ITEMS_MAX;
    for (unsigned size = count; size > 0; size = size > 1 ? (size + 1) / 2 : 0)
        for (unsigned from = 0; from < count; from += size)
            (void)try_without(s, kind, from, from + size < count ? from + size : count);
}

unsigned
shrink_run(const struct wishes *wishes, unsigned runs_max, double cpu_max_s,
           struct outcome_of_run *run)
{
    struct shrinking *s = memory_new(sizeof(*s));
    s->wishes = *wishes;
    s->wishes.traced = false;
    s->best = run;
    s->tried = memory_new(sizeof(*s->tried));
    s->runs_max = runs_max;
    s->end_s = apart_cpu_s() + cpu_max_s;
    s->wishes.plan = &s->plan;
    s->plan = run->plan;
    apart_run(&s->wishes, true, run); /* what is said is heard in quiet ones alone */
    do {
        s->progressed = false;
        for (size_t kind = 0; kind < s->best->plan.kind_count; kind++)
            shrink_kind(s, kind);
    } while (s->progressed && !is_over(s));
    unsigned runs = s->runs;
    free(s->tried);
    free(s);
    return runs;
}
