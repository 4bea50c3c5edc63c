/* Postfix's lines, for the tools that read them (t/e2e/log_tools.t). */
#include "base/event/event_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    CLIENT_MAX = 80,
    VERB_MAX = 16,
    VERBS_MAX = 512,
    LINE_MAX_BYTES = 2048,
    POSTFIX_USER_MAX = 512
};

/* "unknown[192.0.2.7]": no name is looked up. */
static const char *
client_name(const struct event_client *c, char out[CLIENT_MAX])
{
    struct text name = text_from(c->name);
    bool is_ip = text_starts(name, TEXT("["));
    bool is_ipv6 = text_starts(name, TEXT("[IPv6:"));
    name = text_after(name, is_ipv6 ? strlen("[IPv6:") : is_ip ? 1 : 0);
    bool is_loopback =
        text_starts(name, TEXT("127.")) || text_equal(name, TEXT("::1]"));
    if (is_ip)
        snprintf(out, CLIENT_MAX, "%s[%.*s", is_loopback ? "localhost" : "unknown",
                 TEXT_ARGS(name));
    else
        snprintf(out, CLIENT_MAX, "unix[unix]");
    return out;
}

/* Lines and fields about a message. */
__attribute__((format(printf, 4, 5))) static void
postfix_say(const struct event_log *l, const char *program, struct id message,
            const char *format, ...)
{
    char text[LINE_MAX_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    struct log_line line;
    log_start(&line, l->log, LOG_LEVEL_INFO, program,
              message.time_ms != 0 ? ID_TEXT(message) : NULL);
    log_sentence(&line, "%s", text);
    log_end(&line);
}

static const struct id none;

/* --- Sessions --------------------------------------------------------------------- */

/* "mail=1 rcpt=2/3 commands=3/4": the good ones, and all where they differ. */
static void
write_verbs(const struct event_verb *verb, char out[VERBS_MAX])
{
    uint32_t good = 0, all = 0;
    size_t at = 0;
    for (; verb->name != NULL && at < VERBS_MAX; verb++) {
        good += verb->good;
        all += verb->all;
        at += (size_t)snprintf(out + at, VERBS_MAX - at, " %s=%" PRIu32, verb->name,
                               verb->good);
        if (verb->good != verb->all && at < VERBS_MAX)
            at += (size_t)snprintf(out + at, VERBS_MAX - at, "/%" PRIu32, verb->all);
    }
    if (at < VERBS_MAX)
        at += (size_t)snprintf(out + at, VERBS_MAX - at, " commands=%" PRIu32, good);
    if (good != all && at < VERBS_MAX)
        snprintf(out + at, VERBS_MAX - at, "/%" PRIu32, all);
}

static void
postfix_disconnected(const struct event_log *l, const struct event *v)
{
    char client[CLIENT_MAX], verbs[VERBS_MAX] = "";
    write_verbs(v->verbs, verbs);
    postfix_say(l, "smtpd", none, "disconnect from %s%s",
                client_name(v->client, client), verbs);
}

static void
postfix_bad_end(const struct event_log *l, const struct event *v)
{
    char client[CLIENT_MAX], content[40] = "";
    if (v->size >= 0)
        snprintf(content, sizeof(content), " (%" PRId64 " bytes)", v->size);
    postfix_say(l, "smtpd", none, "%.*s after %.*s%s from %s", TEXT_ARGS(v->text),
                TEXT_ARGS(v->command), content, client_name(v->client, client));
}

/* TLSv1.3 with cipher NAME (256/256 bits): the key's length is in the name. */
static void
postfix_secured(const struct event_log *l, const struct event *v)
{
    char client[CLIENT_MAX];
    bool is_short = memmem(v->tls.at, v->tls.length, "128", 3) != NULL;
    const char *bits = is_short ? "128/128" : "256/256";
    if (v->client != NULL)
        postfix_say(l, "smtpd", none,
                    "%.*s TLS connection established from %s: %.*s (%s bits)",
                    TEXT_ARGS(v->text), client_name(v->client, client),
                    TEXT_ARGS(v->tls), bits);
    else
        postfix_say(l, v->program, none,
                    "%.*s TLS connection established to %.*s: %.*s (%s bits)",
                    TEXT_ARGS(v->text), TEXT_ARGS(v->relay), TEXT_ARGS(v->tls), bits);
}

/* --- Refusals --------------------------------------------------------------------- */

/* The words that filters look for. No row: our own text. */
static const struct refusal_words {
    const char *reason, *words;
} refusal_words[] = {
    {"relay", "Relay access denied"                                              },
    {"user",  "Recipient address rejected: User unknown in local recipient table"},
    {"helo",  "Helo command rejected: need fully-qualified hostname"             },
};

/* The name of a login; the masker of the line finds one with an '@' itself. */
static const char *
postfix_user(const struct event_log *l, const struct event_client *c,
             char out[POSTFIX_USER_MAX])
{
    struct buffer masked = {0};
    struct text name = text_from(c->user != NULL ? c->user : "");
    if (text_find(name, '@') == TEXT_NONE)
        name = log_mask_name(log_mask(l->log), name, &masked);
    (void)!text_copy(out, POSTFIX_USER_MAX, name);
    buffer_free(&masked);
    return out;
}

/* The part before our text in a line about a refusal, in Postfix's words. */
static void
write_words(const struct event_log *l, const struct event *v, char out[LINE_MAX_BYTES])
{
    char user[POSTFIX_USER_MAX];
    const char *text = v->outcome->text;
    for (size_t i = 0; i < sizeof(refusal_words) / sizeof(refusal_words[0]); i++)
        if (strcmp(v->reason, refusal_words[i].reason) == 0) {
            snprintf(out, LINE_MAX_BYTES, "%s", refusal_words[i].words);
            return;
        }
    if (strcmp(v->reason, "rate") == 0)
        snprintf(out, LINE_MAX_BYTES, "Client host rejected: %s", text);
    else if (strcmp(v->reason, "sender") == 0 &&
             strcmp(v->outcome->enhanced, "5.7.1") == 0)
        snprintf(out, LINE_MAX_BYTES, "Sender address rejected: not owned by user %s",
                 postfix_user(l, v->client, user));
    else if (strcmp(v->reason, "sender") == 0)
        snprintf(out, LINE_MAX_BYTES,
                 "Sender address rejected: need fully-qualified address");
    else
        snprintf(out, LINE_MAX_BYTES, "%s", text);
}

/* RCPT, END-OF-MESSAGE, CONNECT. */
static void
write_verb(const struct event *v, char out[VERB_MAX])
{
    size_t length = 0;
    if (v->size >= 0) {
        snprintf(out, VERB_MAX, "END-OF-MESSAGE");
        return;
    }
    for (; length < VERB_MAX - 1 && v->verb[length] != '\0'; length++)
        out[length] = (char)(v->verb[length] - 'a' + 'A');
    out[length] = '\0';
}

static struct text
argument_of(const struct event *v, const char *verb)
{
    struct text rest = v->command, first;
    if (strcmp(verb, "RCPT") == 0)
        return v->recipient;
    if (strcmp(verb, "MAIL") == 0)
        return v->sender;
    if (strcmp(verb, "EHLO") != 0 && strcmp(verb, "HELO") != 0)
        return text_of(NULL, 0);
    (void)text_cut(&rest, ' ', &first);
    return rest;
}

/* The end of a session is no refusal to Postfix: a timeout and too many errors have lines
 * of their own, and a stop has none. */
static bool
is_goodbye(const struct outcome *o)
{
    return o->code == 421 &&
           (strcmp(o->enhanced, "4.4.2") == 0 || strcmp(o->enhanced, "4.3.2") == 0 ||
            text_starts(text_from(o->text), TEXT("too many errors")));
}

static void
postfix_refused(const struct event_log *l, const struct event *v)
{
    const struct event_client *c = v->client;
    char client[CLIENT_MAX], verb[VERB_MAX], words[LINE_MAX_BYTES];
    struct buffer made;
    write_verb(v, verb);
    write_words(l, v, words);
    struct text argument = argument_of(v, verb);
    buffer_init(&made, LOG_LINE_MAX);
    bool fits =
        buffer_format(&made, "NOQUEUE: reject: %s from %s: %d %s ", verb,
                      client_name(c, client), v->outcome->code, v->outcome->enhanced);
    if (argument.at != NULL)
        fits = fits && buffer_format(&made, "<%.*s>: ", TEXT_ARGS(argument));
    fits = fits && buffer_format(&made, "%s;", words);
    if (v->sender.at != NULL)
        fits = fits && buffer_format(&made, " from=<%.*s>", TEXT_ARGS(v->sender));
    if (v->recipient.at != NULL)
        fits = fits && buffer_format(&made, " to=<%.*s>", TEXT_ARGS(v->recipient));
    fits = fits && buffer_format(&made, " proto=%s", c->protocol);
    if (c->helo != NULL)
        fits = fits && buffer_format(&made, " helo=<%s>", c->helo);
    log_say(l->log, LOG_LEVEL_INFO, "smtpd", NULL, "%.*s%s",
            TEXT_ARGS(buffer_text(&made)), fits ? "" : "...");
    buffer_free(&made);
}

static void
postfix_denied(const struct event_log *l, const struct event *v)
{
    char client[CLIENT_MAX];
    const struct event_client *c = v->client;
    struct log_line line;
    char user[POSTFIX_USER_MAX];
    log_start(&line, l->log, LOG_LEVEL_WARNING, "smtpd", NULL);
    log_sentence(
        &line,
        "%s: SASL %s authentication failed: authentication failure, sasl_username=%s",
        client_name(c, client), c->mechanism != NULL ? c->mechanism : "PLAIN",
        postfix_user(l, c, user));
    log_end(&line);
}

/* --- Mail ------------------------------------------------------------------------- */

static void
postfix_message_id(const struct event_log *l, const struct event *v)
{
    postfix_say(l, "cleanup", v->id, "message-id=%.*s",
                TEXT_ARGS(v->message_id.length > 0 ? v->message_id : TEXT("<>")));
}

static void
postfix_accepted(const struct event_log *l, const struct event *v)
{
    const struct event_client *c = v->client;
    char client[CLIENT_MAX];
    char user[POSTFIX_USER_MAX];
    bool logged_in = c->mechanism != NULL && c->user != NULL && c->user[0] != '\0';
    postfix_say(l, "smtpd", v->id, "client=%s%s%s%s%s", client_name(c, client),
                logged_in ? ", sasl_method=" : "", logged_in ? c->mechanism : "",
                logged_in ? ", sasl_username=" : "",
                logged_in ? postfix_user(l, c, user) : "");
    postfix_message_id(l, v);
}

static void
postfix_notified(const struct event_log *l, const struct event *v)
{
    static const char *const words[][2] = {
        {"delay",      "sender delay notification"           },
        {"success",    "sender delivery status notification" },
        {"postmaster", "postmaster non-delivery notification"},
        {"failure",    "sender non-delivery notification"    }
    };
    char id[ID_LENGTH + 1], other[ID_LENGTH + 1];
    id_format(v->other, id);
    log_bare_id(id, other);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(v->reason, words[i][0]) == 0)
            postfix_say(l, "bounce", v->id, "%s: %s", words[i][1], other);
}

