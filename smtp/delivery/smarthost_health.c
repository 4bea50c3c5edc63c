/* Watches mail that leaves, and sends canaries while there is none. */
#include "smtp/delivery/smarthost_health.h"

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
    SMARTHOST_LINE_MAX = SMARTHOST_HEALTH_TEXT_MAX + 64
};

enum smarthost_state {
    SMARTHOST_UNKNOWN,
    SMARTHOST_GOOD,
    SMARTHOST_SENDER, /* works, but refuses the sender */
    SMARTHOST_LOGIN,
    SMARTHOST_DOWN
};

struct smarthost {
    struct smarthost_health *all;
    char relay[SMARTHOST_HEALTH_RELAY_MAX];
    size_t host_length;          /* in relay */
    const struct target *target; /* of the routes in force */
    size_t at;
    enum smarthost_state state;
    unsigned failures;         /* in a row */
    int64_t since_ms, good_ms; /* unix */
    int64_t due_ms;            /* monotonic; INT64_MAX: never */
    int64_t asked_ms;          /* monotonic: the last probe; 0: none yet */
    char text[SMARTHOST_HEALTH_TEXT_MAX];
    char sender[SENDER_MAX]; /* the last one that was relayed there; "": none */
    struct smarthost_probe *probe;
};

struct smarthost_health {
    struct smarthost_health_setup setup;
    char *hostname;
    int64_t interval_ms;
    struct smarthost *list; /* NULL: there are none */
    size_t count;
    bool is_known; /* since the first smarthost_health_use() */
    struct loop_timer timer;
};

static const char *const codes[] = {[SMARTHOST_UNKNOWN] = "",
                                    [SMARTHOST_GOOD] = "",
                                    [SMARTHOST_SENDER] = "sender_refused",
                                    [SMARTHOST_LOGIN] = "login_refused",
                                    [SMARTHOST_DOWN] = "upstream_down"};

static void smarthost_health_go(void *context);

/* --- When ------------------------------------------------------------------------- */

static void
smarthost_health_plan(struct smarthost_health *all)
{
    int64_t due_ms = INT64_MAX, now_ms = loop_monotonic_ms(all->setup.loop);
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].probe == NULL && all->list[i].due_ms < due_ms)
            due_ms = all->list[i].due_ms;
    loop_timer_stop(all->setup.loop, &all->timer);
    if (due_ms != INT64_MAX)
        loop_timer_start(all->setup.loop, &all->timer,
                         due_ms > now_ms ? due_ms - now_ms : 0, smarthost_health_go,
                         all);
}

/* As the scheduler logs in again: each attempt with a wrong password may lock us out. */
static int64_t
next_login_ms(const struct smarthost *u)
{
    int64_t most = u->target->transport.maximal_backoff_ms;
    int64_t ms = u->target->transport.minimal_backoff_ms;
    for (unsigned i = 1; i < u->failures && ms < most; i++)
        ms *= 2;
    return ms < most ? ms : most;
}

/* After an outcome. Mail that has just failed is tried again by the scheduler: a probe
 * of ours would be one login more, and waits longer. */
static void
smarthost_plan(struct smarthost *u, bool by_mail)
{
    static const int64_t steps_ms[] = {MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE};
    size_t last = sizeof(steps_ms) / sizeof(steps_ms[0]) - 1;
    size_t step = u->failures > last ? last : u->failures - 1;
    int64_t wait_ms = u->failures == 0              ? u->all->interval_ms
                      : u->state == SMARTHOST_LOGIN ? next_login_ms(u)
                                                    : steps_ms[step];
    if (by_mail && u->failures > 0)
        wait_ms *= 2;
    u->due_ms = u->all->interval_ms > 0
                    ? loop_monotonic_ms(u->all->setup.loop) + wait_ms
                    : INT64_MAX;
    smarthost_health_plan(u->all);
}

/* --- Changes ---------------------------------------------------------------------- */

