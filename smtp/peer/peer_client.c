/* Sends messages and questions, and reads their replies. */
#include "smtp/peer/peer_client.h"

#include "base/memory.h"
#include "smtp/peer/peer_hello.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum peer_kind { PEER_HELLO, PEER_GIFT, PEER_ASK, PEER_NOOP, PEER_BYE };

enum {
    PEER_NO_ROOM = 0, /* until_ms of a request that is never sent */
    PEER_ANSWER_LINE_MAX = SIBLING_LINE_MAX + 16,
    PEER_CLIENT_OUT_MAX = SIBLING_SECTIONS_MAX /* peer_client_fill() says how much */
};

static const char peer_no_room[] = "too much waits for an answer",
                  peer_late[] = "no answer in time";

/* A command that was sent, is being sent or waits for that. */
struct peer_request {
    struct peer_request *prev, *next;
    enum peer_kind kind;
    struct sibling_gift gift;
    struct sibling_listener listener;
    unsigned round;  /* of the client's connections */
    bool is_ignored; /* nobody is called */

    char *bytes; /* the command, and its data but the content; owned */
    size_t length;
    uint64_t size;    /* of a message, as has_room counts it */
    size_t sent;      /* of bytes */
    int64_t read;     /* of the content */
    int64_t until_ms; /* a question's */
    int64_t reply_ms; /* its reply must be whole; INT64_MAX: it was not sent yet */
    size_t heard;     /* bytes of the answer */
    bool is_answered;
    enum sibling_answer answer;
    struct id there;
    struct outcome outcome;
};

static struct peer_request *
peer_client_add(struct peer_client *c, enum peer_kind kind)
{
    struct peer_request *r = memory_new(sizeof(*r));
    r->kind = kind;
    r->round = c->round;
    r->until_ms = r->reply_ms = INT64_MAX;
    DL_APPEND(c->requests, r);
    return r;
}

static void
peer_client_drop(struct peer_client *c, struct peer_request *r)
{
    if (r->kind == PEER_GIFT) {
        c->gifts--;
        c->gift_bytes -= r->size;
    }
    c->asks -= r->kind == PEER_ASK;
    DL_DELETE(c->requests, r);
    free(r->bytes);
    free(r);
}

static bool
peer_request_is_sent(const struct peer_request *r)
{
    return r->sent == r->length &&
           (r->kind != PEER_GIFT || r->read == r->gift.message.content);
}

static bool
peer_request_is_begun(const struct peer_request *r)
{
    return r->sent > 0;
}

/* --- Ends of requests --------------------------------------------------------------- */

/* The request is gone before its owner is called, which may make another one. */
static void
peer_client_end_gift(struct peer_client *c, struct peer_request *r)
{
    struct sibling_gift gift = r->gift;
    struct outcome outcome = r->outcome;
    enum sibling_answer answer = r->answer;
    struct id there = r->there;
    bool is_ignored = r->is_ignored;
    peer_client_drop(c, r);
    if (!is_ignored)
        gift.given(gift.context, answer, there, &outcome);
}

static void
peer_client_end_ask(struct peer_client *c, struct peer_request *r, const char *trouble)
{
    struct sibling_listener listener = r->listener;
    bool is_ignored = r->is_ignored;
    peer_client_drop(c, r);
    if (!is_ignored)
        listener.end(listener.context, c->host, trouble);
}

static void
peer_client_end_lost(struct peer_client *c, struct peer_request *r, const char *why)
{
    switch (r->kind) {
    case PEER_GIFT:
        if (!r->is_answered) {
            /* A request without a byte sent is not there. */
            r->answer = peer_request_is_begun(r) ? SIBLING_LOST : SIBLING_LATER;
            r->outcome = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.2",
                                      "%s: %s", c->host, why);
        }
        peer_client_end_gift(c, r);
        break;
    case PEER_ASK:
        peer_client_end_ask(c, r, why);
        break;
    case PEER_HELLO:
    case PEER_NOOP:
    case PEER_BYE:
        peer_client_drop(c, r);
        break;
    }
}

/* Only those that are there now: a callback may add others. */
void
peer_client_lose(struct peer_client *c, const char *why)
{
    char reason[PEER_WHY_MAX];
    struct peer_request *r;
    unsigned round = c->round++;
    snprintf(reason, sizeof(reason), "%s",
             c->is_over && c->why[0] != '\0' ? c->why : why);
    while (c->requests != NULL && c->requests->round == round &&
           (!c->is_left || peer_request_is_begun(c->requests)))
        peer_client_end_lost(c, c->requests, reason);
    DL_FOREACH (c->requests, r)
        r->round = c->round;
    buffer_free(&c->out);
    buffer_free(&c->line);
    c->is_ready = c->is_over = c->is_left = false;
    c->why[0] = '\0';
}

