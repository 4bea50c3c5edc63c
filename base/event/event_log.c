/* The petrel and json lines of events. */
#include "base/event/event_log.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* --- Mail that waits ---------------------------------------------------------------- */

struct event_log_waiting_site {
    UT_hash_handle hh;
    char *name;
    uint64_t recipients;        /* that were counted */
    char why[OUTCOME_TEXT_MAX]; /* of the last one of them */
    struct id like;             /* the message that was logged with this outcome */
    struct outcome outcome;
};

static void
waiting_line(const struct event_log_waiting *w, const char *site, uint64_t recipients,
             const char *why)
{
    struct log_line line;
    log_start(&line, w->log, LOG_LEVEL_INFO, "queue", NULL);
    if (log_style(w->log) == LOG_STYLE_JSON)
        log_field(&line, "event", TEXT("waiting"));
    log_field(&line, "site", text_from(site));
    log_field_number(&line, "more_deferred", (int64_t)recipients);
    log_remark(&line, text_from(why));
    log_end(&line);
}

static void
waiting_sum_up(void *context)
{
    struct event_log_waiting *w = context;
    struct event_log_waiting_site *each, *next;
    HASH_ITER (hh, w->sites, each, next) {
        if (each->recipients > 0)
            waiting_line(w, each->name, each->recipients, each->why);
        HASH_DEL(w->sites, each);
        free(each->name);
        free(each);
    }
    if (w->others > 0)
        waiting_line(w, "others", w->others, "deferred again in the last minute");
    w->others = w->lines = w->first_lines = 0;
}

void
event_log_waiting_start(struct event_log_waiting *w, struct loop *loop, struct log *log)
{
    *w = (struct event_log_waiting){.loop = loop, .log = log};
}

void
event_log_waiting_stop(struct event_log_waiting *w)
{
    if (w->loop == NULL)
        return;
    loop_timer_stop(w->loop, &w->timer);
    waiting_sum_up(w);
}

/* NULL: the table is full. */
static struct event_log_waiting_site *
waiting_site(struct event_log_waiting *w, const char *name)
{
    struct event_log_waiting_site *site;
    HASH_FIND_STR(w->sites, name, site);
    if (site != NULL || HASH_COUNT(w->sites) >= EVENT_LOG_WAITING_SITES)
        return site;
    site = memory_new(sizeof(*site));
    site->name = memory_string(name);
    HASH_ADD_KEYPTR(hh, w->sites, site->name, strlen(site->name), site);
    return site;
}

/* At level debug, and in the styles of other programs, every line is expected. */
static bool
waiting_is_limited(const struct event_log_waiting *w, const struct event *v)
{
    return w->loop != NULL && v->kind == EVENT_DEFERRED &&
           log_level(w->log) < LOG_LEVEL_DEBUG &&
           (log_style(w->log) == LOG_STYLE_PETREL ||
            log_style(w->log) == LOG_STYLE_JSON);
}

/* Counts one more line of the minute, which it may begin. True: there were many. */
static bool
waiting_is_many(struct event_log_waiting *w, unsigned *lines)
{
    if (w->lines == 0 && w->first_lines == 0)
        loop_timer_start(w->loop, &w->timer, EVENT_LOG_WAITING_MS, waiting_sum_up, w);
    return ++*lines > EVENT_LOG_WAITING_LINES;
}

static const char *
waiting_site_name(const struct event *v)
{
    return v->site != NULL ? v->site : "none";
}

/* Whether the deferral has no line of its own: it is counted. */
static bool
event_log_waiting_counts(struct event_log_waiting *w, const struct event *v)
{
    if (!waiting_is_limited(w, v) || !v->is_again || !waiting_is_many(w, &w->lines))
        return false;
    struct event_log_waiting_site *site = waiting_site(w, waiting_site_name(v));
    if (site == NULL) {
        w->others++;
        return true;
    }
    site->recipients++;
    memcpy(site->why, v->outcome->text, sizeof(site->why));
    return true;
}

/* The message whose line has the reason of this event, too; time_ms 0: its own line has it.
 * style petrel alone: programs read the others. */
