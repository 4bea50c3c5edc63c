/* The limits of a site: windows, the learnt state, death and revival, timers.
 *
 * Ready lists and timers are derived: after each change of a site site_update() decides
 * anew whether it wants a session and when time alone would change that. A site frees
 * itself there when nothing uses it. */
#include "sched/site.h"

#include "base/memory.h"
#include "sched/limits/reply_class.h"
#include "sched/limits/retry.h"
#include "sched/session.h"
#include "sched/site_lease.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    /* When a session waits this long for its greeting while others work, the server
     * queues connections: open no more. */
    LINE_MIN_MS = 2000,
    LINE_TIMES = 4,
    GREETING_MS = 1000, /* from the opening of a session to its first mail */
    PAUSE_STEP_MS = 20, /* between sessions, for each further failure in a row */
    /* Failures in a row of a site that has greeted. With fewer, one broken front end
     * among several would kill it whenever no other session is open. */
    FORGIVEN = 5,
    SLOW_MAX_MS = 600000, /* slower than at its best for that time: its speed */
    IDLERS_TRIED = 32     /* idle sessions looked at to end one */
};

/* --- Deaths and lives until the owner asks ---------------------------------------- */

struct site_changes {
    struct site_change ring[SITE_CHANGES_MAX];
    size_t first, count;
};

void
site_changes_add(struct site_changes **changes, const char *site, int64_t dead_ms,
                 const struct outcome *why)
{
    struct site_changes *all = *changes;
    if (all == NULL)
        all = *changes = memory_new(sizeof(*all));
    if (all->count == SITE_CHANGES_MAX)
        return;
    struct site_change *c = &all->ring[(all->first + all->count++) % SITE_CHANGES_MAX];
    *c = (struct site_change){.is_dead = why != NULL, .dead_ms = dead_ms};
    text_copy(c->site, sizeof(c->site),
              text_before(text_from(site), sizeof(c->site) - 1));
    if (why != NULL)
        c->why = *why;
}

bool
site_changes_take(struct site_changes *all, struct site_change *out)
{
    if (all == NULL || all->count == 0)
        return false;
    *out = all->ring[all->first];
    all->first = (all->first + 1) % SITE_CHANGES_MAX;
    all->count--;
    return true;
}

void
site_changes_free(struct site_changes **changes)
{
    free(*changes);
    *changes = NULL;
}

/* --- Walks ----------------------------------------------------------------------- */

/* A walk stands at a site; if that is freed, at the next. */
static struct site *
site_first_from(struct transport *transport)
{
    while (transport != NULL && transport->sites == NULL)
        transport = transport->hh.next;
    return transport != NULL ? transport->sites : NULL;
}

static struct site *
site_behind(const struct site *site)
{
    struct site *next = site->hh.next;
    return next != NULL ? next : site_first_from(site->transport->hh.next);
}

struct site_walk *
site_walk_begin(struct sites *set)
{
    struct site_walk *walk = memory_new(sizeof(*walk));
    walk->set = set;
    walk->site = site_first_from(set->transports.by_target);
    DL_APPEND(set->walks, walk);
    return walk;
}

bool
site_walk_step(struct site_walk *walk, size_t most,
               void (*each)(void *context, struct site *site), void *context)
{
    for (size_t i = 0; i < most && walk->site != NULL; i++) {
        struct site *site = walk->site;
        walk->site = site_behind(site);
        each(context, site);
    }
    return walk->site != NULL;
}

void
site_walk_pass(struct site_walk *walk)
{
    walk->site = site_behind(walk->site);
}

void
site_walk_end(struct site_walk **walk)
{
    struct site_walk *w = *walk;
    *walk = NULL;
    if (w == NULL)
        return;
    if (w->set != NULL)
        DL_DELETE(w->set->walks, w);
    free(w);
}

static void
site_walks_leave(struct sites *set, const struct site *site)
{
    struct site_walk *walk;
    DL_FOREACH (set->walks, walk)
        if (walk->site == site)
            walk->site = site_behind(site);
}

