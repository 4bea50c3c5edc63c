/* Goes from state to state, by a timer. */
#include "admin/startup/parts.h"

#include "admin/view/counters.h"
#include "base/json_field.h"
#include "base/event/event.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    TICK_MS = 200,
    RETRY_MS = 10 * 1000,
    WAIT_MAX_MS = 24 * 3600 * 1000,
    DRAIN_TEXT_MAX = 200,
    DRAIN_GIVEN_TEXT_MAX = 48
};

static const char *const state_names[] = {
    [DRAIN_RUNNING] = "running",   [DRAIN_LEAVING] = "leaving",
    [DRAIN_EMPTYING] = "emptying", [DRAIN_CLOSING] = "closing",
    [DRAIN_GIVING] = "giving",     [DRAIN_GONE] = "gone"};

/* A drain as it was asked for. */
struct drain_order {
    bool empties, gives;
    int64_t wait_ms;
    struct text to; /* names of siblings; empty: all */
};

static void drain_tick(void *context);

/* --- The rest --------------------------------------------------------------------- */

/* All messages; *waiting: those of the places that deliveries empty. */
static size_t
drain_left(const struct daemon *d, size_t *waiting)
{
    struct manager_places places = manager_count(d->manager);
    struct queue_apart apart = queue_count_apart(manager_queue(d->manager));
    *waiting = places.incoming + places.active + places.deferred;
    return *waiting + apart.held + apart.quarantined + places.defrag;
}

bool
part_drain_has_siblings(const struct daemon *d)
{
    return d->peer.give.calls != NULL;
}

static size_t
drain_sessions_in(const struct daemon *d)
{
    return listener_sessions(d->listener);
}

/* --- States ----------------------------------------------------------------------- */

static void
drain_enter(struct daemon *d, enum drain_state state, const char *what)
{
    char text[DRAIN_TEXT_MAX + 32];
    snprintf(text, sizeof(text), "drain: %s%s", state_names[state], what);
    d->drain.state = state;
    event_tell(d->events, &(struct event){.kind = EVENT_DRAINING,
                                          .program = "main",
                                          .text = text_from(text)});
}

static void
drain_wait(struct daemon *d, int64_t ms)
{
    loop_timer_start(d->loop, &d->drain.timer, ms, drain_tick, d);
}

static void
drain_on_manager(void *context)
{
    struct daemon *d = context;
    d->drain.manager_drained = true;
}

static void
drain_close(struct daemon *d)
{
    int64_t grace_ms = d->configuration->options.drain_timeout_ms;
    d->drain.manager_drained = false;
    d->drain.closed_ms = loop_monotonic_ms(d->loop) + grace_ms;
    drain_enter(d, DRAIN_CLOSING, ": no delivery begins");
    manager_drain(d->manager, grace_ms, drain_on_manager, d);
    drain_wait(d, TICK_MS);
}

static void
drain_leave(struct daemon *d)
{
    listener_close(d->listener);
    if (!d->drain.empties) {
        drain_close(d);
        return;
    }
    drain_enter(d, DRAIN_EMPTYING, ": no mail is accepted");
    d->drain.retry_ms = 0;
    drain_wait(d, 0);
}

static void
drain_empty(struct daemon *d)
{
    int64_t now_ms = loop_monotonic_ms(d->loop);
    size_t waiting;
    (void)drain_left(d, &waiting);
    if ((waiting == 0 && drain_sessions_in(d) == 0) || now_ms >= d->drain.until_ms) {
        drain_close(d);
        return;
    }
    if (now_ms >= d->drain.retry_ms) {
        manager_retry_all(d->manager);
        d->drain.retry_ms = now_ms + RETRY_MS;
    }
    drain_wait(d, TICK_MS);
}

static struct give_progress
drain_given(const struct daemon *d)
{
    if (!d->drain.has_given || d->drain.has_stopped)
        return d->drain.last;
    struct give_progress p = give_progress(d->drain.give);
    p.given -= d->drain.given_before;
    return p;
}

