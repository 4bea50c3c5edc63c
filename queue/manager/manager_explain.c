/* Explains why mail waits. A message by next hop: as the scheduler has it, or, for mail that is
 * not in memory, by the routes. All mail by the oldest, and by the speed at which it comes. */
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
    case TARGET_HTTP:
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
        int64_t expires =
            manager_clock_begun_ms(m, e, loop_now_ms(m->loop)) +
            transport_params_lifetime_ms(&target->transport, e->sender.length == 0);
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

/* --- The oldest mail, for checks whether mail flows ------------------------------ */

enum { TRANSIENT_LOW = 400, TRANSIENT_HIGH = 499, UNAVAILABLE = 421 };

/* The receiver has answered, and asked to come again: greylisting, a full mailbox. 421
 * is a host that ends its service (RFC 5321, 3.8). */
static bool
manager_oldest_is_refused(const struct manager *m, struct id id)
{
    int code = deferral_reasons_code(m->reasons, id);
    return code >= TRANSIENT_LOW && code <= TRANSIENT_HIGH && code != UNAVAILABLE;
}

void
manager_find_oldest(struct manager *m, struct manager_oldest *out)
{
    struct id ids[MANAGER_OLDEST_MAX];
    size_t count = sched_oldest(m->sched, ids, MANAGER_OLDEST_MAX);
    int64_t now_ms = loop_now_ms(m->loop);
    *out = (struct manager_oldest){0};
    for (size_t i = 0; i < count && out->behind_ms == 0; i++) {
        if (manager_is_awaiting(m, ids[i]) || manager_is_scheduled(m, ids[i]))
            continue;
        if (out->birth_ms == 0)
            out->birth_ms =
                age_clock_birth_ms(&m->age, (int64_t)ids[i].time_ms, now_ms);
        if (manager_oldest_is_refused(m, ids[i]))
            continue;
        out->behind_ms = age_clock_birth_ms(&m->age, (int64_t)ids[i].time_ms, now_ms);
        out->behind = ids[i];
    }
}

/* --- Whether mail comes faster than it leaves ------------------------------------ */

enum {
    CROWD = 500,      /* messages that wait for one site, or to become files: work for
                      * every session, and some 3 KiB of memory each */
    FILLING_PART = 16 /* of that while the journal fills: large mail */
};

static size_t
crowd_limit(const struct manager *m)
{
    return queue_is_filling(m->queue) ? CROWD / FILLING_PART : CROWD;
}

bool
manager_is_calm(const struct manager *m)
{
    size_t limit = crowd_limit(m);
    struct sched_counts counts = sched_count(m->sched);
    return counts.incoming + counts.active < limit && queue_moves(m->queue) < limit;
}

bool
manager_is_crowded(const struct manager *m, struct id id, bool alone)
{
    size_t limit = crowd_limit(m) * (alone ? 2 : 1);
    return sched_crowd(m->sched, id) >= limit ||
           (queue_moves(m->queue) >= limit && queue_waits_for_move(m->queue, id));
}
