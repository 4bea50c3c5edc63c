/* Watches mail that leaves, and sends canaries while there is none. */
#include "smtp/delivery/upstreams.h"

#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/event/event.h"
#include "sched/limits/refusal.h"
#include "sched/limits/reply_class.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_MS = 30 * 1000,
    SECOND = 1000,
    MINUTE = 60 * SECOND,
    SENDER_MAX = 320,
    UPSTREAM_LINE_MAX = UPSTREAMS_RELAY_MAX + UPSTREAMS_TEXT_MAX + 64
};

enum upstream_state {
    UPSTREAM_UNKNOWN,
    UPSTREAM_GOOD,
    UPSTREAM_SENDER, /* works, but refuses the sender */
    UPSTREAM_LOGIN,
    UPSTREAM_DOWN
};

struct upstream {
    struct upstreams *all;
    char relay[UPSTREAMS_RELAY_MAX];
    size_t host_length;          /* in relay */
    const struct target *target; /* of the routes in force */
    size_t at;
    enum upstream_state state;
    unsigned failures;         /* in a row */
    int64_t since_ms, good_ms; /* unix */
    int64_t due_ms;            /* monotonic; INT64_MAX: never */
    int64_t asked_ms;          /* monotonic: the last canary; 0: none yet */
    char text[UPSTREAMS_TEXT_MAX];
    char sender[SENDER_MAX]; /* the last one that was relayed there; "": none */
    struct canary *canary;
};

struct upstreams {
    struct upstreams_setup setup;
    char *hostname;
    int64_t interval_ms;
    struct upstream *list; /* NULL: there are none */
    size_t count;
    bool is_known; /* since the first upstreams_use() */
    struct loop_timer timer;
};

static const char *const codes[] = {[UPSTREAM_UNKNOWN] = "",
                                    [UPSTREAM_GOOD] = "",
                                    [UPSTREAM_SENDER] = "sender_refused",
                                    [UPSTREAM_LOGIN] = "login_refused",
                                    [UPSTREAM_DOWN] = "upstream_down"};

static void upstreams_go(void *context);

/* --- When ------------------------------------------------------------------------- */

static void
upstreams_plan(struct upstreams *all)
{
    int64_t due_ms = INT64_MAX, now_ms = loop_monotonic_ms(all->setup.loop);
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].canary == NULL && all->list[i].due_ms < due_ms)
            due_ms = all->list[i].due_ms;
    loop_timer_stop(all->setup.loop, &all->timer);
    if (due_ms != INT64_MAX)
        loop_timer_start(all->setup.loop, &all->timer,
                         due_ms > now_ms ? due_ms - now_ms : 0, upstreams_go, all);
}

/* As the scheduler logs in again: each attempt with a wrong password may lock us out. */
static int64_t
next_login_ms(const struct upstream *u)
{
    int64_t most = u->target->transport.maximal_backoff_ms;
    int64_t ms = u->target->transport.minimal_backoff_ms;
    for (unsigned i = 1; i < u->failures && ms < most; i++)
        ms *= 2;
    return ms < most ? ms : most;
}

/* After an outcome. Mail that has just failed is tried again by the scheduler: a canary
 * of ours would be one login more, and waits longer. */
static void
upstream_plan(struct upstream *u, bool by_mail)
{
    static const int64_t steps_ms[] = {MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE};
    size_t last = sizeof(steps_ms) / sizeof(steps_ms[0]) - 1;
    size_t step = u->failures > last ? last : u->failures - 1;
    int64_t wait_ms = u->failures == 0             ? u->all->interval_ms
                      : u->state == UPSTREAM_LOGIN ? next_login_ms(u)
                                                   : steps_ms[step];
    if (by_mail && u->failures > 0)
        wait_ms *= 2;
    u->due_ms = u->all->interval_ms > 0
                    ? loop_monotonic_ms(u->all->setup.loop) + wait_ms
                    : INT64_MAX;
    upstreams_plan(u->all);
}

/* --- Changes ---------------------------------------------------------------------- */

