/* Composes a message, whose contents are read from the spool. */
#include "admin/post/post_object.h"

#include "base/memory.h"
#include "mime/address.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const list_names[POST_LISTS] = {"To", "Cc", NULL, "Reply-To"};

struct post_object *
post_object_new(struct posting *p)
{
    struct post_object *o = memory_new(sizeof(*o));
    o->posting = p;
    post_json_start(&o->json);
    post_spool_init(&o->spool, queue_disk(p->door->setup.host->queue), p->door->spool);
    return o;
}

static void
post_object_close(struct post_object *o)
{
    if (o->is_open)
        encode_base64_free(&o->base64);
    o->is_open = false;
}

void
post_object_free(struct post_object **object)
{
    struct post_object *o = *object;
    if (o == NULL)
        return;
    *object = NULL;
    post_object_close(o);
    loop_unpost(o->posting->door->setup.loop, &o->task);
    compose_free(&o->compose);
    post_spool_free(&o->spool);
    post_json_free(&o->json);
    free(o);
}

static bool
post_object_refuse(struct post_object *o)
{
    const struct post_json *j = &o->json;
    char why[200];
    bool body = strcmp(j->rule, "json") == 0;
    if (body)
        snprintf(why, sizeof(why), "byte %" PRIu64 ": %s", j->stream.at, j->why);
    else
        snprintf(why, sizeof(why), "%s", j->why);
    http_answer_rule(o->posting->exchange, body ? 400 : 422,
                     j->field[0] != '\0' ? j->field : NULL, j->rule, why);
    return false;
}

static bool
post_object_fail(struct post_object *o)
{
    http_answer_field(o->posting->exchange, "Retry-After", "60");
    http_answer_rule(o->posting->exchange, 503, NULL, "disk", "the disk fails");
    return false;
}

bool
post_object_add(struct post_object *o, struct text bytes)
{
    if (!post_json_add(&o->json, bytes))
        return post_object_refuse(o);
    return post_spool_add(&o->spool, bytes) || post_object_fail(o);
}

/* --- Contents ------------------------------------------------------------------------ */

static void
post_object_write(void *context, struct text bytes)
{
    const struct post_object *o = context;
    (void)session_post_write(o->posting->post, bytes); /* its end says why */
}

static void
post_object_encode(struct post_object *o, struct text bytes)
{
    if (o->json.parts[o->compose.steps[o->step].part].base64)
        encode_base64_add(&o->base64, bytes);
    else
        encode_quoted_add(&o->quoted, bytes);
}

/* CRLF for each line end, whichever it is. */
static void
post_object_add_text(struct post_object *o, struct text piece)
{
    while (piece.length > 0) {
        size_t run = 0;
        while (run < piece.length && piece.at[run] != '\r' && piece.at[run] != '\n')
            run++;
        post_object_encode(o, text_before(piece, run));
        if (run < piece.length) {
            bool second = run == 0 && o->after_cr && piece.at[0] == '\n';
            if (!second)
                post_object_encode(o, TEXT("\r\n"));
            o->after_cr = piece.at[run] == '\r';
            run++;
        } else {
            o->after_cr = false;
        }
        piece = text_after(piece, run);
    }
}

/* It is base64: only its lines are made anew. */
static void
post_object_add_lines(struct post_object *o, struct text piece)
{
    char line[COMPOSE_COLUMN];
    size_t length = 0;
    for (size_t i = 0; i < piece.length; i++) {
        if (text_is_space(piece.at[i]))
            continue;
        if (o->column == ENCODE_QUOTED_LINE_MAX) {
            post_object_write(o, text_of(line, length));
            post_object_write(o, TEXT("\r\n"));
            o->column = length = 0;
        }
        line[length++] = piece.at[i];
        o->column++;
    }
    post_object_write(o, text_of(line, length));
}

/* A json_stream.on of a content alone. */
static bool
post_object_on(void *context, enum json_event event, struct text text)
{
    struct post_object *o = context;
    const struct compose_part *part = &o->json.parts[o->compose.steps[o->step].part];
    if (event != JSON_EVENT_PIECE)
        return true;
    if (part->role == COMPOSE_INLINE || part->role == COMPOSE_ATTACHED)
        post_object_add_lines(o, text);
    else
        post_object_add_text(o, text);
    return true;
}

static void
post_object_open(struct post_object *o)
{
    const struct compose_step *step = &o->compose.steps[o->step];
    post_object_write(
        o, text_of(o->compose.literals.at + step->from, step->to - step->from));
    o->is_open = step->part >= 0;
    if (!o->is_open)
        return;
    o->at = o->json.contents[step->part].from;
    o->after_cr = false;
    o->column = 0;
    json_stream_start(&o->stream, post_object_on, o);
    encode_quoted_start(&o->quoted, post_object_write, o);
    encode_base64_start(&o->base64, post_object_write, o);
}

static void
post_object_end_content(struct post_object *o)
{
    const struct compose_part *part = &o->json.parts[o->compose.steps[o->step].part];
    bool is_text = part->role == COMPOSE_TEXT || part->role == COMPOSE_HTML;
    o->is_open = false;
    if (is_text && !part->base64)
        (void)encode_quoted_end(&o->quoted);
    encode_base64_end(&o->base64);
}

