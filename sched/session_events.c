/* The scheduler's machine: reports of sessions.
 *
 * Each report changes counts and queues; sched_next() decides the next action. A
 * session has no mail before its greeting, so the death of its site settles the mail in
 * the queue, not the session. */
#include "sched/sched_internal.h"

#include "sched/limits/reply_class.h"

#include <assert.h>
#include <string.h>
#include <utlist.h>

enum {
    TURN_WORKS = 20,              /* works of a session while others wait for one, */
    RECIPIENTS_LAST_MS = 3600000, /* a limit of recipients is remembered */
    TURN_MS = 10000,              /* or this time, whichever is over first */
    LANES_TRIED = 8,              /* of those that lack sessions */
    TRANSPORTS_TRIED = 32         /* of those that want a session */
};

/* One of its sessions has begun or ended a delivery. With a transport rate delay that
 * changes the bounds of its other sites. */
static void
transport_changed(struct sched *s, struct site *site)
{
    site_update(&s->destinations.sites, site, s->now_ms);
    sites_transport_changed(&s->destinations.sites, site->transport, s->now_ms);
}

/* The outcome settles all mail that waits there. Where a cohort limit of 0 forbids
 * death this still counts as its attempt: sessions come before mail, so nothing else
 * would ever give it a verdict. */
static void
site_failed(struct sched *s, struct site *site, const struct outcome *outcome)
{
    if (site->dead)
        return;
    if (site_transport(site)->failed_cohort_limit > 0)
        site_die(&s->destinations.sites, site, s->now_ms, outcome);
    sched_site_prune(s, site);
    sched_site_recall(s, site);
    sched_site_settle(s, site, outcome);
}

/* The site of the transport that gets the next session: the first in turn, or the one
 * after it if that has fewer sessions. */
static struct site *
transport_first(const struct transport *transport, const struct site *except)
{
    struct site *first = transport->ready;
    if (first == except)
        first = first->next;
    if (first && first->next && first->next != except &&
        first->next->sessions < first->sessions)
        return first->next;
    return first;
}

static int
transport_working(const struct transport *transport)
{
    return transport->sessions - transport->idle;
}

/* The transport with the fewest sessions that work is served first, or one target with
 * slow servers would take every session of a small session_limit. */
struct site *
sched_next_ready(const struct sched *s, const struct site *except)
{
    const struct transport *transport;
    struct site *best = NULL;
    int looked = 0;
    DL_FOREACH (s->destinations.sites.transports.ready, transport) {
        struct site *site = transport_first(transport, except);
        if (site && (!best ||
                     transport_working(transport) < transport_working(best->transport)))
            best = site;
        if (++looked == TRANSPORTS_TRIED)
            break;
    }
    return best;
}

/* Whether a session of the site may have mail, but for session_limit. */
static bool
site_may_carry(const struct sched *s, struct site *site)
{
    return site->lanes.counts.recipients > 0 && !site->dead &&
           !transport_pauses(site->transport, s->now_ms) &&
           site_ready_ms(site, s->now_ms) <= s->now_ms;
}

/* As sched_next_ready(), of the sites that need no other session than their idle
 * ones. */
static const struct site *
next_stalled(const struct sched *s, const struct site *except)
{
    struct site *site, *best = NULL;
    int looked = 0;
    DL_FOREACH2 (s->destinations.sites.stalled, site, stalled_next) {
        if (site != except && site->idle > 0 && site_may_carry(s, site) &&
            site->carrying < site_allows(site, s->now_ms) &&
            (!best ||
             transport_working(site->transport) < transport_working(best->transport)))
            best = site;
        if (++looked == TRANSPORTS_TRIED)
            break;
    }
    return best;
}

/* Whether the free places are enough for the sessions that the site wants now. */
static bool
is_served_by(const struct sched *s, const struct site *site, int spare)
{
    int wants = site_allows(site, s->now_ms) - (site->sessions - site->idle);
    return spare > 0 && (wants <= spare || lanes_worth(&site->lanes) <= (size_t)spare);
}

