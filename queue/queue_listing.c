/* Lists the directories of the spool and the journal's messages. */
#include "queue/queue_listing.h"

#include "base/memory.h"
#include "queue/spool/marker.h"
#include "queue/spool/spool_corrupt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

void
queue_listing_read(struct spool *s, struct journaled *y,
                   struct adopt_journals *journals)
{
    const char *own = y->directory;
    int result = adopt_list(s->disk, journals);
    for (size_t i = 0; i < journals->count; i++) {
        y->directory = journals->rows[i].path;
        int read = journaled_read(y, false);
        result = result < 0 ? result : read;
    }
    y->directory = own;
    if (result < 0)
        log_say(s->log, LOG_LEVEL_ERROR, "queue", NULL, "cannot read the journal: %s",
                strerror(-result));
}

/* --- Listing --------------------------------------------------------------------- */

const struct queue_listing_place queue_listing_places[QUEUE_LISTING_PLACES] = {
    {SPOOL_TODO,    QUEUE_MAILDROP},
    {SPOOL_INFO,    QUEUE_DEFERRED},
    {SPOOL_DEFRAG,  QUEUE_DEFRAG  },
    {SPOOL_HOLD,    QUEUE_HOLD    },
    {SPOOL_CORRUPT, QUEUE_CORRUPT }
};

struct place_row {
    struct id id;
    enum queue_place place;
};
struct place_list {
    struct place_row *rows;
    size_t count, capacity;
    enum queue_place place;
};

static void
add_place(struct place_list *l, struct id id, enum queue_place place)
{
    if (l->count == l->capacity) {
        l->capacity = l->capacity > 0 ? l->capacity * 2 : 64;
        l->rows = memory_resize(l->rows, l->capacity * sizeof(*l->rows));
    }
    l->rows[l->count++] = (struct place_row){id, place};
}

static bool
note_place(void *context, const char *name)
{
    struct place_list *l = context;
    struct id id;
    if (l->place == QUEUE_CORRUPT ? spool_corrupt_id(name, &id)
                                  : id_parse(text_from(name), &id))
        add_place(l, id, l->place);
    return true;
}

static void
queue_listing_note_journaled(const struct journaled *y, struct place_list *l)
{
    struct journaled_message *m, *next;
    HASH_ITER (hh, y->messages, m, next)
        /* The owner of a new message has not heard of it yet. */
        if (!m->is_new)
            add_place(l, m->id, QUEUE_INCOMING);
}

/* Sorts by age, and the places of one message by precedence. */
static int
by_age(const void *a, const void *b)
{
    const struct place_row *left = a, *right = b;
    int order = id_compare(left->id, right->id);
    return order != 0 ? order : (int)right->place - (int)left->place;
}

/* A marker counts only beside info. */
static void
drop_stray_marks(struct place_list *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->count; i++) {
        const struct place_row *row = &l->rows[i];
        if (row->place != QUEUE_DEFRAG ||
            (i + 1 < l->count && row[1].place == QUEUE_DEFERRED &&
             id_compare(row[1].id, row->id) == 0))
            l->rows[kept++] = *row;
    }
    l->count = kept;
}

int
queue_listing_each(struct spool *s, const struct journaled *y,
                   bool (*each)(void *context, struct id id, enum queue_place place),
                   void *context)
{
    struct place_list l = {0};
    int result = 0;
    for (size_t i = 0; i < QUEUE_LISTING_PLACES && result == 0; i++) {
        l.place = queue_listing_places[i].place;
        result = disk_list(s->disk, spool_dir_name(queue_listing_places[i].dir),
                           note_place, &l);
        if (result == -ENOENT && queue_listing_places[i].dir == SPOOL_DEFRAG)
            result = 0; /* the spool of an older release */
    }
    queue_listing_note_journaled(y, &l);
    if (l.count > 0)
        qsort(l.rows, l.count, sizeof(*l.rows), by_age);
    drop_stray_marks(&l);
    bool go_on = result == 0;
    for (size_t i = 0; i < l.count && go_on; i++)
        if (i == 0 || id_compare(l.rows[i].id, l.rows[i - 1].id) != 0)
            go_on = each(context, l.rows[i].id, l.rows[i].place);
    free(l.rows);
    return result;
}

/* --- Made of others -------------------------------------------------------------- */

struct made_list {
    struct place_list rows;
    struct spool *spool;
    const struct journaled *journaled;
};

/* A marker may outlive its message: it is removed last, without a sync. */
static void
queue_listing_note_made(void *context, struct id id)
{
    struct made_list *l = context;
    unsigned dirs = 0;
    if (journaled_find(l->journaled, id) != NULL ||
        spool_dirs_of(l->spool, id, &dirs) < 0 ||
        (dirs & (SPOOL_BIT(SPOOL_TODO) | SPOOL_BIT(SPOOL_INFO))) != 0)
        add_place(&l->rows, id, QUEUE_DEFERRED);
    else
        marker_drop(l->spool, MARKER_REASSEMBLED, id);
}

size_t
queue_listing_made(struct spool *s, const struct journaled *y,
                   const struct id_set *adopted, struct id **ids)
{
    struct made_list made = {.rows.place = QUEUE_MAILDROP, .spool = s, .journaled = y};
    struct place_list *l = &made.rows;
    struct journaled_message *m, *next;
    HASH_ITER (hh, y->messages, m, next)
        if (m->made)
            add_place(l, m->id, QUEUE_INCOMING);
    if (y->journal == NULL)
        (void)!disk_list(s->disk, spool_dir_name(SPOOL_TODO), note_place, l);
    id_set_each(adopted, queue_listing_note_made, &made);
    if (l->count > 0)
        qsort(l->rows, l->count, sizeof(*l->rows), by_age);
    *ids = memory_array(l->count + 1, sizeof(**ids));
    for (size_t i = 0; i < l->count; i++)
        (*ids)[i] = l->rows[i].id;
    free(l->rows);
    return l->count;
}