/* The bytes that were read; 0: the disk fails. */
static size_t
post_object_read(struct post_object *o)
{
    char bytes[POST_READ];
    const struct post_content *c = &o->json.contents[o->compose.steps[o->step].part];
    size_t left = c->to - o->at < POST_READ ? (size_t)(c->to - o->at) : POST_READ;
    size_t got = post_spool_read(&o->spool, o->at, bytes, left);
    o->at += got;
    if (got == 0 || json_stream_add(&o->stream, text_of(bytes, got)) == PROGRESS_BAD)
        return 0;
    if (o->at == c->to) {
        post_object_end_content(o);
        o->step++;
    }
    return got;
}

static void
post_object_go_on(void *context)
{
    struct post_object *o = context;
    size_t done = 0, got;
    while (o->step < o->compose.count && done < POST_TURN_BYTES) {
        if (!o->is_open) {
            post_object_open(o);
            o->step += !o->is_open;
            continue;
        }
        if ((got = post_object_read(o)) == 0) {
            (void)post_object_fail(o);
            http_exchange_wake(o->posting->exchange);
            return;
        }
        done += got;
    }
    if (o->step < o->compose.count)
        loop_post(o->posting->door->setup.loop, &o->task, post_object_go_on, o);
    else
        posting_end(o->posting);
}

/* --- The header --------------------------------------------------------------------- */

static bool
post_object_add_list(const struct post_json *j, enum post_list list, struct buffer *out)
{
    struct compose_mailbox *some = memory_array(j->mailbox_count + 1, sizeof(*some));
    size_t count = 0;
    for (size_t i = 0; i < j->mailbox_count; i++)
        if (j->lists[i] == list)
            some[count++] = j->mailboxes[i];
    bool fits =
        count == 0 || compose_mailboxes(out, text_from(list_names[list]), some, count);
    free(some);
    return fits;
}

static bool
post_object_header(const struct post_json *j, struct buffer *out)
{
    bool fits = compose_mailboxes(out, TEXT("From"), &j->from, 1);
    for (enum post_list list = POST_TO; list < POST_LISTS && fits; list++)
        fits = list == POST_BCC || post_object_add_list(j, list, out);
    fits = fits &&
           (j->subject.length == 0 || compose_field(out, TEXT("Subject"), j->subject));
    for (size_t i = 0; i < j->field_count && fits; i++)
        fits = compose_field(out, j->field_names[i], j->field_values[i]);
    return fits &&
           (j->tag.length == 0 || compose_field(out, TEXT("X-Petrel-Tag"), j->tag));
}

/* Reply-To gets no copy. */
static bool
post_object_envelope(struct post_object *o)
{
    const struct post_json *j = &o->json;
    static const char *const fields[] = {"to", "cc", "bcc"};
    struct address reply;
    const char *field = "from", *why = posting_add(o->posting, j->from.address);
    for (size_t i = 0; i < j->mailbox_count && why == NULL; i++) {
        if (j->lists[i] == POST_REPLY_TO) {
            field = "reply_to";
            why = address_judge(j->mailboxes[i].address, &reply);
            o->posting->utf8 =
                o->posting->utf8 || !text_is_ascii(j->mailboxes[i].address);
            continue;
        }
        field = fields[j->lists[i]];
        why = posting_add(o->posting, j->mailboxes[i].address);
    }
    if (why != NULL)
        http_answer_rule(o->posting->exchange, 422, field, "envelope", why);
    o->posting->send_at_ms = j->send_at_ms;
    return why == NULL && posting_begin(o->posting, 0);
}

static bool
post_object_compose(struct post_object *o)
{
    struct loop *loop = o->posting->door->setup.loop;
    char boundary[COMPOSE_BOUNDARY_MAX];
    struct buffer header;
    snprintf(boundary, sizeof(boundary), "%016" PRIx64, loop_random(loop));
    buffer_init(&header, POST_HEADER_MAX);
    bool fits = post_object_header(&o->json, &header) &&
                compose_structure(&o->compose, o->json.parts, o->json.part_count,
                                  text_from(boundary), POST_HEADER_MAX);
    if (fits)
        post_object_write(o, buffer_text(&header));
    else
        http_answer_rule(o->posting->exchange, 422, NULL, "limit",
                         "the header is too large");
    buffer_free(&header);
    return fits;
}

static void
post_object_take_recipients(void *context)
{
    struct post_object *o = context;
    struct posting *p = o->posting;
    enum progress progress = posting_go_on(p);
    if (progress == PROGRESS_MORE)
        loop_post(p->door->setup.loop, &o->task, post_object_take_recipients, o);
    else if (progress == PROGRESS_DONE && post_object_compose(o))
        post_object_go_on(o);
    else
        http_exchange_wake(p->exchange);
}

void
post_object_end(struct post_object *o)
{
    if (!post_json_end(&o->json)) {
        (void)post_object_refuse(o);
        return;
    }
    if (post_object_envelope(o))
        post_object_take_recipients(o);
}
