/* The scheduler's machine: questions and commands.
 *
 * Questions decide nothing: the bound of a site is reported by site_bound(), the
 * function that decides it. So `petrel queue why` and the status cannot disagree with
 * the scheduler. Commands only make mail due and sites alive: sched_next() then does
 * the rest. */
#include "sched/sched_internal.h"

#include "base/memory.h"
#include "sched/site_lease.h"
#include "sched/site.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Each client whose reply waits asks every few milliseconds, a thousand may, and a
 * message may have 50,000 domains. */
enum { CROWD_ENTRIES = 4 };

/* Small mail that has no room waits where it is, and all that is due behind it. */
static bool
waits_for_room(const struct sched *s, const struct message_index *k)
{
    const struct message_index *first =
        message_index_first(&s->known, message_index_age(k));
    return k->due_ms <= s->now_ms &&
           (sched_admission_blocks(s, k) ||
            (first != NULL && sched_admission_blocks(s, first)));
}

/* The due time of excess is a mark, not a time. */
struct sched_state
sched_find(const struct sched *s, struct id id)
{
    const struct message_index *k = message_index_find(&s->known, id);
    if (!k)
        return (struct sched_state){.place = SCHED_UNKNOWN};
    struct sched_state state = {.place = SCHED_ACTIVE,
                                .attempts = k->attempts,
                                .loading = k->place == MESSAGE_INDEX_LOADING,
                                .backlogged = k->backlogged};
    if (k->place == MESSAGE_INDEX_WAITING) {
        state.place =
            message_index_age(k) == MESSAGE_INDEX_NEW ? SCHED_INCOMING : SCHED_DEFERRED;
        bool by_event = message_index_is_backlogged(k);
        state.lacks_room = by_event ? k->queued : waits_for_room(s, k);
        state.excess = by_event && !k->queued;
        state.due_ms = by_event ? s->now_ms : k->due_ms;
    }
    return state;
}

/* `forced` is kept with the record until the message is loaded: it revives dead sites
 * then, and passes a backlog. Active mail is being tried; for it the mark would have
 * its effect one attempt too late. */
bool
sched_retry_at(struct sched *s, struct id id, int64_t due_ms)
{
    sched_tick(s);
    struct message_index *k = message_index_find(&s->known, id);
    if (!k)
        return false;
    if (k->place == MESSAGE_INDEX_WAITING && k->due_ms > due_ms)
        message_index_wait(&s->known, k, due_ms, k->attempts);
    if (k->place != MESSAGE_INDEX_ACTIVE)
        k->forced = 1;
    return true;
}

bool
sched_retry(struct sched *s, struct id id)
{
    sched_tick(s);
    return sched_retry_at(s, id, s->now_ms);
}

/* A site lives on probation: with a single session first. */
static void
revive(void *context, struct site *site)
{
    struct sched *s = context;
    struct lane *lane, *next;
    HASH_ITER (hh, site->lanes.by_demand, lane, next)
        lane->until_ms = 0;
    if (!site->dead)
        return;
    site_revive(&s->destinations.sites, site);
    site_update(&s->destinations.sites, site, s->now_ms);
}

void
sched_retry_all(struct sched *s)
{
    sched_tick(s);
    message_index_force_all(&s->known, s->now_ms);
    sites_each(&s->destinations.sites, revive, s);
}

/* Active mail cannot be forgotten: sessions refer to it. */
bool
sched_forget(struct sched *s, struct id id)
{
    const struct message_index *k = message_index_find(&s->known, id);
    if (!k || k->place != MESSAGE_INDEX_WAITING)
        return false;
    sched_backlog_forget(s, k);
    return true;
}

/* A rate that the operator has set, or that the site has asked for, is no reason to
 * slow clients down: more sessions would not help, and the mail is to wait. */
static bool
waits_for_time(const struct sched *s, struct site *site)
{
    int64_t until_ms;
    switch (site_bound(site, s->now_ms, &until_ms)) {
    case SCHED_BOUND_DEAD:
    case SCHED_BOUND_TOKEN:
    case SCHED_BOUND_QUOTA:
    case SCHED_BOUND_TRANSPORT_DELAY:
    case SCHED_BOUND_RATE_DELAY:
    case SCHED_BOUND_RATE:
    case SCHED_BOUND_LEARNT_RATE:
    case SCHED_BOUND_LEASE_RATE:
        return true;
    case SCHED_BOUND_NONE:
    case SCHED_BOUND_PROBE:
    case SCHED_BOUND_WINDOW:
    case SCHED_BOUND_CEILING:
    case SCHED_BOUND_LEASE:
    case SCHED_BOUND_PROOF:
    case SCHED_BOUND_CONGESTED:
    case SCHED_BOUND_PAUSE:
    case SCHED_BOUND_BUDGET:
    case SCHED_BOUNDS:
        break;
    }
    return false;
}