static struct id
event_log_waiting_like(struct event_log_waiting *w, const struct event *v)
{
    struct id none = {0};
    if (!waiting_is_limited(w, v) || v->is_again ||
        log_style(w->log) != LOG_STYLE_PETREL || !waiting_is_many(w, &w->first_lines))
        return none;
    struct event_log_waiting_site *site = waiting_site(w, waiting_site_name(v));
    if (site == NULL)
        return none;
    if (site->like.time_ms != 0 && strcmp(site->outcome.text, v->outcome->text) == 0 &&
        strcmp(site->outcome.remote, v->outcome->remote) == 0)
        return site->like;
    site->like = v->id;
    site->outcome = *v->outcome;
    return none;
}

/* --- Lines ------------------------------------------------------------------------ */

enum { LOGGED_COMMAND_MAX = 200 };

static void
field_if(struct log_line *line, const char *key, const char *value)
{
    if (value != NULL && value[0] != '\0')
        log_field(line, key, text_from(value));
}

static void
address_if(struct log_line *line, const char *key, struct text address)
{
    if (address.at != NULL)
        log_field_address(line, key, address);
}

/* Most kinds say little; kinds that every message has many of are for `debug`. */
static enum log_level
event_level(const struct event *v)
{
    switch ((unsigned)v->kind) {
    case EVENT_CONNECTED:
    case EVENT_DISCONNECTED:
    case EVENT_SECURED:
    case EVENT_LOST:
    case EVENT_TIMED_OUT:
    case EVENT_CUT_OFF:
    case EVENT_LOADED:
    case EVENT_LIFETIME:
    case EVENT_MADE:
    case EVENT_ENDED:
    case EVENT_SITE_DEAD:
    case EVENT_SITE_ALIVE:
        return LOG_LEVEL_DEBUG;
    case EVENT_LOCKED:
    case EVENT_DISCARDED:
    case EVENT_TROUBLE:
    case EVENT_UPSTREAM_FAILED:
    case EVENT_QUOTA:
        return LOG_LEVEL_WARNING;
    default:
        return LOG_LEVEL_INFO;
    }
}

static const char *
event_program(const struct event *v)
{
    if (v->program != NULL)
        return v->program;
    if (v->kind <= EVENT_ACCEPTED)
        return "smtpd";
    return v->kind == EVENT_SUBMITTED ? "sendmail" : "queue";
}

static void
event_line_start(struct log_line *line, struct event_log *l, const struct event *v,
                 char id[ID_LENGTH + 1])
{
    id[0] = '\0';
    if (v->id.time_ms != 0)
        id_format(v->id, id);
    log_start(line, l->log, l->is_history ? LOG_LEVEL_INFO : event_level(v),
              event_program(v), id[0] != '\0' ? id : NULL);
    if (log_style(l->log) == LOG_STYLE_JSON || l->is_history)
        log_field(line, "event", text_from(event_word(v->kind)));
}

/* --- Clients ---------------------------------------------------------------------- */

static void
line_add_user(struct log_line *line, const struct event_client *c)
{
    field_if(line, "sasl_method", c->mechanism);
    if (c->user != NULL && c->user[0] != '\0')
        log_field_name(line, "sasl_username", text_from(c->user));
    if (c->uid != EVENT_NO_UID)
        log_field_number(line, "uid", c->uid);
}

/* In the history the cipher is not worth its bytes. */
static void
line_tls(struct log_line *line, const struct event_log *l, struct text tls)
{
    size_t end = l->is_history ? text_find(tls, ' ') : TEXT_NONE;
    if (tls.length > 0)
        log_field(line, "tls", end == TEXT_NONE ? tls : text_before(tls, end));
}

static void
line_message_id(struct log_line *line, const struct event_log *l, struct text id)
{
    if (!l->is_history || id.length == 0)
        return;
    if (id.at[0] != '<')
        log_field_address(line, "message_id", id);
    else if (id.length >= 2 && id.at[id.length - 1] == '>')
        log_field_address(line, "message_id",
                          text_before(text_after(id, 1), id.length - 2));
    else
        log_field(line, "message_id", id);
}

