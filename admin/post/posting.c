/* Gives a posted message its envelope, and tells what became of it. */
#include "admin/post/posting.h"

#include "admin/post/post_object.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define MANY "4.5.3" /* recipients: SMTP gives the others in another transaction */

enum { RATE = 450, CROWDED = 421 };

const char *
posting_add(struct posting *p, struct text address)
{
    address = text_within(text_trim(address), '<', '>');
    if (text_has_control(address))
        return "has a line end or another control character";
    bool first = p->envelope.length == 0;
    if (!first && p->recipients == POST_RECIPIENTS_MAX)
        return "has too many recipients";
    p->utf8 = p->utf8 || !text_is_ascii(address);
    p->recipients += !first;
    return buffer_add(&p->envelope, address) && buffer_add_byte(&p->envelope, '\0')
               ? NULL
               : "is too long";
}

/* --- Errors ------------------------------------------------------------------------- */

/* By the meaning that a reply of SMTP has. */
static unsigned
posting_status(const struct outcome *o)
{
    bool policy = strcmp(o->enhanced, "4.7.1") == 0;
    if (o->code == CROWDED || (o->code == RATE && policy))
        return 429;
    if (strcmp(o->enhanced, MANY) == 0) /* the same post would have as many again */
        return 422;
    if (o->code < 500)
        return 503;
    if (o->code == 552)
        return 413;
    return strcmp(o->enhanced, "5.7.1") == 0 ? 403 : 422;
}

static void
posting_say_when(struct http_exchange *x, unsigned status)
{
    if (status == 429 || status == 503)
        http_answer_field(x, "Retry-After", "60");
}

static json_t *
posting_error(const char *field, const char *rule, const struct outcome *o)
{
    return json_pack("{s:s?,s:s,s:s%,s:i,s:s}", "field", field, "rule", rule, "message",
                     o->text, text_before(text_from(o->text), OUTCOME_TEXT_MAX).length,
                     "code", o->code, "enhanced", o->enhanced);
}

static void
posting_refuse(struct posting *p, const char *field, const char *rule,
               const struct outcome *o)
{
    unsigned status = posting_status(o);
    posting_say_when(p->exchange, status);
    http_answer_json(p->exchange, status,
                     json_pack("{s:o}", "error", posting_error(field, rule, o)));
}

/* --- The envelope ------------------------------------------------------------------- */

static void
posting_note(struct post_refusals *r, struct text address, const struct outcome *o)
{
    json_t *one;
    if (r->count == 0 || (o->code >= 500 && r->first.code < 500))
        r->first = *o;
    if (r->count++ >= POST_REFUSED_MAX)
        return;
    if (r->list == NULL)
        r->list = json_array();
    one = posting_error("to", "recipient", o);
    json_object_set_new(one, "address", json_stringn(address.at, address.length));
    json_array_append_new(r->list, one);
}

static void
posting_refuse_recipients(struct posting *p)
{
    const struct post_refusals *r = &p->refusals;
    char message[160];
    unsigned status = posting_status(&r->first),
             most = session_post_recipients_max(p->post);
    snprintf(message, sizeof(message), "%zu of %zu recipients refused: nothing is sent",
             r->count, p->recipients);
    if (status == 429 && p->recipients > most) { /* it would be so each time */
        status = 422;
        snprintf(message, sizeof(message),
                 "the rates permit at most %u recipients at a time, of %zu: give them "
                 "in several messages",
                 most, p->recipients);
    }
    posting_say_when(p->exchange, status);
    http_answer_json(p->exchange, status,
                     json_pack("{s:{s:s,s:s,s:s,s:O}}", "error", "field", "to", "rule",
                               "recipient", "message", message, "recipients", r->list));
}

/* False: the exchange has its answer. */
static bool
posting_may_wait(struct posting *p)
{
    int64_t most_ms = session_post_release_max_ms(p->door->setup.host);
    int64_t ahead_ms = p->send_at_ms - loop_now_ms(p->door->setup.loop);
    if (ahead_ms <= 0)
        p->send_at_ms = 0;
    if (ahead_ms <= most_ms)
        return true;
    http_answer_rule(p->exchange, 422, "send_at", "limit",
                     most_ms == 0 ? "needs future_release, which is 0"
                                  : "is later than future_release allows");
    return false;
}

enum progress
posting_go_on(struct posting *p)
{
    struct outcome refusal;
    struct text address, rest = text_after(buffer_text(&p->envelope), p->at);
    for (int i = 0; i < POST_TURN_RECIPIENTS && rest.length > 0; i++) {
        (void)text_cut(&rest, '\0', &address);
        if (!session_post_recipient(p->post, address, &refusal))
            posting_note(&p->refusals, address, &refusal);
    }
    p->at = p->envelope.length - rest.length;
    if (rest.length > 0)
        return PROGRESS_MORE;
    if (p->refusals.count == 0)
        return PROGRESS_DONE;
    posting_refuse_recipients(p);
    return PROGRESS_BAD;
}

