/* Feeds a server machine with the commands of a message, and hears its replies. */
#include "smtp/session/session_post.h"

#include "base/event/event.h"
#include "base/memory.h"
#include "mime/address.h"
#include "mime/date.h"
#include "smtp/session/session_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POST_PIECE = 16 * 1024, POST_LINE_MAX = 1024 };

struct session_post {
    struct server_session
        session; /* the first member: see session_session_post_answered() */
    struct server_rules rules;
    struct newlines_stream newlines;
    struct buffer piece; /* of content, up to the next BDAT */
    bool ended;          /* the last line has its end */
    struct outcome refusal;
    bool refused; /* the content is */
    struct id id;
    struct reply reply;
    session_post_stored *stored;
    session_post_done *done;
    void *context;
    struct loop_task answer;
};

/* --- The machine ------------------------------------------------------------------ */

static void
session_post_begin(struct server_session *s)
{
    struct outcome refusal;
    s->draft = queue_begin(s->host->queue, server_expected_size(&s->server), &refusal);
    server_begun(&s->server, s->draft == NULL ? &refusal : NULL);
}

/* False: it waits. */
static bool
session_post_act(struct server_session *s, enum server_action action)
{
    switch (action) {
    case SERVER_GO_ON:
        return true;
    case SERVER_ADMIT:
        session_admit(s);
        return true;
    case SERVER_CHECK:
        session_check(s);
        return true;
    case SERVER_BEGIN:
        session_post_begin(s);
        return true;
    case SERVER_WRITE:
        (void)queue_write(s->draft, server_content(&s->server));
        return true;
    case SERVER_STORE:
        session_store(s);
        return true;
    case SERVER_DISCARD:
        queue_discard(&s->draft);
        return true;
    case SERVER_READ:
    case SERVER_WAIT:
    case SERVER_CLOSE:
    case SERVER_FLUSH:
    case SERVER_SECURE:
    case SERVER_LOGIN:
        break;
    }
    return false;
}

/* True: the last reply is positive, or none has come. */
static bool
session_post_heard(struct session_post *p, struct outcome *refusal)
{
    struct buffer *out = &p->session.host->out;
    struct text rest = buffer_text(out);
    int code = 0;
    reply_start(&p->reply);
    while (rest.length > 0 && reply_parse(&rest, &p->reply) == PROGRESS_DONE) {
        code = p->reply.code;
        if (rest.length > 0)
            reply_start(&p->reply);
    }
    buffer_clear(out);
    if (code < 400)
        return true;
    *refusal =
        outcome_make(code < 500 ? VERDICT_DEFERRED : VERDICT_FAILED, BLAME_MESSAGE,
                     code, p->reply.enhanced, "%s", p->reply.text);
    return false;
}

static bool
session_post_run(struct session_post *p, struct text input, struct outcome *refusal)
{
    struct server_session *s = &p->session;
    while (session_post_act(s, server_step(&s->server, &input)))
        ;
    s->expanded = 0;
    return session_post_heard(p, refusal);
}

static bool
session_post_say(struct session_post *p, const char *before, struct text argument,
                 const char *after, struct outcome *refusal)
{
    char line[POST_LINE_MAX];
    int length = snprintf(line, sizeof(line), "%s%.*s%s\r\n", before,
                          TEXT_ARGS(argument), after);
    if (length < 0 || (size_t)length >= sizeof(line))
        return outcome_refuse(refusal, 501, "5.1.7", "the address is too long");
    return session_post_run(p, text_of(line, (size_t)length), refusal);
}

/* --- Answers ---------------------------------------------------------------------- */

static void
session_post_answer(void *context)
{
    struct session_post *p = context;
    p->done(p->context, p->id, p->refused ? &p->refusal : NULL);
}

/* In the turn of the machine's own reply, and never within session_post_end(). */
static void
session_post_answered(struct server_session *s, const struct outcome *refusal)
{
    struct session_post *p = (struct session_post *)s;
    p->refused = refusal != NULL;
    if (p->refused)
        p->refusal = *refusal;
    else
        session_counts_accept(&s->host->counts, loop_clock_us() - s->sealed_us);
    server_stored(&s->server, refusal);
    buffer_clear(&s->host->out);
    session_post_answer(p);
}

static void
session_post_durable(struct server_session *s)
{
    struct session_post *p = (struct session_post *)s;
    if (p->stored != NULL)
        p->stored(p->context, s->stored);
}

/* --- public ----------------------------------------------------------------------- */

static void
session_post_release(void *object)
{
    struct session_post *p = object;
    server_free(&p->session.server);
    session_rules_release(&p->session.rules);
    buffer_free(&p->piece);
    free(p);
}

void
session_post_free(struct session_post **post)
{
    struct session_post *p = *post;
    if (p == NULL)
        return;
    *post = NULL;
    struct server_session *s = &p->session;
    struct session_host *host = s->host;
    if (!session_pace_leave(s) && s->storing)
        queue_commit_ignore(host->queue, s);
    session_settle(s, 0);
    queue_discard(&s->draft);
    loop_unpost(host->loop, &p->answer);
    if (host->clients != NULL)
        client_usage_left(host->clients, &s->peer, loop_monotonic_ms(host->loop));
    loop_release(host->loop, session_post_release, p);
}

