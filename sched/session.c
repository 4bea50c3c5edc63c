/* Sessions and the recipients that they carry.
 *
 * A session has up to two works: while the reply to the content of one is awaited, the
 * envelope of the next is sent (RFC 2920), which saves a round trip for each message.
 * The counters of site, transport and destination change here alone. */
#include "sched/session.h"

#include "base/memory.h"
#include "sched/destination.h"
#include "sched/message.h"

#include <assert.h>
#include <stdlib.h>
#include <utlist.h>

struct sched_session *
sched_session_new(struct site *site, struct destination *d, int64_t now_ms)
{
    struct sched_session *session = memory_new(sizeof(*session));
    session->site = site;
    session->lane = d->lane;
    session->destination = d;
    session->domain = memory_string(d->domain);
    session->opened_ms = now_ms;
    DL_APPEND2(site->opening, session, opening_prev, opening_next);
    site->sessions++;
    site->transport->sessions++;
    d->sessions++;
    lane_add_session(session->lane, 1);
    return session;
}

void
sched_session_leave(struct sched_session *session)
{
    struct site *site = session->site;
    assert(session->work_count == 0 && !session->idle);
    if (session->greeted)
        site->greeted--;
    else
        DL_DELETE2(site->opening, session, opening_prev, opening_next);
    session->destination->sessions--;
    site->sessions--;
    site->released -= session->released;
    site->transport->sessions--;
    lane_add_session(session->lane, -1);
}

void
sched_session_free(struct sched_session *session)
{
    for (unsigned i = 0; i < WORKS_MAX; i++)
        free(session->works[i].indexes);
    free(session->domain);
    free(session);
}

/* Before the greeting only: the servers are known then, but no mail is bound yet. */
void
sched_session_move(struct sched_session *session, struct lane *lane)
{
    assert(!session->greeted && !session->idle && session->work_count == 0);
    struct site *old = session->site, *site = lane->site;
    lane_add_session(lane, 1); /* first: it may be the only user of its lane */
    lane_add_session(session->lane, -1);
    session->lane = lane;
    if (site == old)
        return;
    DL_DELETE2(old->opening, session, opening_prev, opening_next);
    old->sessions--;
    old->transport->sessions--;
    session->site = site;
    DL_APPEND2(site->opening, session, opening_prev, opening_next);
    site->sessions++;
    site->transport->sessions++;
}

void
sched_session_greet(struct sched_session *session)
{
    assert(!session->greeted);
    struct site *site = session->site;
    DL_DELETE2(site->opening, session, opening_prev, opening_next);
    session->greeted = true;
    site->greeted++;
}

int
sched_session_set_idle(struct sched_session *session, bool idle)
{
    if (session->idle == idle)
        return 0;
    int change = idle ? 1 : -1;
    session->idle = idle;
    session->run = 0;
    session->site->idle += change;
    session->site->transport->idle += change;
    if (idle)
        DL_APPEND2(session->site->idlers, session, idlers_prev, idlers_next);
    else
        DL_DELETE2(session->site->idlers, session, idlers_prev, idlers_next);
    return change;
}

void
sched_session_release(struct sched_session *session)
{
    session->site->released += !session->released;
    session->released = true;
}

/* Mail with its demand and mail with none take turns. */
struct lane *
sched_session_lane(const struct sched_session *session)
{
    struct lane *plain = &session->site->lanes.plain, *own = session->lane;
    struct lane *first = session->plain_turn ? plain : own;
    struct lane *second = session->plain_turn ? own : plain;
    if (first->queue.recipients > 0)
        return first;
    return second->queue.recipients > 0 ? second : NULL;
}

/* Two limits: the transport's for the session, and the host's (RFC 9422 MAILMAX) for
 * its present connection. */
bool
sched_session_is_spent(const struct sched_session *session)
{
    int limit = site_transport(session->site)->reuse_limit;
    unsigned most = session->limits.mails;
    return session->released || (limit > 0 && session->taken >= (unsigned)limit) ||
           (most > 0 && session->taken - session->taken_before >= most);
}

/* A session may have had earlier connections: their messages do not count for this
 * host. */
void
sched_session_limit(struct sched_session *session, const struct session_limits *limits)
{
    session->limits = *limits;
    session->taken_before = session->taken - session->work_count;
}