size_t
sched_crowd(const struct sched *s, struct id id)
{
    const struct message_index *k = message_index_find(&s->known, id);
    size_t crowd = 0;
    if (!k)
        return 0;
    if (k->place != MESSAGE_INDEX_ACTIVE)
        return message_index_age(k) == MESSAGE_INDEX_NEW
                   ? s->known.waiting[MESSAGE_INDEX_NEW]
                   : 0;
    const struct site *last = NULL;
    for (unsigned i = 0; i < k->message->entry_count && i < CROWD_ENTRIES; i++) {
        struct site *site = message_entries(k->message)[i].destination->site;
        size_t waiting = lanes_worth(&site->lanes) + backlog_count(site);
        if (site != last && waiting > crowd && !waits_for_time(s, site))
            crowd = waiting;
        last = site;
    }
    return crowd;
}

struct sched_counts
sched_count(const struct sched *s)
{
    return (struct sched_counts){
        .incoming = s->known.waiting[MESSAGE_INDEX_NEW],
        .active = (size_t)s->active,
        .deferred = s->known.waiting[MESSAGE_INDEX_OLD],
        .sessions = (size_t)s->session_count,
        .destinations = s->destinations.count,
        .sites = s->destinations.sites.count,
        .dead = s->destinations.sites.dead_count,
        .idle = (size_t)s->idle_count,
        .recipients = s->admission.recipients,
        .active_limit = (size_t)s->settings.active_limit,
        .recipient_limit = (size_t)s->settings.recipient_limit,
        .session_limit = (size_t)s->settings.session_limit,
        .direct_greetings = s->destinations.sites.direct_greetings,
        .sessions_opened = s->sessions_opened,
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
    case SCHED_BOUND_TOKEN:
        return "token";
    case SCHED_BOUND_QUOTA:
        return "quota";
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
    case SCHED_BOUND_LEASE:
        return "lease";
    case SCHED_BOUND_LEASE_RATE:
        return "lease_rate";
    case SCHED_BOUND_PROOF:
        return "proof";
    case SCHED_BOUND_CONGESTED:
        return "congested";
    case SCHED_BOUND_PAUSE:
        return "pause";
    case SCHED_BOUND_BUDGET:
        return "delivery_session_limit";
    case SCHED_BOUNDS:
        break;
    }
    return "unknown";
}

/* The limit of all sessions is not the site's own, so site_bound() does not know it. */
enum sched_bound
sched_bound_now(const struct sched *s, struct site *site, int64_t *until_ms)
{
    enum sched_bound bound = site_bound(site, s->now_ms, until_ms);
    if (bound == SCHED_BOUND_NONE && site->lanes.counts.recipients > 0 &&
        !sched_has_budget(s, site))
        return SCHED_BOUND_BUDGET;
    return bound;
}

static void
view_members(const struct site *site, struct sched_site *view)
{
    const struct destination *d = site->members;
    for (int i = 0; d && i < SCHED_MEMBERS_MAX; i++, d = d->site_next)
        view->members[i] = d->domain[0] ? d->domain : d->key;
}

/* Jobs are dated in seconds that no step of the clock changes. */
static int64_t
first_waits_s(const struct sched *s, const struct site *site)
{
    const struct entry *first = lanes_first(&site->lanes);
    if (!first)
        return 0;
    return (int64_t)sites_job_s(&s->destinations.sites, s->now_ms) - first->job.since_s;
}

static void
view_quota(const struct transport *c, int64_t now_ms, struct sched_site *view)
{
    if (now_ms >= c->spent_until_ms || c->quota_until_ms > c->spent_until_ms)
        return;
    view->quota = quota_on(&c->target.transport.quota, now_ms).amounts[c->spent_period];
    view->quota_period = quota_period_word(c->spent_period);
}

/* A dead site, or one that lacks a token, has no window, even if a size is kept for its
 * revival. */
static int
window_size(const struct site *site)
{
    return site->dead ? 0 : site->window.size;
}