/* Whether the other site's transport, or the site within the same transport, has
 * fewer sessions that work, even when it has got the free places. */
static bool
gives_way(const struct sched *s, const struct sched_session *session,
          const struct site *other, int spare)
{
    const struct site *site = session->site;
    if (!other || is_served_by(s, other, spare))
        return false;
    int mine = site->sessions - site->idle, its = other->sessions - other->idle;
    if (other->transport != site->transport) {
        mine = transport_working(site->transport);
        its = transport_working(other->transport);
    }
    mine += session->idle; /* it would work */
    its += spare;
    bool is_over = session->run >= TURN_WORKS || s->now_ms - session->run_ms >= TURN_MS;
    return its + 1 < mine || (its < mine && is_over);
}

/* With all sessions in use, a session that has had its turn gives way to a transport
 * that has fewer, or to a site of its own transport that has fewer. Several may do so in
 * one turn: the places that are free are taken at its end. Idle since then, a session
 * does not take back a place that an idle session of another site waits for. */
static bool
must_yield(const struct sched *s, const struct sched_session *session)
{
    int spare = s->settings.session_limit - sched_working_sessions(s) - session->idle;
    if (spare < 0)
        spare = 0;
    if (2 * spare >= s->settings.session_limit)
        return false; /* far from the limit: without a search */
    if (session->idle)
        return gives_way(s, session, next_stalled(s, session->site), spare);
    return session->run > 0 &&
           (gives_way(s, session, sched_next_ready(s, session->site), spare) ||
            gives_way(s, session, next_stalled(s, session->site), spare));
}

/* The lane that another session of the site should serve in place of this one: it has
 * none at all, or two less than the lane of this one, and the site may have no more. A
 * session gives way at the end of its turn only, or two demands would make a connection
 * for each message. */
static const struct lane *
gives_way_to(const struct sched *s, const struct sched_session *session)
{
    const struct site *site = session->site;
    const struct lane *lane = site->lanes.lacking, *own = session->lane;
    bool is_over = session->turn >= TURN_WORKS ||
                   (session->turn > 0 && s->now_ms - session->turn_ms >= TURN_MS);
    if (!lane || !is_over || site->released > 0)
        return NULL;
    if (site->is_ready && sched_has_budget(s, site))
        return NULL;
    for (int i = 0; lane && i < LANES_TRIED; i++, lane = lane->next)
        if (lane != own && (lane->sessions == 0 || lane->sessions + 1 < own->sessions))
            return lane;
    return NULL;
}

void *
sched_session_first(const struct sched_session *session)
{
    const struct lane *lane = sched_session_lane(session);
    return lane ? flow_queue_first(&lane->queue)->message->owner : NULL;
}

/* The checks are those of sched_take(), without an effect. An idle session does not
 * count in session_limit, so it needs a free place to work again. */
bool
sched_has_work(const struct sched *s, const struct sched_session *session)
{
    struct site *site = session->site;
    return sched_session_lane(session) && site_may_carry(s, site) &&
           sched_session_has_space(session, s->now_ms) && !gives_way_to(s, session) &&
           (!session->idle || sched_working_sessions(s) < s->settings.session_limit) &&
           !must_yield(s, session);
}

/* The proof of the session is the demand found for its domain. Without one there is
 * none. */
static void
session_prove(struct sched *s, struct sched_session *session)
{
    destination_demand(&s->destinations, session->destination, session->demand);
    sched_session_move(session, lane_get(session->site, session->demand));
}

/* The first sign of life: a dead site is revived, and the mail that waits on disk for
 * it is recalled. */
static void
session_greeted(struct sched *s, struct sched_session *session)
{
    if (session->greeted)
        return;
    struct site *site = session->site;
    if (!session->is_found)
        session_prove(s, session);
    sched_session_greet(session);
    if (session->lane->delay_ms != 0)
        lane_resume(session->lane);
    site_greeted(&s->destinations.sites, site, s->now_ms);
    sched_site_recall(s, site);
}

