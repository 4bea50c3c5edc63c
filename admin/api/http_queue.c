/* Lists, shows and changes the queue by HTTP. */
#include "admin/api/http_queue.h"

#include "admin/answer/list_answer.h"
#include "admin/view/listing.h"
#include "admin/answer/operation.h"
#include "admin/answer/request.h"
#include "admin/control/shorten.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/settings/settings.h"
#include "queue/queue_operator.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    LISTED_A_STEP = 10,       /* envelopes read for a piece, */
    LISTED_RECIPIENTS = 200,  /* each has this number of recipients; or fewer */
    LISTED_MAX = 20 * 1024,   /* octets of each */
    WORDS_MAX = 8,            /* of q; each is looked for in all addresses */
    MESSAGE_STEP = 32 * 1024, /* octets of content for a piece */
    TOLD_UNSENT_MAX = 64 * 1024
};

static_assert((int)HTTP_ANSWER_MAX > LISTED_A_STEP * (LISTED_MAX + 1) + 100,
              "they fit into a piece");

/* --- One message -------------------------------------------------------------------- */

/* The segment behind "/api/queue/". False: no id; the answer is written. */
static bool
http_queue_id(struct http_exchange *x, struct id *id, char name[ID_LENGTH + 1])
{
    struct text rest = text_after(x->target.path, strlen("/api/queue/"));
    struct text segment = text_before(rest, text_find(rest, '/'));
    if (id_parse(segment, id)) {
        id_format(*id, name);
        return true;
    }
    http_answer_error(x, 404, "no such message");
    return false;
}

/* An envelope in memory, or one from the disk, which the caller frees by *loaded. */
static const struct envelope *
http_queue_envelope(const struct http_routes *r, struct id id, struct envelope **loaded)
{
    const struct envelope *active = manager_active(r->manager, id);
    *loaded = active ? NULL : queue_load_envelope(manager_queue(r->manager), id);
    return active ? active : *loaded;
}

static void
http_queue_tell(const struct http_routes *r, struct http_exchange *x, bool is_why)
{
    struct id id;
    char name[ID_LENGTH + 1];
    struct envelope *loaded;
    if (!http_queue_id(x, &id, name))
        return;
    const struct envelope *e = http_queue_envelope(r, id, &loaded);
    if (e != NULL)
        http_answer_text(x, 200,
                         shorten_write(questions_listing(r->questions, e, is_why),
                                       HTTP_ANSWER_MAX - 1));
    else
        http_answer_error(x, 404, "no such message");
    envelope_free(&loaded);
}

void
http_queue_show(const struct http_routes *r, struct http_exchange *x)
{
    http_queue_tell(r, x, false);
}

void
http_queue_why(const struct http_routes *r, struct http_exchange *x)
{
    http_queue_tell(r, x, true);
}

/* --- Its content -------------------------------------------------------------------- */

struct http_message {
    struct queue *queue;
    struct envelope *envelope;
    int content; /* a handle */
    int64_t offset;
    bool begun;
};

static enum progress
http_message_more(void *context, struct buffer *out)
{
    struct http_message *m = context;
    char piece[MESSAGE_STEP];
    if (!m->begun) {
        m->begun = true;
        return buffer_add(out, m->envelope->prefix) ? PROGRESS_MORE : PROGRESS_BAD;
    }
    int64_t size =
        queue_content_read(m->queue, m->content, m->offset, piece, sizeof(piece));
    if (size < 0 || !buffer_add(out, text_of(piece, size > 0 ? (size_t)size : 0)))
        return PROGRESS_BAD;
    m->offset += size;
    return size == 0 || m->offset >= m->envelope->content_size ? PROGRESS_DONE
                                                               : PROGRESS_MORE;
}

static void
http_message_free(void *context)
{
    struct http_message *m = context;
    queue_content_close(m->queue, m->content);
    envelope_free(&m->envelope);
    free(m);
}

void
http_queue_message(const struct http_routes *r, struct http_exchange *x)
{
    struct id id;
    char name[ID_LENGTH + 1], field[ID_LENGTH + 50];
    if (!http_queue_id(x, &id, name))
        return;
    struct queue *queue = manager_queue(r->manager);
    struct envelope *e = queue_load_envelope(queue, id);
    int content = e != NULL ? queue_content_open(queue, e) : -1;
    if (content < 0) {
        envelope_free(&e);
        http_answer_error(x, 404, "no such message");
        return;
    }
    struct http_message *m = memory_new(sizeof(*m));
    *m = (struct http_message){.queue = queue, .envelope = e, .content = content};
    /* A response without a piece would wait to be woken. */
    m->begun = e->prefix.length == 0;
    x->status = 200;
    x->type = "text/plain; charset=utf-8";
    snprintf(field, sizeof(field), "attachment; filename=\"%s.eml\"", name);
    http_answer_field(x, "Content-Disposition", field);
    x->stream = (struct http_stream){http_message_more, http_message_free, m};
}

