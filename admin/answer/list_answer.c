/* Walks through the queue at the pace of the client. */
#include "admin/answer/list_answer.h"

#include "admin/view/listing.h"
#include "admin/answer/request.h"
#include "base/memory.h"
#include "mime/header.h"

#include <stdlib.h>
#include <string.h>

enum {
    NAMES_A_STEP = 1000,
    SUBJECT_WITHIN = 16 * 1024, /* octets of content; a Subject behind is not shown */
    SUBJECT_MAX = 250           /* octets of it */
};

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

/* As the header has it: encoded words stay, and only what is no UTF-8 is escaped. */
static json_t *
list_walk_subject_text(struct text value)
{
    struct buffer line;
    buffer_init(&line, SUBJECT_WITHIN);
    struct text t = header_unfold(value, &line) ? buffer_text(&line) : (struct text){0};
    t = text_trim(t);
    size_t length = t.length < SUBJECT_MAX ? t.length : SUBJECT_MAX;
    while (length < t.length && length > SUBJECT_MAX - 4 &&
           !text_is_utf8(text_before(t, length)))
        length--; /* a character is not cut */
    t = text_before(t, length);
    json_t *subject = text_is_utf8(t) && !text_has_control(t)
                          ? json_stringn(t.length > 0 ? t.at : "", t.length)
                          : listing_text(t);
    buffer_free(&line);
    return subject;
}

static void
list_walk_add_subject(const struct list_walk *w, json_t *listing,
                      const struct envelope *e)
{
    struct queue *queue = manager_queue(w->manager);
    char piece[SUBJECT_WITHIN];
    int content = queue_content_open(queue, e);
    if (content < 0)
        return;
    int64_t size = queue_content_read(queue, content, 0, piece, sizeof(piece));
    queue_content_close(queue, content);
    struct text rest = text_of(piece, size > 0 ? (size_t)size : 0);
    struct header_field field;
    bool found = false;
    while (!found && header_next(&rest, &field))
        found = text_equal_nocase(field.name, TEXT("Subject"));
    if (found)
        json_object_set_new(listing, "subject", list_walk_subject_text(field.value));
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
        loaded = manager_peek(w->manager, id, place);
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
    if (listing != NULL && w->with_subjects)
        list_walk_add_subject(w, listing, e);
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

struct list_answer {
    struct answer_events events;
    struct list_walk walk;
    struct filter filter;
    json_t *request; /* the filter borrows from it */
    struct loop_task task;
    size_t limit, found, bytes_max, bytes;
    bool is_read;
};

/* Removes the members that do not select. NULL, or why one is wrong. */
static const char *
list_answer_read(struct list_answer *a)
{
    const json_t *limit = json_object_get(a->request, "limit");
    const json_t *after = json_object_get(a->request, "after");
    const char *id = json_string_value(after);
    a->limit = LIST_ANSWER_DEFAULT;
    if (limit != NULL) {
        json_int_t number = json_integer_value(limit);
        if (!json_is_integer(limit) || number < 1 || number > LIST_ANSWER_MAX)
            return "limit is 1 to 10000";
        a->limit = (size_t)number;
    }
    if (after != NULL) {
        a->walk.has_after = id != NULL && id_parse(text_from(id), &a->walk.after);
        if (!a->walk.has_after)
            return "after is an id";
    }
    const json_t *bytes = json_object_get(a->request, "bytes");
    a->bytes_max = bytes == NULL ? SIZE_MAX : (size_t)json_integer_value(bytes);
    if (bytes != NULL && json_integer_value(bytes) < 1)
        return "bytes is a number from 1 on";
    json_object_del(a->request, "bytes");
    json_object_del(a->request, "limit");
    json_object_del(a->request, "after");
    return request_read_filter(a->request, &a->filter);
}

static void
list_answer_end(struct list_answer *a)
{
    char name[ID_LENGTH + 1];
    const char *rest = list_walk_rest(&a->walk, name);
    a->events.ended(a->events.context,
                    json_pack("{s:b,s:b,s:s?}", "ok", true, "end", true, "next", rest));
}

static void list_answer_turn(void *context);

void
list_answer_wake(struct list_answer *a)
{
    loop_post(a->walk.loop, &a->task, list_answer_turn, a);
}

static void
list_answer_turn(void *context)
{
    struct list_answer *a = context;
    if (!a->is_read) {
        a->is_read = !list_walk_read(&a->walk);
        list_answer_wake(a);
        return;
    }
    for (size_t i = 0; i < LIST_ANSWER_A_TURN; i++) {
        if (list_walk_is_over(&a->walk) || a->found == a->limit ||
            a->bytes >= a->bytes_max) {
            list_answer_end(a);
            return;
        }
        if (!a->events.is_ready(a->events.context))
            return; /* list_answer_wake() */
        json_t *listing = list_walk_next(&a->walk);
        a->found += listing != NULL;
        if (listing != NULL)
            a->events.line(a->events.context, listing);
    }
    loop_post(a->walk.loop, &a->task, list_answer_turn, a);
}

void
list_answer_count(struct list_answer *a, size_t bytes)
{
    a->bytes += bytes;
}

size_t
list_answer_seen(const struct list_answer *a)
{
    return list_walk_seen(&a->walk);
}

struct list_answer *
list_answer_new(struct loop *loop, struct manager *manager, struct questions *questions,
                json_t *request, const struct answer_events *events, const char **why)
{
    struct list_answer *a = memory_new(sizeof(*a));
    a->events = *events;
    a->request = request;
    a->walk = (struct list_walk){
        .loop = loop, .manager = manager, .questions = questions, .filter = &a->filter};
    *why = list_answer_read(a);
    if (*why != NULL)
        list_answer_free(&a);
    else
        list_answer_wake(a);
    return a;
}

void
list_answer_free(struct list_answer **answer)
{
    struct list_answer *a = *answer;
    *answer = NULL;
    if (a == NULL)
        return;
    loop_unpost(a->walk.loop, &a->task);
    list_walk_end(&a->walk);
    json_decref(a->request);
    free(a);
}
