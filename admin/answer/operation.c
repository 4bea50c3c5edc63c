/* Walks over the messages of a selection in slices, and does the manager's verb to
 * each.
 */
#include "admin/answer/operation.h"

#include "admin/view/listing.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "queue/queue_barrier.h"
#include "queue/queue_operator.h"
#include "queue/queue_walk.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
    /* Limits of one turn, so that a large selection does not stall sessions: */
    ROWS_PER_TURN = 1000,
    SLICE_US = 10 * 1000,
    /* Bounces being written at a time, each with its message in memory. */
    NOTIFICATIONS_MAX = 32,
    CHECK_MS = 20,
    DURABLE_MAX_MS = 20 * 1000, /* the operator's patience is 30 s */
    ENDING_MAX_MS = 60 * 1000   /* signs of life come meanwhile */
};

struct row {
    struct id id;
    enum queue_place place;
};

struct operation {
    struct loop *loop;
    struct log *log;
    struct manager *manager;
    enum manager_verb verb;
    struct filter filter;
    struct operation_events events;
    struct row *rows; /* those that ids name, and all without a daemon */
    size_t count, capacity;
    struct queue_walk *walk; /* of a daemon, over all; NULL: rows */
    struct row row;          /* the next one */
    bool has_row;
    size_t seen;
    bool listed;
    bool changed;    /* something may not be durable yet */
    bool is_durable; /* everything is */
    struct queue_barrier barrier;
    uint64_t notifications; /* that had begun when the last message was done */
    int64_t ended_ms;       /* monotonic: when that was */
    int64_t done_ms;        /* and of any message */
    struct loop_task task;
    struct loop_timer timer;
    unsigned rows_left; /* of this turn */
    int64_t until_us;
};

/* Texts about a message. */
static const struct answer_texts {
    const char *done, *later, *already;
    int already_code;
    bool lags; /* durable some time after it is done */
} answers[] = {
    [MANAGER_HOLD] = {.done = "held",
                      .later = "held; its delivery ends first",
                      .already = "is held already"                           },
    [MANAGER_RELEASE] = {.done = "released",
                      .already = "is not held",
                      .already_code = EX_UNAVAILABLE                         },
    [MANAGER_RETRY] = {.done = "is due now"},
    [MANAGER_BOUNCE] = {.done = "returned to its sender",
                      .later = "returned to its sender when its delivery ends",
                      .lags = true},
    [MANAGER_REMOVE] = {.done = "removed",
                      .later = "removed when its delivery ends",
                      .lags = true                       },
};

static bool
by_id(const struct operation *o)
{
    return o->filter.id_count > 0;
}

/* --- The list --------------------------------------------------------------------- */

static bool
operation_add_row(void *context, struct id id, enum queue_place place)
{
    struct operation *o = context;
    if (!by_id(o) && !manager_handles(o->manager, id))
        return true;
    if (o->count == o->capacity) {
        o->capacity = o->capacity > 0 ? o->capacity * 2 : 64;
        o->rows = memory_resize(o->rows, o->capacity * sizeof(*o->rows));
    }
    o->rows[o->count++] = (struct row){id, place};
    return true;
}

static bool
operation_handles(void *context, struct id id)
{
    return manager_handles(((struct operation *)context)->manager, id);
}

/* Some names in a turn. 1: there are more; 0: all are listed; or -errno. */
static int
operation_list(struct operation *o)
{
    struct queue *queue = manager_queue(o->manager);
    if (!by_id(o) && manager_is_offline(o->manager))
        return queue_each(queue, operation_add_row, o);
    if (!by_id(o)) {
        if (o->walk == NULL)
            o->walk = queue_walk_begin(queue, operation_handles, o);
        return queue_walk_read(o->walk, ROWS_PER_TURN);
    }
    for (size_t i = 0; i < o->filter.id_count; i++)
        operation_add_row(o, o->filter.ids[i].id, QUEUE_INCOMING);
    return 0;
}

