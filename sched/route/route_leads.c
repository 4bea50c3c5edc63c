/* Finds a target, or its successor, in another table of routes. Targets are compared as bytes. */
#include "sched/route/route.h"

#include <stddef.h>
#include <string.h>

struct sought {
    const struct route_table *was; /* its targets are no successors; NULL: none are */
    const struct target *target, *successor;
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

/* A thousand domains may have one target: the table of before is walked once for it. */
static bool
is_same_target(const struct sought *sought, const struct target *target)
{
    return sought->successor != NULL &&
           memcmp(target, sought->successor, sizeof(*target)) == 0;
}

static void
compare_target(void *context, const struct target *target)
{
    struct sought *sought = context;
    if (memcmp(target, sought->target, sizeof(*target)) == 0)
        sought->is_found = true;
    else if (!sought->was || sought->is_ambiguous || is_same_target(sought, target) ||
             !differs_in_parameters_alone(target, sought->target) ||
             route_leads_to(sought->was, target))
        return;
    else if (sought->successor == NULL)
        sought->successor = target;
    else
        sought->is_ambiguous = true;
}

static struct sought
seek_target(const struct route_table *was, const struct route_table *now,
            const struct target *target)
{
    struct sought sought = {.was = was, .target = target};
    route_each_target(now, compare_target, &sought);
    compare_target(&sought, route_default(now));
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
    return sought.is_found || sought.is_ambiguous ? NULL : sought.successor;
}
