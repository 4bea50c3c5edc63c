/* The SMTP server session: the driver, the content, the owner's answers and events. */
#include "smtp/server/server.h"

#include "base/log/log.h"
#include "smtp/line.h"
#include "smtp/server/server_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static const struct refusal odd = {521, "5.5.2",
                                   "bare CR, bare LF or NUL not allowed, closing"};
static const struct refusal long_line = {500, "5.5.2", "line too long, closing"};
static const struct refusal not_smtp = {521, "5.5.1",
                                        "this is an SMTP server, closing"};
static const struct refusal flood = {552, "5.3.4", "message is too large, closing"};
static const struct refusal timed_out = {421, "4.4.2", "timed out, closing"};
static const struct refusal shutting_down = {421, "4.3.2",
                                             "shutting down, try again later"};

static void
server_prepare(struct server *s, const struct server_rules *rules,
               struct event_hub *events, struct buffer *out, const char *client)
{
    assert(s->rules == NULL && s->transaction == NULL && rules->recipient_limit > 0);
    s->rules = rules;
    s->events = events;
    s->out = out;
    s->uid = SERVER_NO_UID;
    text_copy(s->client, sizeof(s->client), text_from(client));
    server_enter(s, SERVER_NEW);
}

void
server_start(struct server *s, const struct server_rules *rules,
             struct event_hub *events, struct buffer *out, const char *client,
             bool lmtp, bool may_relay)
{
    server_prepare(s, rules, events, out, client);
    s->lmtp = lmtp;
    s->offer.may_relay = may_relay;
    reply_write(out, 220, NULL, "%s %s Petrel", rules->hostname,
                lmtp ? "LMTP" : "ESMTP");
}

void
server_set_offer(struct server *s, const struct server_rules *rules,
                 const struct server_offer *offer)
{
    assert(rules == s->rules || server_is_idle(s));
    s->rules = rules;
    s->offer = *offer;
}

void
server_set_load(struct server *s, const struct server_load *load)
{
    s->load = *load;
}

void
server_start_refusing(struct server *s, const struct server_rules *rules,
                      struct event_hub *events, struct buffer *out, const char *client,
                      const struct refusal *refusal)
{
    assert(refusal->code >= 400);
    server_prepare(s, rules, events, out, client);
    server_tell_start(s);
    server_close_with(s, refusal);
}

void
server_free(struct server *s)
{
    transaction_free(&s->transaction);
    server_end_login(s);
    server_forget_user(s);
    free(s->helo);
    free(s->node);
    free(s->verbs);
    s->helo = s->node = NULL;
    s->verbs = NULL;
}

/* A bare CR or a NUL in a command ends the session: another server on the way may read
 * other commands than we do (SMTP smuggling). */
static enum server_action
step_command(struct server *s, struct text *input)
{
    struct text line;
    enum line_fault fault;
    /* A TLS handshake on a port without implicit TLS. */
    if (s->stage == SERVER_NEW && text_starts(*input, TEXT("\x16\x03"))) {
        server_close_with(s, &not_smtp);
        return SERVER_GO_ON;
    }
    size_t limit = server_is_login(s, *input) ? SASL_LINE_MAX : SERVER_LINE_MAX;
    switch (line_next(input, limit, &line, &fault)) {
    case PROGRESS_MORE:
        return SERVER_READ;
    case PROGRESS_BAD:
        server_close_with(s, fault == LINE_ODD ? &odd : &long_line);
        return SERVER_GO_ON;
    case PROGRESS_DONE:
        break;
    }
    if (s->stage == SERVER_SASL)
        return server_login_line(s, line);
    s->command = server_shown(line);
    s->hushed = s->hushed || s->command.length != line.length;
    enum server_action action = server_command(s, line);
    s->command = TEXT("");
    return action;
}

/* Skips the bytes of a refused chunk, which would be read as commands. */
static enum server_action
step_skip(struct server *s, struct text *input)
{
    size_t size = input->length < s->skip ? input->length : (size_t)s->skip;
    *input = text_after(*input, size);
    s->skip -= size;
    return s->skip > 0 ? SERVER_READ : SERVER_GO_ON;
}