/* A Maildir's path is no host: Postfix names the agent. */
static void
postfix_verdict(struct event_log *l, const struct event *v)
{
    struct event changed = *v;
    struct outcome outcome = *v->outcome;
    bool is_maildir = v->program != NULL && strcmp(v->program, "local") == 0;
    changed.outcome = &outcome;
    if (is_maildir) {
        changed.program = "virtual";
        snprintf(outcome.remote, sizeof(outcome.remote), "virtual");
        if (outcome.verdict == VERDICT_DELIVERED)
            snprintf(outcome.text, sizeof(outcome.text), "delivered to maildir");
    } else if (v->program != NULL && strcmp(v->program, "queue") == 0) {
        changed.program = outcome.verdict == VERDICT_DELIVERED ? "discard" : "error";
    }
    event_log_petrel(l, &changed);
}

static bool
postfix_client(const struct event_log *l, const struct event *v)
{
    char client[CLIENT_MAX];
    switch ((unsigned)v->kind) {
    case EVENT_CONNECTED:
        postfix_say(l, "smtpd", none, "connect from %s",
                    client_name(v->client, client));
        return true;
    case EVENT_DISCONNECTED:
        postfix_disconnected(l, v);
        return true;
    case EVENT_SECURED:
        postfix_secured(l, v);
        return true;
    case EVENT_LOST:
    case EVENT_TIMED_OUT:
    case EVENT_CUT_OFF:
        postfix_bad_end(l, v);
        return true;
    case EVENT_REFUSED:
        if (!is_goodbye(v->outcome))
            postfix_refused(l, v);
        return true;
    case EVENT_DENIED:
        postfix_denied(l, v);
        return true;
    default:
        return false;
    }
}

