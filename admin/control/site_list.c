/* Lists the sites of the daemon: those with most mail, or all, in pages. */
#include "admin/control/site_list.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

struct row {
    uint64_t weight;
    size_t number; /* in the order of visits */
};

/* Most mail first; equals as they came. */
static int
site_list_compare(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* --- The top ---------------------------------------------------------------------- */

struct top {
    struct row *rows;
    size_t count, capacity, visited;
    struct site_list_totals *totals;
    json_t *list;
};

static bool
is_quiet(const struct sched_site *site)
{
    return site->waiting == 0 && site->backlogged == 0 && site->sessions == 0 &&
           site->dead_since_ms == 0;
}

static void
weigh(void *context, const struct sched_site *site)
{
    struct top *t = context;
    size_t number = t->visited++;
    t->totals->sites++;
    t->totals->waiting += site->waiting;
    t->totals->backlogged += site->backlogged;
    t->totals->busy += (uint64_t)site->busy;
    if (is_quiet(site))
        return;
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 64;
        t->rows = memory_resize(t->rows, t->capacity * sizeof(*t->rows));
    }
    t->rows[t->count++] = (struct row){site->waiting + site->backlogged, number};
}

static void
put_chosen(void *context, const struct sched_site *site)
{
    struct top *t = context;
    size_t number = t->visited++;
    for (size_t i = 0; i < t->count; i++)
        if (t->rows[i].number == number)
            json_array_set_new(t->list, i, site_view_make(site));
}

json_t *
site_list_top(const struct sched *sched, size_t limit, struct site_list_totals *totals)
{
    struct top t = {.totals = totals, .list = json_array()};
    *totals = (struct site_list_totals){0};
    sched_sites(sched, weigh, &t);
    if (t.count > 0)
        qsort(t.rows, t.count, sizeof(*t.rows), site_list_compare);
    if (t.count > limit)
        t.count = limit;
    for (size_t i = 0; i < t.count; i++)
        json_array_append_new(t.list, json_null());
    t.visited = 0;
    sched_sites(sched, put_chosen, &t);
    free(t.rows);
    return t.list;
}

/* --- All -------------------------------------------------------------------------- */

struct page {
    size_t from, count, visited;
    json_t *list;
};

static void
put_in_page(void *context, const struct sched_site *site)
{
    struct page *p = context;
    size_t number = p->visited++;
    if (number >= p->from && number - p->from < p->count)
        json_array_append_new(p->list, site_view_make(site));
}

json_t *
site_list_page(const struct sched *sched, size_t from, size_t count)
{
    struct page p = {.from = from, .count = count, .list = json_array()};
    sched_sites(sched, put_in_page, &p);
    assert(json_array_size(p.list) <= count);
    return p.list;
}

json_t *
site_list_sorted(const json_t *sites)
{
    size_t count = json_array_size(sites);
    struct row *rows = memory_array(count + 1, sizeof(*rows));
    for (size_t i = 0; i < count; i++) {
        const json_t *site = json_array_get(sites, i);
        json_int_t mail = json_integer_value(json_object_get(site, "waiting")) +
                          json_integer_value(json_object_get(site, "backlogged"));
        rows[i] = (struct row){(uint64_t)mail, i};
    }
    qsort(rows, count, sizeof(*rows), site_list_compare);
    json_t *sorted = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append(sorted, json_array_get(sites, rows[i].number));
    free(rows);
    return sorted;
}
