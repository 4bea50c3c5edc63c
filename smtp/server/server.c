/* The SMTP server session: the driver, the content, the owner's answers and events. */
#include "smtp/server/server.h"

#include "base/log/log.h"
#include "base/memory.h"
#include "smtp/access/refusals.h"
#include "smtp/line.h"
#include "smtp/server/server_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Events ----------------------------------------------------------------------- */

/* In the order of Postfix's line about a disconnection. All other commands count as the
 * last. */
static const char *const verb_names[] = {
    "helo", "ehlo", "lhlo", "starttls", "auth", "mail", "rcpt", "data",
    "bdat", "rset", "noop", "vrfy",     "etrn", "help", "quit", "unknown"};
enum {
    VERBS = sizeof(verb_names) / sizeof(verb_names[0]),
    UNKNOWN = VERBS - 1,
    VERB_NAME_MAX = 12,
    MESSAGE_ID_MAX = 320
};

/* Made with the first command: a silent session has none. */
struct server_verbs {
    uint32_t good[VERBS], all[VERBS];
    unsigned last;
    bool refused; /* the last one */
};

static unsigned
verb_find(struct text verb)
{
    unsigned i = 0;
    while (i < UNKNOWN && !text_equal_nocase(verb, text_from(verb_names[i])))
        i++;
    return i;
}

/* All that the probe of a monitor, or of a load balancer, says. */
static bool
is_probe(const char *verb)
{
    static const char *const probes[] = {"helo", "ehlo", "lhlo", "noop", "quit"};
    for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++)
        if (strcmp(verb, probes[i]) == 0)
            return true;
    return false;
}

static struct event_client
client_of(const struct server *s)
{
    enum sasl_mechanism mechanism;
    const char *user = server_user(s, &mechanism);
    return (struct event_client){
        .name = s->client,
        .helo = s->helo,
        .user = user,
        .mechanism = mechanism != SASL_NONE ? sasl_name(mechanism) : NULL,
        .protocol = s->protocol != NULL           ? s->protocol
                    : s->lmtp                     ? "LMTP"
                    : s->esmtp || s->helo == NULL ? "ESMTP"
                                                  : "SMTP",
        .tls = s->security,
        .uid = s->uid,
        .is_trusted = server_may_relay(s)};
}

static void
tell(struct server *s, const struct event *event)
{
    struct event_client client = client_of(s);
    struct event whole = *event;
    whole.client = &client;
    event_tell(s->events, &whole);
}

void
server_count_verb(struct server *s, struct text verb)
{
    unsigned i = verb_find(verb);
    if (s->verbs == NULL)
        s->verbs = memory_new(sizeof(*s->verbs));
    s->verbs->last = i;
    s->verbs->refused = false;
    s->verbs->all[i]++;
    s->verbs->good[i]++;
    if (!s->told && !is_probe(verb_names[i])) {
        s->told = true;
        tell(s, &(struct event){.kind = EVENT_CONNECTED, .text = TEXT("connect")});
    }
}

void
server_tell_start(struct server *s)
{
    if (!server_is_untrusted(s))
        return;
    s->told = true;
    tell(s, &(struct event){.kind = EVENT_CONNECTED, .text = TEXT("connect")});
}

/* "rcpt"; before the first command "connect". */
static const char *
last_verb(const struct server *s)
{
    return s->verbs != NULL ? verb_names[s->verbs->last] : "connect";
}

static bool
is_in_content(const struct server *s)
{
    return s->transaction != NULL &&
           (s->stage == SERVER_DATA || s->stage == SERVER_CHUNK);
}