/* A command of an operator for a message, or its end. */
static bool
postfix_command(const struct event_log *l, const struct event *v)
{
    static const struct {
        enum event_kind kind;
        const char *program, *words;
    } commands[] = {
        {EVENT_ENDED,    "qmgr",      "removed"           },
        {EVENT_HELD,     "postsuper", "placed on hold"    },
        {EVENT_RELEASED, "postsuper", "released from hold"},
        {EVENT_RETRIED,  "postsuper", "requeued"          },
        {EVENT_REMOVED,  "postsuper", "removed"           }
    };
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (commands[i].kind == v->kind) {
            postfix_say(l, commands[i].program, v->id, "%s", commands[i].words);
            return true;
        }
    return false;
}

bool
event_log_postfix(struct event_log *l, const struct event *v)
{
    if (v->is_quiet)
        return true;
    switch ((unsigned)v->kind) {
    case EVENT_ACCEPTED:
        postfix_accepted(l, v);
        return true;
    case EVENT_SUBMITTED:
        postfix_say(l, "pickup", v->id, "uid=%" PRIu32 " from=<%.*s>", v->injector,
                    TEXT_ARGS(v->sender));
        postfix_message_id(l, v);
        return true;
    case EVENT_MADE:
        postfix_message_id(l, v);
        return true;
    case EVENT_LOADED:
        postfix_say(l, "qmgr", v->id,
                    "from=<%.*s>, size=%" PRId64 ", nrcpt=%" PRIu32 " (queue active)",
                    TEXT_ARGS(v->sender), v->size, v->recipients);
        return true;
    case EVENT_DELIVERED:
    case EVENT_DEFERRED:
    case EVENT_BOUNCED:
        postfix_verdict(l, v);
        return true;
    case EVENT_EXPIRED: /* the message has one line: EVENT_LIFETIME */
        return true;
    case EVENT_LIFETIME:
        postfix_say(l, "qmgr", v->id, "from=<%.*s>, status=expired, returned to sender",
                    TEXT_ARGS(v->sender));
        return true;
    case EVENT_NOTIFIED:
        postfix_notified(l, v);
        return true;
    default:
        return postfix_client(l, v) || postfix_command(l, v);
    }
}
