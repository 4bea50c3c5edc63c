/* Paces clients while mail comes faster than it leaves.
 *
 * A loop that serves each socket in turn favours intake: a thousand clients get more of
 * it than twenty sessions out, and the backlog would outgrow the journal. So the reply
 * to a message waits while too much mail waits at the message's site, as the manager
 * says. The message itself does not wait: it is durable, and on its way. Replies leave
 * in the order in which messages came, so each client has its turn. */
#include "smtp/session/session_internal.h"

#include "base/log/log.h"

#include <utlist.h>

enum {
    PACE_MS = 10,                /* between two looks at the replies that wait */
    PACE_ANSWERS = 10,           /* replies in that time at least, and one to a client
                                  * of a crowded site: a thousand wait for 10 s at
                                  * most, and no client gives up and sends again */
    PACE_LOG_MS = 10 * 60 * 1000 /* between two log lines */
};

static void
pace_on_time(void *context)
{
    struct session_host *host = context;
    host->pace_due = true;
}

static void
log_pace(struct session_host *host)
{
    int64_t now_ms = loop_monotonic_ms(host->loop);
    if (host->pace_logged_ms != 0 && now_ms - host->pace_logged_ms < PACE_LOG_MS)
        return;
    host->pace_logged_ms = now_ms;
    log_say(host->log, LOG_LEVEL_INFO, "smtpd", NULL,
            "mail arrives faster than it leaves: replies to clients are delayed");
}

bool
session_pace(struct server_session *s, struct id id)
{
    struct session_host *host = s->host;
    if (server_is_redirect(&s->server) || manager_is_calm(host->manager))
        return false;
    s->stored = id;
    s->paced = true;
    DL_APPEND2(host->paced, s, paced_prev, paced_next);
    /* paced_new is a tail of the list: sessions are added at the end only, and each
     * pass empties it. */
    if (host->paced_new == NULL)
        host->paced_new = s;
    return true;
}

bool
session_pace_leave(struct server_session *s)
{
    struct session_host *host = s->host;
    if (!s->paced)
        return false;
    if (host->paced_new == s)
        host->paced_new = s->paced_next;
    DL_DELETE2(host->paced, s, paced_prev, paced_next);
    s->paced = false;
    return true;
}

static void
answer_paced(struct server_session *s)
{
    (void)session_pace_leave(s);
    session_answer(s, NULL);
}

/* One session of a client does not flood us: it waits for twice as much, so a client
 * that sends now and then does not feel those that flood. */
static bool
session_has_turn(const struct server_session *s)
{
    const struct session_host *host = s->host;
    bool alone = client_usage_weight(host->clients, &s->peer) == 1;
    return !manager_is_crowded(host->manager, s->stored, alone);
}

/* New messages are looked at in their turn, the others when the timer says so: with a
 * thousand that wait, a look in each turn would cost more than their delivery. */
void
session_pace_some(void *context)
{
    struct session_host *host = context;
    struct server_session *s = host->pace_due ? host->paced : host->paced_new, *next;
    unsigned floor = 0;
    if (host->pace_due) {
        floor =
            host->pace_answers < PACE_ANSWERS ? PACE_ANSWERS - host->pace_answers : 1;
        host->pace_answers = 0;
    }
    host->pace_due = false;
    host->paced_new = NULL;
    for (; s != NULL; s = next) {
        next = s->paced_next; /* answer_paced() takes s off the list, and may end it */
        bool has_turn = session_has_turn(s);
        /* The oldest get the least number of replies: none waits for ever. */
        if (!has_turn && floor == 0)
            continue;
        floor -= !has_turn;
        host->pace_answers += has_turn;
        answer_paced(s);
    }
    if (host->paced == NULL || heap_has(&host->pace.node))
        return;
    log_pace(host);
    loop_timer_start(host->loop, &host->pace, PACE_MS, pace_on_time, host);
}

void
session_host_answer(struct session_host *host)
{
    while (host->paced != NULL)
        answer_paced(host->paced);
}
