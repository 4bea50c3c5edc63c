/* An attempt of a message: in memory, routed, settled, and then deferred or ended. */
#include "queue/manager/manager_internal.h"

#include "base/memory.h"
#include "sched/limits/refusal.h"
#include "sched/limits/reply_class.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LATER_MS = 60 * 1000,   /* until a refused notification is tried again */
    FULL_MS = 10 * 1000,    /* the same on a full disk, as often as its marks are */
    NOTIFICATIONS_MAX = 32, /* being committed at the same time during a stop */
    CONCLUDE_MAX_MS = 10 * 1000, /* a disk that hangs must not delay a stop longer */
    CONCLUDE_TURN_MS = 100,
    FAILS_PER_TURN = 1000 /* recipients of a message that is to bounce */
};

static const char *
program_of(enum target_kind kind)
{
    switch (kind) {
    case TARGET_MX:
    case TARGET_SMTP:
        return "smtp";
    case TARGET_LMTP:
        return "lmtp";
    case TARGET_MAILDIR:
        return "local";
    case TARGET_HTTP:
        return "http";
    case TARGET_HOLD:
    case TARGET_DISCARD:
    case TARGET_ERROR:
    case TARGET_UNKNOWN:
        break;
    }
    return "queue";
}

/* --- Messages in memory ----------------------------------------------------------- */

struct active *
manager_active_find(const struct manager *m, struct id id)
{
    struct active *a = NULL;
    HASH_FIND(hh, m->actives, &id, sizeof(id), a);
    return a;
}

struct active *
manager_active_new(struct manager *m, struct envelope *e)
{
    struct active *a = memory_new(sizeof(*a));
    a->id = e->id;
    a->manager = m;
    a->envelope = e;
    sched_tick(m->sched); /* a step that is seen later would move this birth, too */
    a->awaits_until_ms = INT64_MAX;
    HASH_ADD(hh, m->actives, id, sizeof(a->id), a);
    m->recipients += e->count;
    manager_clock_set_birth(m, e);
    return a;
}

/* Forgets the message. The caller has retired, deferred or freed the envelope before;
 * count is the number of its recipients then. */
static void
active_free(struct active *a, unsigned recipients)
{
    struct manager *m = a->manager;
    HASH_DEL(m->actives, a);
    m->recipients -= recipients;
    if (m->careful)
        manager_turn(m); /* begins the trial of the next message */
    for (unsigned i = 0; a->reasons && i < recipients; i++)
        free(a->reasons[i]);
    begin_forget(a);
    manager_overdue_forget(a);
    manager_quota_settle(a, false);
    loop_unpost(m->loop, &a->fail);
    dsn_drop(&a->notification);
    delay_warning_forget(a, recipients);
    free(a->reasons);
    free(a->kinds);
    free(a->redirected);
    free(a);
}

void
manager_active_drop(struct active *a)
{
    unsigned recipients = a->envelope->count;
    envelope_free(&a->envelope);
    active_free(a, recipients);
}

/* The hints go with the message, so that they never tell of one that is over. */
void
manager_active_retire(struct active *a)
{
    unsigned recipients = a->envelope->count;
    deferral_reasons_forget(a->manager->reasons, a->id);
    event_tell(a->manager->events, &(struct event){.kind = EVENT_ENDED, .id = a->id});
    queue_retire(a->manager->queue, &a->envelope);
    active_free(a, recipients);
}

void
manager_active_defer(struct active *a, int64_t due_ms, unsigned attempts)
{
    unsigned recipients = a->envelope->count;
    queue_defer(a->manager->queue, &a->envelope, due_ms, attempts);
    active_free(a, recipients);
}

void
manager_active_remove(struct active *a)
{
    event_tell(a->manager->events,
               &(struct event){.kind = EVENT_REMOVED,
                               .id = a->id,
                               .text = TEXT("removed by the operator")});
    manager_active_retire(a);
}

/* --- Targets and holds ------------------------------------------------------------ */

static enum target_asks
attempt_asks(const struct manager *m, const struct envelope *e)
{
    switch (e->tls) {
    case ENVELOPE_TLS_WAIVED:
        return m->settings.tls_required_header ? TARGET_WAIVES_TLS
                                               : TARGET_ASKS_NOTHING;
    case ENVELOPE_TLS_REQUIRED: /* but notifications are not to be lost (§5) */
        return e->sender.length > 0 ? TARGET_REQUIRES_TLS : TARGET_ASKS_NOTHING;
    case ENVELOPE_TLS_PLAIN:
        break;
    }
    return TARGET_ASKS_NOTHING;
}

