/* Admits clients at an address of the sink, as far as it has places. */
#ifndef T_BENCH_DOOR_H
#define T_BENCH_DOOR_H

#include "t/bench/session.h"

enum { DOOR_ERROR_MAX = 256 };

static void
door_accept(void *context, struct net_connection *connection)
{
    struct site *site = context;
    struct session *s = sched_session_new(site, connection);
    struct net_tls tls = {.server = site->sink->tls};
    if (tls.server != NULL)
        net_start_tls(connection, &tls);
    if (site->set.sessions < 0 || (int64_t)site->tally.open < site->set.sessions)
        session_serve(s);
    else
        answer_refusal(s, 421, "7.0 Too many sessions");
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

/* Its connections end abruptly. */
static void
door_close(struct site *site)
{
    struct session *s, *next;
    DL_FOREACH_SAFE (site->sink->open, s, next)
        if (s->site == site)
            session_end(s, true);
    net_listener_free(&site->listener);
}

#endif