static void
site_walks_forget(struct sites *set)
{
    struct site_walk *walk, *next;
    DL_FOREACH_SAFE (set->walks, walk, next) {
        DL_DELETE(set->walks, walk);
        walk->set = NULL;
        walk->site = NULL;
    }
}

/* --- All sites ------------------------------------------------------------------- */

static bool
wakes_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct site *x = memory_container(a, struct site, timer);
    const struct site *y = memory_container(b, struct site, timer);
    return x->wake_ms < y->wake_ms;
}

void
sites_init(struct sites *set, uint64_t seed)
{
    *set = (struct sites){.random = seed};
    heap_init(&set->timers, wakes_before);
}

void
sites_free(struct sites *set)
{
    site_walks_forget(set);
    site_group_free(set);
    assert(set->count == 0 && !set->transports.by_target && !set->flows.by_key);
    token_table_clear(&set->transports.tokens);
    hop_quotas_free(&set->transports.hops);
    heap_free(&set->timers);
    site_state_clear(&set->states);
    site_changes_free(&set->changes);
}

const struct transport_params *
site_transport(const struct site *site)
{
    return &site->transport->target.transport;
}

bool
site_is_adaptive(const struct site *site)
{
    return site_transport(site)->adaptive;
}

/* --- Death ------------------------------------------------------------------------ */

/* Each probe is a login: too many with a wrong password may lock us out. */
static int64_t
next_login(struct sites *set, struct site *site)
{
    const struct transport_params *t = site_transport(site);
    site->probe_ms = site->probe_ms < t->minimal_backoff_ms ? t->minimal_backoff_ms
                                                            : 2 * site->probe_ms;
    if (site->probe_ms > t->maximal_backoff_ms)
        site->probe_ms = t->maximal_backoff_ms;
    return retry_jitter_ms(site->probe_ms * 9 / 10, &set->random);
}

/* A probe costs the site one connection: it comes soon at first, then less often the
 * longer the site is dead. */
static int64_t
next_probe(struct sites *set, struct site *site, int64_t now_ms,
           const struct outcome *outcome)
{
    const struct transport_params *t = site_transport(site);
    if (reply_class_refuses_us(outcome))
        return next_login(set, site);
    int64_t longest = (now_ms - site->dead_since_ms) / SITE_PROBE_PART;
    if (longest < SITE_PROBE_MAX_MS)
        longest = SITE_PROBE_MAX_MS;
    if (longest > SITE_PROBE_LONG_MS)
        longest = SITE_PROBE_LONG_MS;
    /* Mail with a shorter delay would come due in vain. */
    int64_t first = SITE_PROBE_MIN_MS < t->minimal_backoff_ms ? SITE_PROBE_MIN_MS
                                                              : t->minimal_backoff_ms;
    if (longest > t->maximal_backoff_ms)
        longest = t->maximal_backoff_ms;
    site->probe_ms = site->probe_ms ? 2 * site->probe_ms : first;
    if (site->probe_ms > longest)
        site->probe_ms = longest;
    /* A little sooner at random, so that the probe never comes after mail with the same
     * delay. */
    return retry_jitter_ms(site->probe_ms * 9 / 10, &set->random);
}

/* Mail that comes later is deferred with `suspended`, whose words say that it had no
 * attempt of its own. dead_since_ms stays over deaths until a transaction shows that
 * the site works: so probes of a site that only greets become rarer, too. */
void
site_die(struct sites *set, struct site *site, int64_t now_ms,
         const struct outcome *outcome)
{
    assert(!site->dead);
    struct outcome later =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, outcome->code, outcome->enhanced,
                     "delivery temporarily suspended: %s", outcome->text);
    memcpy(later.remote, outcome->remote, sizeof(later.remote));
    site->reason = reason_open(&site->reasons, outcome);
    site->suspended = reason_open(&site->reasons, &later);
    site->dead = true;
    site->has_greeted = site->is_due = false;
    if (site->dead_since_ms == 0) {
        site->dead_since_ms = now_ms;
        site_changes_add(&set->changes, site->key, 0, outcome);
    }
    site->dead_until_ms =
        now_ms + (site_is_adaptive(site) ? next_probe(set, site, now_ms, outcome)
                                         : site_transport(site)->minimal_backoff_ms);
    set->dead_count++;
}