/* The content is complete. */
static enum server_action
complete(struct server *s)
{
    struct server_transaction *t = s->transaction;
    const struct refusal *fault = transaction_fault(t);
    if (fault != NULL && s->lmtp && server_refuse_loops(s))
        return SERVER_GO_ON;
    if (fault != NULL) {
        server_refuse_content(s, fault->code, fault->enhanced, fault->text);
        return SERVER_GO_ON;
    }
    s->question = SERVER_ASKS_STORED;
    return SERVER_STORE;
}

/* A refused content is read to its end, because the client reads no reply before that,
 * but its draft is discarded now. A client that goes on far beyond the limit is cut
 * off. */
static enum server_action
server_take(struct server *s, struct text content)
{
    struct server_transaction *t = s->transaction;
    transaction_take(t, s->rules, content);
    if (transaction_is_flood(t, s->rules)) {
        server_close_with(s, &flood);
        return SERVER_GO_ON;
    }
    if (t->fault != NULL && t->draft) {
        t->draft = false;
        s->discard = true;
    }
    t->content = content;
    return t->draft && content.length > 0 ? SERVER_WRITE : SERVER_GO_ON;
}

/* Input is looked at even when it is empty: the repair of line ends may hold back a
 * byte. */
static enum server_action
step_data(struct server *s, struct text *input)
{
    struct text content;
    struct server_transaction *t = s->transaction;
    if (input->length == 0 && !normalize_has_more(&t->newlines))
        return SERVER_READ;
    switch (normalize_data(&t->newlines, &t->dot, input, &content)) {
    case PROGRESS_MORE:
        return server_take(s, content);
    case PROGRESS_BAD:
        server_close_with(s, &odd);
        return SERVER_GO_ON;
    case PROGRESS_DONE:
        break;
    }
    return complete(s);
}

/* Only the last chunk must end with a line end: chunks may cut a line, or a CRLF, in
 * two (RFC 3030). */
static enum server_action
end_chunk(struct server *s)
{
    struct server_transaction *t = s->transaction;
    if (!t->chunk_last) {
        reply_write(s->out, 250, "2.0.0", "Ok: %llu octets",
                    (unsigned long long)t->chunk_size);
        server_enter(s, SERVER_CHUNKS);
        return SERVER_GO_ON;
    }
    if (!t->envelope->binary && t->newlines.held)
        return server_take(s, normalize_chunk_end(&t->newlines));
    if (!t->envelope->binary && !dot_check_end(&t->checker)) {
        server_close_with(s, &odd);
        return SERVER_GO_ON;
    }
    return complete(s);
}

static enum server_action
step_chunk(struct server *s, struct text *input)
{
    struct server_transaction *t = s->transaction;
    if (t->chunk_left == 0)
        return end_chunk(s);
    if (input->length == 0)
        return SERVER_READ;
    size_t left = t->chunk_left < SIZE_MAX ? (size_t)t->chunk_left : SIZE_MAX;
    struct text chunk = text_before(*input, left), content = chunk;
    size_t taken = chunk.length;
    bool good = true;
    if (!t->envelope->binary) {
        good = normalize_chunk(&t->newlines, &t->checker, &chunk, &content);
        taken -= chunk.length;
    }
    *input = text_after(*input, taken);
    t->chunk_left -= taken;
    if (!good) {
        server_close_with(s, &odd);
        return SERVER_GO_ON;
    }
    return server_take(s, content);
}

/* The order matters. A draft is discarded before anything else may begin another. No
 * input is read while the owner's answer is outstanding, so replies keep the order of
 * the commands. A stop waits for the end of a transaction, not of the session. Skipped
 * bytes never reach the parser of commands. */
enum server_action
server_step(struct server *s, struct text *input)
{
    if (s->discard) {
        s->discard = false;
        return SERVER_DISCARD;
    }
    if (s->stage == SERVER_CLOSED)
        return SERVER_CLOSE;
    if (s->question != SERVER_ASKS_NOTHING)
        return SERVER_WAIT;
    if (s->leaving && s->transaction == NULL) {
        server_close_with(s, &shutting_down);
        return SERVER_GO_ON;
    }
    if (s->skip > 0)
        return input->length == 0 ? SERVER_READ : step_skip(s, input);
    switch (s->stage) {
    case SERVER_DATA:
        return step_data(s, input);
    case SERVER_CHUNK:
        return step_chunk(s, input);
    case SERVER_NEW:
    case SERVER_READY:
    case SERVER_MAIL:
    case SERVER_RCPT:
    case SERVER_CHUNKS:
    case SERVER_CLOSED:
    case SERVER_SASL:
        break;
    }
    return step_command(s, input);
}