static void
drain_end(struct daemon *d)
{
    char what[DRAIN_TEXT_MAX], given[DRAIN_GIVEN_TEXT_MAX] = "";
    size_t waiting, left = drain_left(d, &waiting);
    uint64_t count = drain_given(d).given;
    if (count > 0)
        snprintf(given, sizeof(given), ": messages given: %" PRIu64, count);
    snprintf(what, sizeof(what),
             "%s: messages left: %zu, of which %zu wait for delivery", given, left,
             waiting);
    drain_enter(d, DRAIN_GONE, what);
    if (d->drain.gone != NULL)
        d->drain.gone(d);
}

/* A message that a sibling may have is settled also when the drain is over, or cancelled. */
static void
drain_give_end(struct daemon *d)
{
    if (d->drain.is_giving)
        give_rest(d->drain.give);
    d->drain.is_giving = false;
}

/* From within the giving, which cannot end here. */
static void
drain_on_given(void *context)
{
    drain_wait(context, 0);
}

static void
drain_give(struct daemon *d)
{
    struct text to = text_from(d->drain.to);
    d->drain.has_sessions = drain_sessions_in(d) > 0;
    if (d->drain.give == NULL)
        d->drain.give = give_new(&d->peer.give, to, drain_on_given, d);
    else
        give_again(d->drain.give, to);
    if (!d->drain.has_given)
        d->drain.given_before = give_progress(d->drain.give).given;
    d->drain.has_given = d->drain.is_giving = true;
    drain_wait(d, d->drain.until_ms - loop_monotonic_ms(d->loop));
}

/* Nothing is left, or the time is over. Mail that a slow client has sent meanwhile was
 * accepted, and this host may never come back: it is given, too. */
static void
drain_on_giving(struct daemon *d)
{
    drain_give_end(d);
    if (loop_monotonic_ms(d->loop) >= d->drain.until_ms || !d->drain.has_sessions)
        drain_end(d);
    else if (drain_sessions_in(d) > 0)
        drain_wait(d, TICK_MS);
    else
        drain_give(d);
}

static void
drain_begin_giving(struct daemon *d)
{
    if (!d->drain.gives || loop_monotonic_ms(d->loop) >= d->drain.until_ms) {
        drain_end(d);
        return;
    }
    drain_enter(d, DRAIN_GIVING, ": siblings take the queue");
    drain_give(d);
}

/* Sessions of clients end with their transaction; one that hangs is not waited for. Mail
 * that a receiver keeps waiting would stay here while the rest is given; where all of it
 * stays, it may go on. */
static void
drain_on_closing(struct daemon *d)
{
    bool over = loop_monotonic_ms(d->loop) >= d->drain.closed_ms;
    if (!over && !(d->drain.manager_drained && drain_sessions_in(d) == 0)) {
        drain_wait(d, TICK_MS);
        return;
    }
    if (over && d->drain.gives && d->delivery != NULL) {
        delivery_cut(d->delivery);
        poster_cut(d->poster);
    }
    drain_begin_giving(d);
}

static void
drain_tick(void *context)
{
    struct daemon *d = context;
    switch (d->drain.state) {
    case DRAIN_LEAVING:
        drain_leave(d);
        break;
    case DRAIN_EMPTYING:
        drain_empty(d);
        break;
    case DRAIN_CLOSING:
        drain_on_closing(d);
        break;
    case DRAIN_GIVING:
        drain_on_giving(d);
        break;
    case DRAIN_RUNNING:
    case DRAIN_GONE:
        break;
    }
}

static void
drain_begin(struct daemon *d, const struct drain_order *order)
{
    int64_t delay_ms = d->configuration->options.drain_delay_ms;
    d->drain.empties = order->empties;
    d->drain.gives = order->gives && part_drain_has_siblings(d);
    d->drain.until_ms = loop_monotonic_ms(d->loop) + order->wait_ms;
    d->drain.has_given = false;
    (void)!text_copy(d->drain.to, sizeof(d->drain.to), order->to);
    drain_enter(d, DRAIN_LEAVING, "; not ready");
    drain_wait(d, delay_ms);
}