/* EVENT_TIMED_OUT or EVENT_CUT_OFF. */
static void
server_tell_bad_end(struct server *s, enum event_kind kind)
{
    char verb[VERB_NAME_MAX];
    size_t length = 0;
    for (const char *c = last_verb(s); *c != '\0'; c++)
        verb[length++] = (char)(*c - 'a' + 'A');
    struct event event = {.kind = kind,
                          .command = text_of(verb, length),
                          .size = is_in_content(s) ? s->transaction->size : -1,
                          .is_quiet = !s->told};
    event.text = kind == EVENT_LOST        ? TEXT("lost connection")
                 : kind == EVENT_TIMED_OUT ? TEXT("timeout")
                                           : TEXT("too many errors");
    tell(s, &event);
}

void
server_tell_end(struct server *s)
{
    struct event_verb list[VERBS + 1];
    size_t count = 0;
    if (s->stage != SERVER_CLOSED)
        server_tell_bad_end(s, EVENT_LOST);
    for (size_t i = 0; s->verbs != NULL && i < VERBS; i++)
        if (s->verbs->all[i] > 0)
            list[count++] =
                (struct event_verb){verb_names[i], s->verbs->good[i], s->verbs->all[i]};
    list[count] = (struct event_verb){NULL, 0, 0};
    tell(s, &(struct event){.kind = EVENT_DISCONNECTED,
                            .text = TEXT("disconnect"),
                            .verbs = list,
                            .is_quiet = !s->told});
}

static void
server_tell_secured(struct server *s)
{
    tell(s, &(struct event){.kind = EVENT_SECURED,
                            .tls = text_from(s->security),
                            .text = TEXT("Anonymous")});
}

/* --- Events of refusals
 * --------------------------------------------------------------------- */

static void
count_refusal(struct server *s)
{
    if (s->verbs == NULL || s->verbs->refused)
        return;
    s->verbs->refused = true;
    s->verbs->good[s->verbs->last]--;
}

static void
tell_refusal(struct server *s, enum event_kind kind, int code, const char *enhanced,
             const char *text)
{
    const struct server_transaction *t = s->transaction;
    struct outcome outcome = {.verdict = VERDICT_FAILED, .code = code};
    text_copy(outcome.enhanced, sizeof(outcome.enhanced), text_from(enhanced));
    text_copy(outcome.text, sizeof(outcome.text), text_from(text));
    struct event event = {.kind = kind,
                          .outcome = &outcome,
                          .command = s->command,
                          .size = t != NULL && is_in_content(s) ? t->size : -1,
                          .verb = last_verb(s),
                          .reason = refusals_reason(last_verb(s), code, enhanced, text),
                          .is_quiet = !refusals_admit(s->refusals, s->client)};
    if (t != NULL)
        event.sender = t->sender.at != NULL ? t->sender : TEXT("");
    if (t != NULL && t->normal.length > 0 && s->question == SERVER_ASKS_RECIPIENT)
        event.recipient = buffer_text(&t->normal);
    tell(s, &event);
}

/* The reply 4yz or 5yz to a command, a content or a connection. A client's share of
 * the log is limited, so that an attacker cannot fill it. */
static void
server_tell_refused(struct server *s, int code, const char *enhanced, const char *text)
{
    count_refusal(s);
    if (event_is_read(s->events, EVENT_REFUSED))
        tell_refusal(s, EVENT_REFUSED, code, enhanced, text);
}

void
server_tell_denied(struct server *s, const struct refusal *r)
{
    count_refusal(s);
    if (event_is_read(s->events, EVENT_DENIED))
        tell_refusal(s, EVENT_DENIED, r->code, r->enhanced, r->text);
}

/* --- Events of messages
 * --------------------------------------------------------------------- */

/* The one of its header, or the one that transaction_seal() has added. */
static struct text
message_id_of(const struct server *s, char made[MESSAGE_ID_MAX])
{
    const struct server_transaction *t = s->transaction;
    if (t->header.has_message_id || !server_may_relay(s) || t->by_peer)
        return header_scan_message_id(&t->header);
    snprintf(made, MESSAGE_ID_MAX, "<%s@%s>", t->id, s->rules->hostname);
    return text_from(made);
}

