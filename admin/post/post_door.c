/* The routes of mail by HTTP: who may post, and which form a message has. */
#include "admin/post/post_door.h"

#include "admin/post/post_object.h"
#include "admin/post/posting.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct post_door *
post_door_new(const struct post_setup *setup)
{
    struct post_door *d = memory_new(sizeof(*d));
    d->setup = *setup;
    snprintf(d->spool, sizeof(d->spool), "%s.body", setup->records);
    d->records =
        post_records_new(setup->loop, setup->log, setup->host->queue, setup->records);
    return d;
}

void
post_door_free(struct post_door **door)
{
    struct post_door *d = *door;
    struct posting *p, *next;
    if (d == NULL)
        return;
    *door = NULL;
    DL_FOREACH_SAFE (d->orphans, p, next) {
        DL_DELETE(d->orphans, p);
        p->pending = false;
        posting_free(p);
    }
    post_records_free(&d->records);
    post_keys_release(&d->keys);
    free(d);
}

void
post_door_set_keys(struct post_door *d, struct post_keys *keys)
{
    post_keys_release(&d->keys);
    d->keys = keys;
}

const char *
post_door_key(struct post_door *d, struct text token)
{
    const struct post_key *key =
        d->keys != NULL ? post_keys_find(d->keys, token) : NULL;
    return key != NULL ? key->name : NULL;
}

/* --- Postings ----------------------------------------------------------------------- */

static struct posting *
posting_new(struct post_door *d, struct http_exchange *x)
{
    struct posting *p = memory_new(sizeof(*p));
    p->door = d;
    p->exchange = x;
    p->keys = d->keys;
    p->keys->users++;
    (void)!text_copy(p->name, sizeof(p->name), text_from(x->key));
    buffer_init(&p->envelope, POST_ENVELOPE_MAX);
    digest_begin(&p->digest);
    return p;
}

/* --- A whole message ---------------------------------------------------------------- */

/* The envelope, and when it is to be sent: parameters of the query, and fields. The sender is
 * the first: see posting_add(). */
enum post_place { PLACE_FROM, PLACE_TIME, PLACE_TO, PLACES };
static const struct {
    const char *parameter, *field, *needs; /* NULL: it may be missing */
} post_places[PLACES] = {
    {"from",    "X-Envelope-From", "is needed: X-Envelope-From, or ?from="},
    {"send_at", "X-Send-At",       NULL                                   },
    {"to",      "X-Envelope-To",   "is needed: X-Envelope-To, or ?to="    },
};

struct post_envelope {
    struct posting *posting;
    bool has[PLACES];
    const char *field, *why; /* NULL: good so far */
};

static void
post_envelope_refuse(struct post_envelope *e, const char *field, const char *why)
{
    if (e->why == NULL && why != NULL)
        e->field = field, e->why = why;
}

/* A list: commas stand between addresses, unless one is quoted. */
static const char *
post_envelope_add_list(struct posting *p, struct text list)
{
    const char *why = NULL;
    struct text one;
    if (text_find(list, '"') != TEXT_NONE)
        return posting_add(p, list);
    while (why == NULL && text_cut(&list, ',', &one))
        why = posting_add(p, one);
    return why;
}

static const char *
post_envelope_take(struct post_envelope *e, enum post_place place, struct text value)
{
    bool is_there = e->has[place];
    e->has[place] = true;
    if (place == PLACE_TO)
        return post_envelope_add_list(e->posting, value);
    if (is_there)
        return "is there twice";
    return place == PLACE_FROM ? posting_add(e->posting, value)
                               : post_json_read_time(value, &e->posting->send_at_ms);
}

static bool
post_envelope_knows(struct text parameter)
{
    for (size_t i = 0; i < PLACES; i++)
        if (text_equal(parameter, text_from(post_places[i].parameter)))
            return true;
    return false;
}

static void
post_envelope_read_place(struct post_envelope *e, enum post_place place)
{
    const char *parameter = post_places[place].parameter,
               *field = post_places[place].field;
    struct text query = e->posting->exchange->target.query, name, value,
                fields = http_reader_fields(e->posting->exchange->request);
    struct http_parameter *p = memory_new(sizeof(*p));
    while (e->why == NULL && http_parameter_next(&query, p))
        if (!post_envelope_knows(p->name))
            post_envelope_refuse(e, "query", "has a parameter that is not known");
        else if (text_equal(p->name, text_from(parameter)))
            post_envelope_refuse(e, parameter, post_envelope_take(e, place, p->value));
    while (e->why == NULL && http_field_next(&fields, &name, &value))
        if (text_equal_nocase(name, text_from(field)))
            post_envelope_refuse(e, field, post_envelope_take(e, place, value));
    if (!e->has[place])
        post_envelope_refuse(e, parameter, post_places[place].needs);
    free(p);
}