static void
drain_cancel(struct daemon *d)
{
    enum drain_state was = d->drain.state;
    loop_timer_stop(d->loop, &d->drain.timer);
    drain_give_end(d);
    if (was >= DRAIN_EMPTYING)
        listener_open(d->listener);
    if (was >= DRAIN_CLOSING)
        manager_cancel_drain(d->manager);
    if (was != DRAIN_RUNNING)
        drain_enter(d, DRAIN_RUNNING, " again: cancelled");
}

/* Mail that others could not take before, or that came since, as from sendmail(1). */
static void
drain_give_again(struct daemon *d, const struct drain_order *order)
{
    d->drain.until_ms = loop_monotonic_ms(d->loop) + order->wait_ms;
    (void)!text_copy(d->drain.to, sizeof(d->drain.to), order->to);
    drain_begin_giving(d);
}

/* Changes a drain under way: emptying can be added before it closes, giving before that
 * is over and once all is, and both get the new time. False: it is too late for that. */
static bool
drain_request(struct daemon *d, const struct drain_order *order)
{
    if (d->drain.state == DRAIN_RUNNING) {
        drain_begin(d, order);
        return true;
    }
    if (order->empties && !d->drain.empties && d->drain.state != DRAIN_LEAVING)
        return false;
    if (order->empties && d->drain.state <= DRAIN_EMPTYING)
        d->drain.empties = true;
    if (d->drain.state == DRAIN_GONE && d->drain.gone == NULL && order->gives &&
        part_drain_has_siblings(d)) {
        d->drain.gives = true;
        drain_give_again(d, order);
    }
    if (d->drain.state <= DRAIN_EMPTYING ||
        (d->drain.state == DRAIN_CLOSING && order->gives)) {
        d->drain.gives = order->gives && part_drain_has_siblings(d);
        d->drain.until_ms = loop_monotonic_ms(d->loop) + order->wait_ms;
        (void)!text_copy(d->drain.to, sizeof(d->drain.to), order->to);
    }
    return true;
}

/* The sender of SIGTERM does not wait as long as the user of `petrel drain` might. */
static void
drain_shorten(struct daemon *d, int64_t wait_ms)
{
    int64_t until_ms = loop_monotonic_ms(d->loop) + wait_ms;
    if (d->drain.state != DRAIN_GIVING || until_ms >= d->drain.until_ms)
        return;
    d->drain.until_ms = until_ms;
    drain_wait(d, d->drain.is_giving ? wait_ms : TICK_MS);
}

void
part_drain_hand_over(struct daemon *d, int64_t wait_ms, void (*gone)(void *daemon))
{
    struct drain_order order = {.wait_ms = wait_ms, .gives = true};
    d->drain.gone = gone;
    if (d->drain.state == DRAIN_GONE) { /* after --keep nothing goes */
        drain_give_again(d, &order);
        return;
    }
    (void)drain_request(d, &order);
    drain_shorten(d, wait_ms);
}

/* --- The question ----------------------------------------------------------------- */

/* False: it contradicts itself or this host, and says why. */
static bool
drain_order_read(const struct daemon *d, const json_t *request,
                 struct drain_order *order, const char **why)
{
    const json_t *wait = json_object_get(request, "wait_ms");
    bool keeps = json_field_is_true(request, "keep");
    *order = (struct drain_order){.empties = json_field_is_true(request, "empty"),
                                  .wait_ms = json_field_number(request, "wait_ms"),
                                  .to = text_from(json_field_string(request, "to"))};
    *why = NULL;
    if (wait != NULL && !json_is_integer(wait))
        *why = "wait_ms must be a number";
    else if (order->wait_ms < 0 || order->wait_ms > WAIT_MAX_MS)
        *why = "a drain lasts at most a day";
    else if (order->to.length > DRAIN_TO_MAX)
        *why = "too many hosts are named";
    else if (order->to.length > 0 && keeps)
        *why = "the queue is kept, or given to a host: not both";
    else if (order->to.length > 0 && !part_drain_has_siblings(d))
        *why = "this host cannot give its queue: `cluster` and `cluster_secret` are "
               "not set";
    /* Mail that is delivered before is not given, unless it is asked for. */
    order->gives = !keeps && (order->to.length > 0 || !order->empties);
    return *why == NULL;
}