static void
session_set_idle(struct sched *s, struct sched_session *session, bool idle)
{
    int change = sched_session_set_idle(session, idle);
    s->idle_count += change;
    if (change > 0)
        DL_APPEND2(s->resting, session, rest_prev, rest_next);
    else if (change < 0)
        DL_DELETE2(s->resting, session, rest_prev, rest_next);
}

bool
sched_take(struct sched *s, struct sched_session *session, struct sched_work *work)
{
    sched_tick(s);
    assert(session->work_count < WORKS_MAX);
    session_greeted(s, session);
    bool takes = sched_has_work(s, session);
    if (!takes && session->work_count == 0 && gives_way_to(s, session))
        sched_session_release(session);
    session_set_idle(s, session, !takes && session->work_count == 0);
    if (takes) {
        const struct work *w =
            sched_session_begin(&s->destinations.sites, session, s->now_ms);
        *work = (struct sched_work){.message = w->message,
                                    .owner = w->message->owner,
                                    .indexes = w->indexes,
                                    .count = w->count};
    }
    transport_changed(s, session->site);
    return takes;
}

/* The duration says something about the site only if the transaction was small. */
static int64_t
comparable_ms(const struct sched *s, const struct work *w, bool is_small)
{
    return is_small && w->count <= 2 ? s->now_ms - w->taken_ms : 0;
}

/* The counts are taken before the work ends, because the window compares its use with
 * this work still in it. A site that was dead or on probation may live now, so its
 * backlog is recalled. */
static void
work_finished(struct sched *s, struct sched_session *session, struct work *w,
              bool is_small)
{
    struct site *site = session->site;
    struct outcome outcome;
    int busy = site->carrying;
    int64_t took = comparable_ms(s, w, is_small);
    if (w->blamed)
        reason_read(w->blamed, &outcome);
    sched_session_finish(&s->destinations.sites, session, w);
    bool was_down = site->dead || site->window.probing;
    if (site_served(&s->destinations.sites, site, s->now_ms, w->feedback, busy, took))
        site_failed(s, site, &outcome);
    else if (was_down)
        sched_site_recall(s, site);
}

/* The part of a verdict about the site, and not about the message: a refused recipient
 * proves that the site works. */
static enum session_feedback
outcome_feedback(const struct site *site, const struct outcome *outcome)
{
    switch (outcome->verdict) {
    case VERDICT_DELIVERED:
    case VERDICT_FAILED:
        return FEEDBACK_GOOD;
    case VERDICT_DEFERRED:
        break;
    }
    /* 4.2.x: the limit is that of a mailbox. */
    if (site_is_adaptive(site) && strncmp(outcome->enhanced, "4.2", 3) != 0 &&
        reply_class_classify(outcome) == REPLY_CLASS_RATE)
        return FEEDBACK_SLOW;
    return outcome->blame == BLAME_SITE ? FEEDBACK_BAD : FEEDBACK_NONE;
}

/* The worst verdict of a work counts, once. Its reason is held by a slot of the
 * message, which sched_next() frees at the earliest. */
static void
work_settled(struct sched *s, struct sched_session *session, struct work *w,
             unsigned index, const struct outcome *outcome)
{
    unsigned slot = sched_session_slot(w, index);
    struct sched_message *m = w->message;
    struct destination *d = message_destination(m, slot);
    struct site *site = session->site;
    enum session_feedback feedback = outcome_feedback(site, outcome);
    bool is_small = m->cost == 1;
    struct reason *reason = NULL;
    if (outcome->verdict == VERDICT_DEFERRED)
        reason = reason_open(&d->reasons, outcome);
    if (feedback > w->feedback) {
        w->feedback = feedback;
        w->blamed = reason;
    }
    w->sent += outcome->verdict == VERDICT_DELIVERED || outcome->may_be_sent;
    sched_message_settled(s, m, slot, reason);
    if (--w->unsettled > 0)
        return; /* nothing has changed for the site */
    work_finished(s, session, w, is_small);
    sched_quota_settled(s, site, outcome);
    transport_changed(s, site);
}

