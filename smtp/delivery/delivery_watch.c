/* Reports the activity of sessions, for operators who ask why mail waits. */
#include "smtp/delivery/delivery_internal.h"

#include <stdio.h>
#include <utlist.h>

/* Sessions keep monotonic times, since the wall clock may be set; operators read the
 * wall clock. */
static int64_t
wall_ms(const struct delivery_session *s, int64_t monotonic_ms)
{
    const struct loop *loop = s->delivery->loop;
    return loop_now_ms(loop) - (loop_monotonic_ms(loop) - monotonic_ms);
}

static void
tell_look_up(const struct delivery_session *s, struct activity *a)
{
    const struct target *t = s->target;
    const char *name = t->kind == TARGET_MX ? s->domain : t->host;
    bool by_mx = t->kind == TARGET_MX || t->look_up_mx;
    a->kind = ACTIVITY_LOOK_UP;
    a->since_ms = wall_ms(s, s->opened_ms);
    snprintf(a->what, sizeof(a->what), "%s of %s%s",
             !by_mx                ? "addresses"
             : s->exchange == NULL ? "MX"
                                   : exchange_asks(s->exchange),
             name, target_host_count(t) > 1 ? " and others" : "");
}

static void
tell_connect(const struct delivery_session *s, struct activity *a)
{
    struct reply_outcome_peer peer;
    size_t which;
    int64_t started_ms;
    if (!happy_eyeballs_now(s->connecting, &which, &started_ms))
        return;
    candidates_name(&s->candidates.hosts[which], &peer);
    a->kind = ACTIVITY_CONNECT;
    a->since_ms = wall_ms(s, started_ms);
    text_copy(a->remote, sizeof(a->remote), text_from(peer.remote));
}

/* A target other than TARGET_SMTP has no scheme to be changed. */
static const char *
other_scheme(const struct delivery_session *s, const struct activity *a)
{
    const struct mx_lookup_host *host = candidates_next(&s->candidates);
    if (s->target->kind != TARGET_SMTP || host == NULL)
        return NULL;
    return security_other_scheme(&s->security, host->address.port, a->kind,
                                 loop_now_ms(s->delivery->loop) - a->since_ms);
}

/* For a session between two connections: its request is not settled, so the envelope is
 * there. During a connection it may be gone before the last reply; the connection knows
 * the ids. */
static bool
carries(const struct delivery_session *s, struct id message)
{
    return s->in_request && id_compare(s->request.envelope->id, message) == 0;
}

static void
tell_conversation(const struct delivery_session *s, struct id message,
                  struct activity *a)
{
    client_connection_activity(s->connection, message, a);
    if (s->is_idle) {
        a->kind = ACTIVITY_IDLE;
        a->since_ms = wall_ms(s, s->idle_since_ms);
    } else if (s->in_request && wall_ms(s, s->request_ms) > a->since_ms) {
        a->since_ms = wall_ms(s, s->request_ms); /* the connection was idle before */
    }
    a->scheme = other_scheme(s, a);
}

void
delivery_watch(void *context, const struct sched_site *site, struct id message,
               manager_saw *each, void *each_context)
{
    const struct delivery *d = context;
    const struct delivery_session *s;
    DL_FOREACH (d->sessions, s) {
        struct activity a = {.kind = ACTIVITY_NONE};
        if (!manager_session_is_at(s->session, site))
            continue;
        if (s->connection != NULL)
            tell_conversation(s, message, &a);
        else if (s->connecting != NULL)
            tell_connect(s, &a);
        else if (s->candidates.hosts == NULL && (s->exchange != NULL || s->relays))
            tell_look_up(s, &a);
        if (s->connection == NULL)
            a.has_message = carries(s, message);
        if (a.kind != ACTIVITY_NONE)
            each(each_context, &a);
    }
}