static void
operation_take_row(struct operation *o)
{
    o->has_row = o->walk != NULL ? queue_walk_next(o->walk, &o->row.id, &o->row.place)
                                 : o->seen < o->count;
    if (o->has_row && o->walk == NULL)
        o->row = o->rows[o->seen];
}

/* --- Which ------------------------------------------------------------------------ */

static const char *
operation_place_of(const struct operation *o, const struct row *row)
{
    if (row->place == QUEUE_HOLD || row->place == QUEUE_CORRUPT ||
        (row->place == QUEUE_DEFRAG && manager_is_offline(o->manager)))
        return listing_disk_place(row->place);
    if (manager_active(o->manager, row->id) == NULL &&
        manager_is_awaiting(o->manager, row->id))
        return "defrag";
    enum sched_place place = sched_find(manager_sched(o->manager), row->id).place;
    return place == SCHED_UNKNOWN ? listing_disk_place(row->place)
                                  : listing_place_name(place);
}

/* Finds the place of a message that was named, not listed. */
static enum queue_place
look_for(struct operation *o, struct id id, const struct envelope *e)
{
    char note[QUEUE_NOTE_MAX];
    if (e && e->delivery.held)
        return QUEUE_HOLD;
    if (e && e->storage.preprocessed)
        return e->fragment.awaits_parts ? QUEUE_DEFRAG : QUEUE_DEFERRED;
    if (e)
        return QUEUE_INCOMING;
    bool quarantined =
        queue_note(manager_queue(o->manager), id, QUEUE_CORRUPT, note) == 0;
    return quarantined ? QUEUE_CORRUPT : QUEUE_INCOMING;
}

/* By its envelope, which is read for that. */
static bool
envelope_matches(struct operation *o, struct row *row)
{
    const struct envelope *active = manager_active(o->manager, row->id);
    struct envelope *loaded =
        active || (!by_id(o) && row->place == QUEUE_CORRUPT) ? NULL
        : by_id(o) ? queue_load_envelope(manager_queue(o->manager), row->id)
                   : manager_peek(o->manager, row->id, row->place);
    const struct envelope *e = active ? active : loaded;
    if (by_id(o))
        row->place = look_for(o, row->id, e);
    bool matches = e ? filter_matches(&o->filter, e, operation_place_of(o, row),
                                      loop_now_ms(o->loop))
                     : filter_matches_place(&o->filter, operation_place_of(o, row));
    envelope_free(&loaded);
    return matches;
}

static bool
operation_is_fragment(const struct operation *o, const struct row *row)
{
    return strcmp(operation_place_of(o, row), "defrag") == 0;
}

/* True: the verb applies to messages of that place which no id names. */
static bool
makes_sense(const struct operation *o, const struct row *row)
{
    bool held = row->place == QUEUE_HOLD, corrupt = row->place == QUEUE_CORRUPT;
    switch (o->verb) {
    case MANAGER_HOLD:
    case MANAGER_RETRY:
        return !held && !corrupt;
    case MANAGER_RELEASE: /* damaged mail must be asked for, and fragments, too */
        return held || (o->filter.place && (corrupt || operation_is_fragment(o, row)));
    case MANAGER_BOUNCE:
        return !corrupt;
    case MANAGER_REMOVE:
        break;
    }
    return true;
}

static bool
operation_is_wanted(struct operation *o, struct row *row)
{
    if (by_id(o))
        return (!filter_needs_envelope(&o->filter) && !o->filter.place) ||
               envelope_matches(o, row);
    if (!makes_sense(o, row))
        return false;
    if (filter_needs_envelope(&o->filter))
        return envelope_matches(o, row);
    return filter_matches_place(&o->filter, operation_place_of(o, row));
}

/* --- One message ------------------------------------------------------------------ */

