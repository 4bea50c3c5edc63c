/* Counts the mail of sendmail(1) when it is first loaded. Mail over the quota stays in
 * todo/ and goes by itself. */
#include "base/memory.h"
#include "queue/manager/manager_internal.h"

#include <stdlib.h>

#define QUOTA_RETRY_LEAST_MS INT64_C(1000)
#define QUOTA_RETRY_MOST_MS  (INT64_C(10) * 60 * 1000)

/* Its first words say why a message waits: see submission_quota_retry(). */
#define QUOTA_REASON TEXT("Quota: ")

enum { AGE_PART = 16 };

bool
submission_quota_waits(const struct manager *m, struct id id)
{
    return text_starts(text_from(deferral_reasons_find(m->reasons, id)), QUOTA_REASON);
}

/* Much mail may wait for one quota: a message that was refused before asks again less
 * often than its turn might come, so that it is not read again and again. */
static int64_t
quota_due_ms(const struct active *a, int64_t ready_in_ms)
{
    int64_t now_ms = loop_now_ms(a->manager->loop);
    int64_t pause = (now_ms - a->envelope->birth_ms) / AGE_PART;
    pause = pause > QUOTA_RETRY_LEAST_MS ? pause : QUOTA_RETRY_LEAST_MS;
    pause = pause < QUOTA_RETRY_MOST_MS ? pause : QUOTA_RETRY_MOST_MS;
    return now_ms + (ready_in_ms > pause ? ready_in_ms : pause);
}

static void
quota_wait(struct active *a, const struct quotas_refusal *refusal, int64_t ready_in_ms)
{
    begin_wait(a, &refusal->outcome, submission_quota_waits(a->manager, a->id),
               quota_due_ms(a, ready_in_ms));
}

static uint32_t
quota_recipients(const struct envelope *e)
{
    uint32_t open = e->count - e->delivery.done, given = e->storage.given;
    return given > 0 && (given < open || e->delivery.done == 0) ? given : open;
}

/* Mail that another host has given while it waited there, as its reason says: it waits here
 * for the quotas of this host. After an attempt the words may be those of a receiver. */
static bool
quota_was_waiting(const struct active *a)
{
    const struct envelope *e = a->envelope;
    return e->moved.given > 0 && e->delivery.attempts == 0 &&
           submission_quota_waits(a->manager, a->id);
}

/* Only mail still in todo/ has not been counted. A crash before it leaves todo/ counts it
 * twice. */
static bool
quota_is_due(const struct active *a)
{
    const struct envelope *e = a->envelope;
    return e->ours &&
           ((e->storage.injected && !e->storage.preprocessed) || quota_was_waiting(a));
}

/* The number is the same user on all hosts, as far as they agree. */
static uint32_t
quota_uid(const struct envelope *e)
{
    uint64_t uid = QUOTAS_NO_UID;
    if (e->storage.injected)
        return e->storage.injector;
    if (text_starts(e->submitter, TEXT("uid:")))
        (void)!text_number(text_after(e->submitter, 4), UINT32_MAX, &uid);
    return (uint32_t)uid;
}

enum submission_quota
submission_quota_take(struct active *a, struct outcome *never)
{
    struct manager *m = a->manager;
    const struct envelope *e = a->envelope;
    struct quotas_sender sender = {.uid = quota_uid(e), .address = e->sender};
    struct quotas_refusal refusal;
    if (a->claim != NULL || quotas_are_empty(m->quotas) || !quota_is_due(a))
        return SUBMISSION_QUOTA_PASSES;
    int64_t now_ms = loop_monotonic_ms(m->loop);
    a->claim = memory_new(sizeof(*a->claim));
    a->claimed = quota_recipients(e);
    if (quotas_take(m->quotas, &sender, a->claimed, now_ms, a->claim, &refusal)) {
        if (submission_quota_waits(m, a->id))
            deferral_reasons_forget(m->reasons, a->id);
        return SUBMISSION_QUOTA_PASSES;
    }
    submission_quota_settle(a, false);
    manager_tell_quota(m, &refusal);
    if (refusal.ready_ms == INT64_MAX) {
        *never = refusal.outcome;
        return SUBMISSION_QUOTA_NEVER;
    }
    quota_wait(a, &refusal, refusal.ready_ms - now_ms);
    return SUBMISSION_QUOTA_WAITS;
}

void
submission_quota_settle(struct active *a, bool goes)
{
    struct manager *m = a->manager;
    if (a->claim == NULL)
        return;
    quotas_settle(m->quotas, a->claim, goes ? a->claimed : 0,
                  loop_monotonic_ms(m->loop));
    if (goes)
        manager_note_quotas(m);
    free(a->claim);
    a->claim = NULL;
}

/* --- New quotas ------------------------------------------------------------------- */

static void
retry_waiting(void *context, struct id id, unsigned number)
{
    struct manager *m = context;
    (void)number;
    if (submission_quota_waits(m, id))
        (void)sched_retry(m->sched, loop_now_ms(m->loop), id);
}

void
submission_quota_retry(struct manager *m)
{
    deferral_reasons_each(m->reasons, retry_waiting, m);
    manager_stir(m);
}
