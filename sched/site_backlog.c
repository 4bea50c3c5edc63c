/* The backlog of a site: ids of messages that wait on disk for it, oldest
 * first. */
#include "base/memory.h"
#include "sched/site.h"

#include <stdlib.h>

enum { REPEATED_MIN = 64 };

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

static uint64_t
hash_of(const struct id *id)
{
    return id->hash & ((UINT64_C(1) << ID_HASH_BITS) - 1);
}

static int
by_name(const void *a, const void *b)
{
    const struct id *x = a, *y = b;
    if (x->time_ms == y->time_ms && hash_of(x) != hash_of(y))
        return hash_of(x) < hash_of(y) ? -1 : 1;
    return id_compare(*x, *y);
}

static int
by_addition(const void *a, const void *b)
{
    return id_compare(*(const struct id *)a, *(const struct id *)b);
}

/* Keeps one of each id, the one that was added first. What is sorted is a heap. */
static void
backlog_unite(struct site_backlog *p)
{
    size_t kept = 0;
    qsort(p->ids, p->count, sizeof(*p->ids), by_name);
    for (size_t i = 0; i < p->count; i++)
        if (i == 0 || p->ids[i].time_ms != p->ids[i - 1].time_ms ||
            hash_of(&p->ids[i]) != hash_of(&p->ids[i - 1]))
            p->ids[kept++] = p->ids[i];
    p->count = kept;
    p->repeated = 0;
    qsort(p->ids, p->count, sizeof(*p->ids), by_addition);
}

void
site_backlog_repeat(struct site *site, enum flow_age age, struct id id)
{
    struct site_backlog *p = &site->backlog[age];
    site_backlog_add(site, age, id);
    p->repeated++;
    if (p->repeated >= REPEATED_MIN && p->repeated > p->count / 2)
        backlog_unite(p);
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
    if (p->repeated > p->count)
        p->repeated = p->count;
    return true;
}

void
site_backlog_drop(struct site *site, enum flow_age age)
{
    struct site_backlog *p = &site->backlog[age];
    struct id id;
    if (site_backlog_take(site, age, &id))
        p->repeated -= p->repeated > 0;
}

size_t
site_backlog_count(const struct site *site)
{
    size_t count = 0;
    for (int age = 0; age < FLOW_AGES; age++)
        count += site->backlog[age].count - site->backlog[age].repeated;
    return count;
}

bool
site_has_backlog(const struct site *site)
{
    for (int age = 0; age < FLOW_AGES; age++)
        if (site->backlog[age].count > 0)
            return true;
    return false;
}
