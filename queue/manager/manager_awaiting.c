/* Recipients that wait for other fragments: offered to the channel, held, and settled
 * when their message is complete. */
#include "queue/manager/manager_internal.h"

#include "base/memory.h"
#include "queue/queue_fragments.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { RETENTION_MIN_MS = 10 * 60 * 1000 };

/* --- The beginning of an attempt -------------------------------------------------- */

/* The recipients that may wait for other fragments. Most mail has none, and then no
 * arrays. */
struct sorted {
    unsigned *indexes;
    bool *absorbed;
    size_t count;
    int64_t retention_ms;
};

/* Fragments for a recipient with its own sender pass: the reassembled message has that of
 * all. So do those with REQUIRETLS where other hosts share sets: XDEFRAG does not know it. */
static bool
is_offered(const struct active *a, const struct sched_recipient *r)
{
    const struct recipient_way *way = a->envelope->recipients[r->index].way;
    return r->target->defragment && (way == NULL || way->sender.length == 0) &&
           (a->envelope->tls != ENVELOPE_TLS_REQUIRED ||
            route_peers(a->manager->routes) == NULL);
}

/* The shortest time of the recipients counts: after it the message is delivered to all
 * of them. */
static struct sorted
sort_out(const struct active *a, const struct sched_recipient *open, size_t count)
{
    struct sorted s = {.retention_ms = INT64_MAX};
    for (size_t i = 0; i < count; i++) {
        int64_t half_ms = open[i].target->notices_ms / 2;
        if (!is_offered(a, &open[i]))
            continue;
        if (s.count == 0) {
            s.indexes = memory_array(count, sizeof(*s.indexes));
            s.absorbed = memory_array(count, sizeof(*s.absorbed));
        }
        s.indexes[s.count++] = open[i].index;
        if (half_ms < s.retention_ms)
            s.retention_ms = half_ms;
    }
    if (s.count == 0 || s.retention_ms < RETENTION_MIN_MS)
        s.retention_ms = RETENTION_MIN_MS;
    return s;
}

static void
keep_others(const struct active *a, struct sched_recipient *open, size_t *count)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++)
        if (!is_offered(a, &open[i]))
            open[kept++] = open[i];
    *count = kept;
}

static void
manager_awaiting_settle_all(struct active *a, const struct sorted *s,
                            const struct outcome *outcome)
{
    for (size_t i = 0; i < s->count; i++)
        attempt_settle(a, s->indexes[i], outcome, false, NULL);
}

static void
settle_absorbed(struct active *a, const struct sorted *s)
{
    struct outcome outcome = outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0",
                                          "absorbed: duplicate of a fragment");
    outcome.notifies = true; /* the reassembled message answers for it */
    for (size_t i = 0; i < s->count; i++)
        if (s->absorbed[i])
            attempt_settle(a, s->indexes[i], &outcome, false, NULL);
}

/* Recipients of other targets stay with us. */
static void
redirect(struct active *a, const struct manager_offer *offer,
         struct sched_recipient *open, size_t count)
{
    struct envelope *e = a->envelope;
    assert(target_peer(offer->target) != NULL);
    e->fragment.set_mark = envelope_text(e, offer->set_mark);
    a->redirected = memory_array(e->count, sizeof(*a->redirected));
    for (size_t i = 0; i < count; i++) {
        if (!is_offered(a, &open[i]))
            continue;
        open[i].target = offer->target;
        a->kinds[open[i].index] = offer->target->kind;
        a->redirected[open[i].index] = true;
    }
}

/* Every message is offered, also one without such recipients: the channel learns of
 * each arrival. */
void
manager_offer_open(struct active *a, struct sched_recipient *open, size_t *count)
{
    struct manager *m = a->manager;
    if (m->defragment == NULL || a->envelope->delivery.done == a->envelope->count)
        return;
    struct sorted s = sort_out(a, open, *count);
    struct manager_offer offer = {.envelope = a->envelope,
                                  .indexes = s.indexes,
                                  .count = s.count,
                                  .retention_ms = s.retention_ms,
                                  .absorbed = s.absorbed};
    switch (m->defragment->offer(m->defragment->context, &offer)) {
    case MANAGER_PASS:
        break;
    case MANAGER_AWAIT:
        settle_absorbed(a, &s);
        keep_others(a, open, count);
        if (a->envelope->delivery.done + *count < a->envelope->count)
            a->awaits_until_ms = offer.until_ms;
        break;
    case MANAGER_AWAIT_ALL:
        *count = 0;
        a->awaits_until_ms = offer.until_ms;
        break;
    case MANAGER_SETTLE:
        manager_awaiting_settle_all(a, &s, &offer.outcome);
        keep_others(a, open, count);
        break;
    case MANAGER_REDIRECT:
        redirect(a, &offer, open, *count);
        break;
    }
    free(s.indexes);
    free(s.absorbed);
}