/* The learnt window is not used: the site begins with one session (window_probe()). */
void
site_revive(struct sites *set, struct site *site)
{
    if (!site->dead || site->lacks_token)
        return;
    reason_close(&site->reasons, &site->reason);
    reason_close(&site->reasons, &site->suspended);
    site->dead = false;
    site->dead_until_ms = site->open_after_ms = 0;
    window_probe(&site->window);
    set->dead_count--;
}

/* --- Creation ---------------------------------------------------------------------- */

struct site *
site_get(struct sites *set, struct transport *transport, struct text key)
{
    struct site *site;
    HASH_FIND(hh, transport->sites, key.at, key.length, site);
    if (site)
        return site;
    site = memory_new(sizeof(*site));
    site->key = text_string(key);
    site->transport = transport_share(transport);
    lanes_init(site);
    window_init(&site->window, &transport->target.transport);
    bucket_learnt_init(&site->learnt);
    HASH_ADD_KEYPTR(hh, transport->sites, site->key, key.length, site);
    set->count++;
    if (set->group)
        site_lease_join(set, site);
    site_recall(set, site);
    if (transport->token == SCHED_TOKEN_FAILED)
        token_lose(set, site);
    return site;
}

/* The two ready lists, of a transport's sites and of transports, are kept consistent
 * here: a transport is in its list while it has a ready site. */
static void
leave_ready(struct sites *set, struct site *site)
{
    struct transport *c = site->transport;
    if (!site->is_ready)
        return;
    DL_DELETE(c->ready, site);
    site->is_ready = false;
    if (c->ready)
        return;
    DL_DELETE(set->transports.ready, c);
    c->is_ready = false;
}

static void
enter_ready(struct sites *set, struct site *site)
{
    struct transport *c = site->transport;
    if (site->is_ready)
        return;
    DL_APPEND(c->ready, site);
    site->is_ready = true;
    if (c->is_ready)
        return;
    DL_APPEND(set->transports.ready, c);
    c->is_ready = true;
}

static void
site_set_stalled(struct sites *set, struct site *site, bool is_stalled)
{
    if (site->is_stalled == is_stalled)
        return;
    site->is_stalled = is_stalled;
    if (is_stalled)
        DL_APPEND2(set->stalled, site, stalled_prev, stalled_next);
    else
        DL_DELETE2(set->stalled, site, stalled_prev, stalled_next);
}

void
site_set_crowded(struct sites *set, struct site *site, bool is_crowded, int64_t now_ms)
{
    if (site->is_crowded == is_crowded)
        return;
    site->is_crowded = is_crowded;
    site->crowded_since_ms = now_ms;
    site->recalled = site->passed = 0;
    if (is_crowded)
        DL_APPEND2(set->crowded, site, crowded_prev, crowded_next);
    else
        DL_DELETE2(set->crowded, site, crowded_prev, crowded_next);
}

static void
site_free(struct sites *set, struct site *site)
{
    assert(site->sessions == 0 && !site->members && site->loaded == 0);
    leave_ready(set, site);
    site_set_stalled(set, site, false);
    if (heap_has(&site->timer))
        heap_remove(&set->timers, &site->timer);
    if (site->dead && !site->lacks_token)
        set->dead_count--;
    site_set_crowded(set, site, false, 0);
    reason_close(&site->reasons, &site->reason);
    reason_close(&site->reasons, &site->suspended);
    assert(!site->reasons);
    site_walks_leave(set, site);
    if (site->lease)
        site_lease_leave(set, site);
    HASH_DELETE(hh, site->transport->sites, site);
    lanes_free(&site->lanes);
    for (int age = 0; age < FLOW_AGES; age++)
        id_queue_free(&site->backlog[age].ids);
    free(site->key);
    transport_close(&set->transports, site->transport);
    free(site);
    set->count--;
}

