/* The beginning of an attempt: a message is loaded, its recipients are routed, and the
 * scheduler gets those that need a session. */
#include "queue/manager/manager_internal.h"

#include "base/memory.h"
#include "queue/queue_operator.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    LATER_MS = 60 * 1000,  /* until mail that the disk refused is tried again */
    ROUTES_PER_TURN = 2000 /* so that a message to many recipients delays nothing
                            * else */
};

/* --- Recipients ------------------------------------------------------------------- */

static struct outcome
immediate_outcome(const struct target *target)
{
    if (target->kind == TARGET_DISCARD)
        return outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "discarded");
    if (target->kind == TARGET_ERROR)
        return outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, target->enhanced, "%s",
                            target->path);
    return outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1",
                        "unknown user: no mailbox and no route for this local domain");
}

static void
settle_unparsable(struct active *a, unsigned index)
{
    struct outcome outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 553, "5.1.3",
                                          "bad recipient address syntax");
    a->kinds[index] = TARGET_ERROR;
    attempt_settle(a, index, &outcome, false, NULL);
}

/* A recipient that was found out not to be one when the aliases were looked up, or an
 * alias whose members have taken its place. False: it is neither. */
static bool
begin_settle_alias(struct active *a, unsigned index)
{
    static const struct {
        int code;
        const char *enhanced, *text;
    } refusals[] = {
        [RECIPIENT_UNKNOWN] =
            {550, "5.1.1",
                                 "no such address: the SRS hash, or the tag, is wrong or too old"},
        [RECIPIENT_LOOPS] = {554, "5.4.6",
                                 "mail loop: the alias has forwarded this "
                             "message before"                                                    },
        [RECIPIENT_TOO_MANY] = {552, "5.5.3",
                                 "more than 50000 recipients, with the "
                                "members of aliases"                                             },
        [RECIPIENT_EMPTY] = {550, "5.1.1", "the alias has no address"                        },
        [RECIPIENT_UNSURE] = {550, "5.3.0",
                                 "the secret of SRS could not be read in time"                   },
    };
    const struct recipient *r = &a->envelope->recipients[index];
    if (!r->expanded && r->refused == RECIPIENT_GOOD)
        return false;
    struct outcome outcome =
        r->expanded
            ? outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.1.5", "%s",
                           r->way != NULL ? "sent to the list"
                                          : "expanded into its members")
            : outcome_make(VERDICT_FAILED, BLAME_MESSAGE, refusals[r->refused].code,
                           refusals[r->refused].enhanced, "%s",
                           refusals[r->refused].text);
    a->kinds[index] = TARGET_DISCARD;
    attempt_settle(a, index, &outcome, false, NULL);
    return true;
}

void
begin_settle_failed(struct active *a, unsigned index, const struct outcome *outcome)
{
    const struct recipient *r = &a->envelope->recipients[index];
    bool is_alias = r->expanded && r->way == NULL; /* to a list nothing was sent */
    a->kinds[index] = TARGET_ERROR;
    if (!is_alias || !begin_settle_alias(a, index))
        attempt_settle(a, index, outcome, false, NULL);
}

void
begin_settle_refused(struct active *a)
{
    const struct envelope *e = a->envelope;
    free(a->kinds);
    a->kinds = memory_array(e->count + 1, sizeof(*a->kinds));
    for (unsigned i = 0; i < e->count; i++)
        if (!e->recipients[i].done && e->recipients[i].refused != RECIPIENT_GOOD)
            (void)begin_settle_alias(a, i);
}

/* A recipient that needs no session gets its verdict immediately, the others are
 * listed. */
