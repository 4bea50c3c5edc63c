/* First the names of all messages, then an envelope for each. */
#include "admin/control/list_walk.h"

#include "admin/control/listing.h"

#include <string.h>

enum { NAMES_A_STEP = 1000 };

static bool
list_walk_meets(void *context, struct id id)
{
    const struct list_walk *w = context;
    return manager_handles(w->manager, id) &&
           (!w->has_after || id_compare(id, w->after) > 0) &&
           filter_wants_id(w->filter, id);
}

/* A directory that cannot be read ends the reading: the log has it. */
bool
list_walk_read(struct list_walk *w)
{
    if (w->names == NULL)
        w->names = queue_walk_begin(manager_queue(w->manager), list_walk_meets, w);
    if (queue_walk_read(w->names, NAMES_A_STEP) > 0)
        return true;
    w->has_next = queue_walk_next(w->names, &w->id, &w->place);
    return false;
}

bool
list_walk_is_over(const struct list_walk *w)
{
    return !w->has_next || w->seen == LIST_WALK_MAX;
}

size_t
list_walk_seen(const struct list_walk *w)
{
    return w->seen;
}

/* Why it is there. */
static void
list_walk_add_note(const struct list_walk *w, json_t *listing, struct id id,
                   enum queue_place place)
{
    char note[QUEUE_NOTE_MAX];
    if (queue_note(manager_queue(w->manager), id, place, note) == 0)
        listing_add_note(listing, note);
}

/* A message that cannot be read has a place and a name. */
static json_t *
list_walk_unread(const struct list_walk *w, struct id id)
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    if (!filter_matches_place(w->filter, "corrupt"))
        return NULL;
    json_t *listing = json_pack("{s:s,s:s}", "queue_name", "corrupt", "queue_id", name);
    list_walk_add_note(w, listing, id, QUEUE_CORRUPT);
    return listing;
}

json_t *
list_walk_next(struct list_walk *w)
{
    struct id id = w->last = w->id;
    enum queue_place place = w->place;
    struct envelope *loaded = NULL;
    json_t *listing = NULL;
    w->seen++;
    w->has_next = queue_walk_next(w->names, &w->id, &w->place);
    if (place == QUEUE_CORRUPT)
        return list_walk_unread(w, id);
    const struct envelope *active = manager_active(w->manager, id);
    if (active == NULL)
        loaded = queue_peek(manager_queue(w->manager), id, place);
    const struct envelope *e = active ? active : loaded;
    if (e != NULL)
        listing = questions_listing(w->questions, e, false);
    const char *name = json_string_value(json_object_get(listing, "queue_name"));
    if (listing != NULL &&
        (name == NULL || strcmp(name, "gone") == 0 ||
         !filter_matches(w->filter, e, name, loop_now_ms(w->loop)))) {
        json_decref(listing);
        listing = NULL;
    }
    if (listing != NULL && e->delivery.held)
        list_walk_add_note(w, listing, id, QUEUE_HOLD);
    envelope_free(&loaded);
    return listing;
}

const char *
list_walk_rest(const struct list_walk *w, char name[ID_LENGTH + 1])
{
    if (!w->has_next || w->seen == 0)
        return NULL;
    id_format(w->last, name);
    return name;
}

void
list_walk_end(struct list_walk *w)
{
    queue_walk_end(&w->names);
}