uint32_t
sites_job_s(const struct sites *set, int64_t now_ms)
{
    return (uint32_t)((now_ms - set->shift_ms) / 1000);
}

/* --- Bounds ----------------------------------------------------------------------- */

/* Each of them delays the beginning of a transaction. */
enum { PACES = 3 };
struct pace {
    enum sched_bound bound;
    int64_t ready_ms;
};

static void
site_paces(struct site *site, int64_t now_ms, struct pace paces[PACES])
{
    int64_t learnt = site_is_adaptive(site)
                         ? bucket_learnt_ready_ms(&site->learnt, now_ms)
                         : INT64_MIN;
    int64_t longest_ms = now_ms + site_transport(site)->rate_delay_ms;
    if (site->pause_until_ms > longest_ms) /* of another delay than today's */
        site->pause_until_ms = longest_ms;
    paces[0] = (struct pace){SCHED_BOUND_RATE_DELAY, site->pause_until_ms};
    paces[1] = (struct pace){
        SCHED_BOUND_RATE,
        bucket_ready_ms(&site->bucket, &site_transport(site)->rate, now_ms)};
    paces[2] = (struct pace){SCHED_BOUND_LEARNT_RATE, learnt};
}

int64_t
site_ready_ms(struct site *site, int64_t now_ms)
{
    struct pace paces[PACES];
    int64_t ready = INT64_MIN;
    site_paces(site, now_ms, paces);
    for (int i = 0; i < PACES; i++)
        if (paces[i].ready_ms > ready)
            ready = paces[i].ready_ms;
    return site->lease ? site_lease_delay(site, now_ms, ready) : ready;
}

int
site_allows(const struct site *site, int64_t now_ms)
{
    int allowed = site->window.size;
    if (site_is_adaptive(site)) {
        int ceiling = ceiling_allows(&site->ceiling, now_ms);
        if (ceiling < allowed)
            allowed = ceiling;
    }
    return site->lease ? site_lease_limit(site, now_ms, false, allowed) : allowed;
}

int
site_allows_new(const struct site *site, int64_t now_ms)
{
    int allowed = site_allows(site, now_ms);
    return site->lease ? site_lease_limit(site, now_ms, true, allowed) : allowed;
}

/* A session waits in a queue for its greeting. */
static bool
is_congested(const struct site *site, int64_t now_ms)
{
    if (!site_is_adaptive(site) || !site->opening || site->greeted == 0)
        return false;
    int64_t patience = LINE_TIMES * latency_short_ms(&site->latency);
    if (patience < LINE_MIN_MS)
        patience = LINE_MIN_MS;
    return now_ms - site->opening->opened_ms > patience;
}

static enum sched_bound
rate_bound(struct site *site, int64_t now_ms, int64_t *until_ms)
{
    struct pace paces[PACES];
    site_paces(site, now_ms, paces);
    for (int i = 0; i < PACES; i++) {
        *until_ms = paces[i].ready_ms;
        if (*until_ms > now_ms)
            return paces[i].bound;
    }
    if (site->lease) {
        *until_ms = site_lease_delay(site, now_ms, INT64_MIN);
        if (*until_ms > now_ms)
            return SCHED_BOUND_LEASE_RATE;
    }
    return SCHED_BOUND_NONE;
}

/* A transport with a rate delay has one delivery at a time, and so one session that
 * begins it, at another site. Idle sessions begin nothing. */
static bool
has_other_turn(const struct site *site)
{
    const struct transport *c = site->transport;
    return c->target.transport.transport_rate_delay_ms > 0 &&
           c->sessions - c->idle - c->carrying >
               site->sessions - site->idle - site->carrying;
}

/* The order is that of doc/scheduler.md "Bounds": the first bound that applies is
 * reported. */