void
server_note_names(const struct server *s, struct envelope *e)
{
    char made[MESSAGE_ID_MAX];
    if (!event_are_kept(s->events))
        return;
    e->message_id =
        envelope_text(e, text_before(message_id_of(s, made), ENVELOPE_MESSAGE_ID_MAX));
    if (e->ours) /* nobody else gives our programs names */
        e->tag = envelope_text(e, header_scan_tag(&s->transaction->header));
}

void
server_tell_accepted(struct server *s, struct id id)
{
    const struct server_transaction *t = s->transaction;
    struct event_client client = client_of(s);
    char made[MESSAGE_ID_MAX];
    struct event event = {.kind = EVENT_ACCEPTED,
                          .id = id,
                          .client = &client,
                          .sender = t->sender,
                          .size = t->size,
                          .recipients = t->recipients,
                          .message_id = message_id_of(s, made),
                          .text = t->by_peer ? TEXT("queued, fragment from a peer host")
                                             : TEXT("queued")};
    struct event_origin origin = {0};
    if (event_are_kept(s->events) && server_may_relay(s) && !t->by_peer)
        origin.tag = header_scan_tag(&t->header);
    event.origin = &origin;
    client.protocol = t->protocol;
    event_tell(s->events, &event);
}

/* --- Stages, refusals, and the end ------------------------------------------------ */

enum { REFUSAL_MAX = 500 };

static const struct refusal too_many_errors = {421, "4.7.0",
                                               "too many errors, closing"};

static const char *
stage_name(enum server_stage stage)
{
    switch (stage) {
    case SERVER_NEW:
        return "new";
    case SERVER_READY:
        return "ready";
    case SERVER_MAIL:
        return "mail";
    case SERVER_RCPT:
        return "rcpt";
    case SERVER_CHUNKS:
        return "chunks";
    case SERVER_CHUNK:
        return "chunk";
    case SERVER_DATA:
        return "data";
    case SERVER_CLOSED:
        return "closed";
    case SERVER_SASL:
        return "auth";
    }
    return "";
}

void
server_enter(struct server *s, enum server_stage stage)
{
    assert(s->stage != SERVER_CLOSED);
    struct log *log = event_hub_log(s->events);
    if (log != NULL)
        log_say(log, LOG_LEVEL_DEBUG, "smtpd", NULL, "client=%s: %s", s->client,
                stage_name(stage));
    s->stage = stage;
}

/* The only end, on every path: the owner discards the draft that the flag names. */
void
server_end_transaction(struct server *s)
{
    if (s->transaction == NULL)
        return;
    s->discard = s->discard || s->transaction->draft;
    s->question = SERVER_ASKS_NOTHING;
    transaction_free(&s->transaction);
    if (s->stage != SERVER_CLOSED)
        server_enter(s, SERVER_READY);
}

static void
server_end_finish(struct server *s)
{
    server_end_transaction(s);
    server_end_login(s);
    s->skip = 0;
    server_enter(s, SERVER_CLOSED);
}

void
server_close_with(struct server *s, const struct refusal *r)
{
    server_tell_refused(s, r->code, r->enhanced, r->text);
    reply_write(s->out, r->code, r->enhanced, "%s", r->text);
    server_end_finish(s);
}

/* Codes that refuse the command, not the mail. */
static bool
is_bad_command(int code)
{
    return (code >= 500 && code <= 504) || code == 555;
}

/* An LMTP client is part of our own mail system, although it may not relay. */
bool
server_is_untrusted(const struct server *s)
{
    return !server_may_relay(s) && !s->lmtp;
}

/* Every refusal of an untrusted client counts as an error (Postfix: error_count), to
 * limit probing. A client that may relay errs, too, but guesses nothing. */
static bool
is_error(const struct server *s, int code)
{
    return server_is_untrusted(s) || is_bad_command(code);
}

/* The delay grows with the number of errors: guessing becomes slow, a typing error does
 * not. */