void
attempt_count_accepted(struct manager *m, const struct envelope *e)
{
    m->required.accepted += attempt_asks(m, e) == TARGET_REQUIRES_TLS;
}

/* RFC 8689 §8.4: a host has no REQUIRETLS, or none that is proven has TLS. */
static void
attempt_count_returned(struct manager *m, const struct envelope *e,
                       const struct outcome *outcome)
{
    if (attempt_asks(m, e) == TARGET_REQUIRES_TLS &&
        (strcmp(outcome->enhanced, "5.7.30") == 0 ||
         strcmp(outcome->enhanced, "5.7.10") == 0))
        m->required.returned++;
}

struct manager_required
manager_required(const struct manager *m)
{
    return m->required;
}

const struct target *
attempt_route(const struct manager *m, const struct envelope *e,
              const struct recipient *r, struct address *address)
{
    if (address_is_local(r->address))
        *address = (struct address){.local = r->address};
    else if (!address_parse(r->address, address))
        return NULL;
    const struct target *target =
        route_find_from(m->routes, e->sender, address, e->delivery.released);
    if (target->to[0] != '\0' && !address_parse(text_from(target->to), address))
        return NULL;
    enum target_asks asks = attempt_asks(m, e);
    return asks == TARGET_ASKS_NOTHING ? target : route_asked(m->routes, target, asks);
}

void
attempt_hold_text(const struct manager *m, const char *why, char text[HOLD_TEXT_MAX])
{
    int length = snprintf(text, HOLD_TEXT_MAX, "%" PRId64 " %s\n",
                          loop_now_ms(m->loop) / 1000, why);
    assert(length > 0 && length < HOLD_TEXT_MAX);
}

/* --- Verdicts --------------------------------------------------------------------- */

/* Kept twice: for each recipient while the message is in memory, and one for the
 * message when it is not. */
static void
remember_reason(struct active *a, unsigned index, const struct outcome *outcome)
{
    if (a->reasons == NULL)
        a->reasons = memory_array(a->envelope->count, sizeof(*a->reasons));
    free(a->reasons[index]);
    a->reasons[index] = memory_string(outcome->text);
    deferral_reasons_keep(a->manager->reasons, a->id, outcome);
}

static enum event_kind
verdict_kind(const struct outcome *outcome, bool expired)
{
    switch (outcome->verdict) {
    case VERDICT_DELIVERED:
        return EVENT_DELIVERED;
    case VERDICT_DEFERRED:
        return EVENT_DEFERRED;
    case VERDICT_FAILED:
        break;
    }
    return expired ? EVENT_EXPIRED : EVENT_BOUNCED;
}

/* Postfix's four: before loading, in the queue, connection, transmission. */
static void
verdict_delays(const struct active *a, const struct timing *timing, struct event *event)
{
    int64_t now = loop_now_ms(a->manager->loop), birth = a->envelope->birth_ms;
    int64_t before = a->loaded_ms > birth ? a->loaded_ms - birth : 0;
    int64_t connect = timing ? timing->connect_ms : 0;
    int64_t transmit = timing ? timing->transmit_ms : 0;
    event->total_ms = now > birth ? now - birth : 0;
    int64_t waited = event->total_ms - before - connect - transmit;
    event->delay_ms[0] = before;
    event->delay_ms[1] = waited > 0 ? waited : 0;
    event->delay_ms[2] = connect;
    event->delay_ms[3] = transmit;
}

/* About when it is tried again; another recipient may bring that forward. */
static int64_t
verdict_next_ms(const struct active *a, unsigned index, const struct outcome *outcome)
{
    const struct envelope *e = a->envelope;
    struct address address;
    const struct target *t =
        attempt_route(a->manager, e, &e->recipients[index], &address);
    int64_t now = loop_now_ms(a->manager->loop);
    if (t == NULL || outcome->verdict != VERDICT_DEFERRED)
        return 0;
    return now + reply_class_delay_ms(reply_class_classify(outcome), outcome,
                                      now - manager_clock_begun_ms(a->manager, e, now),
                                      t->transport.minimal_backoff_ms,
                                      t->transport.maximal_backoff_ms);
}

