/* Gives a posted message its envelope, and tells what became of it. */
#include "admin/post/posting.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum { RATE = 450, CROWDED = 421, STATUS_MAX = 32 };

const char *
posting_add(struct posting *p, struct text address)
{
    address = text_trim(address);
    if (address.length > 1 && address.at[0] == '<' &&
        address.at[address.length - 1] == '>')
        address = text_before(text_after(address, 1), address.length - 2);
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
    if (o->code < 500)
        return 503;
    if (o->code == 552)
        return 413;
    return strcmp(o->enhanced, "5.7.1") == 0 ? 403 : 422;
}

static void
posting_say_when(struct http_exchange *x, unsigned status)
{
    char seconds[STATUS_MAX];
    snprintf(seconds, sizeof(seconds), "%d", POST_LATER_S);
    if (status == 429 || status == 503)
        http_answer_field(x, "Retry-After", seconds);
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

struct post_refusals {
    json_t *list;
    size_t count;
    struct outcome first; /* the first that is for ever, or the first */
};

static void
posting_note(struct post_refusals *r, struct text address, const struct outcome *o)
{
    json_t *one;
    if (r->count == 0 || (o->code >= 500 && r->first.code < 500))
        r->first = *o;
    if (r->count++ >= POST_REFUSED_MAX)
        return;
    one = posting_error("to", "recipient", o);
    json_object_set_new(one, "address", json_stringn(address.at, address.length));
    json_array_append_new(r->list, one);
}

static void
posting_refuse_recipients(struct posting *p, struct post_refusals *r)
{
    char message[100];
    unsigned status = posting_status(&r->first);
    snprintf(message, sizeof(message), "%zu of %zu recipients refused: nothing is sent",
             r->count, p->recipients);
    posting_say_when(p->exchange, status);
    http_answer_json(p->exchange, status,
                     json_pack("{s:{s:s,s:s,s:s,s:O}}", "error", "field", "to", "rule",
                               "recipient", "message", message, "recipients", r->list));
}

static bool
posting_recipients(struct posting *p, struct text rest)
{
    struct post_refusals refusals = {.list = json_array()};
    struct outcome refusal;
    struct text address;
    while (rest.length > 0 && text_cut(&rest, '\0', &address))
        if (!session_post_recipient(p->post, address, &refusal))
            posting_note(&refusals, address, &refusal);
    if (refusals.count > 0)
        posting_refuse_recipients(p, &refusals);
    json_decref(refusals.list);
    return refusals.count == 0;
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
    p->post = session_post_new(p->door->setup.host, &client, &refusal);
    if (p->post == NULL) {
        posting_refuse(p, NULL, "load", &refusal);
        return false;
    }
    if (!session_post_mail(p->post, sender, size, p->utf8, &refusal)) {
        posting_refuse(p, posting_status(&refusal) == 413 ? NULL : "from", "sender",
                       &refusal);
        return false;
    }
    return posting_recipients(p, rest);
}

/* --- The end ------------------------------------------------------------------------ */

static void
posting_done(void *context, struct id id, const struct outcome *refusal)
{
    struct posting *p = context;
    struct http_exchange *x = p->exchange;
    char location[sizeof(POST_PATH) + ID_LENGTH + 1];
    if (refusal != NULL) {
        posting_refuse(p, NULL, "content", refusal);
    } else {
        snprintf(location, sizeof(location), POST_PATH "/%s", ID_TEXT(id));
        http_answer_field(x, "Location", location);
        http_answer_json(x, 202, json_pack("{s:s}", "id", ID_TEXT(id)));
    }
    session_post_free(&p->post);
    http_exchange_wake(x);
}

void
posting_end(struct posting *p)
{
    session_post_end(p->post, TEXT(""), posting_done, p);
}