static void
upstream_tell(const struct upstream *u)
{
    bool failed = u->state != UPSTREAM_GOOD;
    char line[UPSTREAM_LINE_MAX];
    snprintf(line, sizeof(line), "%s %s%s", u->relay,
             u->state == UPSTREAM_GOOD     ? "takes our mail again"
             : u->state == UPSTREAM_SENDER ? "refuses the sender: "
             : u->state == UPSTREAM_LOGIN  ? "refuses the login: "
                                           : "does not take our mail: ",
             failed ? u->text : "");
    event_tell(
        u->all->setup.events,
        &(struct event){.kind = failed ? EVENT_UPSTREAM_FAILED : EVENT_UPSTREAM_OK,
                        .program = "smtp",
                        .relay = text_from(u->relay),
                        .reason = codes[u->state],
                        .command = text_from(codes[u->state]),
                        .text = text_from(line)});
}

/* Said only when it changes. The first success is nothing to speak of. Mail that waits
 * for the host fails with it, without an attempt of its own: that counts once. */
static void
upstream_become(struct upstream *u, enum upstream_state state, const char *text,
                bool by_mail)
{
    int64_t now_ms = loop_now_ms(u->all->setup.loop);
    enum upstream_state was = u->state;
    if (state == UPSTREAM_GOOD)
        u->failures = 0;
    else if (!by_mail || state != was)
        u->failures++;
    u->state = state;
    if (state == UPSTREAM_GOOD)
        u->good_ms = now_ms;
    text_copy(u->text, sizeof(u->text),
              text_before(text_from(text), sizeof(u->text) - 1));
    if (state == was)
        return;
    u->since_ms = now_ms;
    if (state != UPSTREAM_GOOD || was != UPSTREAM_UNKNOWN)
        upstream_tell(u);
}

/* --- Canaries --------------------------------------------------------------------- */

static void
upstream_on_canary(void *context, const struct canary_result *result)
{
    static const enum upstream_state states[] = {[CANARY_GOOD] = UPSTREAM_GOOD,
                                                 [CANARY_DOWN] = UPSTREAM_DOWN,
                                                 [CANARY_LOGIN] = UPSTREAM_LOGIN,
                                                 [CANARY_SENDER] = UPSTREAM_SENDER};
    struct upstream *u = context;
    canary_free(&u->canary);
    if (result->verdict == CANARY_TOKEN) { /* tried again when it is there */
        u->due_ms = loop_monotonic_ms(u->all->setup.loop) + MINUTE;
        upstreams_plan(u->all);
        return;
    }
    upstream_become(u, states[result->verdict], result->text, false);
    upstream_plan(u, false);
}

static void
upstream_ask(struct upstream *u)
{
    struct canary_settings settings;
    u->all->setup.canary(u->all->setup.context, u->target, &settings);
    if (u->sender[0] == '\0')
        snprintf(u->sender, sizeof(u->sender), "postmaster@%.255s", u->all->hostname);
    u->asked_ms = loop_monotonic_ms(u->all->setup.loop);
    u->canary =
        canary_new(&settings, u->target, u->at, u->sender, upstream_on_canary, u);
}

static void
upstreams_go(void *context)
{
    struct upstreams *all = context;
    int64_t now_ms = loop_monotonic_ms(all->setup.loop);
    for (size_t i = 0; i < all->count; i++) {
        struct upstream *u = &all->list[i];
        if (u->canary == NULL && u->due_ms <= now_ms)
            upstream_ask(u);
    }
    upstreams_plan(all);
}

/* A refused login is repeated at its time only, also when an operator asks. */
size_t
upstreams_ask(struct upstreams *all)
{
    int64_t now_ms = loop_monotonic_ms(all->setup.loop);
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        struct upstream *u = &all->list[i];
        bool recent = u->asked_ms != 0 && now_ms - u->asked_ms < UPSTREAMS_ASK_MS;
        if (u->canary != NULL || recent || u->state == UPSTREAM_LOGIN)
            continue;
        u->due_ms = now_ms;
        count++;
    }
    upstreams_plan(all);
    return count;
}

/* --- Mail ------------------------------------------------------------------------- */

/* relay: "host[ip]:port". */
static bool
upstream_is(const struct upstream *u, struct text relay)
{
    struct text name = text_before(text_from(u->relay), u->host_length);
    struct text port = text_after(text_from(u->relay), u->host_length);
    struct text rest = text_after(relay, name.length);
    return relay.length > name.length + port.length &&
           text_equal_nocase(text_before(relay, name.length), name) &&
           (text_starts(rest, TEXT("[")) || rest.length == port.length) &&
           text_equal(text_after(relay, relay.length - port.length), port);
}