/* The data of the message for kept events alone. hint: room for it. */
static struct event_origin
verdict_origin(const struct envelope *e, unsigned index, struct event *event,
               char hint[REFUSAL_HINT_MAX])
{
    const struct outcome *o = event->outcome;
    if (o->verdict != VERDICT_DELIVERED && refusal_hint(o, hint))
        event->hint = text_from(hint);
    event->size = e->content_size;
    return (struct event_origin){.recipient = index + 1,
                                 .original = e->recipients[index].original,
                                 .envelope_id = e->envelope_id,
                                 .message_id = e->message_id,
                                 .tag = e->tag,
                                 .submitter = e->submitter};
}

static void
tell_verdict(struct active *a, unsigned index, const struct outcome *outcome,
             bool expired, const struct timing *timing)
{
    const struct envelope *e = a->envelope;
    bool failed = outcome->verdict != VERDICT_DELIVERED;
    struct text own = envelope_sender_of(e, &e->recipients[index]);
    struct event event = {.kind = verdict_kind(outcome, expired),
                          .program = program_of(a->kinds[index]),
                          .id = e->id,
                          .sender = e->sender,
                          .recipient = e->recipients[index].address,
                          .original = envelope_is_copy(&e->recipients[index])
                                          ? TEXT("")
                                          : envelope_origin_of(&e->recipients[index]),
                          .reason =
                              failed ? refusal_name(refusal_classify(outcome)) : "",
                          .attempt = e->delivery.attempts,
                          .is_again = a->is_again,
                          .outcome = outcome};
    verdict_delays(a, timing, &event);
    if (timing != NULL) {
        event.tls = text_from(timing->tls != NULL ? timing->tls : "");
        event.dkim = timing->dkim;
        event.left_as = timing->sender;
        event.site = timing->site;
    }
    if (event.left_as.length == 0 && !text_equal(own, e->sender))
        event.left_as = own;
    char hint[REFUSAL_HINT_MAX];
    struct event_origin origin;
    if (event_are_kept(a->manager->events)) {
        origin = verdict_origin(e, index, &event, hint);
        event.next_ms = verdict_next_ms(a, index, outcome);
        event.origin = &origin;
    }
    event_tell(a->manager->events, &event);
}

static void
tell_result(struct active *a, unsigned index, const struct outcome *outcome,
            bool expired, const struct timing *timing)
{
    tell_verdict(a, index, outcome, expired, timing);
    if (expired && !a->expired) {
        a->expired = true;
        event_tell(a->manager->events, &(struct event){.kind = EVENT_LIFETIME,
                                                       .id = a->id,
                                                       .sender = a->envelope->sender});
    }
    refusals_note(a->manager, a->envelope, outcome);
}

/* Whether the mail is relayed; otherwise this is its final delivery (LMTP: RFC 2033
 * §4.2). */
static bool
relayhosts(enum target_kind kind)
{
    return kind == TARGET_MX || kind == TARGET_SMTP;
}

/* Whether we report this success to the sender (RFC 3461 §5.2.2, §5.2.4). */
static bool
manager_attempt_notifies(const struct envelope *e, unsigned index,
                         const struct outcome *outcome)
{
    return e->sender.length > 0 && !outcome->notifies &&
           dsn_wants_success(&e->recipients[index]);
}

void
attempt_settle(struct active *a, unsigned index, const struct outcome *outcome,
               bool expired, const struct timing *timing)
{
    struct manager *m = a->manager;
    struct envelope *e = a->envelope;
    /* Reassembly has settled it meanwhile: the first outcome counts. */
    if (e->recipients[index].done)
        return;
    bool redirected = awaiting_is_redirected(a, index);
    struct outcome reported;
    if (redirected && !manager_awaiting_answered(a, index, outcome, &reported)) {
        tell_result(a, index, &reported, false, timing);
        return;
    }
    tell_result(a, index, outcome, expired, timing);
    manager_copy_settled(m, e, &e->recipients[index], outcome);
    if (!redirected && m->suppression != NULL)
        manager_suppress_hear(a, index, outcome);
    switch (outcome->verdict) {
    case VERDICT_DEFERRED:
        remember_reason(a, index, outcome);
        /* No sender is notified that we wait for a host of ours. */
        if (!redirected)
            delay_warning_remember(a, index, outcome);
        break;
    case VERDICT_DELIVERED: {
        struct failure success = {.recipient = index,
                                  .relayed = relayhosts(a->kinds[index]),
                                  .outcome = *outcome};
        queue_settle(m->queue, e, index,
                     manager_attempt_notifies(e, index, outcome) ? &success : NULL);
        break;
    }
    case VERDICT_FAILED: {
        struct failure failure = {
            .recipient = index, .expired = expired, .outcome = *outcome};
        attempt_count_returned(m, e, outcome);
        queue_settle(m->queue, e, index, &failure);
        break;
    }
    }
}
/* --- The end of a message --------------------------------------------------------- */