/* Replies come in the order of transactions: a verdict is of the oldest work. */
void
sched_settled(struct sched *s, struct sched_session *session, unsigned index,
              const struct outcome *outcome)
{
    sched_tick(s);
    assert(session->work_count > 0);
    work_settled(s, session, &session->works[session->oldest], index, outcome);
}

/* The newest work: the owner may refuse it between sched_take() and the session. */
void
sched_waive(struct sched *s, struct sched_session *session,
            const struct outcome *outcome)
{
    sched_tick(s);
    struct work *w = sched_session_newest_work(session);
    for (unsigned i = 0; i < w->count; i++)
        work_settled(s, session, w, w->indexes[i], outcome);
}

/* It could not be proven a moment ago. */
static void
settle_suspended(struct sched *s, struct lane *lane)
{
    struct outcome outcome;
    lane_reason(lane, &outcome);
    sched_lane_settle(s, lane, NULL, &outcome);
}

/* Two domains may turn out to have the same servers while each has sessions open: the
 * sessions count for the common site from here on, or end when that has no space. */
bool
sched_session_found(struct sched *s, struct sched_session *session, struct text key)
{
    sched_tick(s);
    assert(!session->greeted);
    struct sites *sites = &s->destinations.sites;
    struct destination *d = session->destination;
    if (d->transport != session->site->transport)
        return false; /* of obsolete settings */
    session->is_found = true;
    d->found = s->destinations.found;
    destination_demand(&s->destinations, d, session->demand);
    destination_move(&s->destinations, d, d->transport, key, s->now_ms);
    struct site *from = session->site, *to = d->site;
    bool is_suspended = lane_is_suspended(d->lane, s->now_ms);
    if (is_suspended)
        settle_suspended(s, d->lane);
    if (to->dead && to->lanes.counts.recipients > 0)
        sched_settle_dead(s, to);
    if (to != from && !to->window.probing)
        sched_site_recall(s, to);
    bool has_space =
        to == from || (!to->dead && to->sessions < site_allows_new(to, s->now_ms));
    if (has_space)
        sched_session_move(session, d->lane);
    site_update(sites, from, s->now_ms);
    if (to != from)
        site_update(sites, to, s->now_ms);
    return has_space && !is_suspended;
}

/* The limit ends by itself: to find that it still holds costs one transaction, whose other
 * recipients follow in the next one. */
void
sched_session_takes(struct sched *s, struct sched_session *session, unsigned recipients)
{
    sched_tick(s);
    struct site *site = session->site;
    if (!site_is_adaptive(site) || recipients == 0)
        return;
    site->recipients = recipients;
    site->recipients_until_ms = s->now_ms + RECIPIENTS_LAST_MS;
}

void
sched_ask_again(struct sched *s)
{
    s->destinations.found += 2; /* odd numbers and 0 are never its value */
}

void
sched_session_demand(struct sched *s, struct sched_session *session, uint64_t demand,
                     int64_t valid_ms)
{
    struct destination *d = session->destination;
    sched_tick(s);
    assert(!session->greeted && !session->is_found);
    session->demand = demand;
    d->valid_until_ms = valid_ms > 0 ? s->now_ms + valid_ms : 0;
}

void
sched_host_good(struct sched *s, struct text address, int64_t service_ms)
{
    sched_tick(s);
    hosts_good(s->hosts, s->now_ms, address, service_ms);
}

void
sched_host_bad(struct sched *s, struct text address)
{
    sched_tick(s);
    hosts_bad(s->hosts, s->now_ms, address, &s->random);
}

void
sched_hosts_order(struct sched *s, const struct text *addresses, const int *groups,
                  size_t count, size_t *order)
{
    sched_tick(s);
    hosts_order(s->hosts, s->now_ms, addresses, groups, count, &s->random, order);
}

/* The domain does not exist: its mail fails, which says nothing about a site. */
static void
domain_failed(struct sched *s, struct sched_session *session,
              const struct outcome *trouble)
{
    struct destination *d = session->destination;
    if (d->site == session->site)
        sched_lane_settle(s, d->lane, d, trouble);
    /* Otherwise backlogged mail would ask for a probe of the same domain without
     * end. */
    sched_site_wake(s, session->site);
    session->site->open_after_ms = 0;
    d->forget = true;
}