enum sched_bound
site_bound(struct site *site, int64_t now_ms, int64_t *until_ms)
{
    *until_ms = site->dead_until_ms;
    if (site->lacks_token)
        return SCHED_BOUND_TOKEN;
    if (site->dead)
        return SCHED_BOUND_DEAD;
    *until_ms = INT64_MAX;
    if (site->transport->token == SCHED_TOKEN_AWAITED)
        return SCHED_BOUND_TOKEN;
    *until_ms = site->transport->quota_until_ms;
    if (*until_ms < site->transport->spent_until_ms)
        *until_ms = site->transport->spent_until_ms;
    if (now_ms < *until_ms)
        return SCHED_BOUND_QUOTA;
    *until_ms = site->transport->pause_until_ms;
    if (transport_pauses(site->transport, now_ms)) {
        /* A delivery is under way: an event ends the bound. */
        if (*until_ms <= now_ms)
            *until_ms = INT64_MAX;
        return SCHED_BOUND_TRANSPORT_DELAY;
    }
    if (has_other_turn(site)) {
        *until_ms = INT64_MAX;
        return SCHED_BOUND_TRANSPORT_DELAY;
    }
    enum sched_bound bound = rate_bound(site, now_ms, until_ms);
    if (bound != SCHED_BOUND_NONE)
        return bound;
    *until_ms = INT64_MAX;
    if (site->lease && site->sessions >= site_lease_limit(site, now_ms, true, INT_MAX))
        return SCHED_BOUND_LEASE;
    if (site->sessions >= site_allows(site, now_ms) && lanes_lack_proof(&site->lanes))
        return SCHED_BOUND_PROOF;
    if (site->sessions >= site->window.size)
        return site->window.probing ? SCHED_BOUND_PROBE : SCHED_BOUND_WINDOW;
    if (site->sessions >= site_allows(site, now_ms)) {
        *until_ms = ceiling_wake_ms(&site->ceiling);
        if (*until_ms <= now_ms) /* the probe is under way */
            *until_ms = INT64_MAX;
        return SCHED_BOUND_CEILING;
    }
    if (is_congested(site, now_ms))
        return SCHED_BOUND_CONGESTED;
    *until_ms = site->open_after_ms;
    if (site->open_after_ms > now_ms)
        return SCHED_BOUND_PAUSE;
    *until_ms = INT64_MAX;
    return SCHED_BOUND_NONE;
}

/* A session is opened for mail that a rate permits by the time of its greeting. */
static size_t
sessions_worth(const struct sites *set, const struct site *site, int64_t now_ms)
{
    int64_t until_ms = now_ms + GREETING_MS;
    uint32_t left = hop_quota_left(&set->transports.hops, site->transport);
    uint32_t passes =
        bucket_passes(&site->bucket, &site_transport(site)->rate, now_ms, until_ms);
    if (site_is_adaptive(site)) {
        uint32_t learnt = bucket_learnt_passes(&site->learnt, now_ms, until_ms);
        passes = learnt < passes ? learnt : passes;
    }
    if (site->lease) {
        uint32_t leased = site_lease_passes(site, now_ms, until_ms);
        passes = leased < passes ? leased : passes;
    }
    passes = left < passes ? left : passes;
    return passes > 0 ? passes : 1;
}

/* Sessions without mail are served first: those that greet, are idle, or are between two
 * works; not those whose proof is another than the demand of the waiting mail. A probe
 * needs no mail in memory; backlogged mail is enough, until the site has greeted: that
 * mail is then loaded when it has a place. By Postfix's rules there is a probe only when
 * mail is due. */
static bool
wants_session(const struct sites *set, struct site *site, int64_t now_ms)
{
    size_t without = (size_t)(site->sessions - site->carrying);
    size_t served = lanes_matched(&site->lanes), lacks = lanes_lack(&site->lanes);
    if (site->lanes.counts.recipients == 0 && site->window.probing &&
        !site->has_greeted && backlog_waits(site) &&
        (site_is_adaptive(site) || site->is_due))
        lacks = without == 0;
    /* A session needs a destination, whose servers it looks up. */
    if (lacks == 0 || site->destinations == 0)
        return false;
    if (site_transport(site)->transport_rate_delay_ms > 0 && without > 0)
        return false;
    if (served > 0 && served >= sessions_worth(set, site, now_ms))
        return false;
    int64_t until;
    return site_bound(site, now_ms, &until) == SCHED_BOUND_NONE;
}