static void
line_accepted(struct log_line *line, struct event_log *l, const struct event *v)
{
    const struct event_client *c = v->client;
    log_field_client(line, "client", text_from(c->name));
    log_field(line, "helo", text_from(c->helo));
    log_field_address(line, "from", v->sender);
    log_field_number(line, "size", v->size);
    log_field_number(line, "nrcpt", v->recipients);
    log_field(line, "proto", text_from(c->protocol));
    line_tls(line, l, text_from(c->tls));
    line_add_user(line, c);
    line_message_id(line, l, v->message_id);
    log_remark(line, v->text);
}

static void
line_refused(struct log_line *line, const struct event *v)
{
    const struct event_client *c = v->client;
    log_field_format(line, "refused", "%d %s", v->outcome->code, v->outcome->enhanced);
    log_field_client(line, "client", text_from(c->name));
    field_if(line, "helo", c->helo);
    line_add_user(line, c);
    address_if(line, "from", v->sender);
    address_if(line, "to", v->recipient);
    if (v->command.length > 0)
        log_field(line, "command", text_before(v->command, LOGGED_COMMAND_MAX));
    log_remark(line, text_from(v->outcome->text));
}

static void
line_locked(struct log_line *line, const struct event *v)
{
    log_field(line, "auth", TEXT("locked"));
    log_field_client(line, "client", text_from(v->client->name));
    log_field_number(line, "failures", v->attempt);
    log_field_number(line, "seconds", v->next_ms / 1000);
    log_remark(line, v->text);
}

/* "disconnect from ...", "lost connection after RCPT from ..." */
static void
line_client(struct log_line *line, const struct event *v)
{
    if (v->command.length > 0)
        log_sentence(line, "%.*s after %.*s from %s", TEXT_ARGS(v->text),
                     TEXT_ARGS(v->command), v->client->name);
    else
        log_sentence(line, "%.*s from %s", TEXT_ARGS(v->text), v->client->name);
}

/* In Postfix's words. */
static void
line_secured(struct log_line *line, const struct event *v)
{
    log_sentence(line, "%.*s TLS connection %s %.*s: %.*s", TEXT_ARGS(v->text),
                 v->client != NULL ? "established from" : "established to",
                 TEXT_ARGS(v->client != NULL ? text_from(v->client->name) : v->relay),
                 TEXT_ARGS(v->tls));
}

/* --- Mail ------------------------------------------------------------------------- */

static void
line_submitted(struct log_line *line, struct event_log *l, const struct event *v)
{
    log_field_number(line, "uid", v->injector);
    log_field_address(line, "from", v->sender);
    log_field_number(line, "size", v->size);
    log_field_number(line, "nrcpt", v->recipients);
    line_message_id(line, l, v->message_id);
    log_remark(line, TEXT("queued"));
}

static void
line_loaded(struct log_line *line, const struct event *v)
{
    log_field_address(line, "from", v->sender);
    log_field_number(line, "size", v->size);
    log_field_number(line, "nrcpt", v->recipients);
    log_remark(line, TEXT("queue active"));
}

/* Host and reason are those of that message's line. The history's line has its own. */
static void
line_deferred_like(struct log_line *line, const struct event *v, struct id other)
{
    char remark[ID_LENGTH + 20];
    snprintf(remark, sizeof(remark), "for the reason of %s", ID_TEXT(other));
    log_field(line, "dsn", text_from(v->outcome->enhanced));
    log_field(line, "status", text_from(outcome_word(v->outcome->verdict)));
    log_remark(line, text_from(remark));
}

static void
line_verdict(struct log_line *line, struct event_log *l, const struct event *v)
{
    bool as_postfix = log_style(l->log) == LOG_STYLE_POSTFIX;
    const struct outcome *o = v->outcome;
    struct id like = event_log_waiting_like(&l->waiting, v);
    log_field_address(line, "to", v->recipient);
    if (v->original.length > 0)
        log_field_address(line, "orig_to", v->original);
    if (like.time_ms != 0) {
        line_deferred_like(line, v, like);
        return;
    }
    log_field(line, "relay",
              log_mask_relay(log_mask(l->log), o->remote[0] ? o->remote : "none"));
    log_field_seconds(line, "delay", &v->total_ms, 1);
    log_field_seconds(line, "delays", v->delay_ms, 4);
    if (!as_postfix) { /* its line has no such fields */
        line_tls(line, l, v->tls);
        if (v->dkim.length > 0)
            log_field_list(line, "dkim", v->dkim);
        if (v->left_as.length > 0) {
            log_field_address(line, "from", v->left_as);
            log_field_address(line, "orig_from", v->sender);
        }
        field_if(line, "class", v->reason);
    }
    log_field(line, "dsn", text_from(o->enhanced));
    log_field(line, "status",
              text_from(v->kind == EVENT_EXPIRED && !as_postfix
                            ? "expired"
                            : outcome_word(o->verdict)));
    log_remark(line, text_from(o->text));
}

