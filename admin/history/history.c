/* Turns events into lines, and writes those of a turn at its end. */
#include "admin/history/history.h"

#include "admin/history/ring.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/pace.h"
#include "base/event/event_log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REFUSED_PART = 8,     /* of the size */
    TAIL_MS = 50,         /* how long lines wait under load, */
    TAIL_NOW = 16 * 1024, /* behind this in that time */
    TAIL_PART = 64,       /* of the ring's size, but within these: */
    TAIL_LEAST = 20 * 1024,
    TAIL_MOST = 100 * 1024,
    TAIL_SPARE = 12 * 1024, /* for the turn that makes them enough to be written */
    ASK_MS = 1000,          /* for free space, and for a disk that has failed */
    FIRST_EXPIRY_MS = 60 * 1000,
    EXPIRY_MS = 3600 * 1000
};

#define REFUSALS                                                                       \
    (EVENT_BIT(EVENT_REFUSED) | EVENT_BIT(EVENT_DENIED) | EVENT_BIT(EVENT_LOCKED))
/* These are kept although they are about no message. */
#define WITHOUT_ID                                                                     \
    (REFUSALS | EVENT_BIT(EVENT_UPSTREAM_FAILED) | EVENT_BIT(EVENT_UPSTREAM_OK) |      \
     EVENT_BIT(EVENT_TROUBLE) | EVENT_BIT(EVENT_RECOVERED) |                           \
     EVENT_BIT(EVENT_SUPPRESSED))
#define WITH_ID                                                                        \
    (EVENT_BIT(EVENT_ACCEPTED) | EVENT_BIT(EVENT_SUBMITTED) | EVENT_BIT(EVENT_MADE) |  \
     EVENT_BIT(EVENT_DELIVERED) | EVENT_BIT(EVENT_DEFERRED) |                          \
     EVENT_BIT(EVENT_BOUNCED) | EVENT_BIT(EVENT_EXPIRED) | EVENT_BIT(EVENT_LIFETIME) | \
     EVENT_BIT(EVENT_NOTIFIED) | EVENT_BIT(EVENT_DISCARDED) | EVENT_BIT(EVENT_ENDED) | \
     EVENT_BIT(EVENT_HELD) | EVENT_BIT(EVENT_RELEASED) | EVENT_BIT(EVENT_RETRIED) |    \
     EVENT_BIT(EVENT_REMOVED) | EVENT_BIT(EVENT_RETURNED) | EVENT_BIT(EVENT_GIVEN) |   \
     EVENT_BIT(EVENT_TAKEN) | EVENT_BIT(EVENT_BOUNCED_LATER) |                         \
     EVENT_BIT(EVENT_COMPLAINED) | EVENT_BIT(EVENT_FRAGMENT) | EVENT_BIT(EVENT_QUOTA))

enum history_ring { RING_MAIL, RING_REFUSED, RINGS };
static_assert(TAIL_PATH_MAX >= 24 + RING_DIRECTORY_MAX, "a slice's path");

struct history {
    struct history_setup setup;
    struct history_settings settings;
    char directory[RING_DIRECTORY_MAX];
    struct log *lines; /* NULL: off, or the directory could not be opened */
    struct ring rings[RINGS];
    struct tail tails[RINGS]; /* lines that wait for the end of the turn, or longer */
    struct pace paces[RINGS];
    char boot[TAIL_BOOT_MAX];
    struct id now; /* of the event that is read */
    enum history_ring into;
    int64_t asked_ms; /* monotonic; 0: never */
    bool paused;
    uint64_t lost;
    struct loop_timer expiry;
    struct loop_task wake;
    struct loop_timer rest; /* the end of a period, while lines wait for it */
    void (*on_line)(void *context, struct id id, struct text line);
    void *line_context;
};

/* --- Pause ------------------------------------------------------------------------ */

static void
history_pause(struct history *h, const char *why)
{
    if (!h->paused)
        log_say(h->setup.log, LOG_LEVEL_WARNING, "queue", NULL,
                "the history pauses: %s", why);
    h->paused = true;
    /* A disk that fails is not tried in each turn. */
    h->asked_ms = loop_monotonic_ms(h->setup.loop);
}

static void
history_go_on(struct history *h)
{
    h->paused = false;
    log_say(h->setup.log, LOG_LEVEL_INFO, "queue", NULL,
            "the history continues; lines lost since startup: %" PRIu64, h->lost);
}