bool
attempt_goes_on(const struct active *a)
{
    return a->pending == PENDING_NONE || a->pending == PENDING_RETRY;
}

static bool
has_open(const struct active *a)
{
    return a->envelope->delivery.done < a->envelope->count;
}

/* Tries the notification later: the message remains in memory, and the scheduler loads
 * it again with no recipient left. */
static void
notification_later(struct active *a)
{
    struct outcome refusal;
    struct manager *m = a->manager;
    bool full = !queue_admits(m->queue, 0, &refusal) && refusal.code == 452;
    int64_t now = loop_now_ms(m->loop);
    switch (a->pending) {
    case PENDING_REMOVE:
        manager_active_remove(a);
        break;
    case PENDING_HOLD:
        manager_active_defer(a, now, a->envelope->delivery.attempts);
        break;
    case PENDING_NONE:
    case PENDING_RETRY:
    case PENDING_BOUNCE:
        sched_add(m->sched, a->id, now + (full ? FULL_MS : LATER_MS),
                  a->envelope->delivery.attempts);
        manager_wake(m);
        break;
    }
}

/* The notification is durable before the message ends: a crash between the two repeats
 * it, and never loses it. */
static void
notification_stored(void *context, struct envelope *notification,
                    const struct outcome *refusal)
{
    struct active *a = context;
    struct manager *m = a->manager;
    assert(m->notifications.ended < m->notifications.begun && a->ending);
    m->notifications.ended++;
    a->ending = false;
    struct id before = queue_enter(m->queue, a->id);
    if (refusal) {
        notification_later(a);
    } else {
        /* The notification is durable, so the message may end. */
        manager_active_retire(a);
        manager_accept(m, &notification);
    }
    queue_leave(m->queue, before);
}

static void
accept_notification(void *context, struct envelope *notification)
{
    manager_accept(context, &notification);
}

static void
expand_notification(void *context, struct envelope *notification)
{
    manager_expand_own(context, notification);
}

struct dsn_settings
attempt_dsn_settings(struct manager *m)
{
    return (struct dsn_settings){.queue = m->queue,
                                 .loop = m->loop,
                                 .events = m->events,
                                 .hostname = m->settings.hostname,
                                 .size_limit = m->settings.bounce_size_limit,
                                 .expand = expand_notification,
                                 .accept = accept_notification,
                                 .context = m};
}

/* An expected notification will not be sent. */
static void
notification_cancel(struct active *a)
{
    if (a->ending)
        a->manager->notifications.ended++;
    a->ending = false;
}

/* A stop waits for notifications that are under way. */
static void
notification_expect(struct active *a)
{
    if (!a->ending)
        a->manager->notifications.begun++;
    a->ending = true;
}

/* Nobody is left to be notified. */
static void
discard_notification(struct active *a)
{
    const struct delivery_state *d = &a->envelope->delivery;
    const char *why = d->failures[d->failure_count - 1].outcome.text;
    char text[OUTCOME_TEXT_MAX + 80];
    int length = snprintf(text, sizeof(text),
                          "notification to postmaster failed; discarded: %.*s",
                          OUTCOME_TEXT_MAX, why);
    event_tell(a->manager->events,
               &(struct event){.kind = EVENT_DISCARDED,
                               .id = a->id,
                               .text = text_of(text, (size_t)length)});
}

