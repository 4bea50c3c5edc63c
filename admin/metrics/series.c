/* Counts events by second and by minute. */
#include "admin/metrics/series.h"

#include "base/loop/loop.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum series_kind {
    SERIES_ACCEPTED,
    SERIES_REFUSED,
    SERIES_DELIVERED,
    SERIES_DEFERRED,
    SERIES_BOUNCED,
    SERIES_WAITING,
    SERIES_KINDS
};
static const char *const series_names[SERIES_KINDS] = {
    "accepted", "refused", "delivered", "deferred", "bounced", "waiting"};

/* These are counted; the others only change the number of waiting messages. */
#define COUNTED                                                                        \
    (EVENT_BIT(EVENT_ACCEPTED) | EVENT_BIT(EVENT_SUBMITTED) | EVENT_BIT(EVENT_MADE) |  \
     EVENT_BIT(EVENT_REFUSED) | EVENT_BIT(EVENT_DELIVERED) |                           \
     EVENT_BIT(EVENT_DEFERRED) | EVENT_BIT(EVENT_BOUNCED) | EVENT_BIT(EVENT_EXPIRED))
#define CHANGES                                                                        \
    (EVENT_BIT(EVENT_ENDED) | EVENT_BIT(EVENT_HELD) | EVENT_BIT(EVENT_RELEASED) |      \
     EVENT_BIT(EVENT_REMOVED) | EVENT_BIT(EVENT_RETURNED) | EVENT_BIT(EVENT_GIVEN) |   \
     EVENT_BIT(EVENT_TAKEN))

/* A step has a number for each kind; the ring holds the last `size` steps. */
struct series_ring {
    int64_t step_ms, step; /* the present one, of the monotonic clock */
    size_t size;
    uint32_t (*numbers)[SERIES_KINDS];
};

struct series {
    struct series_setup setup;
    int64_t since_ms;
    struct series_ring second, minute;
    struct loop_timer timer;
    bool is_due; /* the timer runs because of an event */
};

/* --- Rings ------------------------------------------------------------------------ */

static void
series_ring_init(struct series_ring *r, int64_t step_ms, size_t size, int64_t now_ms)
{
    *r = (struct series_ring){.step_ms = step_ms,
                              .step = now_ms / step_ms,
                              .size = size,
                              .numbers = memory_new(size * sizeof(*r->numbers))};
}

static uint32_t *
series_ring_at(const struct series_ring *r, int64_t step)
{
    return r->numbers[(uint64_t)step % r->size];
}

/* Begins the steps up to now: nothing was counted in them, and as much waited as in the
 * last one. */
static void
series_ring_advance(struct series_ring *r, int64_t now_ms)
{
    int64_t step = now_ms / r->step_ms;
    uint32_t waiting = series_ring_at(r, r->step)[SERIES_WAITING];
    if (step - r->step > (int64_t)r->size)
        r->step = step - (int64_t)r->size;
    while (r->step < step) {
        uint32_t *numbers = series_ring_at(r, ++r->step);
        memset(numbers, 0, sizeof(*r->numbers));
        numbers[SERIES_WAITING] = waiting;
    }
}

/* --- Events ----------------------------------------------------------------------- */

static void
series_advance(struct series *s)
{
    int64_t now_ms = loop_monotonic_ms(s->setup.loop);
    series_ring_advance(&s->second, now_ms);
    series_ring_advance(&s->minute, now_ms);
}

static void
series_sample(struct series *s)
{
    size_t waiting = s->setup.waiting(s->setup.context);
    uint32_t number = waiting < UINT32_MAX ? (uint32_t)waiting : UINT32_MAX;
    series_advance(s);
    series_ring_at(&s->second, s->second.step)[SERIES_WAITING] = number;
    series_ring_at(&s->minute, s->minute.step)[SERIES_WAITING] = number;
}

static void
series_on_time(void *context)
{
    struct series *s = context;
    series_sample(s);
    s->is_due = false;
    loop_timer_start(s->setup.loop, &s->timer, SERIES_REST_MS, series_on_time, s);
}

