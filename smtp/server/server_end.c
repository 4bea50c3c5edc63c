/* The common functions by which a server session refuses, logs and ends. */
#include "smtp/server/server_internal.h"

#include "base/log/log.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

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

unsigned
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

bool
server_refuse_loops(struct server *s)
{
    if (!transaction_each_loop(s->transaction, server_on_loop, s))
        return false;
    server_end_transaction(s);
    return true;
}