static void
notify_sender(struct active *a)
{
    struct manager *m = a->manager;
    struct dsn_settings settings = attempt_dsn_settings(m);
    switch (
        dsn_begin(&settings, a->envelope, &a->notification, notification_stored, a)) {
    case DSN_NOTHING:
        if (a->envelope->double_bounce && a->envelope->delivery.failure_count > 0)
            discard_notification(a);
        notification_cancel(a);
        manager_active_retire(a);
        break;
    case DSN_BEGUN:
        notification_expect(a);
        manager_turn(m); /* the commit needs its SYNC stage */
        break;
    case DSN_REFUSED:
        notification_cancel(a);
        notification_later(a);
        break;
    }
}

/* Fails some recipients in a turn; after the last, notifies the sender. The text is
 * that of other MTAs for a cancelled delivery. */
static void
fail_some(void *context)
{
    struct active *a = context;
    struct manager *m = a->manager;
    const struct envelope *e = a->envelope;
    struct outcome outcome =
        outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.0.0",
                     "returned by the operator: delivery cancelled by administrator");
    struct id before = queue_enter(m->queue, a->id);
    unsigned failed = 0;
    for (; a->failing < e->count && failed < FAILS_PER_TURN; a->failing++) {
        a->kinds[a->failing] = TARGET_ERROR;
        if (e->recipients[a->failing].done)
            continue;
        failed++;
        begin_settle_failed(a, a->failing, &outcome);
    }
    if (a->failing < e->count)
        loop_post(m->loop, &a->fail, fail_some, a);
    else
        notify_sender(a);
    queue_leave(m->queue, before);
}

void
attempt_bounce(struct active *a)
{
    free(a->kinds);
    free(a->redirected);
    a->redirected = NULL;
    a->kinds = memory_array(a->envelope->count + 1, sizeof(*a->kinds));
    a->failing = 0;
    notification_expect(a);
    fail_some(a);
}

void
attempt_notification_begun(struct active *a)
{
    a->manager->notifications.begun++;
    a->warning = true;
    manager_turn(a->manager); /* the commit needs its SYNC stage */
}

void
attempt_notification_ended(struct active *a)
{
    struct manager *m = a->manager;
    assert(m->notifications.ended < m->notifications.begun && a->warning);
    m->notifications.ended++;
    a->warning = false;
}

/* Holds the message as the route says, unless a command came after the routing. */
static void
hold_now(struct active *a)
{
    struct manager *m = a->manager;
    int64_t now = loop_now_ms(m->loop);
    if (!attempt_goes_on(a) || !has_open(a)) {
        attempt_finish(a);
    } else if (a->envelope->delivery.released) { /* no route holds it again */
        a->holding = a->scheduled = a->wanted = false;
        a->pending = PENDING_NONE;
        sched_add(m->sched, a->id, now, a->envelope->delivery.attempts);
        manager_wake(m);
    } else {
        begin_hold(a);
    }
}

/* In hold/ no round would report the failures that are not reported yet: the message is
 * held after a later try. */
static void
hold_later(struct active *a)
{
    a->holding = a->scheduled = a->wanted = false;
    notification_later(a);
}

/* The results of the round are reported, or could not be: the next round that ends
 * reports them then. */
static void
round_reported(void *context, struct envelope *notification,
               const struct outcome *refusal)
{
    struct active *a = context;
    struct manager *m = a->manager;
    attempt_notification_ended(a);
    struct id before = queue_enter(m->queue, a->id);
    if (refusal == NULL) { /* durable: the note may follow */
        queue_notified(m->queue, a->envelope);
        manager_accept(m, &notification);
    }
    if (a->holding && a->wanted)
        sched_unloaded(m->sched, a->id);
    if (a->holding && refusal != NULL && attempt_goes_on(a))
        hold_later(a);
    else if (a->holding)
        hold_now(a);
    else if (!attempt_goes_on(a) || !delay_warning_start(a))
        attempt_warned(a);
    queue_leave(m->queue, before);
}

/* The sender is notified of failures, or of the success requested, while other
 * recipients stay open: these may take days. */
static enum dsn_result
round_report(struct active *a)
{
    struct manager *m = a->manager;
    const struct delivery_state *d = &a->envelope->delivery;
    unsigned notified = 0;
    while (notified < d->failure_count && d->failures[notified].notified)
        notified++;
    if (notified == d->failure_count)
        return DSN_NOTHING;
    /* A failure that is not on the disk would be reported again after a crash. */
    if (!queue_may_notify(m->queue, a->envelope))
        return DSN_REFUSED;
    struct dsn_settings settings = attempt_dsn_settings(m);
    enum dsn_result result =
        dsn_begin(&settings, a->envelope, &a->notification, round_reported, a);
    if (result == DSN_BEGUN)
        attempt_notification_begun(a);
    return result;
}