/* Idle sessions that mail cannot use end for one that it can. */
static bool
site_needs_space(struct site *site, int64_t now_ms)
{
    int64_t until_ms;
    if (!site->lanes.lacking || site->idle == 0 || site->released > 0 ||
        site->is_ready || !lanes_have_spare(&site->lanes))
        return false;
    enum sched_bound bound = site_bound(site, now_ms, &until_ms);
    if (bound == SCHED_BOUND_NONE)
        return site_transport(site)->transport_rate_delay_ms > 0;
    return bound == SCHED_BOUND_WINDOW || bound == SCHED_BOUND_CEILING ||
           bound == SCHED_BOUND_PROBE || bound == SCHED_BOUND_PROOF ||
           bound == SCHED_BOUND_LEASE;
}

static void
site_make_space(struct site *site, int64_t now_ms)
{
    struct sched_session *session;
    int looked = 0;
    if (!site_needs_space(site, now_ms))
        return;
    DL_FOREACH2 (site->idlers, session, idlers_next) {
        if (session->lane->counts.spares > 0) {
            sched_session_release(session);
            return;
        }
        if (++looked == IDLERS_TRIED)
            return;
    }
}

/* --- Learning --------------------------------------------------------------------- */

void
site_take(struct site *site, int64_t now_ms)
{
    bucket_take(&site->bucket, &site_transport(site)->rate, now_ms);
    if (site_is_adaptive(site))
        bucket_learnt_take(&site->learnt, now_ms);
    if (site->lease)
        site_lease_take(site, now_ms);
}

/* A site that stays slow with a session or two is not slow because of us: it would take
 * hours until the average says so. */
static void
judge_slowness(struct site *site, int64_t now_ms)
{
    if (latency_judge(&site->latency) == LATENCY_FINE || site->window.size > 2) {
        site->slow_since_ms = 0;
    } else if (site->slow_since_ms == 0) {
        site->slow_since_ms = now_ms;
    } else if (now_ms - site->slow_since_ms >= SLOW_MAX_MS) {
        latency_accept(&site->latency);
        site->slow_since_ms = 0;
    }
}

/* When the site becomes slower with it, the window stops growing or shrinks. */
static bool
is_slowed(struct site *site, int64_t now_ms)
{
    judge_slowness(site, now_ms);
    if (!site_is_adaptive(site) || site->window.size <= 1)
        return false;
    switch (latency_judge(&site->latency)) {
    case LATENCY_FINE:
        site->slow = 0;
        return false;
    case LATENCY_HOLD:
        return true;
    case LATENCY_SHRINK:
        if (++site->slow >= (unsigned)site->window.size) {
            site->slow = 0;
            site->window.size--;
        }
        return true;
    }
    return false;
}

static void
site_lives(struct sites *set, struct site *site, int64_t now_ms)
{
    site_revive(set, site);
    if (site->dead_since_ms != 0)
        site_changes_add(&set->changes, site->key, now_ms - site->dead_since_ms, NULL);
    site->dead_since_ms = site->probe_ms = 0;
    site->failures = 0;
}

bool
site_served(struct sites *set, struct site *site, int64_t now_ms,
            enum session_feedback feedback, int busy, int64_t took_ms)
{
    const struct transport_params *t = site_transport(site);
    if (t->rate_delay_ms > 0)
        site->pause_until_ms = now_ms + t->rate_delay_ms;
    switch (feedback) {
    case FEEDBACK_GOOD:
        site_lives(set, site, now_ms);
        if (took_ms > 0)
            latency_note(&site->latency, took_ms);
        bucket_learnt_accepted(&site->learnt, now_ms);
        if (is_slowed(site, now_ms))
            site->window.cohorts = 0;
        else
            window_good(&site->window, t, busy);
        return false;
    case FEEDBACK_SLOW:
        bucket_learnt_refused(&site->learnt, now_ms);
        site_lives(set, site, now_ms);
        window_answered(&site->window);
        return false;
    case FEEDBACK_NONE:
        site_lives(set, site, now_ms);
        window_answered(&site->window);
        return false;
    case FEEDBACK_BAD:
        /* While other sessions are alive the site is not dead. */
        return !site->dead && window_bad(&site->window, t) &&
               (!site_is_adaptive(site) || site->greeted <= 1);
    }
    return false;
}