/* An outcome without a reply code is a local error. */
static int
code_of(const struct outcome *refusal)
{
    return refusal->code >= 400 ? refusal->code : 451;
}

void
server_admitted(struct server *s, const struct outcome *refusal)
{
    assert(s->question == SERVER_ASKS_ADMISSION);
    s->question = SERVER_ASKS_NOTHING;
    if (refusal != NULL) {
        /* 553: the address is a user's (smtp/access/senders.h). Delays stop enumeration. */
        s->probing = s->probing || refusal->code == 553;
        server_refuse_with(s, code_of(refusal), refusal->enhanced, refusal->text);
        server_end_transaction(s);
        return;
    }
    server_enter(s, SERVER_MAIL);
    if (s->transaction->priority_changed)
        reply_write(s->out, 250, "2.3.6", "%d is the priority assigned to the message",
                    s->transaction->envelope->priority);
    else
        reply_write(s->out, 250, "2.1.0", "Ok");
}

struct text
server_sender(const struct server *s)
{
    assert(s->transaction != NULL);
    return s->transaction->sender;
}

unsigned
server_accepted(const struct server *s)
{
    assert(s->transaction != NULL);
    return s->transaction->accepted;
}

bool
server_is_redirect(const struct server *s)
{
    return s->transaction != NULL && s->transaction->by_peer;
}

const struct address *
server_recipient(const struct server *s)
{
    assert(s->question == SERVER_ASKS_RECIPIENT);
    return &s->transaction->rcpt.recipient.address;
}

struct text
server_recipient_normal(const struct server *s)
{
    assert(s->question == SERVER_ASKS_RECIPIENT);
    return buffer_text(&s->transaction->normal);
}

void
server_recipient_expands(struct server *s, const struct expansion *expansion)
{
    assert(s->question == SERVER_ASKS_RECIPIENT);
    s->transaction->expansion = expansion;
}

unsigned
server_given(const struct server *s)
{
    assert(s->transaction != NULL);
    return s->transaction->given;
}

void
server_recipient_joins(struct server *s)
{
    assert(s->question == SERVER_ASKS_RECIPIENT);
    s->transaction->joins = true;
}

/* A repeated recipient is accepted and not added: the client has one reply for each
 * RCPT, and in LMTP one for each at the end of the content, hence the count. */
unsigned
server_recipient_checked(struct server *s, const struct outcome *refusal)
{
    struct server_transaction *t = s->transaction;
    assert(s->question == SERVER_ASKS_RECIPIENT);
    unsigned before = t->envelope->count, added;
    const struct refusal *full =
        refusal != NULL ? NULL : transaction_accept(t, s->lmtp);
    t->expansion = NULL;
    added = t->envelope->count - before;
    if (refusal != NULL) {
        server_refuse_with(s, code_of(refusal), refusal->enhanced, refusal->text);
    } else if (full != NULL) {
        server_refuse_excess(s, full);
    } else {
        server_enter(s, SERVER_RCPT);
        reply_write(s->out, 250, "2.1.5", "Ok");
    }
    s->question = SERVER_ASKS_NOTHING;
    return added;
}

int64_t
server_expected_size(const struct server *s)
{
    assert(s->question == SERVER_ASKS_ADMISSION || s->question == SERVER_ASKS_DRAFT);
    return s->transaction->expected;
}

/* After BDAT the chunk follows in any case and has to be skipped. After DATA no content
 * comes without a 354. */
