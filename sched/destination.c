/* Destination queues: entries in order, dead marks, timers, the ready list. */
#include "sched/destination.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static bool
wakes_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct destination *x = memory_container(a, struct destination, timer);
    const struct destination *y = memory_container(b, struct destination, timer);
    return x->wake_ms < y->wake_ms;
}

static struct shared_target *
target_open(struct destinations *set, const struct target *target)
{
    struct shared_target *shared;
    HASH_FIND(hh, set->targets, target, sizeof *target, shared);
    if (!shared) {
        shared = memory_new(sizeof *shared);
        memcpy(&shared->target, target, sizeof *target);
        HASH_ADD(hh, set->targets, target, sizeof shared->target, shared);
    }
    shared->holders++;
    return shared;
}

static void
target_close(struct destinations *set, struct shared_target *shared)
{
    assert(shared->holders > 0);
    if (--shared->holders > 0)
        return;
    HASH_DELETE(hh, set->targets, shared);
    free(shared);
}

static bool
is_unused(const struct destination *d)
{
    return d->entries == 0 && d->sessions == 0;
}

static void
leave_ready(struct destinations *set, struct destination *d)
{
    if (d->is_ready)
        DL_DELETE(set->ready, d);
    d->is_ready = false;
}

static void
leave_empty(struct destinations *set, struct destination *d)
{
    if (!d->is_empty)
        return;
    DL_DELETE2(set->empty, d, empty_prev, empty_next);
    d->is_empty = false;
    set->empty_count--;
}

static void
destination_free(struct destinations *set, struct destination *d)
{
    assert(!d->waiting);
    leave_ready(set, d);
    leave_empty(set, d);
    if (heap_has(&d->timer))
        heap_remove(&set->timers, &d->timer);
    if (d->dead)
        set->dead_count--;
    reason_close(&d->reasons, &d->reason);
    reason_close(&d->reasons, &d->suspended);
    assert(!d->reasons);
    HASH_DELETE(hh, set->by_key, d);
    target_close(set, d->shared);
    jobs_free(&d->jobs);
    free(d->key);
    free(d->domain);
    free(d);
}

void
destinations_init(struct destinations *set)
{
    *set = (struct destinations){0};
    heap_init(&set->timers, wakes_before);
}

void
destinations_free(struct destinations *set)
{
    struct destination *d, *next;
    HASH_ITER (hh, set->by_key, d, next)
        destination_free(set, d);
    heap_free(&set->timers);
}

const struct transport *
destination_transport(const struct destination *d)
{
    return &d->shared->target.transport;
}

struct destination *
destination_get(struct destinations *set, const struct target *target,
                struct text domain)
{
    char key[ROUTE_KEY_MAX];
    size_t length = route_key(target, domain, key);
    struct destination *d;
    HASH_FIND(hh, set->by_key, key, length, d);
    if (d) {
        if (is_unused(d) && memcmp(&d->shared->target, target, sizeof *target) != 0) {
            target_close(set, d->shared);
            d->shared = target_open(set, target);
            window_init(&d->window, &target->transport);
        }
        return d;
    }
    d = memory_new(sizeof *d);
    d->key = text_string(text_of(key, length));
    d->domain = text_string(target->kind == TARGET_MX ? domain : TEXT(""));
    text_lower(d->domain, strlen(d->domain));
    d->shared = target_open(set, target);
    window_init(&d->window, &target->transport);
    HASH_ADD_KEYPTR(hh, set->by_key, d->key, length, d);
    return d;
}

static unsigned
recipient_limit(const struct destination *d)
{
    int limit = destination_transport(d)->recipient_limit;
    return limit > 0 ? (unsigned)limit : UINT32_MAX;
}

uint32_t
destinations_job_s(const struct destinations *set, int64_t now_ms)
{
    return (uint32_t)((now_ms - set->shift_ms) / 1000);
}

void
destination_append(struct destination *d, struct entry *e)
{
    assert(e->destination == d && e->count > 0 && e->given == 0);
    unsigned limit = recipient_limit(d), works = (e->count - 1) / limit + 1;
    DL_APPEND(d->waiting, e);
    jobs_add(&d->jobs, &e->job, works);
    d->works += works;
    d->recipients += e->count;
}

void
destination_choose(struct destination *d, uint32_t job_s)
{
    assert(d->waiting);
    struct job *first = &d->waiting->job,
               *job = jobs_choose(&d->jobs, destination_transport(d), first, job_s);
    if (job == first)
        return;
    struct entry *e = memory_container(job, struct entry, job);
    DL_DELETE(d->waiting, e);
    DL_PREPEND(d->waiting, e);
}

struct entry *
destination_cut(struct destination *d, unsigned *first, unsigned *count)
{
    struct entry *e = d->waiting;
    assert(e && d->works > 0);
    unsigned left = e->count - e->given, limit = recipient_limit(d);
    jobs_serve(&d->jobs, &e->job);
    *first = e->first + e->given;
    *count = left < limit ? left : limit;
    e->given += *count;
    if (e->given == e->count)
        DL_DELETE(d->waiting, e);
    d->works--;
    d->recipients -= *count;
    return e;
}

