/* Notifies a sender that a message is delayed, at the times that its routes give. */
#include "queue/manager/manager_internal.h"

#include "base/memory.h"
#include "sched/limits/refusal.h"

#include <assert.h>
#include <stdlib.h>

/* The age of the early notification, before any time of a route. */
enum { EARLY_S = 1 };

/* The last time of the target that has passed, 0: none; in s, rounded up. Several may
 * have passed while no daemon ran: they have one notification. */
static int64_t
last_passed_s(const struct active *a, const struct target *t)
{
    int64_t age_ms =
        a->loaded_ms - manager_clock_begun_ms(a->manager, a->envelope, a->loaded_ms);
    int64_t last_ms = 0, next_ms;
    for (unsigned i = 0; (next_ms = target_notice_ms(t, i)) <= age_ms; i++)
        last_ms = next_ms;
    return (last_ms + 999) / 1000;
}

/* Nothing is reported to the null sender (RFC 5321 §4.5.5). */
bool
delay_warning_is_due(const struct active *a, const struct recipient *r,
                     const struct target *t)
{
    const struct envelope *e = a->envelope;
    return e->sender.length > 0 && dsn_wants_delay(r) &&
           last_passed_s(a, t) > e->delivery.warned_s;
}

int64_t
delay_warning_next_ms(const struct active *a, const struct recipient *r,
                      const struct target *t)
{
    const struct envelope *e = a->envelope;
    int64_t warned_ms = e->delivery.warned_s * 1000, next_ms = INT64_MAX;
    if (e->sender.length == 0 || !dsn_wants_delay(r))
        return INT64_MAX;
    for (unsigned i = 0; (next_ms = target_notice_ms(t, i)) <= warned_ms; i++)
        if (next_ms == INT64_MAX)
            return INT64_MAX;
    return next_ms == INT64_MAX
               ? INT64_MAX
               : manager_clock_begun_ms(a->manager, e, loop_now_ms(a->manager->loop)) +
                     next_ms;
}

/* A smarthost has refused the sender of our account, and the mail waits for other
 * settings: the sender is notified early, once, and at the times of the route as well. */
static bool
is_told_early(const struct active *a, unsigned index, const struct outcome *outcome)
{
    const struct envelope *e = a->envelope;
    return e->sender.length > 0 && e->delivery.warned_s == 0 &&
           dsn_wants_delay(&e->recipients[index]) && outcome->code / 100 == 5 &&
           refusal_classify(outcome) == REFUSAL_SENDER;
}

void
delay_warning_remember(struct active *a, unsigned index, const struct outcome *outcome)
{
    if (!a->late && !is_told_early(a, index, outcome))
        return;
    if (a->delays == NULL)
        a->delays = memory_array(a->envelope->count, sizeof(struct outcome *));
    if (a->delays[index] == NULL)
        a->delays[index] = memory_new(sizeof(*outcome));
    *a->delays[index] = *outcome;
}

void
delay_warning_forget(struct active *a, unsigned recipients)
{
    for (unsigned i = 0; a->delays && i < recipients; i++)
        free(a->delays[i]);
    free(a->delays);
    a->delays = NULL;
}

/* The recipients for which a time of their own route has passed, so that no route's times
 * repeat or hide another's, and those of an early notification. The caller frees the array. */
static struct dsn_delay *
manager_warning_list(struct active *a, size_t *count)
{
    const struct envelope *e = a->envelope;
    struct dsn_delay *delays = memory_array(e->count, sizeof(*delays));
    *count = 0;
    a->warned_s = 0;
    for (unsigned i = 0; i < e->count; i++) {
        const struct recipient *r = &e->recipients[i];
        struct address address;
        if (r->done || a->delays[i] == NULL)
            continue;
        const struct target *target = attempt_route(a->manager, e, r, &address);
        if (target == NULL)
            continue;
        bool is_due = delay_warning_is_due(a, r, target);
        if (!is_due && !is_told_early(a, i, a->delays[i]))
            continue;
        int64_t passed_s = is_due ? last_passed_s(a, target) : EARLY_S;
        if (passed_s > a->warned_s)
            a->warned_s = passed_s;
        int64_t until_ms = manager_clock_begun_ms(a->manager, e, a->loaded_ms) +
                           target->transport.lifetime_ms;
        delays[(*count)++] = (struct dsn_delay){i, until_ms, a->delays[i]};
    }
    return delays;
}

static void
manager_warning_stored(void *context, struct envelope *notification,
                       const struct outcome *refusal)
{
    struct active *a = context;
    struct manager *m = a->manager;
    attempt_notification_ended(a);
    struct id before = queue_enter(m->queue, a->id);
    if (refusal == NULL) { /* durable: the mark may follow */
        a->envelope->delivery.warned_s = a->warned_s;
        manager_accept(m, &notification);
    }
    attempt_warned(a);
    queue_leave(m->queue, before);
}

bool
delay_warning_start(struct active *a)
{
    struct manager *m = a->manager;
    if (a->delays == NULL)
        return false;
    struct dsn_settings settings = attempt_dsn_settings(m);
    size_t count;
    struct dsn_delay *delays = manager_warning_list(a, &count);
    enum dsn_result result =
        dsn_begin_delay(&settings, a->envelope, delays, count, &a->notification,
                        manager_warning_stored, a);
    free(delays);
    if (result != DSN_BEGUN)
        return false;
    attempt_notification_begun(a);
    return true;
}
