/* Explains why a message waits, by next hop: as the scheduler has it, or, for mail that
 * is not in memory, by the routes. */
#include "queue/manager/manager_internal.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef void each_wait(void *context, const struct manager_wait *wait);

struct explanation {
    struct manager *manager;
    each_wait *each;
    void *context;
    struct manager_wait *wait; /* being reported */
    size_t checked_most;       /* ids of backlogs */
};

/* --- In memory -------------------------------------------------------------------- */

static void
explain_scheduled(void *context, const struct sched_wait *w)
{
    const struct explanation *x = context;
    struct manager_wait wait = {.destination = w->destination,
                                .open = w->waiting + w->taken + w->deferred,
                                .waiting = w->waiting,
                                .taken = w->taken,
                                .deferred = w->deferred,
                                .expires_ms = w->expires_ms,
                                .site = w->site};
    if (wait.open > 0)
        x->each(x->context, &wait);
}

/* --- On disk ---------------------------------------------------------------------- */

/* Recipients with the same next hop. */
struct way {
    UT_hash_handle hh;
    char *key;
    const struct target *target;
    struct text domain;
    unsigned open;
    int64_t expires_ms;
};

static const char *
manager_explain_word_of(enum target_kind kind)
{
    switch (kind) {
    case TARGET_HOLD:
        return "hold";
    case TARGET_DISCARD:
        return "discard";
    case TARGET_ERROR:
        return "error";
    case TARGET_UNKNOWN:
        return "unknown user";
    case TARGET_MX:
    case TARGET_SMTP:
    case TARGET_LMTP:
    case TARGET_MAILDIR:
        break;
    }
    return NULL;
}

static struct way *
way_get(struct way **ways, const struct target *target, struct text domain)
{
    char key[ROUTE_KEY_MAX];
    const char *word = manager_explain_word_of(target->kind);
    struct text name =
        word ? text_from(word) : text_of(key, route_key(target, domain, key));
    struct way *way;
    HASH_FIND(hh, *ways, name.at, name.length, way);
    if (way)
        return way;
    way = memory_new(sizeof(*way));
    way->key = text_string(name);
    way->target = target;
    way->domain = domain;
    way->expires_ms = INT64_MAX;
    HASH_ADD_KEYPTR(hh, *ways, way->key, name.length, way);
    return way;
}

static struct way *
collect_ways(const struct manager *m, const struct envelope *e)
{
    struct way *ways = NULL;
    unsigned seen = 0;
    for (unsigned i = 0; i < e->count && seen < MANAGER_EXPLAIN_MAX; i++) {
        const struct recipient *r = &e->recipients[i];
        struct address address;
        const struct target *target = r->done ? NULL : attempt_route(m, e, r, &address);
        if (target == NULL)
            continue;
        struct way *way = way_get(&ways, target, address.domain);
        int64_t expires = e->birth_ms + transport_params_lifetime_ms(
                                            &target->transport, e->sender.length == 0);
        way->open++;
        seen++;
        if (expires < way->expires_ms)
            way->expires_ms = expires;
    }
    return ways;
}

static void
explain_site(void *context, const struct sched_site *site)
{
    const struct explanation *x = context;
    x->wait->site = site;
    x->each(x->context, x->wait);
}

static void
explain_way(struct explanation *x, const struct way *way)
{
    struct manager_wait wait = {
        .destination = way->key, .open = way->open, .expires_ms = way->expires_ms};
    x->wait = &wait;
    if (!manager_explain_word_of(way->target->kind))
        sched_find_site(x->manager->sched, way->target, way->domain, &x->checked_most,
                        explain_site, x);
    if (wait.site == NULL)
        x->each(x->context, &wait);
    x->wait = NULL;
}

/* ---------------------------------------------------------------------------------- */

void
manager_explain(struct manager *m, const struct envelope *e, each_wait *each,
                void *context)
{
    struct explanation x = {.manager = m,
                            .each = each,
                            .context = context,
                            .checked_most = SCHED_BACKLOG_CHECKED};
    struct way *way, *next;
    assert(m->routes && e);
    struct sched_state state = sched_find(m->sched, e->id);
    if (state.place == SCHED_ACTIVE && !state.loading) {
        bool known = sched_explain(m->sched, e->id, explain_scheduled, &x);
        assert(known);
        return;
    }
    struct way *ways = collect_ways(m, e);
    HASH_ITER (hh, ways, way, next) {
        explain_way(&x, way);
        HASH_DEL(ways, way);
        free(way->key);
        free(way);
    }
}

void
manager_activities(struct manager *m, const struct sched_site *site, struct id message,
                   manager_saw *each, void *context)
{
    for (size_t i = 0; i < MANAGER_WATCHES_MAX; i++)
        if (m->watches[i].watch)
            m->watches[i].watch(m->watches[i].context, site, message, each, context);
}
