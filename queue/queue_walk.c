/* Lists messages in steps: a heap of names, so that no turn has to sort them all. */
#include "queue/queue_walk.h"

#include "base/arena.h"
#include "base/heap.h"
#include "base/memory.h"
#include "queue/queue_internal.h"
#include "queue/queue_listing.h"
#include "queue/spool/spool_corrupt.h"

#include <errno.h>
#include <stdlib.h>
#include <uthash.h>

struct walk_row {
    struct heap_node node;
    struct id id;
    enum queue_place place;
};

struct queue_walk {
    struct queue *queue;
    bool (*wants)(void *context, struct id id);
    void *context;
    size_t directory;             /* of queue_listing_places[] */
    struct disk_listing *listing; /* NULL: to be opened */
    struct arena arena;           /* of the rows */
    struct heap rows;             /* the oldest first */
    struct id last;
    bool has_last;
};

/* By age, and the places of one message by precedence. */
static bool
walk_row_is_before(const struct heap_node *first, const struct heap_node *second)
{
    const struct walk_row *a = memory_container(first, struct walk_row, node),
                          *b = memory_container(second, struct walk_row, node);
    int order = id_compare(a->id, b->id);
    return order != 0 ? order < 0 : a->place > b->place;
}

static void
walk_add(struct queue_walk *w, struct id id, enum queue_place place)
{
    if (!w->wants(w->context, id))
        return;
    struct walk_row *row = arena_get(&w->arena, sizeof(*row));
    row->id = id;
    row->place = place;
    heap_add(&w->rows, &row->node);
}

/* NULL: there is none. */
static const struct walk_row *
walk_first(const struct queue_walk *w)
{
    struct heap_node *node = heap_first(&w->rows);
    return node != NULL ? memory_container(node, struct walk_row, node) : NULL;
}

/* --- Names ------------------------------------------------------------------------ */

static bool
walk_note(void *context, const char *name)
{
    struct queue_walk *w = context;
    enum queue_place place = queue_listing_places[w->directory].place;
    struct id id;
    if (place == QUEUE_CORRUPT ? !spool_corrupt_id(name, &id)
                               : !id_parse(text_from(name), &id))
        return true;
    /* A message that has ended keeps its files for a moment. */
    if (place == QUEUE_CORRUPT || !queue_is_no_message(w->queue, id))
        walk_add(w, id, place);
    return true;
}

struct queue_walk *
queue_walk_begin(struct queue *q, bool (*wants)(void *context, struct id id),
                 void *context)
{
    struct queue_walk *w = memory_new(sizeof(*w));
    struct journaled_message *m, *next;
    *w = (struct queue_walk){.queue = q, .wants = wants, .context = context};
    arena_init(&w->arena, SIZE_MAX / 4); /* as many as there are files */
    heap_init(&w->rows, walk_row_is_before);
    /* First: messages move from the journal into files. */
    HASH_ITER (hh, q->journaled.messages, m, next)
        if (!m->is_new)
            walk_add(w, m->id, QUEUE_INCOMING);
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

/* A marker counts only beside info, which is the next row then. */
static bool
walk_is_stray(const struct queue_walk *w, const struct walk_row *row)
{
    const struct walk_row *next = walk_first(w);
    return row->place == QUEUE_DEFRAG &&
           (next == NULL || next->place != QUEUE_DEFERRED ||
            id_compare(next->id, row->id) != 0);
}

bool
queue_walk_next(struct queue_walk *w, struct id *id, enum queue_place *place)
{
    struct heap_node *node;
    while ((node = heap_first(&w->rows)) != NULL) {
        const struct walk_row *row = memory_container(node, struct walk_row, node);
        heap_remove(&w->rows, node);
        if (walk_is_stray(w, row) || (w->has_last && id_compare(row->id, w->last) == 0))
            continue;
        w->last = *id = row->id;
        w->has_last = true;
        *place = row->place;
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
    heap_free(&w->rows);
    arena_free(&w->arena);
    free(w);
}