static void __attribute__((format(printf, 2, 3)))
peer_client_break(struct peer_client *c, const char *format, ...)
{
    va_list list;
    if (c->is_over)
        return;
    c->is_over = true;
    va_start(list, format);
    vsnprintf(c->why, sizeof(c->why), format, list);
    va_end(list);
}

/* The other host ends what it has begun for the question. */
static void
peer_client_leave(struct peer_client *c)
{
    c->is_left = !c->is_over;
    peer_client_break(c, "nobody waits for its answer any more");
}

/* --- Requests ----------------------------------------------------------------------- */

void
peer_client_init(struct peer_client *c)
{
    buffer_init(&c->out, PEER_CLIENT_OUT_MAX);
    buffer_init(&c->line, PEER_ANSWER_LINE_MAX);
    reply_start(&c->reply);
}

void
peer_client_free(struct peer_client *c)
{
    while (c->requests != NULL)
        peer_client_drop(c, c->requests);
    buffer_free(&c->out);
    buffer_free(&c->line);
}

void
peer_client_start(struct peer_client *c)
{
    struct sibling_hello own = {.run_ms = 0};
    struct peer_request *r = memory_new(sizeof(*r));
    struct buffer line;
    r->kind = PEER_HELLO;
    r->round = c->round;
    r->until_ms = r->reply_ms = INT64_MAX;
    c->is_ready = c->is_over = c->is_left = false;
    reply_start(&c->reply);
    c->service->hello(c->service->context, &own);
    buffer_init(&line, PEER_HELLO_MAX + 64);
    bool fits = buffer_add(&line, TEXT("XPEER 1 ")) && peer_hello_write(&own, &line) &&
                buffer_add(&line, TEXT("\r\n"));
    r->bytes = text_string(buffer_text(&line));
    r->length = line.length;
    buffer_free(&line);
    DL_PREPEND(c->requests, r);
    if (!fits)
        peer_client_break(c, "this host has no name");
}

void
peer_client_restart(struct peer_client *c)
{
    if (c->requests != NULL && c->requests->kind == PEER_HELLO)
        peer_client_drop(c, c->requests);
    buffer_clear(&c->out);
}

bool
peer_client_has_room(const struct peer_client *c, uint64_t bytes)
{
    return c->gifts == 0 || (c->gifts < SIBLING_UNANSWERED &&
                             c->gift_bytes + bytes <= SIBLING_UNANSWERED_BYTES);
}

bool
peer_client_is_idle(const struct peer_client *c)
{
    return c->requests == NULL;
}

/* The end of a message that is not sent. */
static void
peer_client_refuse(struct peer_request *r)
{
    r->until_ms = PEER_NO_ROOM;
    r->is_answered = true;
    r->answer = SIBLING_LATER;
    r->outcome =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.5", "%s", peer_no_room);
}

void
peer_client_give(struct peer_client *c, const struct sibling_gift *gift)
{
    const struct sibling_message *m = &gift->message;
    uint64_t size = m->sections + (uint64_t)m->content;
    char id[ID_LENGTH + 1], head[128];
    assert(m->sections == gift->sections.length && m->sections > 0 && m->content >= 0);
    bool has_room = peer_client_has_room(c, size);
    struct peer_request *r = peer_client_add(c, PEER_GIFT);
    r->gift = *gift;
    r->size = size;
    c->gifts++;
    c->gift_bytes += size;
    if (!has_room) {
        peer_client_refuse(r);
        return;
    }
    id_format(m->id, id);
    int length =
        snprintf(head, sizeof(head), "XGIVE %s %zu %" PRId64 " %08" PRIx32 "\r\n", id,
                 m->sections, m->content, m->crc);
    r->length = (size_t)length + m->sections;
    r->bytes = memory_new(r->length);
    memcpy(r->bytes, head, (size_t)length);
    memcpy(r->bytes + length, gift->sections.at, m->sections);
}

void
peer_client_ask(struct peer_client *c, struct text line, int64_t until_ms,
                const struct sibling_listener *listener)
{
    char head[64];
    struct peer_request *r = peer_client_add(c, PEER_ASK);
    r->listener = *listener;
    r->until_ms = until_ms;
    if (++c->asks > PEER_ASKS_MAX || line.length == 0 ||
        line.length > SIBLING_LINE_MAX) {
        r->until_ms = PEER_NO_ROOM;
        return;
    }
    int length = snprintf(head, sizeof(head), "XASK %zu\r\n", line.length);
    r->length = (size_t)length + line.length;
    r->bytes = memory_new(r->length);
    memcpy(r->bytes, head, (size_t)length);
    memcpy(r->bytes + length, line.at, line.length);
}