/* Whether lines may be written now. */
static bool
history_may_write(struct history *h)
{
    int64_t now_ms = loop_monotonic_ms(h->setup.loop);
    if (h->asked_ms != 0 && now_ms - h->asked_ms < ASK_MS)
        return !h->paused;
    h->asked_ms = now_ms;
    if (h->setup.has_space != NULL && !h->setup.has_space(h->setup.context))
        history_pause(h, "the disk has less free space than its reserve");
    else if (h->paused)
        history_go_on(h);
    return !h->paused;
}

/* --- Writing ---------------------------------------------------------------------- */

static uint64_t
history_count_lines(struct text lines)
{
    uint64_t count = 0;
    struct text line;
    while (lines.length > 0 && text_cut(&lines, '\n', &line))
        count++;
    return count;
}

static void
history_write_ring(struct history *h, enum history_ring i)
{
    struct text lines = tail_lines(&h->tails[i]);
    if (lines.length == 0)
        return;
    int error = history_may_write(h)
                    ? ring_write(&h->rings[i], loop_now_ms(h->setup.loop), lines)
                    : 0;
    if (error != 0)
        history_pause(h, strerror(-error));
    if (h->paused)
        h->lost += history_count_lines(lines);
    tail_clear(&h->tails[i]);
}

static void
history_write_all(struct history *h)
{
    for (unsigned i = 0; i < RINGS; i++)
        history_write_ring(h, (enum history_ring)i);
    loop_unpost(h->setup.loop, &h->wake);
}

/* Only lines that the next process would find may wait. */
static bool
history_must_write(struct history *h, unsigned i, int64_t now_ms)
{
    size_t waiting = tail_lines(&h->tails[i]).length;
    if (waiting == 0 || !h->tails[i].is_shared ||
        pace_passes(&h->paces[i], now_ms, waiting))
        return true;
    if (!heap_has(&h->rest.node)) /* no more than a turn */
        loop_timer_start(h->setup.loop, &h->rest, pace_left_ms(&h->paces[i], now_ms),
                         NULL, NULL);
    return false;
}

static void
history_flush(void *context)
{
    struct history *h = context;
    int64_t now_ms = loop_monotonic_ms(h->setup.loop);
    for (unsigned i = 0; i < RINGS; i++)
        if (history_must_write(h, i, now_ms))
            history_write_ring(h, (enum history_ring)i);
    loop_unpost(h->setup.loop, &h->wake);
}

static void
history_take_line(void *context, struct text line)
{
    struct history *h = context;
    struct tail *tail = &h->tails[h->into];
    if (!tail_put(tail, line)) {
        history_write_ring(h, h->into);
        (void)!tail_put(tail, line); /* shorter than a tail */
    }
    loop_wake(h->setup.loop, &h->wake);
    if (h->on_line != NULL && h->now.time_ms != 0)
        h->on_line(h->line_context, h->now, line);
}

/* Beyond a client's share of the log its refusals are not kept here either: others would
 * be pushed out. */
static void
history_read_event(void *context, const struct event *event)
{
    struct history *h = context;
    uint64_t bit = EVENT_BIT(event->kind);
    if (event->is_quiet || (event->id.time_ms == 0 && (bit & WITHOUT_ID) == 0))
        return;
    h->into = (bit & REFUSALS) != 0 ? RING_REFUSED : RING_MAIL;
    h->now = event->id;
    event_log_history(h->lines, event);
}

/* --- Age -------------------------------------------------------------------------- */

static void
history_expire(void *context)
{
    struct history *h = context;
    int64_t before_ms = loop_now_ms(h->setup.loop) - h->settings.age_ms;
    for (unsigned i = 0; i < RINGS; i++)
        ring_expire(&h->rings[i], before_ms);
    loop_timer_start(h->setup.loop, &h->expiry, EXPIRY_MS, history_expire, h);
}

/* --- Open and close --------------------------------------------------------------- */

/* A larger one makes larger writes. */
static size_t
history_tail_size(const struct history *h, unsigned i)
{
    int64_t size =
        h->settings.size / (i == RING_REFUSED ? REFUSED_PART : 1) / TAIL_PART;
    return (size_t)(size < TAIL_LEAST  ? TAIL_LEAST
                    : size > TAIL_MOST ? TAIL_MOST
                                       : size);
}

/* The size of a tail beyond the least is not the ring's. */
static int64_t
history_limit(const struct history *h, enum history_ring i)
{
    int64_t refused = h->settings.size / REFUSED_PART;
    int64_t tail = (int64_t)history_tail_size(h, i) - TAIL_LEAST;
    return (i == RING_REFUSED ? refused : h->settings.size - refused) - tail;
}

static int
history_make_directory(struct history *h)
{
    int error = disk_make_directory(h->setup.spool, HISTORY_DIRECTORY, 0700);
    return error != 0 ? error : disk_make_directory(h->setup.spool, h->directory, 0700);
}