static void
route_one(struct active *a, unsigned index)
{
    struct routing *b = &a->routing;
    const struct recipient *r = &a->envelope->recipients[index];
    struct address address;
    if (b->verdict != NULL) {
        begin_settle_failed(a, index, b->verdict);
        return;
    }
    struct outcome read;
    if (begin_settle_alias(a, index))
        return;
    if (a->manager->verp != NULL && manager_read_return(a, index, &read)) {
        a->kinds[index] = TARGET_DISCARD;
        a->unread = a->unread || read.verdict == VERDICT_DEFERRED;
        attempt_settle(a, index, &read, false, NULL);
        return;
    }
    const struct target *target = attempt_route(a->manager, a->envelope, r, &address);
    if (target == NULL) {
        settle_unparsable(a, index);
        return;
    }
    a->kinds[index] = target->kind;
    struct outcome refusal;
    if (a->manager->suppression != NULL &&
        manager_suppress_now(a, index, target->kind, &refusal)) {
        suppression_used(a->manager->suppression, false);
        a->kinds[index] = TARGET_ERROR;
        attempt_settle(a, index, &refusal, false, NULL);
        return;
    }
    switch (target->kind) {
    case TARGET_MX:
    case TARGET_SMTP:
    case TARGET_LMTP:
    case TARGET_MAILDIR:
    case TARGET_HTTP:
        a->late = a->late || delay_warning_is_due(a, r, target);
        b->open[b->count++] = (struct sched_recipient){
            index, target, address.domain, r->way != NULL ? r->way->number : 0};
        break;
    case TARGET_HOLD:
        a->has_held = true; /* it stays open while the others are delivered */
        break;
    case TARGET_DISCARD:
    case TARGET_ERROR:
    case TARGET_UNKNOWN: {
        struct outcome outcome = immediate_outcome(target);
        attempt_settle(a, index, &outcome, false, NULL);
        break;
    }
    }
}

/* Routes as many of the open recipients as this turn allows. True: all are routed. A
 * bounded piece of the work: a message with many recipients must not stop the
 * others. */
static bool
route_some(struct active *a)
{
    struct manager *m = a->manager;
    const struct envelope *e = a->envelope;
    struct routing *b = &a->routing;
    for (; b->next < e->count && m->routed_now < ROUTES_PER_TURN; b->next++) {
        if (e->recipients[b->next].done)
            continue;
        m->routed_now++;
        route_one(a, b->next);
    }
    return b->next == e->count;
}

void
begin_hold(struct active *a)
{
    struct manager *m = a->manager;
    char id[ID_LENGTH + 1], text[HOLD_TEXT_MAX];
    id_format(a->id, id);
    attempt_hold_text(m, "held by a route", text);
    awaiting_note(a);
    /* After a crash the route holds it again. */
    int error = queue_hold(m->queue, a->envelope, text, false);
    a->envelope->delivery.held = error == 0;
    if (error)
        log_say(m->log, LOG_LEVEL_ERROR, "queue", id, "cannot hold for a route: %s",
                strerror(-error));
    else
        event_tell(m->events, &(struct event){.kind = EVENT_HELD,
                                              .id = a->id,
                                              .text = TEXT("held by a route")});
    int64_t due = loop_now_ms(m->loop) + (error ? LATER_MS : 0);
    if (error)
        sched_add(m->sched, a->id, due, a->envelope->delivery.attempts);
    manager_active_defer(a, due, a->envelope->delivery.attempts);
}

/* --- In one piece ----------------------------------------------------------------- */

void
begin_tell_loaded(const struct manager *m, const struct envelope *e)
{
    struct event event = {.kind = EVENT_LOADED,
                          .id = e->id,
                          .sender = e->sender,
                          .size = (int64_t)e->prefix.length + e->content_size,
                          .recipients = e->count,
                          .injector = e->storage.injector};
    event_tell(m->events, &event);
}

/* Loads a message from the disk. NULL: there is nothing to deliver. Bytes read now
 * count for this turn, those of journaled mail because they will be read when it is
 * sent. */
static struct active *
begin_fetch(struct manager *m, struct id id)
{
    uint64_t before = queue_bytes_read(m->queue);
    struct envelope *e = queue_load(m->queue, id);
    int64_t read = (int64_t)(queue_bytes_read(m->queue) - before);
    m->loads_now++;
    /* Damaged mail was read, too; journaled mail will be read later. */
    bool is_journaled = e && !e->storage.preprocessed && !e->storage.injected;
    m->loaded_bytes += is_journaled && e->content_size > read ? e->content_size : read;
    /* It was held after the scheduler learnt of it, or after startup listed it. */
    if (e && e->delivery.held && e->delivery.done < e->count)
        envelope_free(&e);
    if (e)
        manager_expand(m, e);
    if (e && !e->storage.preprocessed && !manager_quota_waits(m, id) &&
        !manager_is_unsure(m, id) && !manager_is_scheduled(m, id))
        begin_tell_loaded(m, e);
    return e ? manager_active_new(m, e) : NULL;
}

/* Mail with a priority comes first; large mail lets small mail of others pass. The
 * client's priority counts before the size. */
static enum sched_class
manager_begin_class_of(const struct manager *m, const struct envelope *e)
{
    int64_t bulk = m->settings.bulk_size;
    if (e->priority != 0)
        return e->priority > 0 ? SCHED_CLASS_URGENT : SCHED_CLASS_BULK;
    return bulk > 0 && e->content_size >= bulk ? SCHED_CLASS_BULK : SCHED_CLASS_NORMAL;
}

