/* First the names of all messages, then an envelope for each. */
#include "admin/control/list_walk.h"

#include "admin/control/listing.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static bool
list_walk_add(void *context, struct id id, enum queue_place place)
{
    struct list_walk *w = context;
    if (!manager_handles(w->manager, id) ||
        (w->has_after && id_compare(id, w->after) <= 0) ||
        !filter_wants_id(w->filter, id))
        return true;
    if (w->count == w->capacity) {
        w->capacity = w->capacity > 0 ? w->capacity * 2 : 64;
        w->rows = memory_resize(w->rows, w->capacity * sizeof(*w->rows));
    }
    w->rows[w->count++] = (struct list_walk_row){id, place};
    return w->count < LIST_WALK_MAX;
}

void
list_walk_begin(struct list_walk *w)
{
    (void)!queue_each(manager_queue(w->manager), list_walk_add, w);
}

bool
list_walk_is_over(const struct list_walk *w)
{
    return w->next == w->count;
}

size_t
list_walk_seen(const struct list_walk *w)
{
    return w->next;
}

/* What cannot be read has a place and a name. */
static json_t *
list_walk_unread(const struct list_walk *w, struct id id)
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    if (!filter_matches_place(w->filter, "corrupt"))
        return NULL;
    return json_pack("{s:s,s:s}", "queue_name", "corrupt", "queue_id", name);
}

static json_t *
list_walk_listing(const struct list_walk *w, const struct envelope *e)
{
    char name[ID_LENGTH + 1];
    id_format(e->id, name);
    json_t *question = json_pack("{s:s,s:s}", "command", "state", "id", name);
    json_t *state = e->delivery.held ? NULL : questions_answer(w->questions, question);
    json_t *listing = listing_make(e, e->delivery.held ? "hold" : "", state);
    json_decref(question);
    json_decref(state);
    return listing;
}

json_t *
list_walk_next(struct list_walk *w)
{
    const struct list_walk_row *row = &w->rows[w->next++];
    const struct envelope *active = manager_active(w->manager, row->id);
    struct envelope *loaded = NULL;
    json_t *listing = NULL;
    if (row->place == QUEUE_CORRUPT)
        return list_walk_unread(w, row->id);
    if (active == NULL)
        loaded = queue_peek(manager_queue(w->manager), row->id, row->place);
    const struct envelope *e = active ? active : loaded;
    if (e != NULL)
        listing = list_walk_listing(w, e);
    const char *place = json_string_value(json_object_get(listing, "queue_name"));
    if (listing != NULL &&
        (place == NULL || strcmp(place, "gone") == 0 ||
         !filter_matches(w->filter, e, place, loop_now_ms(w->loop)))) {
        json_decref(listing);
        listing = NULL;
    }
    envelope_free(&loaded);
    return listing;
}

const char *
list_walk_rest(const struct list_walk *w, char name[ID_LENGTH + 1])
{
    bool all = list_walk_is_over(w) && w->count < LIST_WALK_MAX;
    if (all || w->next == 0)
        return NULL;
    id_format(w->rows[w->next - 1].id, name);
    return name;
}

void
list_walk_end(struct list_walk *w)
{
    free(w->rows);
    w->rows = NULL;
}