/* Not among the files: somebody may empty those, and a store into a mapped file that
 * has become shorter would end the process. */
static void
history_tail_path(const struct history *h, const char *word, char out[TAIL_PATH_MAX])
{
    const char *part = h->directory + strlen(HISTORY_DIRECTORY);
    snprintf(out, TAIL_PATH_MAX, "lock/history.%s%s%s", word, *part != '\0' ? "." : "",
             *part != '\0' ? part + 1 : "");
}

static int
history_open_rings(struct history *h)
{
    static const char *const names[RINGS] = {HISTORY_MAIL, HISTORY_REFUSED};
    int64_t now_ms = loop_now_ms(h->setup.loop);
    char path[TAIL_PATH_MAX];
    int error = 0;
    for (unsigned i = 0; i < RINGS; i++) {
        history_tail_path(h, names[i], path);
        tail_open(&h->tails[i], h->setup.spool, path, history_tail_size(h, i), h->boot);
        h->paces[i] = (struct pace){.period_ms = TAIL_MS,
                                    .immediate = TAIL_NOW,
                                    .most = h->tails[i].size - TAIL_SPARE};
        if (error == 0)
            error = ring_resume(&h->rings[i], h->setup.spool, h->directory, names[i],
                                history_limit(h, (enum history_ring)i), &h->tails[i],
                                now_ms);
    }
    return error;
}

static void
history_close_rings(struct history *h)
{
    for (unsigned i = 0; i < RINGS; i++) {
        ring_close(&h->rings[i]);
        tail_close(&h->tails[i]);
    }
}

static void
history_close(struct history *h)
{
    if (h->lines == NULL)
        return;
    history_write_all(h);
    event_read(h->setup.events, 0, history_read_event, h);
    loop_at_end_remove(h->setup.loop, LOOP_ANSWER_HISTORY, history_flush, h);
    loop_timer_stop(h->setup.loop, &h->expiry);
    loop_timer_stop(h->setup.loop, &h->rest);
    history_close_rings(h);
    log_free(&h->lines);
}

static void
history_open(struct history *h)
{
    struct loop *loop = h->setup.loop;
    int error = history_make_directory(h);
    if (error == 0)
        error = history_open_rings(h);
    if (error != 0) {
        log_say(h->setup.log, LOG_LEVEL_WARNING, "queue", NULL,
                "there is no history: %s/%s: %s", disk_path(h->setup.spool),
                h->directory, strerror(-error));
        history_close_rings(h);
        h->paused = true;
        return;
    }
    h->paused = false;
    h->lines = log_new_apart(loop, history_take_line, h);
    event_read(h->setup.events, WITH_ID | WITHOUT_ID, history_read_event, h);
    loop_at_end(loop, LOOP_ANSWER_HISTORY, history_flush, h);
    loop_timer_start(loop, &h->expiry, FIRST_EXPIRY_MS, history_expire, h);
}

struct history *
history_new(const struct history_setup *setup, const struct history_settings *settings)
{
    struct history *h = memory_new(sizeof(*h));
    h->setup = *setup;
    h->settings = *settings;
    h->setup.part = h->setup.boot = NULL;
    snprintf(h->boot, sizeof(h->boot), "%s", setup->boot != NULL ? setup->boot : "");
    snprintf(h->directory, sizeof(h->directory), HISTORY_DIRECTORY "%s%s",
             setup->part[0] != '\0' ? "/" : "", setup->part);
    for (unsigned i = 0; i < RINGS; i++)
        h->rings[i].file = -1;
    if (settings->size > 0)
        history_open(h);
    return h;
}

void
history_free(struct history **history)
{
    struct history *h = *history;
    *history = NULL;
    if (h == NULL)
        return;
    history_close(h);
    free(h);
}

void
history_reload(struct history *h, const struct history_settings *settings)
{
    if (settings->size != h->settings.size)
        history_close(h);
    h->settings = *settings;
    if (settings->size > 0 && h->lines == NULL)
        history_open(h);
}

struct history_state
history_state(const struct history *h)
{
    int64_t bytes = 0;
    for (unsigned i = 0; i < RINGS; i++)
        bytes += ring_bytes(&h->rings[i]);
    return (struct history_state){
        .size = h->settings.size, .bytes = bytes, .paused = h->paused, .lost = h->lost};
}

void
history_on_line(struct history *h,
                void (*on_line)(void *context, struct id id, struct text line),
                void *context)
{
    h->on_line = on_line;
    h->line_context = context;
}