/* A verdict about a message shows that the host converses with us. A refused sender shows
 * no more: after a failure of all mail it is not yet a success, while beside mail that is
 * taken it is the matter of one sender. A notification does not show that senders are taken. */
static void
upstream_read(struct upstream *u, const struct event *v)
{
    const struct outcome *o = v->outcome;
    bool is_about_us = v->kind == EVENT_DEFERRED && o->blame == BLAME_SITE;
    if (is_about_us && o->code != 0 && !reply_class_refuses_us(o))
        return; /* busy, or slow down: it is there, and mail goes on */
    /* Many hosts that refuse senders take the null one. */
    if (u->state == UPSTREAM_SENDER && !is_about_us && v->sender.length == 0)
        return;
    if (v->kind == EVENT_DELIVERED && v->sender.length > 0 &&
        v->sender.length < SENDER_MAX)
        text_copy(u->sender, sizeof(u->sender),
                  v->left_as.length > 0 ? v->left_as : v->sender);
    bool is_sender = v->kind != EVENT_DELIVERED && o->code != 0 &&
                     refusal_classify(o) == REFUSAL_SENDER;
    if (!is_about_us && is_sender && u->state != UPSTREAM_GOOD)
        upstream_become(u, UPSTREAM_SENDER, o->text, true);
    else if (!is_about_us)
        upstream_become(u, UPSTREAM_GOOD, "", true);
    else
        upstream_become(u, reply_class_refuses_us(o) ? UPSTREAM_LOGIN : UPSTREAM_DOWN,
                        o->text, true);
    canary_free(&u->canary);
    upstream_plan(u, true);
}

static void
upstreams_on_event(void *context, const struct event *v)
{
    struct upstreams *all = context;
    if (v->outcome == NULL || v->outcome->remote[0] == '\0')
        return;
    for (size_t i = 0; i < all->count; i++)
        if (upstream_is(&all->list[i], text_from(v->outcome->remote)))
            upstream_read(&all->list[i], v);
}

/* --- The list --------------------------------------------------------------------- */

struct upstreams_gathering {
    struct upstreams *all;
    struct upstream *list; /* NULL until the first */
    size_t count, missed;
};

static void
upstreams_add(struct upstreams_gathering *g, const struct target *target, size_t at)
{
    const struct target_host host = target_host(target, at);
    struct canary_settings settings;
    struct upstream u = {.all = g->all, .target = target, .at = at};
    g->all->setup.canary(g->all->setup.context, target, &settings);
    u.host_length = host.host.length;
    unsigned port = host.port != 0 ? host.port : settings.smtp_port;
    snprintf(u.relay, sizeof(u.relay), "%.*s:%u", TEXT_ARGS(host.host), port);
    for (size_t i = 0; i < g->count; i++)
        if (strcmp(g->list[i].relay, u.relay) == 0)
            return;
    if (g->count == UPSTREAMS_MAX) {
        g->missed++;
        return;
    }
    if (g->list == NULL)
        g->list = memory_array(UPSTREAMS_MAX, sizeof(*g->list));
    g->list[g->count++] = u;
}

static void
upstreams_gather(void *context, const struct target *target)
{
    struct upstreams_gathering *g = context;
    bool wanted = target->canary == TARGET_CANARY_UNSET
                      ? target_has_user(target)
                      : target->canary == TARGET_CANARY_YES;
    if (target->kind != TARGET_SMTP || target_peer(target) != NULL || !wanted)
        return;
    for (size_t at = 0; at < target_host_count(target); at++)
        upstreams_add(g, target, at);
}

/* Takes over the state of the host from before a reload. The settings may have changed,
 * so a canary goes soon. */
static void
upstream_inherit(struct upstream *u, const struct upstreams *all)
{
    int64_t now_ms = loop_monotonic_ms(all->setup.loop);
    u->due_ms = all->is_known ? now_ms + SECOND : now_ms + FIRST_MS;
    for (size_t i = 0; i < all->count; i++) {
        const struct upstream *old = &all->list[i];
        if (strcmp(old->relay, u->relay) != 0)
            continue;
        u->state = old->state;
        u->since_ms = old->since_ms;
        u->good_ms = old->good_ms;
        u->asked_ms = old->asked_ms;
        memcpy(u->text, old->text, sizeof(u->text));
        memcpy(u->sender, old->sender, sizeof(u->sender));
    }
}

