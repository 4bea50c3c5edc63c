/* The records of mail that other hosts gave: for the memory of taken messages. */
#include "queue/journal/journaled_internal.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct taken_row {
    char *came;
    struct id id;
};

/* A ring, once it is full. */
struct taken_list {
    struct journaled *journaled;
    struct taken_row *rows;
    size_t count, capacity, most, oldest;
};

static void
taken_add(struct taken_list *l, const struct envelope *e)
{
    if (e->moved.given == 0 || l->most == 0)
        return;
    struct taken_row row = {text_string(e->moved.came), e->id};
    if (l->count == l->most) {
        free(l->rows[l->oldest].came);
        l->rows[l->oldest] = row;
        l->oldest = (l->oldest + 1) % l->most;
        return;
    }
    if (l->count == l->capacity) {
        l->capacity = l->capacity > 0 ? l->capacity * 2 : 64;
        l->rows = memory_resize(l->rows, l->capacity * sizeof(*l->rows));
    }
    l->rows[l->count++] = row;
}

/* Most mail was given by nobody, and is not read. A batch that has failed is left out by
 * the journal: its hosts were refused, and give the message again. */
static void
taken_read(struct taken_list *l, const struct journal_record *record)
{
    struct text form;
    if (!journaled_split_form(record->payload, &form) || form.length == 0 ||
        memmem(form.at, form.length, "\nH", 2) == NULL)
        return;
    struct envelope *e = envelope_new();
    if (envelope_read_todo(form, record->id, e) == PROGRESS_DONE)
        taken_add(l, e);
    envelope_free(&e);
}

static bool
taken_record(void *context, const struct journal_record *record)
{
    struct taken_list *l = context;
    struct guard *guard = &l->journaled->spool->guard;
    struct id before = guard_enter(guard, record->id);
    if (record->type == RECORD_ACCEPT || record->type == RECORD_COPY)
        taken_read(l, record);
    guard_leave(guard, before);
    return true;
}

void
journaled_each_taken(struct journaled *y, size_t most,
                     void (*each)(void *context, const char *came, struct id id),
                     void *context)
{
    struct taken_list list = {.journaled = y, .most = most};
    struct journal_summary summary;
    struct journal_reading reading = {
        .context = &list, .record = taken_record, .with_past = true};
    /* Errors: the records read so far count, and the rest may be taken twice. */
    if (y->journal != NULL)
        (void)journal_read(y->spool->disk, y->directory, &reading, &summary);
    for (size_t i = 0; i < list.count; i++) {
        const struct taken_row *row = &list.rows[(list.oldest + i) % list.count];
        each(context, row->came, row->id);
        free(row->came);
    }
    free(list.rows);
}