/* Its hosts answer, so the site lives; a demand that cannot be met concerns nobody else.
 * A site on probation gets its backlog: mail of other demands is among it. */
static void
demand_failed(struct sched *s, struct lane *lane, const struct outcome *trouble)
{
    struct site *site = lane->site;
    lane_suspend(lane, s->now_ms, trouble, &s->random);
    sched_lane_settle(s, lane, NULL, trouble);
    if (!site->window.probing)
        return;
    site_pause(site, s->now_ms);
    sched_site_recall(s, site);
}

/* Before the servers of the domain are found, trouble is of none of them, nor of the other
 * domains that have them: the domain gets a site of its own again. The site that is to be
 * judged; NULL: none. */
static struct site *
troubled_site(struct sched *s, const struct sched_session *session)
{
    struct destination *d = session->destination;
    struct site *site = session->site;
    if (session->is_found || site->dead || site->window.probing ||
        strcmp(site->key, d->key) == 0)
        return site;
    if (d->site == site)
        destination_go_home(&s->destinations, d, s->now_ms);
    return strcmp(d->site->key, d->key) == 0 ? d->site : NULL;
}

static bool
is_unproven(const struct sched_session *session, const struct outcome *trouble)
{
    return !session->greeted && session->is_found && session->demand != 0 &&
           trouble->verdict == VERDICT_DEFERRED && trouble->blame == BLAME_DEMAND;
}

/* We have ended it: that is trouble of nobody. */
static bool
end_is_ours(const struct outcome *why)
{
    return why->verdict == VERDICT_DELIVERED ||
           (why->verdict == VERDICT_DEFERRED && why->blame == BLAME_MESSAGE);
}

/* The site that the trouble of a session before its greeting may kill; NULL: none. */
static struct site *
blamed_site(struct sched *s, struct sched_session *session,
            const struct outcome *trouble)
{
    if (end_is_ours(trouble))
        return NULL;
    if (trouble->verdict == VERDICT_FAILED) {
        if (!session->greeted || trouble->blame == BLAME_SITE)
            domain_failed(s, session, trouble);
        return NULL;
    }
    if (is_unproven(session, trouble)) {
        demand_failed(s, session->lane, trouble);
        return NULL;
    }
    return session->greeted ? NULL : troubled_site(s, session);
}

/* An end that is not judged as a failure of the site must not lead to the next session
 * immediately, or a host could be tried without end: one that was never greeted, and one
 * whose host is gone while no other session is greeted. */
static bool
needs_pause(const struct site *site, bool greeted, const struct outcome *why)
{
    if (!greeted)
        return end_is_ours(why);
    return why->verdict == VERDICT_DEFERRED && why->blame == BLAME_SITE &&
           site->greeted == 0;
}

/* The session leaves its site before the site is judged, so that its failure is weighed
 * against the sessions that are left. */
void
sched_session_ended(struct sched *s, struct sched_session *session,
                    const struct outcome *why)
{
    sched_tick(s);
    assert(why && session->work_count == 0);
    struct sites *sites = &s->destinations.sites;
    struct site *site = session->site;
    struct destination *d = session->destination;
    struct transport *transport = transport_share(site->transport);
    bool greeted = session->greeted;
    session_set_idle(s, session, false);
    s->session_count--;
    DL_DELETE(s->sessions, session);
    struct site *blamed = blamed_site(s, session, why);
    sched_session_leave(session);
    if (blamed && site_refused(blamed, s->now_ms, reply_class_refuses_us(why)))
        site_failed(s, blamed, why);
    else if (needs_pause(site, greeted, why))
        site_pause(site, s->now_ms);
    sched_session_free(session);
    bool is_elsewhere = d->site != site;
    destination_update(&s->destinations, d, s->now_ms);
    if (is_elsewhere)
        site_update(sites, site, s->now_ms);
    sites_transport_changed(sites, transport, s->now_ms);
    transport_close(&sites->transports, transport);
}
