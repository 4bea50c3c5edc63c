/* The common functions by which a server session refuses, logs and ends. */
#include "smtp/server/server_internal.h"

#include "base/log/log.h"
#include "smtp/server/refusals.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

enum { LOGGED_COMMAND_MAX = 200, REFUSAL_MAX = 500 };

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
    if (s->log != NULL)
        log_say(s->log, LOG_LEVEL_DEBUG, "smtpd", NULL, "client=%s: %s", s->client,
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

/* The field names are those of Postfix. */
static void
log_user(struct log_line *line, const struct server *s)
{
    enum sasl_mechanism mechanism;
    const char *user = server_user(s, &mechanism);
    if (mechanism != SASL_NONE)
        log_field(line, "sasl_method", text_from(sasl_name(mechanism)));
    if (user[0] != '\0')
        log_field(line, "sasl_username", text_from(user));
    if (s->uid != SERVER_NO_UID)
        log_field_number(line, "uid", s->uid);
}

static void
log_refusal(struct server *s, int code, const char *enhanced, const char *text)
{
    struct log_line line;
    const struct server_transaction *t = s->transaction;
    if (s->log == NULL || !refusals_admit(s->refusals, s->client))
        return;
    log_start(&line, s->log, LOG_LEVEL_INFO, "smtpd", NULL);
    log_field_format(&line, "refused", "%d %s", code, enhanced);
    log_field(&line, "client", text_from(s->client));
    if (s->helo != NULL)
        log_field(&line, "helo", text_from(s->helo));
    log_user(&line, s);
    if (t != NULL)
        log_field_format(&line, "from", "<%.*s>", TEXT_ARGS(t->sender));
    if (t != NULL && t->normal.length > 0 && s->question == SERVER_ASKS_RECIPIENT)
        log_field_format(&line, "to", "<%.*s>", TEXT_ARGS(buffer_text(&t->normal)));
    if (s->command.length > 0)
        log_field(&line, "command", text_before(s->command, LOGGED_COMMAND_MAX));
    log_remark(&line, text_from(text));
    log_end(&line);
}

/* The fields are named as in Postfix's log, but stand in one line. */
void
server_log_accepted(struct server *s)
{
    struct log_line line;
    const struct server_transaction *t = s->transaction;
    if (s->log == NULL)
        return;
    log_start(&line, s->log, LOG_LEVEL_INFO, "smtpd", t->id);
    log_field(&line, "client", text_from(s->client));
    log_field(&line, "helo", text_from(s->helo));
    log_field_format(&line, "from", "<%.*s>", TEXT_ARGS(t->sender));
    log_field_number(&line, "size", t->size);
    log_field_number(&line, "nrcpt", t->recipients);
    log_field(&line, "proto", text_from(t->protocol));
    if (s->security[0] != '\0')
        log_field(&line, "tls", text_from(s->security));
    log_user(&line, s);
    log_remark(&line,
               t->by_peer ? TEXT("queued, fragment from a peer host") : TEXT("queued"));
    log_end(&line);
}

/* Limited for each client, so that an attacker cannot fill the log. */
void
server_log_refused(struct server *s, const struct refusal *r)
{
    log_refusal(s, r->code, r->enhanced, r->text);
}

void
server_close_with(struct server *s, const struct refusal *r)
{
    log_refusal(s, r->code, r->enhanced, r->text);
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
    log_refusal(s, code, enhanced, text);
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
    log_refusal(s, r->code, r->enhanced, r->text);
    reply_write(s->out, r->code, r->enhanced, "%s", r->text);
    return SERVER_GO_ON;
}

bool
server_login_is_error(struct server *s)
{
    return !server_is_untrusted(s) || count_error(s);
}

unsigned
server_answers(const struct server *s)
{
    return s->lmtp ? s->transaction->accepted : 1;
}

void
server_refuse_content(struct server *s, int code, const char *enhanced,
                      const char *text)
{
    log_refusal(s, code, enhanced, text);
    for (unsigned i = server_answers(s); i > 0; i--)
        reply_write(s->out, code, enhanced, "%s", text);
    server_end_transaction(s);
    /* The result of the message is sent even if the limit closes the session. */
    if (is_error(s, code))
        (void)count_error(s);
}