/* The errors of a message are reported together: none ends the session. */
static void
session_post_set_rules(struct session_post *p, const struct session_post_client *client)
{
    struct server_session *s = &p->session;
    s->rules = s->host->rules;
    s->rules->users++;
    p->rules = s->rules->server;
    p->rules.error_limit = p->rules.soft_error_limit = p->rules.junk_limit = 0;
    p->rules.senders = s->senders = client->senders;
}

int64_t
session_post_release_max_ms(const struct session_host *host)
{
    return host->rules->server.future_release_s * 1000;
}

struct session_post *
session_post_new(struct session_host *host, const struct session_post_client *client,
                 struct outcome *refusal)
{
    char name[SERVER_CLIENT_MAX];
    struct session_post *p = memory_new(sizeof(*p));
    struct server_session *s = &p->session;
    s->host = host;
    s->peer = *client->peer;
    s->answered = session_post_answered;
    s->durable = session_post_durable;
    s->server.refusals = host->refusals;
    s->server.envelopes = &host->envelopes;
    p->newlines.rule = NEWLINES_FIRST;
    buffer_init(&p->piece, 4 * POST_PIECE);
    session_post_set_rules(p, client);
    session_describe_client(&s->peer, name);
    server_start(&s->server, &p->rules, host->events, &host->out, name, false, false);
    s->server.told = true; /* it is no connection */
    s->server.protocol = client->secure ? "HTTPS" : "HTTP";
    s->server.secure = client->secure;
    s->server.user = memory_string(client->user);
    buffer_clear(&host->out);
    if (host->clients == NULL ||
        client_usage_entered(host->clients, &s->rules->clients, &s->peer,
                             loop_monotonic_ms(host->loop), refusal)) {
        struct text literal = text_from(name[0] == '[' ? name : "localhost");
        if (session_post_say(p, "EHLO ", literal, "", refusal))
            return p;
    }
    session_post_free(&p);
    return NULL;
}

uint32_t
session_post_recipients_max(const struct session_post *p)
{
    return client_usage_most(&p->session.rules->clients, &p->session.peer,
                             CLIENT_USAGE_RECIPIENT);
}

bool
session_post_mail(struct session_post *p, struct text sender, int64_t size, bool utf8,
                  int64_t release_ms, struct outcome *refusal)
{
    struct address address;
    char after[128], date[DATE_TEXT_MAX] = "";
    const char *why = sender.length > 0 ? address_judge(sender, &address) : NULL;
    if (why != NULL)
        return outcome_refuse(refusal, 501, "5.1.7", why);
    struct server_session *s = &p->session;
    s->server.load.now_s = (uint32_t)(loop_now_ms(s->host->loop) / 1000);
    if (release_ms > 0)
        date_format_utc(release_ms, date);
    snprintf(after, sizeof(after), "> BODY=8BITMIME SIZE=%lld%s%s%s", (long long)size,
             utf8 ? " SMTPUTF8" : "", release_ms > 0 ? " HOLDUNTIL=" : "", date);
    return session_post_say(p, "MAIL FROM:<", sender, after, refusal);
}

bool
session_post_recipient(struct session_post *p, struct text recipient,
                       struct outcome *refusal)
{
    struct address address;
    const char *why = address_judge(recipient, &address);
    if (why != NULL)
        return outcome_refuse(refusal, 501, "5.1.3", why);
    return session_post_say(p, "RCPT TO:<", recipient, ">", refusal);
}

static void
session_post_flush(struct session_post *p, bool last)
{
    char line[64];
    snprintf(line, sizeof(line), "BDAT %zu%s\r\n", p->piece.length,
             last ? " LAST" : "");
    bool good = session_post_run(p, text_from(line), &p->refusal) &&
                session_post_run(p, buffer_text(&p->piece), &p->refusal);
    p->refused = p->refused || !good;
    buffer_clear(&p->piece);
}

bool
session_post_write(struct session_post *p, struct text bytes)
{
    if (bytes.length > 0)
        p->ended = bytes.at[bytes.length - 1] == '\n';
    while (bytes.length > 0 && !p->refused) {
        struct text some = text_before(bytes, POST_PIECE);
        normalize_stream(&p->newlines, some, &p->piece);
        bytes = text_after(bytes, some.length);
        if (p->piece.length >= POST_PIECE)
            session_post_flush(p, false);
    }
    return !p->refused;
}

void
session_post_end(struct session_post *p, struct text mark, session_post_stored *stored,
                 session_post_done *done, void *context)
{
    struct server_session *s = &p->session;
    p->stored = stored;
    p->done = done;
    p->context = context;
    s->mark = mark; /* until session_store(), which this calls */
    if (!p->ended && !p->refused)
        normalize_stream(&p->newlines, TEXT("\r\n"), &p->piece);
    if (!p->refused)
        session_post_flush(p, true);
    p->id = s->stored;
    if (p->refused)
        loop_post(s->host->loop, &p->answer, session_post_answer, p);
}