int
server_penalty_ms(const struct server *s)
{
    int64_t over = s->errors - (s->probing ? 0 : s->rules->soft_error_limit);
    int64_t delay_ms = over > 0 ? over * s->rules->error_delay_ms : 0;
    return delay_ms < SERVER_PENALTY_MAX_MS ? (int)delay_ms : SERVER_PENALTY_MAX_MS;
}

/* 0: no limit. */
static int
limit_now(const struct server *s, int limit)
{
    return limit > 1 && s->load.hurried ? 1 : limit;
}

/* False: the limit is reached, and the session is closed. */
static bool
count_error(struct server *s)
{
    int limit = limit_now(s, s->rules->error_limit);
    s->errors++;
    if (limit > 0 && s->errors > limit) {
        server_tell_bad_end(s, EVENT_CUT_OFF);
        server_close_with(s, &too_many_errors);
        return false;
    }
    s->late = server_penalty_ms(s) > 0;
    return true;
}

/* Junk commands keep a session without mail. A few are common among honest clients. */
bool
server_idles(struct server *s)
{
    int limit = limit_now(s, s->rules->junk_limit);
    return !server_is_untrusted(s) || limit == 0 || ++s->junk <= limit ||
           count_error(s);
}

/* The limit may close the session: then its reply is the one that the client gets. */
void
server_refuse_with(struct server *s, int code, const char *enhanced, const char *text)
{
    if (is_error(s, code) && !count_error(s))
        return;
    server_tell_refused(s, code, enhanced, text);
    reply_write(s->out, code, enhanced, "%s", text);
}

void
server_refuse_format(struct server *s, int code, const char *enhanced,
                     const char *format, ...)
{
    char text[REFUSAL_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    server_refuse_with(s, code, enhanced, text);
}

enum server_action
server_refuse(struct server *s, const struct refusal *r)
{
    server_refuse_with(s, r->code, r->enhanced, r->text);
    return SERVER_GO_ON;
}

/* A client that sends too many recipients is no attacker: some of these replies are
 * free. */
enum server_action
server_refuse_excess(struct server *s, const struct refusal *r)
{
    if (s->excess++ >= SERVER_EXCESS_RECIPIENTS)
        return server_refuse(s, r);
    server_tell_refused(s, r->code, r->enhanced, r->text);
    reply_write(s->out, r->code, r->enhanced, "%s", r->text);
    return SERVER_GO_ON;
}

bool
server_login_is_error(struct server *s)
{
    return !server_is_untrusted(s) || count_error(s);
}

/* The number of replies to the content: in LMTP one for each recipient. */
static unsigned
server_answers(const struct server *s)
{
    return s->lmtp ? s->transaction->accepted : 1;
}

void
server_refuse_content(struct server *s, int code, const char *enhanced,
                      const char *text)
{
    server_tell_refused(s, code, enhanced, text);
    for (unsigned i = server_answers(s); i > 0; i--)
        reply_write(s->out, code, enhanced, "%s", text);
    server_end_transaction(s);
    /* The result of the message is sent even if the limit closes the session. */
    if (is_error(s, code))
        (void)count_error(s);
}

static void
server_on_loop(void *context, const struct refusal *refusal)
{
    struct server *s = context;
    reply_write(s->out, refusal->code, refusal->enhanced, "%s", refusal->text);
    if (refusal->code >= 500)
        server_tell_refused(s, refusal->code, refusal->enhanced, refusal->text);
}

/* In LMTP: refuses the content with a reply for each recipient, if an alias has forwarded
 * it before; ends the transaction. False: none has. */
static bool
server_refuse_loops(struct server *s)
{
    if (!transaction_each_loop(s->transaction, server_on_loop, s))
        return false;
    server_end_transaction(s);
    return true;
}

/* --- The driver ------------------------------------------------------------------- */

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

bool
server_requires_tls(const struct server *s)
{
    const struct server_transaction *t = s->transaction;
    assert(t != NULL && t->envelope != NULL);
    return t->sender.length > 0 && t->envelope->tls == ENVELOPE_TLS_REQUIRED;
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