static void
smarthost_tell(const struct smarthost *u)
{
    bool failed = u->state != SMARTHOST_GOOD;
    char line[SMARTHOST_LINE_MAX];
    snprintf(line, sizeof(line), "%s%s",
             u->state == SMARTHOST_GOOD     ? "takes our mail again"
             : u->state == SMARTHOST_SENDER ? "refuses the sender: "
             : u->state == SMARTHOST_LOGIN  ? "refuses the login: "
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
smarthost_become(struct smarthost *u, enum smarthost_state state, const char *text,
                 bool by_mail)
{
    int64_t now_ms = loop_now_ms(u->all->setup.loop);
    enum smarthost_state was = u->state;
    if (state == SMARTHOST_GOOD)
        u->failures = 0;
    else if (!by_mail || state != was)
        u->failures++;
    u->state = state;
    if (state == SMARTHOST_GOOD)
        u->good_ms = now_ms;
    text_copy(u->text, sizeof(u->text),
              text_before(text_from(text), sizeof(u->text) - 1));
    if (state == was)
        return;
    u->since_ms = now_ms;
    if (state != SMARTHOST_GOOD || was != SMARTHOST_UNKNOWN)
        smarthost_tell(u);
}

/* --- Canaries --------------------------------------------------------------------- */

static void
smarthost_on_probe(void *context, const struct smarthost_probe_result *result)
{
    static const enum smarthost_state states[] = {
        [SMARTHOST_PROBE_GOOD] = SMARTHOST_GOOD,
        [SMARTHOST_PROBE_DOWN] = SMARTHOST_DOWN,
        [SMARTHOST_PROBE_LOGIN] = SMARTHOST_LOGIN,
        [SMARTHOST_PROBE_SENDER] = SMARTHOST_SENDER};
    struct smarthost *u = context;
    smarthost_probe_free(&u->probe);
    if (result->verdict == SMARTHOST_PROBE_TOKEN) { /* tried again when it is there */
        u->due_ms = loop_monotonic_ms(u->all->setup.loop) + MINUTE;
        smarthost_health_plan(u->all);
        return;
    }
    smarthost_become(u, states[result->verdict], result->text, false);
    smarthost_plan(u, false);
}

static void
smarthost_ask(struct smarthost *u)
{
    struct smarthost_probe_settings settings;
    u->all->setup.settings(u->all->setup.context, u->target, &settings);
    if (u->sender[0] == '\0')
        snprintf(u->sender, sizeof(u->sender), "postmaster@%.255s", u->all->hostname);
    u->asked_ms = loop_monotonic_ms(u->all->setup.loop);
    u->probe = smarthost_probe_new(&settings, u->target, u->at, u->sender,
                                   smarthost_on_probe, u);
}

static void
smarthost_health_go(void *context)
{
    struct smarthost_health *all = context;
    int64_t now_ms = loop_monotonic_ms(all->setup.loop);
    for (size_t i = 0; i < all->count; i++) {
        struct smarthost *u = &all->list[i];
        if (u->probe == NULL && u->due_ms <= now_ms)
            smarthost_ask(u);
    }
    smarthost_health_plan(all);
}

/* A refused login is repeated at its time only, also when an operator asks. */
size_t
smarthost_health_ask(struct smarthost_health *all)
{
    int64_t now_ms = loop_monotonic_ms(all->setup.loop);
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        struct smarthost *u = &all->list[i];
        bool recent =
            u->asked_ms != 0 && now_ms - u->asked_ms < SMARTHOST_HEALTH_ASK_MS;
        if (u->probe != NULL || recent || u->state == SMARTHOST_LOGIN)
            continue;
        u->due_ms = now_ms;
        count++;
    }
    smarthost_health_plan(all);
    return count;
}

/* --- Mail ------------------------------------------------------------------------- */

/* relay: "host[ip]:port". */
static bool
smarthost_is(const struct smarthost *u, struct text relay)
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
smarthost_read(struct smarthost *u, const struct event *v)
{
    const struct outcome *o = v->outcome;
    bool is_about_us = v->kind == EVENT_DEFERRED && o->blame == BLAME_SITE;
    if (is_about_us && o->code != 0 && !reply_class_refuses_us(o))
        return; /* busy, or slow down: it is there, and mail goes on */
    /* Many hosts that refuse senders take the null one. */
    if (u->state == SMARTHOST_SENDER && !is_about_us && v->sender.length == 0)
        return;
    if (v->kind == EVENT_DELIVERED && v->sender.length > 0 &&
        v->sender.length < SENDER_MAX)
        text_copy(u->sender, sizeof(u->sender),
                  v->left_as.length > 0 ? v->left_as : v->sender);
    bool is_sender = v->kind != EVENT_DELIVERED && o->code != 0 &&
                     refusal_classify(o) == REFUSAL_SENDER;
    if (!is_about_us && is_sender && u->state != SMARTHOST_GOOD)
        smarthost_become(u, SMARTHOST_SENDER, o->text, true);
    else if (!is_about_us)
        smarthost_become(u, SMARTHOST_GOOD, "", true);
    else
        smarthost_become(u,
                         reply_class_refuses_us(o) ? SMARTHOST_LOGIN : SMARTHOST_DOWN,
                         o->text, true);
    smarthost_probe_free(&u->probe);
    smarthost_plan(u, true);
}

static void
smarthost_health_on_event(void *context, const struct event *v)
{
    struct smarthost_health *all = context;
    if (v->outcome == NULL || v->outcome->remote[0] == '\0')
        return;
    for (size_t i = 0; i < all->count; i++)
        if (smarthost_is(&all->list[i], text_from(v->outcome->remote)))
            smarthost_read(&all->list[i], v);
}

/* --- The list --------------------------------------------------------------------- */

struct smarthost_health_gathering {
    struct smarthost_health *all;
    struct smarthost *list; /* NULL until the first */
    size_t count, missed;
};

static void
smarthost_health_add(struct smarthost_health_gathering *g, const struct target *target,
                     size_t at)
{
    const struct target_host host = target_host(target, at);
    struct smarthost_probe_settings settings;
    struct smarthost u = {.all = g->all, .target = target, .at = at};
    g->all->setup.settings(g->all->setup.context, target, &settings);
    u.host_length = host.host.length;
    unsigned port = host.port != 0 ? host.port : settings.smtp_port;
    snprintf(u.relay, sizeof(u.relay), "%.*s:%u", TEXT_ARGS(host.host), port);
    for (size_t i = 0; i < g->count; i++)
        if (strcmp(g->list[i].relay, u.relay) == 0)
            return;
    if (g->count == SMARTHOST_HEALTH_MAX) {
        g->missed++;
        return;
    }
    if (g->list == NULL)
        g->list = memory_array(SMARTHOST_HEALTH_MAX, sizeof(*g->list));
    g->list[g->count++] = u;
}

static void
smarthost_health_gather(void *context, const struct target *target)
{
    struct smarthost_health_gathering *g = context;
    bool wanted = target->canary == TARGET_CANARY_UNSET
                      ? target_has_user(target)
                      : target->canary == TARGET_CANARY_YES;
    if (target->kind != TARGET_SMTP || target_peer(target) != NULL || !wanted)
        return;
    for (size_t at = 0; at < target_host_count(target); at++)
        smarthost_health_add(g, target, at);
}

/* Takes over the state of the host from before a reload. The settings may have changed,
 * so a probe goes soon. */
static void
smarthost_inherit(struct smarthost *u, const struct smarthost_health *all)
{
    int64_t now_ms = loop_monotonic_ms(all->setup.loop);
    u->due_ms = all->is_known ? now_ms + SECOND : now_ms + FIRST_MS;
    for (size_t i = 0; i < all->count; i++) {
        const struct smarthost *old = &all->list[i];
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
smarthost_health_drop(struct smarthost_health *all,
                      const struct smarthost_health_gathering *g)
{
    for (size_t i = 0; i < all->count; i++) {
        struct smarthost *old = &all->list[i];
        bool stays = false;
        smarthost_probe_free(&old->probe);
        for (size_t n = 0; n < g->count; n++)
            stays = stays || strcmp(g->list[n].relay, old->relay) == 0;
        if (stays || old->state <= SMARTHOST_GOOD)
            continue;
        old->state = SMARTHOST_GOOD;
        event_tell(all->setup.events, &(struct event){.kind = EVENT_UPSTREAM_OK,
                                                      .program = "smtp",
                                                      .relay = text_from(old->relay),
                                                      .text = TEXT("is in no route "
                                                                   "any more")});
    }
}

void
smarthost_health_use(struct smarthost_health *all, const struct route_table *routes,
                     const char *hostname, int64_t interval_ms)
{
    struct smarthost_health_gathering g = {.all = all};
    route_each_target(routes, smarthost_health_gather, &g);
    if (g.missed > 0)
        log_say(all->setup.log, LOG_LEVEL_WARNING, "smtp", NULL,
                "%zu of %zu smarthosts are not watched by canaries: too many", g.missed,
                g.missed + g.count);
    for (size_t i = 0; i < g.count; i++)
        smarthost_inherit(&g.list[i], all);
    smarthost_health_drop(all, &g);
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
               smarthost_health_on_event, all);
    smarthost_health_plan(all);
}

/* --- Questions -------------------------------------------------------------------- */

static void
smarthost_show(const struct smarthost *u, struct smarthost_health_view *view)
{
    struct loop *loop = u->all->setup.loop;
    *view = (struct smarthost_health_view){.code = codes[u->state],
                                           .is_up = u->state < SMARTHOST_LOGIN,
                                           .since_ms = u->since_ms,
                                           .good_ms = u->good_ms};
    memcpy(view->relay, u->relay, sizeof(view->relay));
    memcpy(view->text, u->text, sizeof(view->text));
    if (u->due_ms != INT64_MAX)
        view->next_ms = loop_now_ms(loop) + u->due_ms - loop_monotonic_ms(loop);
}

bool
smarthost_health_at(const struct smarthost_health *all, size_t index,
                    struct smarthost_health_view *view)
{
    if (all == NULL || index >= all->count)
        return false;
    smarthost_show(&all->list[index], view);
    return true;
}

/* Whether another host of the same target takes the mail. */
static bool
has_other_host(const struct smarthost_health *all, const struct smarthost *u)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].target == u->target && all->list[i].state < SMARTHOST_LOGIN)
            return true;
    return false;
}

bool
smarthost_health_is_cut_off(const struct smarthost_health *all, int64_t grace_ms,
                            struct smarthost_health_view *view)
{
    for (size_t i = 0; all != NULL && i < all->count; i++) {
        const struct smarthost *u = &all->list[i];
        if (u->state < SMARTHOST_LOGIN ||
            loop_now_ms(all->setup.loop) - u->since_ms <= grace_ms ||
            has_other_host(all, u))
            continue;
        smarthost_show(u, view);
        return true;
    }
    return false;
}

/* --- Life ------------------------------------------------------------------------- */

struct smarthost_health *
smarthost_health_new(const struct smarthost_health_setup *setup)
{
    struct smarthost_health *all = memory_new(sizeof(*all));
    all->setup = *setup;
    return all;
}

void
smarthost_health_free(struct smarthost_health **health)
{
    struct smarthost_health *all = *health;
    *health = NULL;
    if (all == NULL)
        return;
    loop_timer_stop(all->setup.loop, &all->timer);
    event_read(all->setup.events, 0, smarthost_health_on_event, all);
    for (size_t i = 0; i < all->count; i++)
        smarthost_probe_free(&all->list[i].probe);
    free(all->list);
    free(all->hostname);
    free(all);
}