/* The scheduler has no space for the message. New verdicts are written to disk; without
 * any nothing is written. */
static void
begin_put_back(struct active *a, unsigned done_before)
{
    const struct envelope *e = a->envelope;
    if (e->delivery.done > done_before || awaiting_names_members(a) ||
        (e->delivery.released && !manager_must_expand(e)))
        manager_active_defer(a, e->delivery.due_ms, e->delivery.attempts);
    else
        manager_active_drop(a);
}

/* Drops recipients that were settled after they were routed, as parts of a reassembled
 * message. */
static void
keep_unsettled(struct active *a)
{
    struct routing *b = &a->routing;
    size_t kept = 0;
    for (size_t i = 0; i < b->count; i++)
        if (!a->envelope->recipients[b->open[i].index].done)
            b->open[kept++] = b->open[i];
    b->count = kept;
}

/* --- In pieces -------------------------------------------------------------------- */

static void
manager_begin_leave_line(struct active *a)
{
    if (!a->routing.queued)
        return;
    DL_DELETE2(a->manager->unrouted, a, routing.prev, routing.next_queued);
    a->routing.queued = a->scheduled = false;
}

void
begin_forget(struct active *a)
{
    struct manager *m = a->manager;
    manager_begin_leave_line(a);
    sched_loading_drop(m->sched, &a->routing.loading);
    free(a->routing.open);
    free(a->routing.verdict);
    a->routing = (struct routing){0};
}

/* No session is needed now, or an operator has given a command. */
static void
do_without(struct active *a)
{
    struct manager *m = a->manager;
    struct routing b = a->routing;
    bool is_awaiting = b.count == 0 && a->awaits_until_ms < INT64_MAX;
    manager_quota_settle(a, b.verdict == NULL);
    begin_forget(a);
    sched_unloaded(m->sched, a->id);
    if (attempt_goes_on(a) && is_awaiting)
        manager_await_parts(a, b.done_before);
    else
        attempt_finish(a);
}

/* Called once all are routed. False: no recipient is left to be delivered. */
static bool
offer(struct active *a)
{
    struct routing *b = &a->routing;
    if (!attempt_goes_on(a))
        return false;
    keep_unsettled(a);
    manager_offer_open(a, b->open, &b->count);
    if (a->awaits_until_ms == INT64_MAX && a->redirected == NULL)
        awaiting_note(a);
    if (b->count > 0)
        b->loading = sched_loading_new(b->count);
    return b->count > 0;
}

/* True: the scheduler has all of them. The destinations count their entries from here
 * on, so the message cannot be forgotten without sched_loading_drop(). */
static bool
add_some(struct active *a, unsigned most)
{
    struct manager *m = a->manager;
    struct routing *b = &a->routing;
    for (; b->added < b->count && m->routed_now < most; b->added++) {
        m->routed_now++;
        sched_loading_add(m->sched, b->loading, &b->open[b->added]);
    }
    return b->added == b->count;
}

/* The shortest among those of the recipients that are to be delivered. One of 0 ends with
 * the first attempt, whenever that is; INT64_MAX: all do. */
static int64_t
begin_lifetime_ms(const struct active *a)
{
    const struct routing *b = &a->routing;
    bool null_sender = a->envelope->sender.length == 0;
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < b->count; i++) {
        int64_t ms =
            transport_params_lifetime_ms(&b->open[i].target->transport, null_sender);
        least = ms > 0 && ms < least ? ms : least;
    }
    return least;
}

static int64_t
begin_notice_ms(const struct active *a)
{
    const struct routing *b = &a->routing;
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < b->count; i++) {
        int64_t ms = delay_warning_next_ms(
            a, &a->envelope->recipients[b->open[i].index], b->open[i].target);
        least = ms < least ? ms : least;
    }
    return least;
}