void
server_begun(struct server *s, const struct outcome *refusal)
{
    struct server_transaction *t = s->transaction;
    assert(s->question == SERVER_ASKS_DRAFT);
    s->question = SERVER_ASKS_NOTHING;
    t->draft = refusal == NULL;
    if (refusal != NULL && t->chunked) {
        server_refuse_chunk(s, t->chunk_left, code_of(refusal), refusal->enhanced,
                            refusal->text);
    } else if (refusal != NULL) {
        server_refuse_with(s, code_of(refusal), refusal->enhanced, refusal->text);
        server_end_transaction(s);
    } else if (t->chunked) {
        server_enter(s, SERVER_CHUNK);
    } else {
        server_enter(s, SERVER_DATA);
        reply_write(s->out, 354, NULL, "End data with <CR><LF>.<CR><LF>");
    }
}

struct text
server_content(const struct server *s)
{
    assert(s->transaction != NULL && s->transaction->draft);
    return s->transaction->content;
}

struct envelope *
server_envelope(struct server *s)
{
    assert(s->question == SERVER_ASKS_STORED && s->transaction->envelope != NULL);
    return s->transaction->envelope;
}

struct envelope *
server_seal(struct server *s, int64_t now_ms)
{
    assert(s->question == SERVER_ASKS_STORED);
    return transaction_seal(s->transaction, s, now_ms);
}

void
server_stored(struct server *s, const struct outcome *refusal)
{
    struct server_transaction *t = s->transaction;
    assert(s->question == SERVER_ASKS_STORED && t->envelope == NULL);
    s->question = SERVER_ASKS_NOTHING;
    if (refusal != NULL) {
        server_refuse_content(s, code_of(refusal), refusal->enhanced, refusal->text);
        return;
    }
    s->errors = s->junk = s->excess = 0;
    s->probing = false;
    for (unsigned i = server_answers(s); i > 0; i--)
        reply_write(s->out, 250, "2.0.0", "Ok: queued as %s", t->id);
    server_end_transaction(s);
}

const char *
server_node(const struct server *s)
{
    assert(s->question == SERVER_ASKS_FLUSH && s->node != NULL);
    return s->node;
}

void
server_flushed(struct server *s, enum server_flush answer)
{
    assert(s->question == SERVER_ASKS_FLUSH);
    s->question = SERVER_ASKS_NOTHING;
    switch (answer) {
    case SERVER_FLUSH_STARTED:
        reply_write(s->out, 250, "2.0.0", "OK, queuing for node %s started", s->node);
        break;
    case SERVER_FLUSH_RECENT:
        reply_write(s->out, 250, "2.0.0", "OK, queuing for node %s has started already",
                    s->node);
        break;
    case SERVER_FLUSH_UNABLE:
        server_refuse_format(s, 458, "4.3.0", "Unable to queue messages for node %s",
                             s->node);
        break;
    case SERVER_FLUSH_DENIED:
        server_refuse_format(s, 459, "4.7.1", "Node %s not allowed: not served here",
                             s->node);
        break;
    }
    free(s->node);
    s->node = NULL;
}

void
server_secured(struct server *s, const char *version, const char *cipher)
{
    assert(s->transaction == NULL && s->skip == 0);
    s->secure = true;
    snprintf(s->security, sizeof(s->security), "%s with cipher %s", version, cipher);
    server_tell_secured(s);
    if (s->question != SERVER_ASKS_TLS)
        return;
    s->question = SERVER_ASKS_NOTHING;
    server_forget_user(s);
    free(s->helo);
    s->helo = NULL;
    s->junk = 0;
    s->esmtp = false;
    if (s->stage != SERVER_CLOSED)
        server_enter(s, SERVER_NEW);
}

void
server_give_way(struct server *s, const struct refusal *why)
{
    assert(s->question != SERVER_ASKS_STORED); /* the client waits for us then */
    if (s->stage != SERVER_CLOSED)
        server_close_with(s, why);
}

void
server_timed_out(struct server *s)
{
    server_tell_bad_end(s, EVENT_TIMED_OUT);
    server_give_way(s, &timed_out);
}

void
server_shut_down(struct server *s)
{
    s->leaving = true;
    if (s->stage != SERVER_CLOSED && s->transaction == NULL)
        server_close_with(s, &shutting_down);
}

bool
server_is_idle(const struct server *s)
{
    return s->transaction == NULL && s->login == NULL;
}

bool
server_is_receiving(const struct server *s)
{
    return s->skip > 0 || s->stage == SERVER_DATA || s->stage == SERVER_CHUNK;
}