/* --- Acting ------------------------------------------------------------------------- */

struct http_action {
    struct http_lines lines;
    struct operation *operation;
    json_t *request; /* the filter borrows from it */
};

static void
http_action_told(void *context, struct id id, int code, const char *text)
{
    struct http_action *a = context;
    http_lines_add(&a->lines, operation_line(id, code, text));
}

static bool
http_action_is_ready(void *context)
{
    const struct http_action *a = context;
    return a->lines.told.length < TOLD_UNSENT_MAX;
}

static void
http_action_ended(void *context, const char *error)
{
    struct http_action *a = context;
    a->lines.ended = true;
    http_lines_add(&a->lines, error ? questions_refuse(error)
                                    : json_pack("{s:b,s:b}", "ok", true, "end", true));
}

static enum progress
http_action_more(void *context, struct buffer *out)
{
    struct http_action *a = context;
    enum progress progress = http_lines_more(&a->lines, out);
    if (progress == PROGRESS_MORE)
        operation_resume(a->operation);
    return progress;
}

/* A client that goes cancels its request between two messages. */
static void
http_action_free(void *context)
{
    struct http_action *a = context;
    operation_free(&a->operation);
    json_decref(a->request);
    buffer_free(&a->lines.told);
    free(a);
}

static json_t *
http_queue_read_request(const struct http_exchange *x)
{
    struct text verb = text_after(x->target.path, strlen("/api/queue/"));
    json_t *request = http_exchange_body(x);
    if (json_is_object(request))
        json_object_set_new(request, "command", json_stringn(verb.at, verb.length));
    return request;
}

void
http_queue_act(const struct http_routes *r, struct http_exchange *x)
{
    static const struct operation_events events = {.told = http_action_told,
                                                   .is_ready = http_action_is_ready,
                                                   .ended = http_action_ended};
    struct operation_events mine = events;
    struct filter *filter = memory_new(sizeof(*filter));
    json_t *request = http_queue_read_request(x);
    char why[REQUEST_TYPES_WHY_MAX];
    enum manager_verb verb;
    const char *error = !json_is_object(request) ? "the body must be a JSON object"
                        : !request_types_check(request, why)
                            ? why
                            : request_read(request, &verb, filter);
    if (error != NULL) {
        http_answer_error(x, 400, error);
        json_decref(request);
    } else {
        struct http_action *a = memory_new(sizeof(*a));
        log_say(r->log, LOG_LEVEL_INFO, "http", NULL, "client=%.*s: queue %s",
                TEXT_ARGS(x->client), request_word(verb));
        http_lines_begin(&a->lines, x);
        a->request = request;
        mine.context = a;
        a->operation = operation_new(r->loop, r->log, r->manager, verb, filter, &mine);
        x->stream = (struct http_stream){http_action_more, http_action_free, a};
    }
    free(filter);
}

/* --- Listing ------------------------------------------------------------------------ */

struct http_list {
    struct filter filter;
    char to[HTTP_TARGET_MAX + 1], from[HTTP_TARGET_MAX + 1], place[32];
    char words[HTTP_TARGET_MAX + 1];
    struct list_walk walk;
    bool is_read;
    size_t limit, found;
};

static bool
http_has_words(struct text where, struct text word)
{
    for (size_t i = 0; i + word.length <= where.length; i++)
        if (text_equal_nocase(text_before(text_after(where, i), word.length), word))
            return true;
    return false;
}

/* Each word of q is in the id, the sender or a recipient. A filter's condition. */
static bool
http_list_wants(void *context, const struct envelope *e)
{
    const struct http_list *l = context;
    struct text rest = text_from(l->words), word;
    char name[ID_LENGTH + 1];
    id_format(e->id, name);
    while (text_word(&rest, " ", &word)) {
        bool found =
            http_has_words(text_from(name), word) || http_has_words(e->sender, word);
        for (unsigned i = 0; i < e->count && !found; i++)
            found = http_has_words(e->recipients[i].address, word);
        if (!found)
            return false;
    }
    return true;
}