/* From here on the message is the scheduler's until SCHED_WAIT or SCHED_FINISH. */
static void
hand_over(struct active *a)
{
    struct manager *m = a->manager;
    const struct envelope *e = a->envelope;
    struct sched_mail mail = {
        .owner = a,
        .birth_ms = manager_clock_begun_ms(m, e, loop_now_ms(m->loop)),
        .null_sender = e->sender.length == 0,
        .class = manager_begin_class_of(m, e),
        .sender = m->settings.sender_turns ? sched_sender(e->sender) : 0,
        .size = (uint64_t)e->content_size};
    struct sched_loading *loading = a->routing.loading;
    unsigned done_before = a->routing.done_before;
    int64_t lifetime_ms = begin_lifetime_ms(a);
    a->notice_ms = begin_notice_ms(a);
    a->routing.loading = NULL;
    begin_forget(a);
    a->scheduled = true;
    if (sched_loaded(m->sched, a->id, &mail, &loading) == NULL) {
        begin_put_back(a, done_before);
        return;
    }
    manager_quota_settle(a, true);
    manager_overdue_watch(a, lifetime_ms);
}

/* Continues as far as this turn allows. True: the attempt has begun, or will not
 * begin. */
static bool
manager_begin_go_on(struct active *a)
{
    struct routing *b = &a->routing;
    if (b->loading == NULL && !route_some(a))
        return false;
    bool has_some = b->loading != NULL || offer(a);
    if (has_some && !add_some(a, ROUTES_PER_TURN))
        return false;
    if (has_some && attempt_goes_on(a))
        hand_over(a);
    else
        do_without(a);
    return true;
}

/* never: the verdict of all recipients, or NULL. */
static void
begin_attempt(struct active *a, const struct outcome *never)
{
    struct manager *m = a->manager;
    const struct envelope *e = a->envelope;
    a->loaded_ms = loop_now_ms(m->loop);
    a->late = a->has_held = a->unread = false;
    a->is_again =
        e->delivery.attempts > 0 || deferral_reasons_find(m->reasons, a->id)[0] != '\0';
    a->awaits_until_ms = INT64_MAX;
    free(a->kinds);
    free(a->redirected);
    a->redirected = NULL;
    a->kinds = memory_array(e->count + 1, sizeof(*a->kinds));
    begin_forget(a);
    a->routing.open = memory_array(e->count + 1, sizeof(*a->routing.open));
    a->routing.done_before = e->delivery.done;
    if (never != NULL) {
        a->routing.verdict = memory_new(sizeof(*never));
        *a->routing.verdict = *never;
    }
    if (manager_begin_go_on(a))
        return;
    a->routing.queued = a->scheduled = true;
    DL_APPEND2(m->unrouted, a, routing.prev, routing.next_queued);
    manager_wake(m);
}

void
begin_some(struct manager *m)
{
    struct active *a;
    m->routed_now = 0;
    while ((a = m->unrouted) != NULL) {
        struct id before = queue_enter(m->queue, a->id);
        bool ended = manager_begin_go_on(a);
        queue_leave(m->queue, before);
        if (ended)
            continue;
        /* It goes behind the others, which need less. */
        DL_DELETE2(m->unrouted, a, routing.prev, routing.next_queued);
        DL_APPEND2(m->unrouted, a, routing.prev, routing.next_queued);
        break;
    }
}

/* Recipients that may still be routed in this turn. */
static unsigned
manager_routes_left(const struct manager *m)
{
    return m->routed_now < ROUTES_PER_TURN ? ROUTES_PER_TURN - m->routed_now : 0;
}

bool
begin_is_busy(const struct manager *m)
{
    return m->unrouted != NULL || manager_routes_left(m) == 0;
}

/* The targets of the old routes are freed with them. So routed recipients are routed
 * again, and a message that the scheduler has begun to take is handed over as a whole now:
 * its lifetime is that of the targets. */
void
begin_anew(struct manager *m)
{
    struct active *a, *next;
    DL_FOREACH_SAFE2 (m->unrouted, a, next, routing.next_queued) {
        if (a->routing.loading) {
            struct id before = queue_enter(m->queue, a->id);
            (void)add_some(a, UINT_MAX);
            (void)manager_begin_go_on(a);
            queue_leave(m->queue, before);
            continue;
        }
        a->routing.next = 0;
        a->routing.count = 0;
        a->has_held = a->late = a->unread = false;
    }
}

/* The answer to SCHED_LOAD for a message that had one in this attempt:
 * sched_enter_again(). */
static void
begin_again(struct active *a)
{
    a->scheduled = false;
    begin_attempt(a, NULL);
}

void
begin_wait(struct active *a, const struct outcome *why, bool is_known, int64_t due_ms)
{
    struct manager *m = a->manager;
    char id[ID_LENGTH + 1];
    id_format(a->id, id);
    if (!is_known)
        log_say(m->log, LOG_LEVEL_INFO, "queue", id, "waits: %s", why->text);
    deferral_reasons_keep(m->reasons, a->id, why);
    sched_unloaded(m->sched, a->id);
    sched_add(m->sched, a->id, due_ms, a->envelope->delivery.attempts);
    manager_active_drop(a);
    manager_wake(m);
}

