/* Lists messages in steps: a heap of names, so that no turn has to sort them all. */
#include "queue/queue_walk.h"

#include "base/memory.h"
#include "queue/queue_internal.h"
#include "queue/queue_listing.h"

#include <errno.h>
#include <stdlib.h>
#include <uthash.h>

struct walk_row {
    struct id id;
    enum queue_place place;
};

struct queue_walk {
    struct queue *queue;
    bool (*wants)(void *context, struct id id);
    void *context;
    size_t directory;             /* of queue_listing_places[] */
    struct disk_listing *listing; /* NULL: to be opened */
    struct walk_row *rows;        /* a heap: the oldest first */
    size_t count, capacity;
    struct id last;
    bool has_last;
};

/* --- The heap --------------------------------------------------------------------- */

/* By age, and the places of one message by precedence. */
static bool
walk_row_is_before(const struct walk_row *a, const struct walk_row *b)
{
    int order = id_compare(a->id, b->id);
    return order != 0 ? order < 0 : a->place > b->place;
}

static void
walk_swap(struct queue_walk *w, size_t a, size_t b)
{
    struct walk_row row = w->rows[a];
    w->rows[a] = w->rows[b];
    w->rows[b] = row;
}

static void
walk_push(struct queue_walk *w, struct id id, enum queue_place place)
{
    if (!w->wants(w->context, id))
        return;
    if (w->count == w->capacity) {
        w->capacity = w->capacity > 0 ? w->capacity * 2 : 64;
        w->rows = memory_resize(w->rows, w->capacity * sizeof(*w->rows));
    }
    size_t at = w->count++;
    w->rows[at] = (struct walk_row){id, place};
    for (; at > 0 && walk_row_is_before(&w->rows[at], &w->rows[(at - 1) / 2]);
         at = (at - 1) / 2)
        walk_swap(w, at, (at - 1) / 2);
}

static struct walk_row
walk_pop(struct queue_walk *w)
{
    struct walk_row first = w->rows[0];
    w->rows[0] = w->rows[--w->count];
    for (size_t at = 0, least = 0;; at = least) {
        for (size_t child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < w->count &&
                walk_row_is_before(&w->rows[child], &w->rows[least]))
                least = child;
        if (least == at)
            return first;
        walk_swap(w, at, least);
    }
}

/* --- Names ------------------------------------------------------------------------ */

static bool
walk_note(void *context, const char *name)
{
    struct queue_walk *w = context;
    enum queue_place place = queue_listing_places[w->directory].place;
    struct id id;
    if (place == QUEUE_CORRUPT ? spool_corrupt_id(name, &id)
                               : id_parse(text_from(name), &id))
        walk_push(w, id, place);
    return true;
}

struct queue_walk *
queue_walk_begin(struct queue *q, bool (*wants)(void *context, struct id id),
                 void *context)
{
    struct queue_walk *w = memory_new(sizeof(*w));
    struct journaled_message *m, *next;
    *w = (struct queue_walk){.queue = q, .wants = wants, .context = context};
    /* First: messages move from the journal into files. */
    HASH_ITER (hh, q->journaled.messages, m, next)
        if (!m->is_new)
            walk_push(w, m->id, QUEUE_INCOMING);
    return w;
}

/* As disk_listing_read(). */
static int
walk_read_directory(struct queue_walk *w, size_t most)
{
    enum spool_dir dir = queue_listing_places[w->directory].dir;
    if (w->listing == NULL) {
        int error =
            disk_listing_open(w->queue->spool.disk, spool_dir_name(dir), &w->listing);
        if (error != 0) /* ENOENT: the spool of an older release */
            return error == -ENOENT && dir == SPOOL_DEFRAG ? 0 : error;
    }
    return disk_listing_read(w->listing, most, walk_note, w);
}

int
queue_walk_read(struct queue_walk *w, size_t most)
{
    if (w->directory == QUEUE_LISTING_PLACES)
        return 0;
    int result = walk_read_directory(w, most);
    if (result != 0)
        return result;
    disk_listing_close(&w->listing);
    return ++w->directory < QUEUE_LISTING_PLACES;
}

/* --- Messages --------------------------------------------------------------------- */

/* A marker counts only beside info. */
static bool
walk_is_stray(const struct queue_walk *w, const struct walk_row *row)
{
    return row->place == QUEUE_DEFRAG &&
           (w->count == 0 || w->rows[0].place != QUEUE_DEFERRED ||
            id_compare(w->rows[0].id, row->id) != 0);
}

bool
queue_walk_next(struct queue_walk *w, struct id *id, enum queue_place *place)
{
    while (w->count > 0) {
        struct walk_row row = walk_pop(w);
        if (walk_is_stray(w, &row) || (w->has_last && id_compare(row.id, w->last) == 0))
            continue;
        w->last = *id = row.id;
        w->has_last = true;
        *place = row.place;
        return true;
    }
    return false;
}

void
queue_walk_end(struct queue_walk **walk)
{
    struct queue_walk *w = *walk;
    *walk = NULL;
    if (w == NULL)
        return;
    disk_listing_close(&w->listing);
    free(w->rows);
    free(w);
}