static void
operation_tell(struct operation *o, struct id id, enum manager_result result,
               const char *why)
{
    const struct answer_texts *answer_texts = &answers[o->verb];
    int code = 0;
    const char *text = answer_texts->done;
    bool quiet = false;
    switch (result) {
    case MANAGER_DONE:
        break;
    case MANAGER_LATER:
        text = answer_texts->later;
        break;
    case MANAGER_ALREADY:
        text = answer_texts->already;
        code = answer_texts->already_code;
        quiet = !by_id(o);
        break;
    case MANAGER_UNKNOWN: /* delivered meanwhile, or never there */
        text = OPERATION_MISSING;
        code = EX_DATAERR;
        quiet = !by_id(o);
        break;
    case MANAGER_ENDING:
        text = "is just being returned to its sender";
        code = o->verb == MANAGER_BOUNCE ? 0 : EX_UNAVAILABLE;
        quiet = !by_id(o);
        break;
    case MANAGER_DAMAGED:
        text = "is damaged: its files are in corrupt/";
        code = EX_DATAERR;
        quiet = !by_id(o);
        break;
    case MANAGER_REFUSED:
        text = why;
        code = EX_UNAVAILABLE;
        break;
    }
    assert(text);
    if (!quiet)
        o->events.told(o->events.context, id, code, text);
}

static void
do_one(struct operation *o, struct row *row)
{
    char why[MANAGER_WHY_MAX];
    if (!operation_is_wanted(o, row))
        return;
    bool listed = o->verb == MANAGER_REMOVE && !by_id(o) && row->place != QUEUE_HOLD &&
                  row->place != QUEUE_CORRUPT;
    enum manager_result result =
        listed ? manager_remove_listed(o->manager, row->id, why)
               : manager_operate(o->manager, o->verb, row->id, why);
    o->done_ms = loop_monotonic_ms(o->loop);
    o->changed = o->changed || (result == MANAGER_DONE && answers[o->verb].lags);
    operation_tell(o, row->id, result, why);
}

/* --- When ------------------------------------------------------------------------- */

static size_t
notifications_under_way(const struct operation *o)
{
    struct manager_notifications notifications = manager_notifications(o->manager);
    return (size_t)(notifications.begun - notifications.ended);
}

static bool
is_bouncing_enough(const struct operation *o)
{
    return o->verb == MANAGER_BOUNCE && notifications_under_way(o) >= NOTIFICATIONS_MAX;
}

/* Files go some in a turn, when the journal has their ends. */
static bool
is_ending_enough(const struct operation *o)
{
    return o->verb == MANAGER_REMOVE &&
           queue_removals(manager_queue(o->manager)) >= QUEUE_REMOVALS_MAX;
}

static bool
is_ending_stuck(const struct operation *o)
{
    return is_ending_enough(o) &&
           loop_monotonic_ms(o->loop) - o->done_ms >= ENDING_MAX_MS;
}

static bool
operation_is_ready(const struct operation *o)
{
    return o->events.is_ready == NULL || o->events.is_ready(o->events.context);
}

static bool
may_go_on(const struct operation *o)
{
    return o->has_row && o->rows_left > 0 && loop_clock_us() < o->until_us &&
           !is_bouncing_enough(o) && !is_ending_enough(o) && operation_is_ready(o);
}

static void
operation_on_durable(void *context)
{
    struct operation *o = context;
    o->is_durable = true;
}

/* Notifications end in the order in which they began, or nearly so. */
static void
await(void *context)
{
    struct operation *o = context;
    bool all_told = manager_notifications(o->manager).ended >= o->notifications;
    /* A message that is returned ends after its notification: only from then on does a
     * barrier cover that. */
    if (all_told && !o->is_durable && o->barrier.queue == NULL)
        queue_barrier(manager_queue(o->manager), &o->barrier, operation_on_durable, o);
    if (all_told && o->is_durable)
        o->events.ended(o->events.context, NULL);
    else if (loop_monotonic_ms(o->loop) - o->ended_ms >= DURABLE_MAX_MS)
        o->events.ended(o->events.context, "the disk has not stored all changes yet: a "
                                           "message may return after a crash");
    else
        loop_timer_start(o->loop, &o->timer, CHECK_MS, await, o);
}

