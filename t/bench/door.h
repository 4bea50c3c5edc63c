/* Admits clients at an address of the sink: places, queue, and the treatment of the
 * others.
 */
#ifndef T_BENCH_DOOR_H
#define T_BENCH_DOOR_H

#include "t/bench/session.h"

enum { REOPEN_MS = 50, DOOR_ERROR_MAX = 256 };

static bool
has_place(const struct site *site)
{
    return site->set.sessions < 0 || (int64_t)site->tally.open < site->set.sessions;
}

static bool
wants_listener(const struct site *site)
{
    return site->set.up && (site->set.over != OVER_REFUSE || has_place(site));
}

static void
serve_queued(struct site *site)
{
    struct session *s, *next;
    DL_FOREACH_SAFE (site->sink->open, s, next) {
        if (site->queued == 0 || !has_place(site))
            return;
        if (s->site != site || s->state != SESSION_QUEUED)
            continue;
        site->queued--;
        session_serve(s);
    }
}

static void
on_doomed(void *context)
{
    session_reset(context);
}

static void
doom(struct session *s)
{
    site_count(s->site, COUNT_FAILED_CONNECTS, 1);
    loop_timer_start(s->sink->loop, &s->timer,
                     (int64_t)site_chance(s->site, FAIL_WITHIN_MS), on_doomed, s);
}

/* There is no place for it. */
static void
turn_away(struct session *s)
{
    struct site *site = s->site;
    if (site->set.over == OVER_QUEUE && (int64_t)site->queued < site->set.queue) {
        s->state = SESSION_QUEUED;
        site->queued++;
        return;
    }
    site_count(site, COUNT_REFUSED_CONNECTS, 1);
    switch (site->set.over) {
    case OVER_421:
        answer_refusal(s, 421, "7.0 Too many sessions");
        return;
    case OVER_RST:
    case OVER_REFUSE: /* it came in the same moment as the last one */
        session_reset(s);
        return;
    case OVER_SILENT:
    case OVER_QUEUE:
        return;
    }
}

static void
door_accept(void *context, struct net_connection *connection)
{
    struct site *site = context;
    struct session *s = sched_session_new(site, connection);
    struct net_tls tls = {.server = site->sink->tls};
    if (tls.server != NULL)
        net_start_tls(connection, &tls);
    serve_queued(site); /* a place may have become free in this turn */
    if (site_fails(site))
        doom(s);
    else if (site->queued == 0 && has_place(site))
        session_serve(s);
    else
        turn_away(s);
    if (!wants_listener(site))
        net_listener_free(&site->listener);
}

/* False with one line in error. */
static bool
door_open(struct site *site, char error[DOOR_ERROR_MAX])
{
    site->listener = net_listen(site->sink->net, &site->address, 0666, door_accept,
                                site, error, DOOR_ERROR_MAX);
    if (site->listener == NULL)
        return false;
    site->address = *net_listener_address(site->listener);
    return true;
}

/* Does what the settings and the number of sessions ask for; as a callback, too. */
static void
door_update(void *context)
{
    struct site *site = context;
    struct sink *sink = site->sink;
    struct session *s, *next;
    char error[DOOR_ERROR_MAX];
    loop_timer_stop(sink->loop, &site->reopening);
    if (!site->set.up) {
        DL_FOREACH_SAFE (sink->open, s, next) {
            if (s->site == site)
                session_reset(s);
        }
    }
    serve_queued(site);
    if (!wants_listener(site))
        net_listener_free(&site->listener);
    else if (site->listener == NULL && !door_open(site, error))
        loop_timer_start(sink->loop, &site->reopening, REOPEN_MS, door_update, site);
}

static void
door_close(struct site *site)
{
    site->set.up = false;
    door_update(site);
    loop_unpost(site->sink->loop, &site->freed);
}

#endif
