/* Mail that its sender wants to be delivered later (FUTURERELEASE, RFC 4865). The time belongs
 * to the envelope: a due time may be lost, and is only when the message is looked at again. */
#include "queue/manager/manager_internal.h"

bool
release_is_ahead(const struct manager *m, const struct envelope *e)
{
    return e->release_ms > loop_now_ms(m->loop) && !e->delivery.released;
}

bool
manager_is_scheduled(const struct manager *m, struct id id)
{
    return text_starts(text_from(deferral_reasons_find(m->reasons, id)),
                       TEXT(DEFERRAL_RELEASE));
}

/* It waits in files, since the journal has no room for what waits for days. A clock that is
 * set ahead meanwhile delays it by no more than the longest wait of other mail. With an
 * attempt, it is no new mail, of which much means that clients are to be paced. */
bool
manager_release_waits(struct active *a)
{
    struct manager *m = a->manager;
    const struct envelope *e = a->envelope;
    int64_t last_ms = loop_now_ms(m->loop) + m->wait_max_ms;
    int64_t due_ms = e->release_ms < last_ms ? e->release_ms : last_ms;
    bool is_known = e->release_ms > 0 && manager_is_scheduled(m, a->id);
    unsigned attempts = e->delivery.attempts > 0 ? e->delivery.attempts : 1;
    char text[DEFERRAL_RELEASE_MAX], id[ID_LENGTH + 1];
    if (!release_is_ahead(m, e)) {
        if (is_known)
            deferral_reasons_forget(m->reasons, a->id);
        return false;
    }
    struct outcome why = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.0.0", "%s",
                                      deferral_reasons_release(e->release_ms, text));
    if (manager_must_expand(e)) {
        begin_wait(a, &why, is_known, due_ms);
        return true;
    }
    id_format(a->id, id);
    if (!is_known)
        log_say(m->log, LOG_LEVEL_INFO, "queue", id, "waits: %s", why.text);
    deferral_reasons_keep(m->reasons, a->id, &why);
    sched_unloaded(m->sched, a->id);
    sched_add(m->sched, a->id, due_ms, attempts);
    manager_active_defer(a, due_ms, attempts);
    manager_wake(m);
    return true;
}