static void
drain_put_given(const struct daemon *d, json_t *answer)
{
    struct give_progress p = drain_given(d);
    if (!d->drain.gives)
        return;
    json_object_set_new(answer, "given", json_integer((json_int_t)p.given));
    json_object_set_new(answer, "refused", json_integer((json_int_t)p.refused));
    json_object_set_new(answer, "refusal", json_string(p.refusal));
    json_object_set_new(answer, "local", json_integer((json_int_t)p.local));
    json_object_set_new(answer, "why", json_string(p.why));
}

static json_t *
drain_answer(void *context, const json_t *request)
{
    struct daemon *d = context;
    struct drain_order order;
    const char *why;
    if (!drain_order_read(d, request, &order, &why))
        return questions_refuse(why);
    bool cancels = json_field_is_true(request, "cancel"),
         orders = !cancels && !json_field_is_true(request, "progress");
    if (cancels && (d->drain.gone != NULL || d->drain.has_stopped))
        return questions_refuse("the daemon stops: that cannot be cancelled");
    if (orders && d->drain.has_stopped)
        return questions_refuse("the daemon stops");
    if (cancels)
        drain_cancel(d);
    else if (orders && !drain_request(d, &order))
        return questions_refuse("a drain is under way that does not empty the queue: "
                                "cancel it first");
    struct counters c;
    counters_read(d->manager, &c);
    json_t *answer = json_pack("{s:b,s:s,s:o,s:I,s:I}", "ok", true, "state",
                               part_drain_word(d), "left", counters_part("queue", &c),
                               "sessions_in", (json_int_t)drain_sessions_in(d),
                               "sessions_out", (json_int_t)c.sched.sessions);
    drain_put_given(d, answer);
    return answer;
}

/* The status has this instead of the queue's own state. */
static json_t *
drain_accepting(void *context)
{
    return part_drain_reason(context) != NULL ? json_false() : NULL;
}

static json_t *
drain_why(void *context)
{
    const char *reason = part_drain_reason(context);
    return reason != NULL ? json_string(reason) : NULL;
}

const char *
part_drain_reason(const struct daemon *d)
{
    static const char *const reasons[] = {
        [DRAIN_RUNNING] = NULL,
        [DRAIN_LEAVING] = "draining: mail is accepted for a moment more",
        [DRAIN_EMPTYING] = "draining: the queue is being emptied",
        [DRAIN_CLOSING] = "draining: deliveries end",
        [DRAIN_GIVING] = "draining: siblings take the queue",
        [DRAIN_GONE] = "drained: closed until it is cancelled, or the daemon ends"};
    return reasons[d->drain.state];
}

const char *
part_drain_word(const struct daemon *d)
{
    return state_names[d->drain.state];
}

int
part_drain_start(struct daemon *d)
{
    struct questions *questions = control_server_questions(d->control);
    questions_on(questions, "drain", drain_answer, d);
    questions_on_part(questions, "accepting", drain_accepting, d);
    questions_on_part(questions, "reason", drain_why, d);
    return 0;
}

void
part_drain_stop(struct daemon *d)
{
    if (d->drain.has_stopped)
        return;
    d->drain.last = drain_given(d);
    d->drain.last.sent = 0; /* nobody waits for their answers any more */
    d->drain.has_stopped = true;
    loop_timer_stop(d->loop, &d->drain.timer);
    give_free(&d->drain.give);
}