/* False: the exchange has its answer. */
static bool
post_envelope_read(struct posting *p)
{
    struct post_envelope e = {.posting = p};
    for (enum post_place place = 0; place < PLACES; place++)
        post_envelope_read_place(&e, place);
    if (e.why != NULL)
        http_answer_rule(p->exchange, 400, e.field, "envelope", e.why);
    return e.why == NULL;
}

static bool
post_raw_add(void *context, struct text bytes)
{
    struct posting *p = context;
    digest_add(&p->digest, bytes);
    if (p->post != NULL)
        (void)session_post_write(p->post, bytes); /* its end says why */
    return true;
}

static void
post_raw_end(void *context)
{
    posting_end(context);
}

static void
post_raw(struct post_door *d, struct http_exchange *x)
{
    struct posting *p = posting_new(d, x);
    int64_t size = x->request->stage == HTTP_SIZED ? (int64_t)x->request->left : 0;
    bool good = post_envelope_read(p) && posting_read_key(p);
    digest_add(&p->digest, buffer_text(&p->envelope));
    if (p->send_at_ms != 0)
        digest_add(&p->digest, text_of((char *)&p->send_at_ms, sizeof(p->send_at_ms)));
    enum progress progress = good && posting_is_known(p)      ? PROGRESS_DONE
                             : good && posting_begin(p, size) ? PROGRESS_MORE
                                                              : PROGRESS_BAD;
    while (progress == PROGRESS_MORE)
        progress = posting_go_on(p); /* a head has few */
    if (progress == PROGRESS_BAD) {
        posting_free(p);
        return;
    }
    x->sink = (struct http_sink){post_raw_add, post_raw_end, posting_free, p};
}

/* --- An object ---------------------------------------------------------------------- */

static bool
post_member_add(void *context, struct text bytes)
{
    struct posting *p = context;
    digest_add(&p->digest, bytes);
    return p->object == NULL || post_object_add(p->object, bytes);
}

static void
post_member_end(void *context)
{
    struct posting *p = context;
    if (p->object != NULL)
        post_object_end(p->object);
    else
        posting_end(p);
}

static void
post_members(struct post_door *d, struct http_exchange *x)
{
    struct outcome refusal;
    int64_t size = x->request->stage == HTTP_SIZED ? (int64_t)x->request->left : 0;
    if (x->target.query.length > 0) {
        http_answer_rule(x, 400, "query", "unknown",
                         "has a parameter that is not known");
        return;
    }
    if (!queue_admits(d->setup.host->queue, size, &refusal)) {
        http_answer_field(x, "Retry-After", "60");
        http_answer_rule(x, 503, NULL, "disk", refusal.text);
        return;
    }
    struct posting *p = posting_new(d, x);
    if (!posting_read_key(p)) {
        posting_free(p);
        return;
    }
    if (!posting_is_known(p))
        p->object = post_object_new(p);
    x->sink = (struct http_sink){post_member_add, post_member_end, posting_free, p};
}

/* --- Routes ------------------------------------------------------------------------- */

static bool
post_is_type(const struct http_exchange *x, struct text wanted)
{
    struct text type = http_reader_field(x->request, TEXT("Content-Type"));
    return text_equal_nocase(text_trim(text_before(type, text_find(type, ';'))),
                             wanted);
}

/* False: the exchange has its answer. */
static bool
post_is_open(const struct post_door *d, struct http_exchange *x)
{
    const char *closed = d->setup.leaves(d->setup.context);
    if (d->keys == NULL) {
        http_answer_rule(x, 404, NULL, "keys", "no submission by HTTP: see http_keys");
    } else if (x->key == NULL) {
        http_answer_field(x, "WWW-Authenticate", "Bearer");
        http_answer_rule(x, x->may == HTTP_MAY_NOTHING ? 401 : 403, NULL, "key",
                         "a submission key is needed (Authorization: Bearer): `petrel "
                         "key add` makes one");
    } else if (closed != NULL) {
        http_answer_field(x, "Retry-After", "60");
        http_answer_rule(x, 503, NULL, "draining", closed);
    } else {
        return true;
    }
    return false;
}

void
post_door_post(struct post_door *d, struct http_exchange *x)
{
    if (!post_is_open(d, x))
        return;
    if (post_is_type(x, TEXT("message/rfc822")))
        post_raw(d, x);
    else if (post_is_type(x, TEXT("application/json")))
        post_members(d, x);
    else
        http_answer_rule(x, 415, "Content-Type", "type",
                         "send message/rfc822 or application/json");
}