bool
posting_begin(struct posting *p, int64_t size)
{
    struct text rest = buffer_text(&p->envelope), sender;
    char user[POST_USER_MAX];
    struct outcome refusal;
    snprintf(user, sizeof(user), POST_KEY_USER "%s", p->name);
    const struct session_post_client client = {.peer = p->exchange->peer,
                                               .user = user,
                                               .senders = p->keys->senders,
                                               .secure = p->exchange->secure};
    if (!text_cut(&rest, '\0', &sender) || p->recipients == 0) {
        http_answer_rule(p->exchange, 422, "to", "required", "no recipient");
        return false;
    }
    if (!posting_may_wait(p))
        return false;
    p->post = session_post_new(p->door->setup.host, &client, &refusal);
    if (p->post == NULL) {
        posting_refuse(p, NULL, "load", &refusal);
        return false;
    }
    if (!session_post_mail(p->post, sender, size, p->utf8, p->send_at_ms, &refusal)) {
        posting_refuse(p, posting_status(&refusal) == 413 ? NULL : "from", "sender",
                       &refusal);
        return false;
    }
    p->at = p->envelope.length - rest.length;
    return true;
}

/* --- Idempotency -------------------------------------------------------------------- */

static bool
posting_refuse_key(struct posting *p, unsigned status, const char *rule,
                   const char *why)
{
    http_answer_rule(p->exchange, status, "Idempotency-Key", rule, why);
    return false;
}

bool
posting_read_key(struct posting *p)
{
    struct text key = http_reader_field(p->exchange->request, TEXT("Idempotency-Key"));
    p->has_key = key.at != NULL;
    if (!p->has_key)
        return true;
    if (key.length == 0 || key.length > POST_IDEMPOTENCY_MAX)
        return posting_refuse_key(p, 400, "length", "has 1 to 255 characters");
    if (!p->door->setup.has_journal)
        return posting_refuse_key(p, 501, "journal", "needs journal_size above 0");
    post_records_digest(p->name, key, p->key);
    if (posting_is_known(p) || post_records_have_room(p->door->records, p->name))
        return true;
    http_answer_field(p->exchange, "Retry-After", "3600");
    return posting_refuse_key(p, 429, "limit", "too many of them are kept");
}

bool
posting_is_known(const struct posting *p)
{
    return p->has_key && post_records_find(p->door->records, p->key) != NULL;
}

static void
posting_accept(struct posting *p, struct id id)
{
    char location[sizeof(POST_PATH) + ID_LENGTH + 1];
    snprintf(location, sizeof(location), POST_PATH "/%s", ID_TEXT(id));
    http_answer_field(p->exchange, "Location", location);
    http_answer_json(p->exchange, 202, json_pack("{s:s}", "id", ID_TEXT(id)));
}

/* True: it was posted before, and is not sent again. */
static bool
posting_repeats(struct posting *p, const unsigned char body[DIGEST_SIZE])
{
    const struct post_record *known =
        p->has_key ? post_records_find(p->door->records, p->key) : NULL;
    if (known == NULL)
        return false;
    if (!digest_same(known->body, body, POST_DIGEST_SIZE)) {
        (void)posting_refuse_key(p, 409, "conflict", "was used for another message");
    } else if (known->pending) {
        http_answer_field(p->exchange, "Retry-After", "1");
        (void)posting_refuse_key(p, 503, "pending", "the same message is being stored");
    } else {
        http_answer_field(p->exchange, "Idempotency-Replayed", "true");
        posting_accept(p, known->id);
    }
    session_post_free(&p->post);
    http_exchange_wake(p->exchange);
    return true;
}

/* --- The end ------------------------------------------------------------------------ */

static void
posting_release(struct posting *p)
{
    post_object_free(&p->object);
    session_post_free(&p->post);
    post_keys_release(&p->keys);
    json_decref(p->refusals.list);
    buffer_free(&p->envelope);
    free(p);
}

/* The message of a client that has gone is stored nevertheless: its record must tell, and
 * its sender's quota count it. */
void
posting_free(void *context)
{
    struct posting *p = context;
    if (!p->pending) {
        posting_release(p);
        return;
    }
    p->exchange = NULL;
    post_object_free(&p->object);
    DL_APPEND(p->door->orphans, p);
}

static void
posting_stored(void *context, struct id id)
{
    struct posting *p = context;
    if (p->has_key)
        post_records_keep(p->door->records, p->key, id);
    p->pending = false;
}

static void
posting_done(void *context, struct id id, const struct outcome *refusal)
{
    struct posting *p = context;
    if (p->pending && p->has_key)
        post_records_drop(p->door->records, p->key);
    p->pending = false;
    if (p->exchange == NULL) {
        DL_DELETE(p->door->orphans, p);
        posting_release(p);
        return;
    }
    if (refusal != NULL)
        posting_refuse(p, NULL, "content", refusal);
    else
        posting_accept(p, id);
    session_post_free(&p->post);
    http_exchange_wake(p->exchange);
}

void
posting_end(struct posting *p)
{
    unsigned char body[DIGEST_SIZE];
    char mark[POST_MARK_MAX] = "";
    digest_end(&p->digest, body);
    if (posting_repeats(p, body))
        return;
    if (p->post == NULL) { /* its record is too old by now */
        http_answer_field(p->exchange, "Retry-After", "1");
        (void)posting_refuse_key(p, 503, "pending", "send it once more");
        return;
    }
    if (p->has_key)
        post_records_add(p->door->records, p->name, p->key, body, mark);
    p->pending = true;
    session_post_end(p->post, text_from(mark), posting_stored, posting_done, p);
}