static void
line_fields(struct log_line *line, const struct event *v)
{
    for (size_t i = 0; i < v->field_count; i++) {
        const struct event_field *f = &v->fields[i];
        if (f->kind == EVENT_NUMBER)
            log_field_number(line, f->key, f->number);
        else if (f->kind == EVENT_ADDRESS)
            log_field_address(line, f->key, f->value);
        else
            log_field(line, f->key, f->value);
    }
    bool is_one = log_style(line->log) == LOG_STYLE_JSON && v->hint.length > 0;
    if (v->text.length > 0 && !is_one)
        log_remark(line, v->text);
    if (v->hint.length > 0)
        log_remark(line, v->hint);
}

/* A finding begins, with its remedy, or ends. */
static void
line_finding(struct log_line *line, const struct event_log *l, const struct event *v)
{
    bool is_json = log_style(l->log) == LOG_STYLE_JSON;
    log_field(line, is_json ? "code" : event_word(v->kind), v->command);
    if (v->relay.length > 0)
        log_field(line, "subject", v->relay);
    /* As an address: a sentence keeps its commas. */
    if (is_json && v->kind == EVENT_TROUBLE)
        log_field_address(line, "remedy", v->hint);
    log_remark(line, v->text);
    if (!is_json && v->kind == EVENT_TROUBLE)
        log_remark(line, v->hint);
}

/* A quota, or a suppressed address. */
static void
line_limit(struct log_line *line, const struct event *v)
{
    if (v->kind == EVENT_QUOTA)
        log_field(line, "subject", v->relay);
    address_if(line, "to", v->recipient);
    field_if(line, "class", v->reason);
    log_remark(line, v->text);
}

/* The text of an event about an upstream says what that does. */
static void
line_sentence(struct log_line *line, const struct event *v)
{
    if (v->kind == EVENT_UPSTREAM_FAILED || v->kind == EVENT_UPSTREAM_OK)
        log_sentence(line, "%.*s %.*s", TEXT_ARGS(v->relay), TEXT_ARGS(v->text));
    else
        log_sentence(line, "%.*s", TEXT_ARGS(v->text));
}

void
event_log_petrel(struct event_log *l, const struct event *v)
{
    struct log_line line;
    char id[ID_LENGTH + 1], other[ID_LENGTH + 1];
    if (!l->is_history && event_level(v) > log_level(l->log))
        return;
    event_line_start(&line, l, v, id);
    switch ((unsigned)v->kind) {
    case EVENT_CONNECTED:
    case EVENT_DISCONNECTED:
    case EVENT_LOST:
    case EVENT_TIMED_OUT:
    case EVENT_CUT_OFF:
        line_client(&line, v);
        break;
    case EVENT_REFUSED:
    case EVENT_DENIED:
        line_refused(&line, v);
        break;
    case EVENT_LOCKED:
        line_locked(&line, v);
        break;
    case EVENT_ACCEPTED:
        line_accepted(&line, l, v);
        break;
    case EVENT_SUBMITTED:
        line_submitted(&line, l, v);
        break;
    case EVENT_LOADED:
        line_loaded(&line, v);
        break;
    case EVENT_SECURED:
        line_secured(&line, v);
        break;
    case EVENT_DELIVERED:
    case EVENT_DEFERRED:
    case EVENT_BOUNCED:
    case EVENT_EXPIRED:
        line_verdict(&line, l, v);
        break;
    case EVENT_NOTIFIED:
        id_format(v->other, other);
        log_sentence(&line, "%.*s: %s", TEXT_ARGS(v->text), other);
        break;
    case EVENT_GIVEN:
    case EVENT_TAKEN:
    case EVENT_FRAGMENT:
    case EVENT_BOUNCED_LATER:
    case EVENT_COMPLAINED:
        line_fields(&line, v);
        break;
    case EVENT_QUOTA:
    case EVENT_SUPPRESSED:
        line_limit(&line, v);
        break;
    case EVENT_TROUBLE:
    case EVENT_RECOVERED:
        line_finding(&line, l, v);
        break;
    case EVENT_ENDED:
        log_sentence(&line, "removed");
        break;
    case EVENT_LIFETIME:
        log_sentence(&line, "from=<%.*s>, status=expired, returned to sender",
                     TEXT_ARGS(v->sender));
        break;
    default:
        line_sentence(&line, v);
        break;
    }
    log_end(&line);
}

