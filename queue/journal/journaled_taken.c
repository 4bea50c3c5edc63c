/* The records of mail that other hosts gave: for the memory of taken messages. */
#include "queue/journal/journaled_internal.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct taken_row {
    char *came;
    struct id id;
};

struct taken_list {
    struct journaled *journaled;
    struct taken_row *rows;
    size_t count, capacity;
};

static void
taken_add(struct taken_list *l, const struct envelope *e)
{
    struct text came = e->moved.came;
    if (e->moved.given == 0 || l->count == JOURNALED_TAKEN_MAX)
        return;
    if (l->count == l->capacity) {
        l->capacity = l->capacity > 0 ? l->capacity * 2 : 64;
        l->rows = memory_resize(l->rows, l->capacity * sizeof(*l->rows));
    }
    char *copy = memory_new(came.length + 1);
    memcpy(copy, came.at, came.length);
    l->rows[l->count++] = (struct taken_row){copy, e->id};
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
journaled_each_taken(struct journaled *y,
                     void (*each)(void *context, const char *came, struct id id),
                     void *context)
{
    struct taken_list list = {.journaled = y};
    struct journal_summary summary;
    struct journal_reading reading = {
        .context = &list, .record = taken_record, .with_past = true};
    /* Errors: the records read so far count, and the rest may be taken twice. */
    if (y->journal != NULL)
        (void)journal_read(y->spool->disk, y->directory, &reading, &summary);
    for (size_t i = 0; i < list.count; i++) {
        each(context, list.rows[i].came, list.rows[i].id);
        free(list.rows[i].came);
    }
    free(list.rows);
}