void
destination_give_up(struct destination *d, struct reason *reason, struct entry **list)
{
    struct entry *e;
    DL_FOREACH (d->waiting, e)
        e->reason = reason_share(reason);
    DL_CONCAT(*list, d->waiting);
    jobs_clear(&d->jobs);
    d->waiting = NULL;
    d->works = d->recipients = 0;
}

void
destination_die(struct destinations *set, struct destination *d, int64_t now_ms,
                const struct outcome *outcome)
{
    assert(!d->dead);
    struct outcome later =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, outcome->code, outcome->enhanced,
                     "delivery temporarily suspended: %s", outcome->text);
    memcpy(later.remote, outcome->remote, sizeof later.remote);
    d->reason = reason_open(&d->reasons, outcome);
    d->suspended = reason_open(&d->reasons, &later);
    d->dead = true;
    d->dead_until_ms = now_ms + destination_transport(d)->minimal_backoff_ms;
    set->dead_count++;
}

void
destination_revive(struct destinations *set, struct destination *d)
{
    if (!d->dead)
        return;
    reason_close(&d->reasons, &d->reason);
    reason_close(&d->reasons, &d->suspended);
    d->dead = false;
    d->dead_until_ms = d->open_after_ms = 0;
    window_probe(&d->window);
    set->dead_count--;
}

static bool
wants_session(const struct destination *d, int64_t now_ms)
{
    /* Sessions without mail take it first: greeting, kept idle, or between two works.
     */
    return !d->dead && d->works > (size_t)(d->sessions - d->carrying) &&
           d->sessions < d->window.size && now_ms >= d->pause_until_ms &&
           now_ms >= d->open_after_ms;
}

static void
note_empty(struct destinations *set, struct destination *d, int64_t now_ms)
{
    d->free_at_ms = now_ms + DESTINATION_KEEP_MS;
    /* A dead one stays until its mail has come due again, so that one session probes
     * it. */
    int64_t backoff = destination_transport(d)->maximal_backoff_ms;
    if (d->dead)
        d->free_at_ms = d->dead_until_ms + backoff + backoff / 10;
    d->is_empty = true;
    DL_APPEND2(set->empty, d, empty_prev, empty_next);
    if (++set->empty_count > DESTINATION_EMPTY_MAX)
        destination_free(set, set->empty);
}

static int64_t
wake_time(const struct destination *d, int64_t now_ms)
{
    int64_t wake = INT64_MAX;
    const int64_t times[] = {d->dead ? d->dead_until_ms : 0, d->pause_until_ms,
                             d->works > 0 ? d->open_after_ms : 0,
                             d->is_empty ? d->free_at_ms : 0};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] > now_ms && times[i] < wake)
            wake = times[i];
    return wake;
}

void
destination_update(struct destinations *set, struct destination *d, int64_t now_ms)
{
    if (d->dead && now_ms >= d->dead_until_ms)
        destination_revive(set, d);
    if (is_unused(d) &&
        ((d->forget && !d->dead) || (d->is_empty && now_ms >= d->free_at_ms))) {
        destination_free(set, d);
        return;
    }
    bool wants = wants_session(d, now_ms);
    if (wants && !d->is_ready)
        DL_APPEND(set->ready, d);
    else if (!wants && d->is_ready)
        DL_DELETE(set->ready, d);
    d->is_ready = wants;
    if (!is_unused(d))
        leave_empty(set, d);
    else if (!d->is_empty)
        note_empty(set, d, now_ms);
    int64_t wake = wake_time(d, now_ms);
    if (heap_has(&d->timer)) {
        if (wake == d->wake_ms)
            return;
        heap_remove(&set->timers, &d->timer);
    }
    d->wake_ms = wake;
    if (wake != INT64_MAX)
        heap_add(&set->timers, &d->timer);
}

void
destinations_tick(struct destinations *set, int64_t now_ms)
{
    while (destinations_wake_ms(set) <= now_ms) {
        struct heap_node *first = heap_first(&set->timers);
        destination_update(set, memory_container(first, struct destination, timer),
                           now_ms);
    }
}

int64_t
destinations_wake_ms(const struct destinations *set)
{
    const struct heap_node *first = heap_first(&set->timers);
    return first ? memory_container(first, struct destination, timer)->wake_ms
                 : INT64_MAX;
}

void
destinations_shift(struct destinations *set, int64_t delta_ms)
{
    struct destination *d, *next;
    set->shift_ms += delta_ms;
    HASH_ITER (hh, set->by_key, d, next) {
        d->dead_until_ms += delta_ms;
        d->pause_until_ms += delta_ms;
        d->open_after_ms += delta_ms;
        d->free_at_ms += delta_ms;
        if (heap_has(&d->timer))
            d->wake_ms += delta_ms;
    }
}