/* --- The history ------------------------------------------------------------------ */

static void
line_other(struct log_line *line, struct id other)
{
    if (other.time_ms == 0)
        return;
    log_field(line, "other", text_from(ID_TEXT(other)));
}

/* A notification or a reassembled message; a notification that was made. */
static void
line_made(struct log_line *line, struct event_log *l, const struct event *v)
{
    line_other(line, v->other);
    field_if(line, "of", v->reason);
    if (v->kind == EVENT_MADE) {
        log_field_address(line, "from", v->sender);
        log_field_number(line, "size", v->size);
        log_field_number(line, "nrcpt", v->recipients);
    }
    address_if(line, "to", v->recipient);
    line_message_id(line, l, v->message_id);
    log_remark(line, v->text);
}

/* A finding, an upstream. */
static void
line_trouble(struct log_line *line, const struct event *v)
{
    if (v->command.length > 0)
        log_field(line, "code", v->command);
    if (v->relay.length > 0)
        log_field(line, "relay", v->relay);
    if (v->text.length > 0)
        log_remark(line, v->text);
}

/* A session begins, is secured, or ends. */
static void
line_session(struct log_line *line, struct event_log *l, const struct event *v)
{
    if (v->client != NULL)
        log_field_client(line, "client", text_from(v->client->name));
    if (v->relay.length > 0)
        log_field(line, "relay", v->relay);
    line_tls(line, l, v->tls);
    if (v->command.length > 0)
        log_field(line, "command", v->command);
    log_remark(line, v->text);
}

void
event_log_history(struct log *log, const struct event *v)
{
    struct event_log own = {.log = log, .is_history = true};
    struct log_line line;
    char id[ID_LENGTH + 1];
    switch ((unsigned)v->kind) {
    case EVENT_MADE:
    case EVENT_NOTIFIED:
        event_line_start(&line, &own, v, id);
        line_made(&line, &own, v);
        log_end(&line);
        break;
    case EVENT_REFUSED:
    case EVENT_DENIED:
    case EVENT_LOCKED:
    case EVENT_ACCEPTED:
    case EVENT_SUBMITTED:
    case EVENT_DELIVERED:
    case EVENT_DEFERRED:
    case EVENT_BOUNCED:
    case EVENT_EXPIRED:
    case EVENT_GIVEN:
    case EVENT_TAKEN:
    case EVENT_BOUNCED_LATER:
    case EVENT_COMPLAINED:
    case EVENT_FRAGMENT:
    case EVENT_QUOTA:
    case EVENT_SUPPRESSED:
        event_log_petrel(&own, v);
        break;
    case EVENT_CONNECTED:
    case EVENT_DISCONNECTED:
    case EVENT_SECURED:
    case EVENT_LOST:
    case EVENT_TIMED_OUT:
    case EVENT_CUT_OFF:
        event_line_start(&line, &own, v, id);
        line_session(&line, &own, v);
        log_end(&line);
        break;
    default:
        event_line_start(&line, &own, v, id);
        line_trouble(&line, v);
        log_end(&line);
        break;
    }
}

void
event_log(struct event_log *l, const struct event *event)
{
    if ((event->is_quiet && event->kind != EVENT_DISCONNECTED) ||
        event_log_waiting_counts(&l->waiting, event))
        return;
    if (log_style(l->log) != LOG_STYLE_POSTFIX || !event_log_postfix(l, event))
        event_log_petrel(l, event);
}
