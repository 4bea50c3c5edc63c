/* The front door of the queue: opens the rooms and passes messages between them. */
#include "queue/queue.h"

#include "base/loop.h"
#include "base/memory.h"
#include "queue/accept.h"
#include "queue/clean.h"
#include "queue/load.h"
#include "queue/marks.h"
#include "queue/recover.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

struct queue {
    struct spool spool;
    struct loop *loop;
    struct loop *own_loop; /* an injector's, for its clock */
    struct seen seen;
    struct accept accept;
    struct marks marks;
    struct recover recover;
    struct clean clean;
    int lock; /* -1: not the daemon */
    uint64_t retired;
};

/* --- Open and close -------------------------------------------------------------- */

static void
on_orphan(void *context, struct id id)
{
    struct queue *q = context;
    if (q->own_loop == NULL)
        recover_report(&q->recover, id);
}

static void
start_rooms(struct queue *q, const struct queue_settings *settings)
{
    bool at_once = q->own_loop != NULL;
    q->accept = (struct accept){.spool = &q->spool,
                                .loop = q->loop,
                                .seen = &q->seen,
                                .settings = *settings,
                                .at_once = at_once,
                                .orphaned = on_orphan,
                                .context = q};
    if (q->accept.settings.slices == 0)
        q->accept.settings.slices = 1;
    q->marks = (struct marks){
        .spool = &q->spool, .loop = q->loop, .seen = &q->seen, .at_once = at_once};
    /* The marks first: both use one sync of todo/. */
    marks_start(&q->marks);
    accept_start(&q->accept);
}

/* Whose files are ours: the lock's. */
static int
know_ourselves(struct queue *q, const struct queue_settings *settings, char *error,
               size_t error_size)
{
    struct disk_info info;
    int result = disk_file_info(q->spool.disk, q->lock, &info);
    if (result < 0) {
        snprintf(error, error_size, "spool %s: cannot inspect the lock: %s",
                 settings->spool, strerror(-result));
        return EX_CANTCREAT;
    }
    q->spool.adopts = true;
    q->spool.user = info.owner;
    q->spool.foreign_max = settings->message_size_limit;
    return 0;
}

/* One daemon for each slice. */
static int
take_lock(struct queue *q, const struct queue_settings *settings, char *error,
          size_t error_size)
{
    char path[64];
    if (settings->slices > 1)
        snprintf(path, sizeof(path), "%s.%u", spool_lock, settings->slice);
    else
        snprintf(path, sizeof(path), "%s", spool_lock);
    q->lock = disk_lock(q->spool.disk, path);
    if (q->lock >= 0)
        return know_ourselves(q, settings, error, error_size);
    if (q->lock == -EWOULDBLOCK) {
        snprintf(error, error_size,
                 "spool %s: another petrel runs on it (it holds %s); stop that one, or "
                 "set `spool` to another directory",
                 settings->spool, path);
        return EX_TEMPFAIL;
    }
    snprintf(error, error_size,
             "spool %s: cannot lock %s: %s (make it writable for this user, or set "
             "`spool` to a directory that is)",
             settings->spool, path, strerror(-q->lock));
    return EX_CANTCREAT;
}

static int
start_recovery(struct queue *q, const struct queue_settings *settings,
               queue_found *found, void *context, char *error, size_t error_size)
{
    q->recover = (struct recover){.spool = &q->spool,
                                  .loop = q->loop,
                                  .seen = &q->seen,
                                  .slices = settings->slices > 0 ? settings->slices : 1,
                                  .slice = settings->slice,
                                  .found = found,
                                  .context = context};
    q->clean = (struct clean){.spool = &q->spool, .loop = q->loop};
    int result = recover_start(&q->recover);
    if (result < 0) {
        snprintf(error, error_size, "spool %s: cannot open %s: %s (remove it)",
                 settings->spool, spool_trigger, strerror(-result));
        return EX_CANTCREAT;
    }
    clean_start(&q->clean);
    return 0;
}