/* --- Redirected to another host --------------------------------------------------- */

bool
awaiting_is_redirected(const struct active *a, unsigned index)
{
    return a->redirected != NULL && a->redirected[index];
}

/* A refusal by a host of ours is not a failure of the mail: it becomes a deferral. */
bool
manager_awaiting_answered(struct active *a, unsigned index,
                          const struct outcome *outcome, struct outcome *reported)
{
    const struct manager_defragment *channel = a->manager->defragment;
    assert(awaiting_is_redirected(a, index));
    if (outcome->verdict == VERDICT_DEFERRED)
        return true;
    if (channel)
        channel->redirected(channel->context, a->id,
                            outcome->verdict == VERDICT_DELIVERED);
    if (outcome->verdict == VERDICT_DELIVERED)
        return true;
    *reported = *outcome;
    reported->verdict = VERDICT_DEFERRED;
    a->awaits_until_ms = loop_now_ms(a->manager->loop);
    if (a->pending == PENDING_NONE)
        a->pending = PENDING_RETRY;
    return false;
}

/* --- Waiting for parts ------------------------------------------------------------ */

/* Whether open recipients wait for fragments or for another of our hosts. */
static bool
has_waiting(const struct active *a)
{
    const struct envelope *e = a->envelope;
    struct address address;
    for (unsigned i = 0; i < e->count; i++) {
        const struct recipient *r = &e->recipients[i];
        const struct target *target =
            r->done ? NULL : attempt_route(a->manager, e, r, &address);
        if (target != NULL && target->defragment)
            return true;
    }
    return false;
}

/* The mark in defrag/ lets the next startup offer these messages first. Without a
 * change nothing is written. */
void
awaiting_note(struct active *a)
{
    bool is_awaiting = a->awaits_until_ms < INT64_MAX || a->redirected != NULL;
    bool waits = is_awaiting && has_waiting(a);
    if (waits || a->envelope->fragment.awaits_parts)
        queue_wait(a->manager->queue, a->envelope, waits);
}

/* The channel knows recipients by their place in the list, and todo/ does not have the
 * members of aliases, which other tables may give other places. */
bool
awaiting_names_members(const struct active *a)
{
    const struct storage_state *s = &a->envelope->storage;
    return a->awaits_until_ms < INT64_MAX && s->given > 0 && !s->preprocessed;
}

/* Journaled mail without anything to write remains in the journal. On disk it is due
 * immediately, so that the next startup offers it again and finds the sets. */
void
manager_await_parts(struct active *a, unsigned done_before)
{
    struct manager *m = a->manager;
    const struct envelope *e = a->envelope;
    int64_t now = loop_now_ms(m->loop);
    int64_t due = a->pending == PENDING_RETRY || a->awaits_until_ms < now
                      ? now
                      : a->awaits_until_ms;
    sched_add(m->sched, a->id, due, e->delivery.attempts);
    awaiting_note(a);
    if (e->storage.preprocessed || e->delivery.done > done_before ||
        e->delivery.released || awaiting_names_members(a))
        manager_active_defer(a, now, e->delivery.attempts);
    else
        manager_active_drop(a);
    manager_wake(m);
}

void
manager_awaiting_withdraw(struct manager *m, struct id id)
{
    if (m->defragment)
        m->defragment->withdrawn(m->defragment->context, id);
}

void
manager_set_defragment(struct manager *m, const struct manager_defragment *channel)
{
    m->defragment = channel;
}

bool
manager_defragments(const struct manager *m)
{
    return route_defragments(m->routes);
}

static void
note_retention(void *context, const struct target *target)
{
    uint64_t *mark = context;
    if (target->defragment)
        *mark = *mark * 31 + (uint64_t)target->notices_ms;
}