void
site_greeted(struct sites *set, struct site *site, int64_t now_ms)
{
    site_revive(set, site);
    site->failures = 0;
    site->has_greeted = true;
    set->direct_greetings += site->transport->target.kind == TARGET_MX;
    ceiling_greeted(&site->ceiling, now_ms, site->greeted);
}

void
site_pause(struct site *site, int64_t now_ms)
{
    site->open_after_ms = now_ms + SITE_OPEN_PAUSE_MS;
}

/* While others are served the pause is short, or one broken front end among many would
 * stop all mail. */
static void
pause_after_failure(struct site *site, int64_t now_ms)
{
    int64_t pause = SITE_OPEN_PAUSE_MS;
    if (site->greeted > 0 && (site->failures - 1) * PAUSE_STEP_MS < SITE_OPEN_PAUSE_MS)
        pause = (site->failures - 1) * PAUSE_STEP_MS;
    site->open_after_ms = now_ms + pause;
}

/* True: this killed the site. A refused login (is_final) would be refused again, so it
 * needs no further failure. */
bool
site_refused(struct site *site, int64_t now_ms, bool is_final)
{
    site->failures++;
    pause_after_failure(site, now_ms);
    if (is_final && site->greeted == 0)
        return !site->dead;
    if (site_is_adaptive(site) && site->greeted > 0) {
        ceiling_refused(&site->ceiling, now_ms, site->greeted);
        return false;
    }
    if (site->dead)
        return false;
    bool dead = window_bad(&site->window, site_transport(site));
    if (site_is_adaptive(site)) /* others may still be greeted */
        return !site->opening && (!site->has_greeted || site->failures >= FORGIVEN);
    return dead || site->greeted == 0;
}

/* --- Lists and timers ------------------------------------------------------------- */

/* The earliest of the times at which the site's bound may end; a bound that an event
 * ends has no time. */
static int64_t
wake_time(struct site *site, int64_t now_ms)
{
    if (site->dead)
        return site->dead_until_ms;
    int64_t wake = site->lease ? site_lease_wake_ms(site, now_ms) : INT64_MAX;
    if (site->lanes.counts.recipients == 0 && !site->window.probing)
        return wake;
    const int64_t times[] = {
        site_ready_ms(site, now_ms),     site->open_after_ms,
        ceiling_wake_ms(&site->ceiling), site->transport->pause_until_ms,
        site->transport->quota_until_ms, site->transport->spent_until_ms};
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++)
        if (times[i] > now_ms && times[i] < wake)
            wake = times[i];
    return wake;
}

void
site_wake_at(struct sites *set, struct site *site, int64_t wake_ms)
{
    if (heap_has(&site->timer)) {
        if (wake_ms == site->wake_ms)
            return;
        heap_remove(&set->timers, &site->timer);
    }
    site->wake_ms = wake_ms;
    if (wake_ms != INT64_MAX)
        heap_add(&set->timers, &site->timer);
}

/* Everything derived from the site's state is set anew, so no caller must know the
 * effects of its change. */
void
site_update(struct sites *set, struct site *site, int64_t now_ms)
{
    if (site->dead && now_ms >= site->dead_until_ms)
        site_revive(set, site);
    if (site->destinations == 0 && site->sessions == 0) {
        site_free(set, site);
        return;
    }
    if (site->lease)
        site_lease_update(set, site, now_ms);
    if (wants_session(set, site, now_ms))
        enter_ready(set, site);
    else
        leave_ready(set, site);
    site_make_space(site, now_ms);
    site_set_stalled(set, site, site->idle > 0 && lanes_matched(&site->lanes) > 0);
    site_wake_at(set, site, wake_time(site, now_ms));
}

