/* The quotas: settings of senders, the file of all, and the answers to operators. */
#include "queue/manager/quota_file.h"
#include "queue/manager/manager_internal.h"

#include <errno.h>
#include <string.h>

enum {
    QUOTA_ERRORS_MAX = 64 * 1024,
    QUOTA_WRITE_MS = 1000, /* after a change: there may be more */
    QUOTA_EVERY_MS = 60000 /* between two writes */
};

/* The counts of senders use the clock that nobody sets, and the file the one that a
 * restart keeps. */
static struct quota_file
file_of(const struct manager *m)
{
    int64_t now_ms = loop_now_ms(m->loop);
    return (struct quota_file){.quotas = m->quotas,
                               .sched = m->sched,
                               .now_ms = now_ms,
                               .ahead_ms = now_ms - loop_monotonic_ms(m->loop)};
}

/* The settings have been checked: see configuration.c. */
void
manager_quotas_set(struct manager *m, struct text table)
{
    struct buffer errors;
    buffer_init(&errors, QUOTA_ERRORS_MAX);
    if (!quotas_set(m->quotas, table, &errors))
        log_say(m->log, LOG_LEVEL_ERROR, "queue", NULL, "old quotas stay: %.*s",
                TEXT_ARGS(text_trim(buffer_text(&errors))));
    buffer_free(&errors);
}

void
manager_quotas_read(struct manager *m)
{
    char path[MANAGER_HINT_MAX];
    struct quota_file file = file_of(m);
    manager_hint_path(m, "quotas", path);
    int result = quota_file_read(queue_disk(m->queue), path, &file);
    if (result < 0 && result != -ENOENT)
        log_say(m->log, LOG_LEVEL_WARNING, "queue", NULL,
                "%s: %s; the use of quotas that it lacks is unknown", path,
                result == -EILSEQ ? "damaged, or not written by Petrel"
                                  : strerror(-result));
}

/* An error is logged once. */
static void
manager_tell_quota_file(struct manager *m, const char *path, int error)
{
    if (error == m->quotas_error)
        return;
    m->quotas_error = error;
    if (error == 0)
        log_say(m->log, LOG_LEVEL_INFO, "queue", NULL, "%s: written again", path);
    else
        log_say(m->log, LOG_LEVEL_WARNING, "queue", NULL,
                "%s: cannot be written: %s; a restart would forget the use of quotas "
                "since the last write",
                path, strerror(-error));
}

/* A change that was not written stays one. */
void
manager_quotas_write(struct manager *m)
{
    char path[MANAGER_HINT_MAX];
    struct quota_file file = file_of(m);
    loop_timer_stop(m->loop, &m->quotas_timer);
    if (!m->quotas_changed)
        return;
    m->quotas_written_ms = loop_monotonic_ms(m->loop);
    manager_hint_path(m, "quotas", path);
    int error = quota_file_write(queue_disk(m->queue), path, &file);
    m->quotas_changed = error != 0;
    manager_tell_quota_file(m, path, error);
}

static void
on_quotas_due(void *context)
{
    struct manager *m = context;
    manager_quotas_write(m);
    if (m->quotas_changed)
        loop_timer_start(m->loop, &m->quotas_timer, QUOTA_EVERY_MS, on_quotas_due, m);
}

struct quotas *
manager_quotas(struct manager *m)
{
    return m->quotas;
}

void
manager_note_quotas(struct manager *m)
{
    if (m->quotas_changed)
        return;
    m->quotas_changed = true;
    int64_t now = loop_monotonic_ms(m->loop), wait = QUOTA_WRITE_MS;
    if (m->quotas_written_ms != 0 && m->quotas_written_ms + QUOTA_EVERY_MS - now > wait)
        wait = m->quotas_written_ms + QUOTA_EVERY_MS - now;
    loop_timer_start(m->loop, &m->quotas_timer, wait, on_quotas_due, m);
}

void
manager_tell_quota(struct manager *m, const struct quotas_refusal *refusal)
{
    struct event event = {.kind = EVENT_QUOTA,
                          .relay = text_from(refusal->name),
                          .text = text_from(refusal->outcome.text)};
    if (refusal->first)
        event_tell(m->events, &event);
}

/* --- For operators ---------------------------------------------------------------- */

struct quota_walk {
    struct manager *manager;
    void (*each)(void *context, const struct manager_quota *quota);
    void *context;
    int64_t now_ms, ahead_ms;
    const char *wanted; /* a next hop, as route_key() has it */
    struct quota found;
};

static void
walk_sender(void *context, const struct quotas_state *state)
{
    const struct quota_walk *w = context;
    w->each(w->context, &(struct manager_quota){.who = state->name,
                                                .quota = state->quota,
                                                .use = state->use,
                                                .now_ms = w->now_ms,
                                                .ahead_ms = w->ahead_ms});
}

static void
find_in_route(void *context, const struct target *target)
{
    struct quota_walk *w = context;
    char key[ROUTE_KEY_MAX];
    if (quota_is_none(&target->transport.quota))
        return;
    (void)route_key(target, TEXT(""), key);
    if (strcmp(key, w->wanted) == 0)
        w->found = target->transport.quota;
}

/* Without mail on its way the routes know its quota. One that no route has any more is
 * no quota now. */
static void
walk_hop(void *context, const struct sched_quota *hop)
{
    struct quota_walk *w = context;
    const struct quota *quota = hop->quota;
    if (quota == NULL && w->manager->routes != NULL) {
        w->wanted = hop->key;
        w->found = (struct quota){{0}};
        route_each_target(w->manager->routes, find_in_route, w);
        quota = &w->found;
    }
    if (quota != NULL && !quota_is_none(quota))
        w->each(w->context, &(struct manager_quota){.who = hop->key,
                                                    .is_relay = true,
                                                    .quota = quota,
                                                    .use = hop->use,
                                                    .now_ms = w->now_ms,
                                                    .ahead_ms = w->ahead_ms});
}

void
manager_each_quota(struct manager *m,
                   void (*each)(void *context, const struct manager_quota *quota),
                   void *context)
{
    int64_t now_ms = loop_now_ms(m->loop);
    struct quota_walk walk = {.manager = m, .each = each, .context = context};
    walk.now_ms = loop_monotonic_ms(m->loop);
    walk.ahead_ms = now_ms - walk.now_ms;
    quotas_each(m->quotas, walk.now_ms, walk_sender, &walk);
    walk.ahead_ms = sched_quota_ahead_ms(m->sched);
    walk.now_ms = now_ms - walk.ahead_ms;
    sched_quotas(m->sched, walk_hop, &walk);
}

/* No name of a sender is one of a next hop: their kinds differ. */
bool
manager_reset_quota(struct manager *m, struct text who)
{
    bool known = quotas_reset(m->quotas, who);
    if (known)
        submission_quota_retry(m);
    else
        known = sched_quota_reset(m->sched, loop_now_ms(m->loop), who);
    if (known) {
        manager_note_quotas(m);
        manager_stir(m);
    }
    return known;
}