int
queue_open(struct queue **queue, struct loop *loop, struct log *log,
           const struct queue_settings *settings, queue_found *found, void *context,
           char *error, size_t error_size)
{
    struct queue *q = memory_new(sizeof(*q));
    q->loop = loop;
    q->lock = -1;
    *queue = NULL;
    int code = EX_CANTCREAT;
    if (spool_open(&q->spool, settings->spool, false, log, error, error_size) == 0)
        code = take_lock(q, settings, error, error_size);
    if (code == 0)
        code = start_recovery(q, settings, found, context, error, error_size);
    if (code != 0) {
        if (q->lock >= 0)
            disk_close_file(q->spool.disk, q->lock);
        spool_close(&q->spool);
        free(q);
        return code;
    }
    start_rooms(q, settings);
    *queue = q;
    return 0;
}

int
queue_open_injector(struct queue **queue, struct log *log,
                    const struct queue_settings *settings, char *error,
                    size_t error_size)
{
    struct queue *q = memory_new(sizeof(*q));
    q->lock = -1;
    *queue = NULL;
    if (spool_open(&q->spool, settings->spool, true, log, error, error_size) < 0) {
        free(q);
        return EX_CANTCREAT;
    }
    q->loop = q->own_loop = loop_new();
    loop_turn(q->loop, 0);
    start_rooms(q, settings);
    *queue = q;
    return 0;
}

bool
queue_has_daemon(struct queue *q)
{
    /* Not by trying the lock: a daemon that starts meanwhile would find it taken. The
     * daemon alone reads the trigger. */
    return q->lock >= 0 || disk_pull_fifo(q->spool.disk, spool_trigger) == 0;
}

void
queue_close(struct queue **queue)
{
    struct queue *q = *queue;
    if (q == NULL)
        return;
    *queue = NULL;
    marks_stop(&q->marks);
    accept_stop(&q->accept);
    if (q->lock >= 0) {
        clean_stop(&q->clean);
        recover_stop(&q->recover);
        disk_close_file(q->spool.disk, q->lock);
    }
    seen_free(&q->seen);
    spool_close(&q->spool);
    if (q->own_loop != NULL)
        loop_free(&q->own_loop);
    free(q);
}

/* --- Accepting ------------------------------------------------------------------- */

struct queue_draft *
queue_begin(struct queue *q, int64_t size_expected, struct outcome *refusal)
{
    if (q->own_loop != NULL)
        loop_turn(q->own_loop, 0); /* what time is it? */
    return accept_begin(&q->accept, size_expected, refusal);
}

void
queue_commit(struct queue_draft **draft, struct envelope **e, queue_stored *stored,
             void *context)
{
    accept_commit(draft, e, stored, context);
}

void
queue_commit_ignore(struct queue *q, void *context)
{
    accept_ignore(&q->accept, context);
}

/* --- Delivering ------------------------------------------------------------------ */

struct envelope *
queue_load(struct queue *q, struct id id)
{
    struct envelope *e = NULL;
    char reason[LOAD_REASON_MAX] = "", name[ID_LENGTH + 1];
    marks_write(&q->marks, id);
    switch (load_message(&q->spool, id, &e, reason)) {
    case LOAD_DONE:
        marks_overlay(&q->marks, e);
        return e;
    case LOAD_GONE:
        seen_remove(&q->seen, id);
        break;
    case LOAD_DAMAGED:
        /* Who looks on beside a daemon may see a message that is just being removed. */
        if (q->lock >= 0)
            queue_park(q, id, reason);
        break;
    case LOAD_LATER:
        id_format(id, name);
        log_say(q->spool.log, LOG_LEVEL_ERROR, "queue", name, "cannot read it now: %s",
                reason);
        if (q->lock >= 0)
            recover_report_later(&q->recover, id);
        break;
    }
    return NULL;
}

int
queue_content_open(struct queue *q, const struct envelope *e)
{
    char path[SPOOL_PATH_MAX];
    spool_path(ROOM_MESS, e->id, path);
    return disk_open_file(q->spool.disk, path, false);
}

int64_t
queue_content_read(struct queue *q, int content, int64_t offset, char *to, size_t size)
{
    return disk_read(q->spool.disk, content, offset, to, size);
}

void
queue_content_close(struct queue *q, int content)
{
    disk_close_file(q->spool.disk, content);
}

void
queue_settle(struct queue *q, struct envelope *e, unsigned index, enum channel channel,
             const struct failure *failure)
{
    marks_settle(&q->marks, e, index, channel, failure);
}

