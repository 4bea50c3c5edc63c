/* A file of IDs, which grows at its end. */
#include "queue/copies/copies_ends.h"

#include "queue/manager/manager.h"

static const char ends_file[] = "ended";

void
copies_ends_begin(struct copies_ends *e, struct manager *manager)
{
    *e = (struct copies_ends){.manager = manager};
    buffer_init(&e->fresh, COPIES_ENDS_BYTES);
}

void
copies_ends_free(struct copies_ends *e)
{
    buffer_free(&e->fresh);
}

/* A newline first: the last line may have been cut off. */
void
copies_ends_note(struct copies_ends *e, struct id id)
{
    if (e->manager != NULL && e->written + e->fresh.length < COPIES_ENDS_BYTES)
        (void)!buffer_format(&e->fresh, e->fresh.length == 0 ? "\n%s\n" : "%s\n",
                             ID_TEXT(id));
}

bool
copies_ends_write(struct copies_ends *e)
{
    struct text fresh = buffer_text(&e->fresh);
    if (fresh.length > 0 &&
        (manager_hint_append(e->manager, ends_file, fresh) == 0 ||
         (!e->is_there && manager_hint_write(e->manager, ends_file, fresh) == 0))) {
        e->written += fresh.length;
        e->is_there = e->is_unsynced = true;
    }
    buffer_clear(&e->fresh); /* what cannot be written may come twice */
    return e->is_unsynced;
}

void
copies_ends_sync(struct copies_ends *e)
{
    if (e->is_unsynced)
        (void)!manager_hint_sync(e->manager, ends_file);
    e->is_unsynced = false;
}

void
copies_ends_read(struct copies_ends *e, void (*each)(void *context, struct id id),
                 void *context)
{
    struct buffer all;
    buffer_init(&all, 2 * COPIES_ENDS_BYTES);
    if (e->manager != NULL && manager_hint_read(e->manager, ends_file, &all) >= 0) {
        struct text rest = buffer_text(&all), line;
        struct id id;
        e->is_there = true;
        e->written = rest.length;
        while (text_cut(&rest, '\n', &line))
            if (id_parse(line, &id))
                each(context, id);
    }
    buffer_free(&all);
}

void
copies_ends_drop(struct copies_ends *e)
{
    if (e->is_there)
        manager_hint_drop(e->manager, ends_file);
    e->is_there = e->is_unsynced = false;
    e->written = 0;
}