static struct sched_site
site_view(const struct sched *s, struct site *site, struct outcome *outcome)
{
    struct sched_site view = {
        .key = site->key,
        .is_direct = site->transport->target.kind == TARGET_MX,
        .transport = site_transport(site),
        .target = &site->transport->target,
        .window = window_size(site),
        .limit = site->window.limit,
        .sessions = site->sessions,
        .busy = site->carrying,
        .idle = site->idle,
        .greeting = site->sessions - site->greeted,
        .ceiling = site->ceiling.sessions,
        .ceiling_probe_ms = ceiling_wake_ms(&site->ceiling),
        .destinations = (int)site->destinations,
        .waiting = site->lanes.counts.recipients,
        .waits_s = first_waits_s(s, site),
        .backlogged = backlog_count(site),
        .crowded_since_ms = site->is_crowded ? site->crowded_since_ms : 0,
        .latency_ms = latency_short_ms(&site->latency),
        .rate = bucket_learnt_rate(&site->learnt, s->now_ms),
        .rate_since_ms = site->learnt.begun_ms,
        .failures = site->failures,
        .probing = !site->dead && site->window.probing,
        .dead_until_ms = site->dead && !site->lacks_token ? site->dead_until_ms : 0,
        .dead_since_ms = site->dead_since_ms,
    };
    view_members(site, &view);
    view.bound = sched_bound_now(s, site, &view.bound_until_ms);
    view_quota(site->transport, s->now_ms, &view);
    if (site->lease)
        site_lease_view(site, s->now_ms, &view);
    if (site->dead) {
        reason_read(site->reason, outcome);
        view.reason = outcome;
    } else if (view.bound == SCHED_BOUND_TOKEN) {
        *outcome = token_reason(&s->destinations.sites, site);
        view.reason = outcome;
    }
    return view;
}

const char *
sched_session_site(const struct sched_session *session)
{
    return session->site->key;
}

/* Keys are not unique: there is a site for each transport. */
bool
sched_session_is_at(const struct sched_session *session, const struct sched_site *site)
{
    return session->site->key == site->key;
}

struct site_visit {
    const struct sched *s;
    size_t checked_most; /* ids of backlogs, of all sites of the visit */
    void (*each)(void *context, const struct sched_site *site);
    void *context;
};

static void
sched_questions_visit(void *context, struct site *site)
{
    struct site_visit *v = context;
    struct outcome outcome;
    sched_backlog_check(v->s, site, &v->checked_most);
    struct sched_site view = site_view(v->s, site, &outcome);
    v->each(v->context, &view);
}

size_t
sched_oldest(const struct sched *s, struct id *ids, size_t most)
{
    return message_index_oldest(&s->known, ids, most);
}

bool
sched_site_change(struct sched *s, struct site_change *out)
{
    return site_changes_take(s->destinations.sites.changes, out);
}

struct site_glance {
    const struct sched *s;
    size_t checked_most; /* ids of backlogs */
    void (*each)(void *context, const struct sched_glance *glance);
    void *context;
};

static void
sched_questions_glance(void *context, struct site *site)
{
    struct site_glance *g = context;
    sched_backlog_check(g->s, site, &g->checked_most);
    struct sched_glance glance = {
        .site = site,
        .key = site->key,
        .waiting = site->lanes.counts.recipients,
        .backlogged = backlog_count(site),
        .sessions = site->sessions,
        .busy = site->carrying,
        .fails = site->dead_since_ms != 0,
        .is_crowded = site->is_crowded,
        .is_slowed = bucket_learnt_rate(&site->learnt, g->s->now_ms) > 0,
        .is_shared = site->lease != NULL};
    g->each(g->context, &glance);
}

void
sched_glance(const struct sched *s,
             void (*each)(void *context, const struct sched_glance *glance),
             void *context)
{
    struct site_glance g = {.s = s,
                            .checked_most = SCHED_BACKLOG_CHECKED_ALL,
                            .each = each,
                            .context = context};
    sites_each(&s->destinations.sites, sched_questions_glance, &g);
}

void
sched_look(const struct sched *s, struct site *site,
           void (*each)(void *context, const struct sched_site *site), void *context)
{
    struct site_visit v = {.s = s, .each = each, .context = context};
    sched_questions_visit(&v, site);
}

struct sched_walk {
    const struct sched *sched;
    struct site_walk *sites;
};

struct sched_walk *
sched_walk_begin(struct sched *s)
{
    struct sched_walk *walk = memory_new(sizeof(*walk));
    *walk = (struct sched_walk){s, site_walk_begin(&s->destinations.sites)};
    return walk;
}

bool
sched_walk_step(struct sched_walk *walk, size_t most,
                void (*each)(void *context, const struct sched_site *site),
                void *context)
{
    struct site_visit v = {.s = walk->sched,
                           .checked_most = SCHED_BACKLOG_CHECKED,
                           .each = each,
                           .context = context};
    return site_walk_step(walk->sites, most, sched_questions_visit, &v);
}

static void
sched_questions_pass(void *context, struct site *site)
{
    (void)site;
    ++*(size_t *)context;
}

bool
sched_walk_pass(struct sched_walk *walk, size_t most, size_t *passed)
{
    return site_walk_step(walk->sites, most, sched_questions_pass, passed);
}

void
sched_walk_end(struct sched_walk **walk)
{
    if (*walk == NULL)
        return;
    site_walk_end(&(*walk)->sites);
    free(*walk);
    *walk = NULL;
}