/* The recipients that are left are held by a route, until an operator acts: the results
 * of the others are reported first. */
static void
hold_rest(struct active *a)
{
    a->holding = true;
    switch (round_report(a)) {
    case DSN_BEGUN:
        a->scheduled = true; /* so that commands wait for its end */
        break;
    case DSN_NOTHING:
        hold_now(a);
        break;
    case DSN_REFUSED:
        hold_later(a);
        break;
    }
}

void
attempt_finish(struct active *a)
{
    begin_forget(a);
    a->scheduled = false;
    switch (a->pending) {
    case PENDING_REMOVE:
        manager_active_remove(a);
        return;
    case PENDING_HOLD: /* expired recipients are still open */
        if (has_open(a)) {
            manager_active_defer(a, loop_now_ms(a->manager->loop),
                                 a->envelope->delivery.attempts);
            return;
        }
        break;
    case PENDING_BOUNCE:
        attempt_bounce(a);
        return;
    case PENDING_NONE:
    case PENDING_RETRY:
        if (has_open(a) && a->awaits_until_ms < INT64_MAX) {
            manager_await_parts(a, 0);
            return;
        }
        if (has_open(a) && a->unread) {
            manager_active_defer(a, loop_now_ms(a->manager->loop) + LATER_MS,
                                 a->envelope->delivery.attempts);
            return;
        }
        if (has_open(a) && a->has_held) {
            hold_rest(a);
            return;
        }
        break;
    }
    notify_sender(a);
}

/* At most NOTIFICATIONS_MAX notifications at a time. False: some have to wait. */
static bool
conclude_some(struct manager *m)
{
    struct active *a, *next;
    HASH_ITER (hh, m->actives, a, next) {
        if (!a->scheduled || attempt_goes_on(a) || a->ending || a->warning)
            continue;
        if (m->notifications.begun - m->notifications.ended >= NOTIFICATIONS_MAX)
            return false;
        struct id before = queue_enter(m->queue, a->id);
        attempt_finish(a);
        queue_leave(m->queue, before);
    }
    return true;
}

void
attempt_conclude(struct manager *m)
{
    int64_t until_ms = loop_monotonic_ms(m->loop) + CONCLUDE_MAX_MS;
    while (!conclude_some(m) || m->notifications.ended < m->notifications.begun) {
        if (loop_monotonic_ms(m->loop) >= until_ms)
            return;
        loop_turn(m->loop, CONCLUDE_TURN_MS);
    }
}

/* Moves the message to the disk until it is due, or carries out the operator's
 * command. */
static void
manager_attempt_rest(struct active *a)
{
    struct manager *m = a->manager;
    struct id id = a->id;
    int64_t now = loop_now_ms(m->loop);
    if (attempt_goes_on(a)) {
        if (a->pending == PENDING_RETRY)
            (void)sched_retry(m->sched, id);
        /* The next startup must offer a waiting fragment again. */
        awaiting_note(a);
        bool soon = a->pending == PENDING_RETRY || a->awaits_until_ms < INT64_MAX;
        manager_active_defer(a, soon ? now : a->envelope->delivery.due_ms,
                             a->envelope->delivery.attempts);
        return;
    }
    if (a->wanted) {
        sched_unloaded(m->sched, id);
    } else {
        bool forgotten = sched_forget(m->sched, id);
        assert(forgotten); /* SCHED_WAIT says so */
    }
    attempt_finish(a);
}

void
attempt_wait(struct active *a, int64_t due_ms, unsigned attempts)
{
    a->envelope->delivery.due_ms = due_ms;
    a->envelope->delivery.attempts = attempts;
    if (attempt_goes_on(a) && (round_report(a) == DSN_BEGUN || delay_warning_start(a)))
        return;
    manager_attempt_rest(a);
}

void
attempt_warned(struct active *a)
{
    struct manager *m = a->manager;
    struct id id = a->id;
    bool again = a->wanted && attempt_goes_on(a);
    manager_attempt_rest(a);
    if (again)
        manager_load(m, id);
    manager_wake(m);
}