void
queue_defer(struct queue *q, struct envelope **e, int64_t due_ms, unsigned attempts)
{
    (*e)->due_ms = due_ms;
    (*e)->attempts = attempts;
    marks_defer(&q->marks, e);
}

void
queue_retire(struct queue *q, struct envelope **e)
{
    marks_forget(&q->marks, (*e)->id);
    /* While its todo stays, a scan must not take it for a new message. */
    if (spool_retire(&q->spool, *e) == 0)
        seen_remove(&q->seen, (*e)->id);
    q->retired++;
    envelope_free(e);
}

/* --- Operators ------------------------------------------------------------------- */

int
queue_hold(struct queue *q, const struct envelope *e, const char *reason)
{
    int file =
        spool_write_new(&q->spool, ROOM_HOLD, e->id, text_from(reason), 0600, true);
    if (file < 0)
        return file;
    int result = spool_sync(&q->spool, file, &e->id);
    disk_close_file(q->spool.disk, file);
    return result;
}

void
queue_park(struct queue *q, struct id id, const char *reason)
{
    marks_forget(&q->marks, id);
    spool_park(&q->spool, id, reason, loop_now_ms(q->loop));
    /* What could not be moved must not be found again by every scan. */
    if (spool_has(&q->spool, ROOM_QUEUED, id))
        seen_add(&q->seen, id);
    else
        seen_remove(&q->seen, id);
}

bool
queue_remove(struct queue *q, struct id id)
{
    marks_forget(&q->marks, id);
    seen_remove(&q->seen, id);
    return spool_erase(&q->spool, id);
}

struct place_row {
    struct id id;
    enum queue_place place;
};
struct place_list {
    struct place_row *rows;
    size_t count, capacity;
    enum queue_place place;
};

static bool
note_place(void *context, const char *name)
{
    struct place_list *l = context;
    struct place_row row = {.place = l->place};
    bool good = l->place == QUEUE_CORRUPT ? spool_corrupt_id(name, &row.id)
                                          : id_parse(text_from(name), &row.id);
    if (!good)
        return true;
    if (l->count == l->capacity) {
        l->capacity = l->capacity > 0 ? l->capacity * 2 : 64;
        l->rows = memory_resize(l->rows, l->capacity * sizeof(*l->rows));
    }
    l->rows[l->count++] = row;
    return true;
}

/* By age; of one message the strongest place first. */
static int
by_age(const void *a, const void *b)
{
    const struct place_row *left = a, *right = b;
    int order = id_compare(left->id, right->id);
    return order != 0 ? order : (int)right->place - (int)left->place;
}

int
queue_each(struct queue *q,
           bool (*each)(void *context, struct id id, enum queue_place place),
           void *context)
{
    static const struct {
        enum room room;
        enum queue_place place;
    } places[] = {
        {ROOM_QUEUED,  QUEUE_INCOMING},
        {ROOM_INFO,    QUEUE_DEFERRED},
        {ROOM_HOLD,    QUEUE_HOLD    },
        {ROOM_CORRUPT, QUEUE_CORRUPT }
    };
    struct place_list l = {0};
    int result = 0;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && result == 0; i++) {
        l.place = places[i].place;
        result = disk_list(q->spool.disk, spool_room(places[i].room), note_place, &l);
    }
    if (l.count > 0)
        qsort(l.rows, l.count, sizeof(*l.rows), by_age);
    bool go_on = result == 0;
    for (size_t i = 0; i < l.count && go_on; i++)
        if (i == 0 || id_compare(l.rows[i].id, l.rows[i - 1].id) != 0)
            go_on = each(context, l.rows[i].id, l.rows[i].place);
    free(l.rows);
    return result;
}

struct queue_health
queue_health(struct queue *q)
{
    struct queue_health health = {.accepting = true,
                                  .stored = q->accept.stored,
                                  .retired = q->retired,
                                  .parked = q->spool.parked,
                                  .syncs = q->spool.syncs};
    if (q->spool.trouble[0] != '\0')
        snprintf(health.reason, sizeof(health.reason), "%s", q->spool.trouble);
    else if (!accept_has_space(&q->accept, 0))
        snprintf(health.reason, sizeof(health.reason), "the disk is full");
    health.accepting = health.reason[0] == '\0';
    return health;
}
