/* Lists the sites of the daemon: those with most mail, or all, in pages. */
#include "admin/control/site_list.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

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

struct top_site {
    struct row row;
    struct site *site;
};

struct top {
    struct top_site *sites; /* most mail first */
    size_t count, limit, visited;
    struct site_list_totals *totals;
};

static bool
is_quiet(const struct sched_glance *site)
{
    return site->waiting == 0 && site->backlogged == 0 && site->sessions == 0 &&
           !site->fails;
}

/* Insertion among a few: sorting all sites would take longer than a turn may. */
static void
weigh(void *context, const struct sched_glance *site)
{
    struct top *t = context;
    struct top_site it = {
        {site->waiting + site->backlogged, t->visited++},
        site->site
    };
    t->totals->sites++;
    t->totals->waiting += site->waiting;
    t->totals->backlogged += site->backlogged;
    t->totals->busy += (uint64_t)site->busy;
    if (is_quiet(site) || t->limit == 0)
        return;
    size_t at = t->count;
    while (at > 0 && site_list_compare(&it.row, &t->sites[at - 1].row) < 0)
        at--;
    if (at == t->limit)
        return;
    if (t->count < t->limit)
        t->count++;
    memmove(&t->sites[at + 1], &t->sites[at], (t->count - at - 1) * sizeof(*t->sites));
    t->sites[at] = it;
}

void
site_list_put(void *array, const struct sched_site *site)
{
    json_array_append_new(array, site_view_make(site));
}

json_t *
site_list_top(const struct sched *sched, size_t limit, struct site_list_totals *totals)
{
    struct top t = {.sites = memory_array(limit + 1, sizeof(*t.sites)),
                    .limit = limit,
                    .totals = totals};
    json_t *list = json_array();
    *totals = (struct site_list_totals){0};
    sched_glance(sched, weigh, &t);
    for (size_t i = 0; i < t.count; i++)
        sched_look(sched, t.sites[i].site, site_list_put, list);
    free(t.sites);
    return list;
}

/* --- All -------------------------------------------------------------------------- */

struct page {
    const struct sched *sched;
    size_t from, count, visited;
    json_t *list;
};

static void
put_in_page(void *context, const struct sched_glance *site)
{
    struct page *p = context;
    size_t number = p->visited++;
    if (number >= p->from && number - p->from < p->count)
        sched_look(p->sched, site->site, site_list_put, p->list);
}

json_t *
site_list_page(const struct sched *sched, size_t from, size_t count)
{
    struct page p = {
        .sched = sched, .from = from, .count = count, .list = json_array()};
    sched_glance(sched, put_in_page, &p);
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