static void
peer_client_say(struct peer_client *c, enum peer_kind kind, const char *line)
{
    struct peer_request *r = peer_client_add(c, kind);
    r->bytes = memory_string(line);
    r->length = strlen(line);
}

void
peer_client_noop(struct peer_client *c)
{
    struct peer_request *r;
    if (c->is_over) /* no connection is made for it */
        return;
    DL_FOREACH (c->requests, r)
        if (r->kind == PEER_NOOP)
            return;
    peer_client_say(c, PEER_NOOP, "NOOP\r\n");
}

void
peer_client_quit(struct peer_client *c)
{
    if (c->requests == NULL && c->is_ready)
        peer_client_say(c, PEER_BYE, "QUIT\r\n");
}

/* --- Sending ------------------------------------------------------------------------ */

/* The announced bytes cannot be sent, so the connection ends; the message stays
 * here. */
static void
peer_client_spoil(struct peer_client *c, struct peer_request *r)
{
    r->is_answered = true;
    r->answer = SIBLING_REFUSED;
    r->outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 0, "5.3.0",
                              "its content cannot be read here");
    peer_client_break(c, "a message could not be read");
}

static void
peer_client_fill_content(struct peer_client *c, struct peer_request *r, size_t size)
{
    while (r->read < r->gift.message.content && c->out.length < size && !c->is_over) {
        int64_t left = r->gift.message.content - r->read, got;
        size_t piece = left < PEER_PIECE ? (size_t)left : PEER_PIECE;
        char *to = buffer_reserve(&c->out, piece);
        got = to == NULL ? -1 : r->gift.read(r->gift.context, r->read, to, piece);
        if (got <= 0 || got > (int64_t)piece) {
            peer_client_spoil(c, r);
            return;
        }
        c->out.length += (size_t)got;
        r->read += got;
    }
}

static void
peer_client_fill_bytes(struct peer_client *c, struct peer_request *r, size_t size)
{
    size_t room = c->out.length < size ? size - c->out.length : 0;
    struct text bytes =
        text_before(text_of(r->bytes + r->sent, r->length - r->sent), room);
    if (bytes.length > 0 && buffer_add(&c->out, bytes))
        r->sent += bytes.length;
    if (r->sent < r->length)
        return;
    free(r->bytes);
    r->bytes = NULL;
}

/* A reply that came while its content was still being sent. */
static void
peer_client_settle(struct peer_client *c)
{
    struct peer_request *r = c->requests;
    if (r != NULL && r->kind == PEER_GIFT && r->is_answered && peer_request_is_sent(r))
        peer_client_end_gift(c, r);
}

/* A question may have more time of its own. */
static void
peer_client_note_sent(struct peer_request *r, int64_t now_ms)
{
    if (r->reply_ms != INT64_MAX)
        return;
    r->reply_ms = now_ms + PEER_REPLY_MS;
    if (r->until_ms != INT64_MAX && r->until_ms > r->reply_ms)
        r->reply_ms = r->until_ms;
}

/* Nothing but XPEER before its reply: the other one may be somebody else. */
static void
peer_client_fill_all(struct peer_client *c, size_t size, int64_t now_ms)
{
    struct peer_request *r;
    bool has_asked = false;
    for (r = c->requests; r != NULL && !c->is_over && c->out.length < size;
         r = r->next) {
        if (r->until_ms == PEER_NO_ROOM)
            continue;
        if ((r->kind != PEER_HELLO && !c->is_ready) ||
            (r->kind == PEER_ASK && has_asked))
            return;
        has_asked = has_asked || r->kind == PEER_ASK;
        if (r->sent < r->length)
            peer_client_fill_bytes(c, r, size);
        if (r->sent == r->length && r->kind == PEER_GIFT && !c->is_over)
            peer_client_fill_content(c, r, size);
        if (!peer_request_is_sent(r))
            return;
        peer_client_note_sent(r, now_ms);
    }
}

void
peer_client_fill(struct peer_client *c, size_t size, int64_t now_ms)
{
    peer_client_fill_all(c, size, now_ms);
    peer_client_settle(c);
}

/* --- Replies ------------------------------------------------------------------------ */