bool
sched_session_has_space(const struct sched_session *session, int64_t now_ms)
{
    const struct site *site = session->site;
    int allowed = site_allows(site, now_ms);
    if (sched_session_is_spent(session))
        return false;
    if (session->work_count == 0)
        return site->carrying < allowed;
    /* A second work begins before the first ends, which a pause between them forbids. */
    const struct transport_params *t = site_transport(site);
    const struct lane *lane = sched_session_lane(session);
    return session->work_count < WORKS_MAX && site->carrying <= allowed && lane &&
           flow_queue_may_be_early(&lane->queue) && t->rate_delay_ms == 0 &&
           t->transport_rate_delay_ms == 0;
}

/* Copied, because the message may be freed before its last verdict arrives. */
static void
work_copy_indexes(struct work *w)
{
    if (w->capacity < w->count) {
        w->capacity = w->count;
        w->indexes = memory_resize(w->indexes, w->capacity * sizeof(*w->indexes));
    }
    struct slot *slots = &w->message->slots[w->first];
    for (unsigned i = 0; i < w->count; i++) {
        assert(slots[i].state == SLOT_WAITING);
        slots[i].state = SLOT_TAKEN;
        w->indexes[i] = slots[i].index;
    }
}

/* The works are a ring: verdicts come for the oldest, as replies come in the order of
 * the transactions. */
struct work *
sched_session_begin(struct sites *set, struct sched_session *session, int64_t now_ms)
{
    struct site *site = session->site;
    const struct transport_params *t = site_transport(site);
    unsigned at = (session->oldest + session->work_count++) % WORKS_MAX;
    struct work *w = &session->works[at];
    uint32_t most = hop_quota_left(&set->transports.hops, site->transport);
    assert(most > 0); /* else sched_has_work() was false */
    if (session->limits.recipients > 0 && session->limits.recipients < most)
        most = session->limits.recipients;
    if (site->recipients > 0 && now_ms < site->recipients_until_ms &&
        site->recipients < most)
        most = site->recipients;
    struct lane *lane = sched_session_lane(session);
    session->plain_turn = lane->demand != 0;
    struct entry *e = lane_cut(&set->flows, lane, most, t, sites_job_s(set, now_ms),
                               &w->first, &w->count);
    w->hop = hop_quota_begin(site->transport, w->count);
    w->message = e->message;
    w->unsettled = w->count;
    w->hint = w->sent = 0;
    w->feedback = FEEDBACK_GOOD;
    w->blamed = NULL;
    w->taken_ms = now_ms;
    session->taken++;
    if (session->run == 0 && session->work_count == 1)
        session->run_ms = now_ms;
    if (session->turn++ == 0)
        session->turn_ms = now_ms;
    site->carrying += session->work_count == 1;
    if (session->work_count == 1)
        lane_add_carrying(session->lane, 1);
    transport_begin(site->transport, now_ms);
    site_take(site, now_ms);
    work_copy_indexes(w);
    return w;
}

struct work *
sched_session_newest_work(struct sched_session *session)
{
    assert(session->work_count > 0);
    return &session->works[(session->oldest + session->work_count - 1) % WORKS_MAX];
}

/* Verdicts mostly come in the order of the work: the search starts behind the slot
 * found last. */
unsigned
sched_session_slot(struct work *w, unsigned index)
{
    assert(w->message && w->unsettled > 0);
    for (unsigned looked = 0;; looked++) {
        assert(looked < w->count); /* else it is not an open index of this work */
        unsigned at = w->first + w->hint;
        const struct slot *slot = &w->message->slots[at];
        w->hint = (w->hint + 1) % w->count;
        if (slot->index == index && slot->state == SLOT_TAKEN)
            return at;
    }
}

void
sched_session_finish(struct sites *set, struct sched_session *session, struct work *w)
{
    hop_quota_end(&set->transports.hops, w->hop, w->count, w->sent);
    /* The oldest, or (waived) the newest. */
    if (w == &session->works[session->oldest])
        session->oldest = (session->oldest + 1) % WORKS_MAX;
    if (--session->work_count == 0) {
        session->site->carrying--;
        lane_add_carrying(session->lane, -1);
    }
    transport_end(session->site->transport);
    w->message = NULL;
    session->run++;
}
