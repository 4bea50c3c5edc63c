/* The backlog of a site: ids of messages that wait on disk for it, in order. */
#include "base/memory.h"
#include "sched/site.h"

#include <string.h>

/* A queue in an array: the space in front is reused when it is more than half, so an id
 * is moved once on average at most. */
void
site_backlog_add(struct site *site, enum flow_age age, struct id id)
{
    struct site_backlog *p = &site->backlog[age];
    if (p->first == p->count)
        p->first = p->count = 0;
    if (p->count == p->capacity && p->first > p->capacity / 2) {
        memmove(p->ids, &p->ids[p->first], (p->count - p->first) * sizeof(*p->ids));
        p->count -= p->first;
        p->first = 0;
    }
    if (p->count == p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 16;
        p->ids = memory_resize(p->ids, p->capacity * sizeof(*p->ids));
    }
    p->ids[p->count++] = id;
}

bool
site_backlog_first(const struct site *site, enum flow_age age, struct id *id)
{
    const struct site_backlog *p = &site->backlog[age];
    if (p->first == p->count)
        return false;
    *id = p->ids[p->first];
    return true;
}

bool
site_backlog_take(struct site *site, enum flow_age age, struct id *id)
{
    bool has = site_backlog_first(site, age, id);
    site->backlog[age].first += has;
    return has;
}

size_t
site_backlog_count(const struct site *site)
{
    size_t count = 0;
    for (int age = 0; age < FLOW_AGES; age++)
        count += site->backlog[age].count - site->backlog[age].first;
    return count;
}

bool
site_has_backlog(const struct site *site)
{
    return site_backlog_count(site) > 0;
}