/* A message without room leaves memory before its recipients are routed. Verdicts of one
 * that was in memory may not have been written. */
static void
begin_admit(struct active *a, bool was_in_memory)
{
    struct manager *m = a->manager;
    const struct envelope *e = a->envelope;
    struct outcome never;
    if (was_in_memory)
        manager_expand_again(a);
    if (!sched_admit(m->sched, a->id, e->count)) {
        begin_put_back(a, was_in_memory ? 0 : e->delivery.done);
        return;
    }
    if (manager_release_waits(a) || manager_unsure_waits(a))
        return;
    switch (manager_quota_take(a, &never)) {
    case MANAGER_QUOTA_PASSES:
        begin_attempt(a, NULL);
        break;
    case MANAGER_QUOTA_NEVER:
        begin_attempt(a, &never);
        break;
    case MANAGER_QUOTA_WAITS:
        break;
    }
}

void
begin_load(struct manager *m, struct id id)
{
    struct id before = queue_enter(m->queue, id);
    struct active *a = manager_active_find(m, id);
    bool was_in_memory = a != NULL;
    if (a == NULL)
        a = begin_fetch(m, id);
    if (a && a->warning)
        a->wanted = true; /* attempt_warned() loads it */
    else if (a && !a->ending && !a->loaned)
        begin_admit(a, was_in_memory);
    else
        sched_unloaded(m->sched, id);
    queue_leave(m->queue, before);
}

/* --- After a change of the routes ------------------------------------------------ */

/* Mail that waits in memory for a next hop to which its
 * recipients are routed no longer enters the scheduler again. It would keep the rate, the
 * quota or the outage of the old one, and the place in memory that other mail waits for. */
void
manager_reroute_stop(struct manager *m)
{
    free(m->rerouting.ids);
    m->rerouting = (struct rerouting){0};
}

/* A list, since messages come and go between the turns. Those that come have the new
 * routes. */
void
manager_reroute_begin(struct manager *m)
{
    struct active *a, *next;
    struct rerouting *r = &m->rerouting;
    manager_reroute_stop(m);
    r->ids = memory_array(HASH_COUNT(m->actives) + 1, sizeof(*r->ids));
    HASH_ITER (hh, m->actives, a, next)
        if (a->scheduled)
            r->ids[r->count++] = a->id;
}

static bool
reroute_is_astray(void *context, unsigned index, const struct target *target)
{
    struct active *a = context;
    struct address address;
    a->manager->routed_now++;
    if (awaiting_is_redirected(a, index)) /* to a peer, by no route */
        return false;
    const struct target *now = attempt_route(a->manager, a->envelope,
                                             &a->envelope->recipients[index], &address);
    return now == NULL || memcmp(now, target, sizeof(*now)) != 0;
}

/* Otherwise it is not the scheduler's now, or will leave it by itself. */
static bool
reroute_may(const struct active *a)
{
    return a != NULL && a->scheduled && !a->routing.queued && !a->loaned &&
           !a->ending && !a->warning && !a->holding && !a->wanted;
}

/* True: done with this message. */
static bool
reroute_one(struct manager *m, struct active *a)
{
    struct rerouting *r = &m->rerouting;
    struct id before;
    if (!reroute_may(a))
        return true;
    if (!sched_seek_astray(m->sched, a->id, &r->slot, manager_routes_left(m),
                           reroute_is_astray, a))
        return r->slot == UINT_MAX;
    switch (sched_enter_again(m->sched, a->id)) {
    case SCHED_AGAIN_NOW:
        before = queue_enter(m->queue, a->id);
        begin_again(a);
        queue_leave(m->queue, before);
        return true;
    case SCHED_AGAIN_LATER:
        return false;
    case SCHED_AGAIN_NEVER:
        return true;
    }
    return true;
}

bool
manager_reroute_some(struct manager *m)
{
    struct rerouting *r = &m->rerouting;
    while (r->next < r->count && !begin_is_busy(m)) {
        if (!reroute_one(m, manager_active_find(m, r->ids[r->next])))
            return true;
        r->slot = 0;
        r->next++;
        m->routed_now++;
    }
    if (r->next < r->count)
        return true;
    manager_reroute_stop(m);
    return false;
}