/* The share keeps the transport while its sites are updated: the last of them may free
 * itself. */
void
sites_update(struct sites *set, struct transport *transport, int64_t now_ms)
{
    struct site *site, *next;
    transport_share(transport);
    HASH_ITER (hh, transport->sites, site, next)
        site_update(set, site, now_ms);
    transport_close(&set->transports, transport);
}

/* Several transports may lead to one account. */
static void
update_namesakes(struct sites *set, const struct transport *c, int64_t now_ms)
{
    struct transport *other, *next;
    HASH_ITER (hh, set->transports.by_target, other, next)
        if (other != c && other->hop == c->hop &&
            hop_quota_update(&set->transports.hops, other))
            sites_update(set, other, now_ms);
}

void
sites_transport_changed(struct sites *set, struct transport *transport, int64_t now_ms)
{
    bool is_shared = transport->hop != NULL && transport->hop->holders > 1;
    bool changed = hop_quota_update(&set->transports.hops, transport);
    if (is_shared)
        update_namesakes(set, transport, now_ms);
    if (changed || transport->target.transport.transport_rate_delay_ms > 0)
        sites_update(set, transport, now_ms);
}

void
site_rotate(struct sites *set, struct site *site, int64_t now_ms)
{
    struct transport *c = site->transport;
    leave_ready(set, site);
    if (c->is_ready) {
        DL_DELETE(set->transports.ready, c);
        DL_APPEND(set->transports.ready, c);
    }
    site_update(set, site, now_ms);
}

void
sites_tick(struct sites *set, int64_t now_ms)
{
    while (sites_wake_ms(set) <= now_ms) {
        struct heap_node *first = heap_first(&set->timers);
        site_update(set, memory_container(first, struct site, timer), now_ms);
    }
}

int64_t
sites_wake_ms(const struct sites *set)
{
    const struct heap_node *first = heap_first(&set->timers);
    return first ? memory_container(first, struct site, timer)->wake_ms : INT64_MAX;
}

void
sites_each(const struct sites *set, void (*each)(void *context, struct site *site),
           void *context)
{
    struct transport *c, *next_transport;
    struct site *site, *next;
    HASH_ITER (hh, set->transports.by_target, c, next_transport)
        HASH_ITER (hh, c->sites, site, next)
            each(context, site);
}

static void
site_shift(void *context, struct site *site)
{
    int64_t delta = *(int64_t *)context;
    site->dead_since_ms += site->dead_since_ms ? delta : 0;
    site->dead_until_ms += site->lacks_token ? 0 : delta;
    site->pause_until_ms += delta;
    site->open_after_ms += delta;
    site->crowded_since_ms += delta;
    site->slow_since_ms += site->slow_since_ms ? delta : 0;
    site->recipients_until_ms += delta;
    lanes_shift(&site->lanes, delta);
    ceiling_shift(&site->ceiling, delta);
    bucket_shift(&site->bucket, delta);
    if (site->lease)
        site_lease_shift(site, delta);
    bucket_learnt_shift(&site->learnt, delta);
    if (heap_has(&site->timer))
        site->wake_ms += delta;
    struct sched_session *session;
    DL_FOREACH2 (site->opening, session, opening_next)
        session->opened_ms += delta;
}

void
sites_shift(struct sites *set, int64_t delta_ms)
{
    struct transport *c, *next;
    set->shift_ms += delta_ms;
    set->transports.hops.shift_ms += delta_ms;
    HASH_ITER (hh, set->transports.by_target, c, next) {
        c->pause_until_ms += delta_ms;
        c->quota_until_ms += c->quota_until_ms != 0 ? delta_ms : 0;
        c->spent_until_ms += c->spent_until_ms != 0 ? delta_ms : 0;
    }
    sites_each(set, site_shift, &delta_ms);
    site_group_shift(set, delta_ms);
    site_state_shift(&set->states, delta_ms);
}