/* The proof for one message, where the site's bound may be that of another lane. */
static void
view_proof(const struct lane *lane, struct sched_site *view)
{
    bool is_full = view->bound == SCHED_BOUND_WINDOW ||
                   (view->bound == SCHED_BOUND_LEASE && view->sessions > 0);
    if (view->bound == SCHED_BOUND_PROOF && lane->sessions > 0)
        view->bound = SCHED_BOUND_WINDOW;
    else if (is_full && lane->demand != 0 && lane->sessions == 0)
        view->bound = SCHED_BOUND_PROOF;
}

/* Mail that is not active has no entries: sched_find() has its state. */
bool
sched_explain(const struct sched *s, struct id id,
              void (*each)(void *context, const struct sched_wait *wait), void *context)
{
    const struct message_index *k = message_index_find(&s->known, id);
    if (!k || k->place != MESSAGE_INDEX_ACTIVE)
        return k != NULL;
    struct sched_message *m = k->message;
    size_t checked_most = SCHED_BACKLOG_CHECKED;
    for (unsigned i = 0; i < m->entry_count; i++) {
        const struct entry *e = &message_entries(m)[i];
        struct outcome outcome;
        sched_backlog_check(s, e->destination->site, &checked_most);
        struct sched_site view = site_view(s, e->destination->site, &outcome);
        view_proof(e->destination->lane, &view);
        struct sched_wait wait = {
            .destination = e->destination->key,
            .expires_ms = m->birth_ms +
                          transport_params_lifetime_ms(
                              destination_transport(e->destination), m->null_sender),
            .site = &view};
        for (unsigned j = e->first; j < e->first + e->count; j++) {
            wait.waiting += m->slots[j].state == SLOT_WAITING;
            wait.taken += m->slots[j].state == SLOT_TAKEN;
            wait.deferred += m->slots[j].state == SLOT_DEFERRED;
        }
        each(context, &wait);
    }
    return true;
}

struct memory_visit {
    void (*each)(void *context, const struct site_state *site);
    void *context;
};

static void
sched_questions_remember(void *context, struct site *site)
{
    struct memory_visit *v = context;
    struct site_state r;
    char key[SITE_STATE_KEY_MAX];
    if (site_remember(site, &r, key))
        v->each(v->context, &r);
}

void
sched_remember(const struct sched *s,
               void (*each)(void *context, const struct site_state *site),
               void *context)
{
    struct memory_visit v = {.each = each, .context = context};
    sites_each(&s->destinations.sites, sched_questions_remember, &v);
    /* A state that no mail has used since startup is kept unchanged. */
    struct site_state *r, *next;
    HASH_ITER (hh, s->destinations.sites.states.by_key, r, next)
        each(context, r);
}

/* The state waits until mail makes its site: see site_recall(). */
void
sched_recall(struct sched *s, const struct site_state *site)
{
    site_state_add(&s->destinations.sites.states, site);
}

/* Several destinations can have the key, each with its own target. */
void
sched_find_site(const struct sched *s, const struct target *target, struct text domain,
                size_t *checked_most,
                void (*each)(void *context, const struct sched_site *site),
                void *context)
{
    char key[ROUTE_KEY_MAX];
    struct outcome outcome;
    struct destination *d;
    size_t length = route_key(target, domain, key);
    HASH_FIND(hh, s->destinations.by_key, key, length, d);
    while (d && memcmp(&d->transport->target, target, sizeof(*target)) != 0)
        d = d->same;
    if (!d)
        return;
    sched_backlog_check(s, d->site, checked_most);
    struct sched_site view = site_view(s, d->site, &outcome);
    each(context, &view);
}

struct ahead {
    const struct message_index *mine;
    int64_t now_ms;
    size_t count;
};

/* The order of loading: due first, then by id (message_index_first()). New and deferred
 * mail are loaded in turn, so only mail of the same age counts. */
static void
count_ahead(void *context, struct message_index *k)
{
    struct ahead *a = context;
    const struct message_index *mine = a->mine;
    if (k == mine || k->place != MESSAGE_INDEX_WAITING ||
        message_index_age(k) != message_index_age(mine) || k->due_ms > a->now_ms ||
        k->due_ms > mine->due_ms)
        return;
    struct id other = message_index_id(k), my = message_index_id(mine);
    a->count += k->due_ms < mine->due_ms || id_compare(other, my) < 0;
}

/* By a walk over all records, since only `petrel queue why` asks. */
size_t
sched_ahead(struct sched *s, struct id id)
{
    struct ahead a = {.mine = message_index_find(&s->known, id), .now_ms = s->now_ms};
    if (a.mine && a.mine->queued && message_index_is_backlogged(a.mine))
        return sched_admission_ahead(s, a.mine);
    if (a.mine && a.mine->place == MESSAGE_INDEX_WAITING)
        message_index_each(&s->known, count_ahead, &a);
    return a.count;
}
