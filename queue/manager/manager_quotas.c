/* The quotas: settings of those who send, the file of all, what operators learn. */
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
                "%s: %s; what it does not say of the use of quotas is unknown", path,
                result == -EILSEQ ? "damaged, or not written by Petrel"
                                  : strerror(-result));
}

/* Errors are ignored: a full or broken disk is reported elsewhere. */
void
manager_quotas_write(struct manager *m)
{
    char path[MANAGER_HINT_MAX];
    struct quota_file file = file_of(m);
    loop_timer_stop(m->loop, &m->quotas_timer);
    if (!m->quotas_changed)
        return;
    m->quotas_changed = false;
    m->quotas_written_ms = loop_monotonic_ms(m->loop);
    manager_hint_path(m, "quotas", path);
    (void)!quota_file_write(queue_disk(m->queue), path, &file);
}

static void
on_quotas_due(void *context)
{
    manager_quotas_write(context);
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