static void
peer_client_hear_hello(struct peer_client *c, struct peer_request *r)
{
    struct sibling_hello own = {.run_ms = 0};
    const struct reply *reply = &c->reply;
    peer_client_drop(c, r);
    c->service->hello(c->service->context, &own);
    if (reply->code / 100 != 2) {
        peer_client_break(c, "it said: %d %s %s", reply->code, reply->enhanced,
                          reply->text);
    } else if (!peer_hello_read(reply_text(reply), &c->other)) {
        peer_client_break(c, "it does not say who it is");
    } else if (strcmp(c->other.group, own.group) != 0) {
        peer_client_break(c, "it is of another group, %s", c->other.group);
    } else if (strcmp(c->other.host, c->host) != 0) {
        peer_client_break(c, "another host is there, %s", c->other.host);
    } else {
        c->is_ready = true;
    }
}

static void
peer_client_hear_gift(struct peer_client *c, struct peer_request *r)
{
    const struct reply *reply = &c->reply;
    bool is_good = reply->code / 100 == 2;
    /* It is about the connection: the message may become durable there all the same. */
    if (reply->code == 421)
        return;
    bool is_odd =
        is_good ? !peer_request_is_sent(r) || !id_parse(reply_text(reply), &r->there)
                : reply->code < 400;
    if (is_odd) {
        peer_client_break(c, "an odd reply to a message: %d %s", reply->code,
                          reply->text);
        return;
    }
    r->is_answered = true;
    r->answer = is_good                  ? SIBLING_TAKEN
                : reply->code / 100 == 4 ? SIBLING_LATER
                                         : SIBLING_REFUSED;
    if (is_good)
        r->outcome = outcome_make(VERDICT_DELIVERED, BLAME_NONE, reply->code, "2.0.0",
                                  "%s", reply->text);
    else
        r->outcome = outcome_make(reply->code < 500 ? VERDICT_DEFERRED : VERDICT_FAILED,
                                  BLAME_MESSAGE, reply->code,
                                  reply->enhanced[0] != '\0' ? reply->enhanced
                                  : reply->code < 500        ? "4.0.0"
                                                             : "5.0.0",
                                  "%s", reply->text);
    peer_client_settle(c);
}

static void
peer_client_hear(struct peer_client *c, struct peer_request *r)
{
    bool is_last = c->reply.code == 421;
    char text[PEER_WHY_MAX];
    snprintf(text, sizeof(text), "it said: %d %s %.400s", c->reply.code,
             c->reply.enhanced, c->reply.text);
    switch (r->kind) {
    case PEER_HELLO:
        peer_client_hear_hello(c, r);
        break;
    case PEER_GIFT:
        peer_client_hear_gift(c, r);
        break;
    case PEER_BYE:
        peer_client_drop(c, r);
        peer_client_break(c, "goodbye");
        break;
    case PEER_ASK:
    case PEER_NOOP:
        peer_client_drop(c, r);
        break;
    }
    if (is_last)
        peer_client_break(c, "%s", text);
}

/* The last line of an answer that is none. */
static void
peer_client_hear_refusal(struct peer_client *c, struct peer_request *r,
                         struct text line)
{
    char why[PEER_WHY_MAX];
    struct buffer whole;
    buffer_init(&whole, REPLY_LINE_MAX + 1);
    bool fits = buffer_add(&whole, line) && buffer_add_byte(&whole, '\n');
    struct text rest = buffer_text(&whole);
    reply_start(&c->reply);
    if (!fits || reply_parse(&rest, &c->reply) != PROGRESS_DONE ||
        c->reply.code < 400) {
        peer_client_break(c, "an odd answer to a question");
    } else {
        bool is_last = c->reply.code == 421;
        snprintf(why, sizeof(why), "it said: %d %s %.400s", c->reply.code,
                 c->reply.enhanced, c->reply.text);
        peer_client_end_ask(c, r, why);
        if (is_last)
            peer_client_break(c, "%s", why);
    }
    reply_start(&c->reply);
    buffer_free(&whole);
}

/* A line of an answer, without its line end. */
static void
peer_client_hear_line(struct peer_client *c, struct peer_request *r, struct text line)
{
    if (text_starts(line, TEXT("250-"))) {
        line = text_after(line, 4);
        r->heard += line.length;
        /* Empty lines have no bytes, and no JSON either. */
        if (line.length == 0)
            peer_client_break(c, "an odd answer to a question");
        else if (r->heard > SIBLING_ANSWER_MAX)
            peer_client_break(c, "the answer is too long");
        else if (!r->is_ignored)
            r->listener.line(r->listener.context, c->host, line);
        return;
    }
    if (text_equal(line, TEXT("250 end"))) {
        peer_client_end_ask(c, r, NULL);
        return;
    }
    peer_client_hear_refusal(c, r, line);
}