/* One that no route leads to any more: its finding ends. */
static void
upstreams_drop(struct upstreams *all, const struct upstreams_gathering *g)
{
    for (size_t i = 0; i < all->count; i++) {
        struct upstream *old = &all->list[i];
        bool stays = false;
        canary_free(&old->canary);
        for (size_t n = 0; n < g->count; n++)
            stays = stays || strcmp(g->list[n].relay, old->relay) == 0;
        if (stays || old->state <= UPSTREAM_GOOD)
            continue;
        old->state = UPSTREAM_GOOD;
        event_tell(all->setup.events, &(struct event){.kind = EVENT_UPSTREAM_OK,
                                                      .program = "smtp",
                                                      .relay = text_from(old->relay),
                                                      .text = TEXT("no route leads "
                                                                   "there any more")});
    }
}

void
upstreams_use(struct upstreams *all, const struct route_table *routes,
              const char *hostname, int64_t interval_ms)
{
    struct upstreams_gathering g = {.all = all};
    route_each_target(routes, upstreams_gather, &g);
    if (g.missed > 0)
        log_say(all->setup.log, LOG_LEVEL_WARNING, "smtp", NULL,
                "%zu of %zu smarthosts are not watched by canaries: too many", g.missed,
                g.missed + g.count);
    for (size_t i = 0; i < g.count; i++)
        upstream_inherit(&g.list[i], all);
    upstreams_drop(all, &g);
    free(all->list);
    all->list = g.list;
    all->count = g.count;
    free(all->hostname);
    all->hostname = memory_string(hostname);
    all->interval_ms = interval_ms;
    all->is_known = true;
    for (size_t i = 0; interval_ms == 0 && i < all->count; i++)
        all->list[i].due_ms = INT64_MAX;
    event_read(all->setup.events,
               all->count > 0 ? EVENT_BIT(EVENT_DELIVERED) | EVENT_BIT(EVENT_DEFERRED) |
                                    EVENT_BIT(EVENT_BOUNCED)
                              : 0,
               upstreams_on_event, all);
    upstreams_plan(all);
}

/* --- Questions -------------------------------------------------------------------- */

static void
upstream_show(const struct upstream *u, struct upstream_view *view)
{
    struct loop *loop = u->all->setup.loop;
    *view = (struct upstream_view){.code = codes[u->state],
                                   .is_up = u->state < UPSTREAM_LOGIN,
                                   .since_ms = u->since_ms,
                                   .good_ms = u->good_ms};
    memcpy(view->relay, u->relay, sizeof(view->relay));
    memcpy(view->text, u->text, sizeof(view->text));
    if (u->due_ms != INT64_MAX)
        view->next_ms = loop_now_ms(loop) + u->due_ms - loop_monotonic_ms(loop);
}

bool
upstreams_at(const struct upstreams *all, size_t index, struct upstream_view *view)
{
    if (all == NULL || index >= all->count)
        return false;
    upstream_show(&all->list[index], view);
    return true;
}

/* Whether another host of the same target takes the mail. */
static bool
has_other_host(const struct upstreams *all, const struct upstream *u)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].target == u->target && all->list[i].state < UPSTREAM_LOGIN)
            return true;
    return false;
}

bool
upstreams_is_cut_off(const struct upstreams *all, int64_t grace_ms,
                     struct upstream_view *view)
{
    for (size_t i = 0; all != NULL && i < all->count; i++) {
        const struct upstream *u = &all->list[i];
        if (u->state < UPSTREAM_LOGIN ||
            loop_now_ms(all->setup.loop) - u->since_ms <= grace_ms ||
            has_other_host(all, u))
            continue;
        upstream_show(u, view);
        return true;
    }
    return false;
}

/* --- Life ------------------------------------------------------------------------- */

struct upstreams *
upstreams_new(const struct upstreams_setup *setup)
{
    struct upstreams *all = memory_new(sizeof(*all));
    all->setup = *setup;
    return all;
}

void
upstreams_free(struct upstreams **upstreams)
{
    struct upstreams *all = *upstreams;
    *upstreams = NULL;
    if (all == NULL)
        return;
    loop_timer_stop(all->setup.loop, &all->timer);
    event_read(all->setup.events, 0, upstreams_on_event, all);
    for (size_t i = 0; i < all->count; i++)
        canary_free(&all->list[i].canary);
    free(all->list);
    free(all->hostname);
    free(all);
}