static bool
http_list_read_words(struct http_list *l, struct text value)
{
    struct text word;
    size_t count = 0;
    text_copy(l->words, sizeof(l->words), value);
    l->filter.wants = http_list_wants;
    l->filter.context = l;
    while (text_word(&value, " ", &word))
        count++;
    return count <= WORDS_MAX;
}

static enum progress
http_list_end(struct http_list *l, struct buffer *out)
{
    char name[ID_LENGTH + 1];
    const char *rest = list_walk_rest(&l->walk, name), *quote = rest ? "\"" : "";
    (void)!buffer_format(out, "],\"next\":%s%s%s,\"seen\":%zu}\n", quote,
                         rest ? rest : "null", quote, list_walk_seen(&l->walk));
    return PROGRESS_DONE;
}

static enum progress
http_list_more(void *context, struct buffer *out)
{
    struct http_list *l = context;
    if (!l->is_read) {
        bool first = l->walk.names == NULL;
        l->is_read = !list_walk_read(&l->walk);
        /* White space, so that a long search shows signs of life. */
        return buffer_add(out, first ? TEXT("{\"ok\":true,\"messages\":[") : TEXT(" "))
                   ? PROGRESS_MORE
                   : PROGRESS_BAD;
    }
    for (size_t work = 0; work < LISTED_A_STEP; work++) {
        if (list_walk_is_over(&l->walk) || l->found == l->limit)
            return http_list_end(l, out);
        json_t *listing = list_walk_next(&l->walk);
        if (listing == NULL)
            continue;
        if (l->found++ > 0)
            (void)!buffer_add_byte(out, ',');
        work +=
            json_array_size(json_object_get(listing, "recipients")) / LISTED_RECIPIENTS;
        work += l->walk.with_subjects;
        char *text = shorten_write(listing, LISTED_MAX);
        (void)!buffer_add(out, text_from(text != NULL ? text : "{}"));
        free(text);
    }
    if (out->length == 0)
        (void)!buffer_add_byte(out, ' ');
    return PROGRESS_MORE;
}

static void
http_list_free(void *context)
{
    struct http_list *l = context;
    list_walk_end(&l->walk);
    free(l);
}

/* NULL, or why the parameter is wrong. */
static const char *
http_list_read(void *context, const struct http_parameter *p)
{
    struct http_list *l = context;
    uint64_t number;
    if (text_equal(p->name, TEXT("to"))) {
        text_copy(l->to, sizeof(l->to), p->value);
        l->filter.to = l->to;
    } else if (text_equal(p->name, TEXT("from"))) {
        text_copy(l->from, sizeof(l->from), p->value);
        l->filter.from = l->from;
    } else if (text_equal(p->name, TEXT("older"))) {
        if (!settings_parse_duration(p->value, &l->filter.older_ms))
            return "older is a time such as 30m or 2d";
    } else if (text_equal(p->name, TEXT("queue"))) {
        text_copy(l->place, sizeof(l->place), p->value);
        l->filter.place = l->place;
        return filter_is_place(l->place) ? NULL : "queue is a place such as deferred";
    } else if (text_equal(p->name, TEXT("q"))) {
        return http_list_read_words(l, p->value) ? NULL : "q has at most 8 words";
    } else if (text_equal(p->name, TEXT("limit"))) {
        if (!text_number(p->value, HTTP_LIST_MAX, &number) || number == 0)
            return "limit is 1 to 500";
        l->limit = (size_t)number;
    } else if (text_equal(p->name, TEXT("after"))) {
        l->walk.has_after = id_parse(p->value, &l->walk.after);
        return l->walk.has_after ? NULL : "after is an id";
    } else {
        return "a parameter that is not known";
    }
    return NULL;
}

void
http_queue_list(const struct http_routes *r, struct http_exchange *x)
{
    struct http_list *l = memory_new(sizeof(*l));
    l->walk = (struct list_walk){.loop = r->loop,
                                 .manager = r->manager,
                                 .questions = r->questions,
                                 .filter = &l->filter,
                                 /* for those who may read content */
                                 .with_subjects =
                                     r->show_subjects && x->may == HTTP_MAY_OPERATE};
    l->limit = HTTP_LIST_DEFAULT;
    filter_clear(&l->filter);
    const char *why = http_exchange_parameters(x, http_list_read, l);
    if (why != NULL) {
        http_list_free(l);
        http_answer_error(x, 400, why);
        return;
    }
    x->status = 200;
    x->type = "application/json";
    x->stream = (struct http_stream){http_list_more, http_list_free, l};
}