/* Lines may be longer than the input of a connection. False: more is needed. */
static bool
peer_client_read_answer(struct peer_client *c, struct peer_request *r,
                        struct text *input)
{
    size_t end = text_find(*input, '\n');
    struct text piece = text_before(*input, end == TEXT_NONE ? input->length : end);
    if (!buffer_add(&c->line, piece)) {
        peer_client_break(c, "a line of an answer is too long");
        return false;
    }
    *input = text_after(*input, piece.length + (end != TEXT_NONE));
    if (end == TEXT_NONE)
        return false;
    struct text line = buffer_text(&c->line);
    if (line.length > 0 && line.at[line.length - 1] == '\r')
        line.length--;
    struct buffer owned = c->line;
    buffer_init(&c->line, PEER_ANSWER_LINE_MAX);
    peer_client_hear_line(c, r, line);
    buffer_free(&owned);
    return true;
}

static bool
peer_client_read_reply(struct peer_client *c, struct peer_request *r,
                       struct text *input)
{
    switch (reply_parse(input, &c->reply)) {
    case PROGRESS_MORE:
        return false;
    case PROGRESS_BAD:
        peer_client_break(c, "an odd reply");
        return false;
    case PROGRESS_DONE:
        peer_client_hear(c, r);
        reply_start(&c->reply);
        return true;
    }
    return false;
}

void
peer_client_read(struct peer_client *c, struct text *input)
{
    bool goes_on = true;
    while (goes_on && !c->is_over && input->length > 0) {
        struct peer_request *r = c->requests;
        if (r == NULL || !peer_request_is_begun(r) || r->is_answered) {
            /* 421 of one that closes. */
            goes_on = reply_parse(input, &c->reply) == PROGRESS_DONE;
            peer_client_break(c, "it said: %d %s %s", c->reply.code, c->reply.enhanced,
                              c->reply.text);
        } else if (r->kind == PEER_ASK) {
            goes_on = peer_client_read_answer(c, r, input);
        } else {
            goes_on = peer_client_read_reply(c, r, input);
        }
    }
}

/* --- Time-outs, and owners that have gone -------------------------------------------- */

/* A byte now and then is a sign of life, but no reply. */
static void
peer_client_expire_replies(struct peer_client *c, int64_t now_ms)
{
    struct peer_request *r;
    DL_FOREACH (c->requests, r) {
        if (r->reply_ms > now_ms)
            continue;
        r->reply_ms = INT64_MAX;
        peer_client_break(c, "no reply in time");
    }
}

void
peer_client_expire(struct peer_client *c, int64_t now_ms)
{
    struct peer_request *r, *next;
    peer_client_expire_replies(c, now_ms);
    for (r = c->requests; r != NULL; r = next) {
        next = r->next;
        if (r->until_ms > now_ms)
            continue;
        if (!peer_request_is_begun(r)) {
            peer_client_end_lost(
                c, r, r->until_ms == PEER_NO_ROOM ? peer_no_room : peer_late);
        } else {
            bool is_ignored = r->is_ignored;
            r->until_ms = INT64_MAX;
            r->is_ignored = true;
            peer_client_leave(c);
            if (!is_ignored)
                r->listener.end(r->listener.context, c->host, peer_late);
        }
        next = c->requests; /* it may have changed */
    }
}

int64_t
peer_client_next_ms(const struct peer_client *c)
{
    const struct peer_request *r;
    int64_t next_ms = INT64_MAX;
    DL_FOREACH (c->requests, r) {
        next_ms = r->until_ms < next_ms ? r->until_ms : next_ms;
        next_ms = r->reply_ms < next_ms ? r->reply_ms : next_ms;
    }
    return next_ms;
}

/* Requests not begun go; those begun still expect a reply. */
bool
peer_client_ignore(struct peer_client *c, const void *context)
{
    struct peer_request *r, *next;
    bool is_whole = true;
    DL_FOREACH_SAFE (c->requests, r, next) {
        bool is_gift = r->kind == PEER_GIFT && r->gift.context == context;
        bool is_ask = r->kind == PEER_ASK && r->listener.context == context;
        if (!is_gift && !is_ask)
            continue;
        r->is_ignored = true;
        r->until_ms = INT64_MAX;
        if (!peer_request_is_begun(r)) {
            peer_client_drop(c, r);
        } else if (is_ask) {
            is_whole = false;
            peer_client_leave(c);
        } else if (!peer_request_is_sent(r)) {
            is_whole = false;
            r->gift.message.content = r->read; /* never read again */
            peer_client_break(c, "a message was taken back");
        }
    }
    return is_whole;
}
