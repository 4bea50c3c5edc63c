/* The backlog of a site: ids of messages that wait on disk for it, oldest
 * first. */
#include "base/memory.h"
#include "sched/site.h"

static bool
id_before(const struct site_backlog *p, size_t a, size_t b)
{
    return id_compare(p->ids[a], p->ids[b]) < 0;
}

static void
ids_swap(struct site_backlog *p, size_t a, size_t b)
{
    struct id id = p->ids[a];
    p->ids[a] = p->ids[b];
    p->ids[b] = id;
}

struct id
site_backlog_at(const struct site_backlog *p, size_t i)
{
    struct id id = p->ids[i];
    id.hash &= (UINT64_C(1) << ID_HASH_BITS) - 1;
    return id;
}

/* A binary heap: mail comes back from its attempts in any order. Ids mostly come in
 * order, so that this mostly moves nothing. The hashes of one millisecond have no order:
 * a number above the hash keeps that of the additions. */
void
site_backlog_add(struct site *site, enum flow_age age, struct id id)
{
    struct site_backlog *p = &site->backlog[age];
    if (p->count == p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 16;
        p->ids = memory_resize(p->ids, p->capacity * sizeof(*p->ids));
    }
    size_t at = p->count++;
    p->ids[at] = id;
    p->ids[at].hash |= p->added++ << ID_HASH_BITS;
    for (; at > 0 && id_before(p, at, (at - 1) / 2); at = (at - 1) / 2)
        ids_swap(p, at, (at - 1) / 2);
}

bool
site_backlog_first(const struct site *site, enum flow_age age, struct id *id)
{
    const struct site_backlog *p = &site->backlog[age];
    if (p->count == 0)
        return false;
    *id = site_backlog_at(p, 0);
    return true;
}

bool
site_backlog_take(struct site *site, enum flow_age age, struct id *id)
{
    struct site_backlog *p = &site->backlog[age];
    if (!site_backlog_first(site, age, id))
        return false;
    p->ids[0] = p->ids[--p->count];
    for (size_t at = 0, child; (child = 2 * at + 1) < p->count; at = child) {
        if (child + 1 < p->count && id_before(p, child + 1, child))
            child++;
        if (!id_before(p, child, at))
            break;
        ids_swap(p, at, child);
    }
    return true;
}

size_t
site_backlog_count(const struct site *site)
{
    size_t count = 0;
    for (int age = 0; age < FLOW_AGES; age++)
        count += site->backlog[age].count;
    return count;
}

bool
site_has_backlog(const struct site *site)
{
    return site_backlog_count(site) > 0;
}