uint64_t
manager_retention_mark(const struct manager *m)
{
    uint64_t mark = 0;
    if (m->routes != NULL)
        route_each_target(m->routes, note_retention, &mark);
    return mark;
}

bool
manager_fragments(struct manager *m, struct manager_fragments *out)
{
    if (m->defragment)
        m->defragment->count(m->defragment->context, out);
    return m->defragment != NULL;
}

size_t
manager_list_sets(struct manager *m, size_t from, size_t count, manager_set_saw *each,
                  void *context)
{
    if (m->defragment == NULL || m->defragment->list == NULL)
        return 0;
    return m->defragment->list(m->defragment->context, from, count, each, context);
}

bool
manager_is_awaiting(struct manager *m, struct id id)
{
    return m->defragment && m->defragment->explain(m->defragment->context, id,
                                                   m->explained, sizeof(m->explained));
}

/* A message whose attempt still runs is due at its end. */
bool
manager_resume_after(struct manager *m, struct id id, int64_t delay_ms)
{
    struct active *a = manager_active_find(m, id);
    int64_t now = loop_now_ms(m->loop);
    manager_wake(m);
    if (a && a->scheduled && a->pending == PENDING_NONE)
        a->pending = PENDING_RETRY;
    return sched_retry_at(m->sched, id, now + delay_ms) || a != NULL;
}

bool
manager_resume(struct manager *m, struct id id)
{
    return manager_resume_after(m, id, 0);
}

/* --- Settled ---------------------------------------------------------------------- */

/* No route has been asked for these recipients, and none is needed. */
static void
settle_some(struct active *a, const unsigned *indexes, size_t count,
            const struct outcome *outcome)
{
    const struct envelope *e = a->envelope;
    if (a->kinds == NULL)
        a->kinds = memory_array(e->count + 1, sizeof(*a->kinds));
    for (size_t i = 0; i < count; i++) {
        /* The indexes were read from the disk and may be out of range. */
        if (indexes[i] >= e->count || e->recipients[indexes[i]].done)
            continue;
        a->kinds[indexes[i]] = TARGET_DISCARD;
        attempt_settle(a, indexes[i], outcome, false, NULL);
    }
}

/* The message may be in memory or on disk, waiting, or within an attempt of its own; in
 * each case it must end once. */
bool
manager_settle_awaiting(struct manager *m, struct id id, const unsigned *indexes,
                        size_t count, const struct outcome *outcome)
{
    struct active *a = manager_active_find(m, id);
    bool in_memory = a != NULL;
    if (in_memory && a->loaned)
        return false; /* another host may have it */
    if (a == NULL) {
        struct envelope *e = queue_load_envelope(m->queue, id);
        if (e == NULL)
            return false;
        manager_expand(m, e);
        a = manager_active_new(m, e);
        a->loaded_ms = loop_now_ms(m->loop);
    }
    settle_some(a, indexes, count, outcome);
    bool is_over = a->envelope->delivery.done == a->envelope->count;
    if (a->scheduled || a->warning || a->ending) {
        /* its attempt ends by itself */
    } else if (is_over) {
        (void)sched_forget(m->sched, id);
        attempt_finish(a);
    } else if (!in_memory) {
        if (a->envelope->fragment.awaits_parts && !has_waiting(a))
            queue_wait(m->queue, a->envelope, false);
        manager_active_defer(a, loop_now_ms(m->loop), a->envelope->delivery.attempts);
    }
    manager_wake(m);
    return true;
}

struct manager_places
manager_count(struct manager *m)
{
    struct sched_counts counts = sched_count(m->sched);
    struct manager_fragments f = {0};
    (void)manager_fragments(m, &f);
    size_t held = 0;
    for (const struct active *a = m->actives; a != NULL; a = a->hh.next)
        held += a->scheduled && a->envelope->delivery.held;
    size_t fresh = f.messages < counts.incoming ? f.messages : counts.incoming;
    size_t old =
        f.messages - fresh < counts.deferred ? f.messages - fresh : counts.deferred;
    return (struct manager_places){
        .incoming = counts.incoming - fresh,
        .active = counts.active - (held < counts.active ? held : counts.active),
        .deferred = counts.deferred - old,
        .defrag = fresh + old};
}
