/* Finds a target, or its successor, in another table of routes. Targets are compared as bytes. */
#include "sched/route/route.h"

#include <stddef.h>
#include <string.h>

struct sought {
    const struct route_table *was; /* its targets are no successors; NULL: none are */
    const struct target *target, *successor;
    const struct target *kept; /* the last candidate that was in the table of before */
    bool is_found, is_ambiguous;
};

static bool
differs_in_parameters_alone(const struct target *a, const struct target *b)
{
    const size_t at = offsetof(struct target, transport);
    const size_t end = at + sizeof(a->transport);
    return memcmp(a, b, at) == 0 &&
           memcmp((const char *)a + end, (const char *)b + end, sizeof(*a) - end) == 0;
}

static bool
target_is_same(const struct target *a, const struct target *b)
{
    return a != NULL && memcmp(a, b, sizeof(*a)) == 0;
}

/* Thousands of domains may have one target: it is sought once in the table of before. */
static void
compare_candidate(struct sought *sought, const struct target *target)
{
    if (target_is_same(sought->successor, target) ||
        target_is_same(sought->kept, target) ||
        !differs_in_parameters_alone(target, sought->target))
        return;
    if (route_leads_to(sought->was, target))
        sought->kept = target;
    else if (sought->successor == NULL)
        sought->successor = target;
    else
        sought->is_ambiguous = true;
}

static void
compare_target(void *context, const struct target *target)
{
    struct sought *sought = context;
    if (sought->is_found || sought->is_ambiguous)
        return;
    if (target_is_same(sought->target, target))
        sought->is_found = true;
    else if (sought->was != NULL)
        compare_candidate(sought, target);
}

/* Tables have the targets of routes. */
static struct sought
seek_target(const struct route_table *was, const struct route_table *now,
            const struct target *target)
{
    struct target plain;
    struct sought sought = {.was = was, .target = &plain};
    memcpy(&plain, target, sizeof(plain));
    plain.asks = TARGET_ASKS_NOTHING;
    route_each_target(now, compare_target, &sought);
    compare_target(&sought, route_default(now));
    sought.target = NULL;
    return sought;
}

bool
route_leads_to(const struct route_table *table, const struct target *target)
{
    return seek_target(NULL, table, target).is_found;
}

const struct target *
route_successor(const struct route_table *was, const struct route_table *now,
                const struct target *target)
{
    struct sought sought = seek_target(was, now, target);
    if (sought.is_found || sought.is_ambiguous || sought.successor == NULL)
        return NULL;
    return route_asked(now, sought.successor, target->asks);
}