static void
series_count(struct series *s, enum series_kind kind)
{
    uint32_t *second = &series_ring_at(&s->second, s->second.step)[kind],
             *minute = &series_ring_at(&s->minute, s->minute.step)[kind];
    *second += *second < UINT32_MAX;
    *minute += *minute < UINT32_MAX;
}

static enum series_kind
series_kind_of(enum event_kind kind)
{
    switch ((unsigned)kind) {
    case EVENT_REFUSED:
        return SERIES_REFUSED;
    case EVENT_DELIVERED:
        return SERIES_DELIVERED;
    case EVENT_DEFERRED:
        return SERIES_DEFERRED;
    case EVENT_BOUNCED:
    case EVENT_EXPIRED:
        return SERIES_BOUNCED;
    default:
        return SERIES_ACCEPTED;
    }
}

static void
series_read_event(void *context, const struct event *event)
{
    struct series *s = context;
    series_advance(s);
    if ((EVENT_BIT(event->kind) & COUNTED) != 0)
        series_count(s, series_kind_of(event->kind));
    /* The queue is asked when the event is over. */
    if (s->is_due || event->kind == EVENT_REFUSED)
        return;
    s->is_due = true;
    loop_timer_start(s->setup.loop, &s->timer, SERIES_SAMPLE_MS, series_on_time, s);
}

/* --- public ----------------------------------------------------------------------- */

struct series *
series_new(const struct series_setup *setup)
{
    struct series *s = memory_new(sizeof(*s));
    int64_t now_ms = loop_monotonic_ms(setup->loop);
    s->setup = *setup;
    s->since_ms = loop_now_ms(setup->loop);
    series_ring_init(&s->second, 1000, SERIES_SECONDS, now_ms);
    series_ring_init(&s->minute, 60 * 1000, SERIES_MINUTES, now_ms);
    event_read(setup->events, COUNTED | CHANGES, series_read_event, s);
    s->is_due = true; /* the mail found on the disk */
    loop_timer_start(setup->loop, &s->timer, SERIES_SAMPLE_MS, series_on_time, s);
    return s;
}

void
series_free(struct series **series)
{
    struct series *s = *series;
    if (s == NULL)
        return;
    *series = NULL;
    event_read(s->setup.events, 0, series_read_event, s);
    loop_timer_stop(s->setup.loop, &s->timer);
    free(s->second.numbers);
    free(s->minute.numbers);
    free(s);
}

static bool
series_write_kind(const struct series_ring *r, enum series_kind kind,
                  struct buffer *out)
{
    bool fits = buffer_format(out, ",\"%s\":[", series_names[kind]);
    for (size_t i = 1; i <= r->size && fits; i++) {
        int64_t step = r->step + (int64_t)i - (int64_t)r->size;
        uint32_t number = step >= 0 ? series_ring_at(r, step)[kind] : 0;
        fits = (i == 1 || buffer_add_byte(out, ',')) && buffer_add_number(out, number);
    }
    return fits && buffer_add_byte(out, ']');
}

static bool
series_write_ring(const struct series_ring *r, const char *name, struct buffer *out)
{
    bool fits = buffer_format(out, ",\"%s\":{\"step_ms\":%" PRId64, name, r->step_ms);
    for (int kind = 0; kind < SERIES_KINDS && fits; kind++)
        fits = series_write_kind(r, (enum series_kind)kind, out);
    return fits && buffer_add_byte(out, '}');
}

bool
series_write(struct series *s, struct buffer *out)
{
    series_sample(s);
    return buffer_format(out,
                         "{\"ok\":true,\"now_ms\":%" PRId64 ",\"since_ms\":%" PRId64,
                         loop_now_ms(s->setup.loop), s->since_ms) &&
           series_write_ring(&s->second, "second", out) &&
           series_write_ring(&s->minute, "minute", out) && buffer_add(out, TEXT("}\n"));
}