static void
operation_end(struct operation *o)
{
    o->notifications = manager_notifications(o->manager).begun;
    o->ended_ms = loop_monotonic_ms(o->loop);
    /* Without a daemon closing the queue writes the rest. */
    o->is_durable = !o->changed || manager_is_offline(o->manager);
    await(o);
}

/* The manager can wake all mail in one step, and dead sites, too. */
static bool
operation_is_flush(const struct operation *o)
{
    return o->verb == MANAGER_RETRY && filter_is_all(&o->filter) &&
           !manager_is_offline(o->manager);
}

static void
operation_flush(struct operation *o)
{
    log_say(o->log, LOG_LEVEL_INFO, "control", NULL,
            "the operator requests a retry of all mail");
    manager_retry_all(o->manager);
    operation_end(o);
}

static enum progress
operation_begin(struct operation *o)
{
    int result = o->listed ? 0 : operation_list(o);
    if (result > 0)
        return PROGRESS_MORE;
    if (result == 0) {
        if (!o->listed)
            operation_take_row(o);
        o->listed = true;
        return PROGRESS_DONE;
    }
    log_say(o->log, LOG_LEVEL_ERROR, "control", NULL, "cannot list the queue: %s",
            strerror(-result));
    o->events.ended(o->events.context, "the queue cannot be listed");
    return PROGRESS_BAD;
}

static void
operation_work(void *context)
{
    struct operation *o = context;
    if (operation_is_flush(o)) {
        operation_flush(o);
        return;
    }
    enum progress listed = operation_begin(o);
    if (listed == PROGRESS_MORE)
        loop_post(o->loop, &o->task, operation_work, o);
    if (listed != PROGRESS_DONE)
        return;
    o->rows_left = ROWS_PER_TURN;
    o->until_us = loop_clock_us() + SLICE_US;
    for (; may_go_on(o); o->rows_left--) {
        do_one(o, &o->row);
        o->seen++;
        operation_take_row(o);
    }
    if (!o->has_row) {
        operation_end(o);
    } else if (is_ending_stuck(o)) {
        o->events.ended(
            o->events.context,
            "the disk cannot store removals: the remaining messages were left");
    } else if (!operation_is_ready(o)) {
        return; /* operation_resume() */
    } else if (is_bouncing_enough(o) || is_ending_enough(o)) {
        loop_timer_start(o->loop, &o->timer, CHECK_MS, operation_work, o);
    } else {
        loop_post(o->loop, &o->task, operation_work, o);
    }
}

/* ---------------------------------------------------------------------------------- */

struct operation *
operation_new(struct loop *loop, struct log *log, struct manager *manager,
              enum manager_verb verb, const struct filter *filter,
              const struct operation_events *events)
{
    struct operation *o = memory_new(sizeof(*o));
    assert(!filter_is_open(filter));
    o->loop = loop;
    o->log = log;
    o->manager = manager;
    o->verb = verb;
    o->filter = *filter;
    o->events = *events;
    loop_post(loop, &o->task, operation_work, o);
    return o;
}

void
operation_free(struct operation **operation)
{
    struct operation *o = *operation;
    if (o == NULL)
        return;
    *operation = NULL;
    loop_unpost(o->loop, &o->task);
    loop_timer_stop(o->loop, &o->timer);
    queue_barrier_cancel(&o->barrier);
    queue_walk_end(&o->walk);
    free(o->rows);
    o->rows = NULL;
    loop_release(o->loop, free, o);
}

void
operation_resume(struct operation *o)
{
    bool ends = o->listed && !o->has_row;
    if (!ends && !heap_has(&o->timer.node))
        loop_post(o->loop, &o->task, operation_work, o);
}

size_t
operation_seen(const struct operation *o)
{
    return o->seen;
}

json_t *
operation_line(struct id id, int code, const char *text)
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    return json_pack("{s:s,s:b,s:i,s:s}", "id", name, "ok", code == 0, "code", code,
                     "text", text);
}
