/* The scheduler's machine: questions and commands. */
#include "sched/sched_inside.h"

#include <assert.h>
#include <utlist.h>

struct sched_state
sched_find(const struct sched *s, struct id id)
{
    const struct known *k = known_find(&s->known, id);
    if (!k)
        return (struct sched_state){.place = SCHED_UNKNOWN};
    struct sched_state state = {.place = SCHED_ACTIVE, .attempts = k->attempts};
    if (k->place == KNOWN_WAITING) {
        state.place = known_age(k) == KNOWN_NEW ? SCHED_INCOMING : SCHED_DEFERRED;
        state.due_ms = known_is_parked(k) ? s->now_ms : k->due_ms;
    }
    return state;
}

bool
sched_retry(struct sched *s, int64_t now_ms, struct id id)
{
    sched_tick(s, now_ms);
    struct known *k = known_find(&s->known, id);
    if (!k)
        return false;
    if (k->place == KNOWN_WAITING && k->due_ms > s->now_ms)
        known_wait(&s->known, k, s->now_ms, k->attempts);
    if (k->place != KNOWN_ACTIVE)
        k->forced = 1;
    return true;
}

static void
revive(void *context, struct site *site)
{
    struct sched *s = context;
    if (!site->dead)
        return;
    site_revive(&s->destinations.sites, site);
    site_update(&s->destinations.sites, site, s->now_ms);
}

void
sched_retry_all(struct sched *s, int64_t now_ms)
{
    sched_tick(s, now_ms);
    known_force_all(&s->known, s->now_ms);
    sites_each(&s->destinations.sites, revive, s);
}

bool
sched_forget(struct sched *s, struct id id)
{
    const struct known *k = known_find(&s->known, id);
    if (!k || k->place != KNOWN_WAITING)
        return false;
    known_remove(&s->known, id);
    return true;
}

struct sched_counts
sched_count(const struct sched *s)
{
    return (struct sched_counts){
        .incoming = s->known.waiting[KNOWN_NEW],
        .active = (size_t)s->active,
        .deferred = s->known.waiting[KNOWN_OLD],
        .sessions = (size_t)s->session_count,
        .destinations = HASH_COUNT(s->destinations.by_key),
        .sites = s->destinations.sites.count,
        .dead = s->destinations.sites.dead_count,
    };
}

const char *
sched_bound_word(enum sched_bound bound)
{
    switch (bound) {
    case SCHED_BOUND_NONE:
        return "nothing";
    case SCHED_BOUND_DEAD:
        return "dead";
    case SCHED_BOUND_PROBE:
        return "probe";
    case SCHED_BOUND_TRANSPORT_DELAY:
        return "transport_rate_delay";
    case SCHED_BOUND_RATE_DELAY:
        return "rate_delay";
    case SCHED_BOUND_RATE:
        return "rate";
    case SCHED_BOUND_LEARNT_RATE:
        return "learnt_rate";
    case SCHED_BOUND_WINDOW:
        return "window";
    case SCHED_BOUND_CEILING:
        return "ceiling";
    case SCHED_BOUND_CONGESTED:
        return "congested";
    case SCHED_BOUND_PAUSE:
        return "pause";
    case SCHED_BOUND_BUDGET:
        return "session_limit";
    case SCHED_BOUNDS:
        break;
    }
    return "unknown";
}

/* Of what waits there, if anything does. */
static enum sched_bound
bound_now(const struct sched *s, struct site *site, int64_t *until_ms)
{
    enum sched_bound bound = site_bound(site, s->now_ms, until_ms);
    if (bound == SCHED_BOUND_NONE && site->queue.works > 0 &&
        sched_working_sessions(s) >= s->settings.session_limit)
        return SCHED_BOUND_BUDGET;
    return bound;
}

static struct sched_site
site_view(const struct sched *s, struct site *site, struct outcome *outcome)
{
    struct sched_site view = {.key = site->key,
                              .window = site->dead ? 0 : site->window.size,
                              .limit = site->window.limit,
                              .sessions = site->sessions,
                              .busy = site->carrying,
                              .ceiling = site->ceiling.sessions,
                              .destinations = (int)site->destinations,
                              .waiting = site->queue.recipients,
                              .parked = site->parked.count - site->parked.first,
                              .latency_ms = latency_short_ms(&site->latency),
                              .rate = site->learnt.rate,
                              .dead_until_ms = site->dead ? site->dead_until_ms : 0};
    view.bound = bound_now(s, site, &view.bound_until_ms);
    if (site->dead) {
        reason_read(site->reason, outcome);
        view.reason = outcome;
    }
    return view;
}

struct site_visit {
    const struct sched *s;
    void (*each)(void *context, const struct sched_site *site);
    void *context;
};

static void
visit(void *context, struct site *site)
{
    struct site_visit *v = context;
    struct outcome outcome;
    struct sched_site view = site_view(v->s, site, &outcome);
    v->each(v->context, &view);
}

void
sched_sites(const struct sched *s,
            void (*each)(void *context, const struct sched_site *site), void *context)
{
    struct site_visit v = {.s = s, .each = each, .context = context};
    sites_each(&s->destinations.sites, visit, &v);
}

bool
sched_explain(const struct sched *s, struct id id,
              void (*each)(void *context, const struct sched_wait *wait), void *context)
{
    const struct known *k = known_find(&s->known, id);
    if (!k || k->place != KNOWN_ACTIVE)
        return k != NULL;
    struct sched_message *m = k->message;
    for (unsigned i = 0; i < m->entry_count; i++) {
        const struct entry *e = &message_entries(m)[i];
        struct outcome outcome;
        struct sched_site view = site_view(s, e->destination->site, &outcome);
        struct sched_wait wait = {.destination = e->destination->key, .site = &view};
        for (unsigned j = e->first; j < e->first + e->count; j++) {
            wait.waiting += m->slots[j].state == SLOT_WAITING;
            wait.taken += m->slots[j].state == SLOT_TAKEN;
        }
        each(context, &wait);
    }
    return true;
}

struct memory_visit {
    void (*each)(void *context, const struct remembered *site);
    void *context;
};

static void
remember(void *context, struct site *site)
{
    struct memory_visit *v = context;
    struct remembered r;
    char key[REMEMBERED_KEY_MAX];
    if (site_remember(site, &r, key))
        v->each(v->context, &r);
}

void
sched_remember(const struct sched *s,
               void (*each)(void *context, const struct remembered *site),
               void *context)
{
    struct memory_visit v = {.each = each, .context = context};
    sites_each(&s->destinations.sites, remember, &v);
    /* What no mail has come for since the start is kept as it is. */
    struct remembered *r, *next;
    HASH_ITER (hh, s->destinations.sites.remembered.by_key, r, next)
        each(context, r);
}

void
sched_recall(struct sched *s, const struct remembered *site)
{
    remembered_add(&s->destinations.sites.remembered, site);
}
