/* Reports and changes, for the control socket, of parts that it does not know. */
#include "admin/startup/control_wiring.h"

#include "admin/control/json_field.h"
#include "admin/control/listing.h"
#include "admin/control/site_show.h"
#include "base/memory.h"
#include "smtp/delivery/conversations.h"
#include "smtp/trust/tls_reports.h"
#include "smtp/access/lockout.h"

#include <stdlib.h>
#include <string.h>

enum { LOCKOUTS_SHOWN = 1000, UNLOCKS_MAX = 1000 };
#define LEVEL_MAX_MS (365LL * 24 * 3600 * 1000)

size_t
control_wiring_sessions(void *listener, bool *stressed)
{
    *stressed = listener_is_stressed(listener);
    return listener_sessions(listener);
}

static json_t *
dkim_status(void *context)
{
    const struct control_wiring *w = context;
    struct signing_counts counts;
    if (!delivery_signing(w->delivery, &counts))
        return NULL;
    return json_pack("{s:I,s:I,s:I}", "signed", (json_int_t)counts.signed_count,
                     "failed", (json_int_t)counts.failed, "longest",
                     (json_int_t)counts.longest);
}

static void
tls_reports_add(void *context, const struct tls_reports_row *row)
{
    json_array_append_new(context, json_pack("{s:s,s:s,s:s,s:s,s:I}", "policy",
                                             tls_reports_policy_word(row->policy),
                                             "domain", row->domain, "host", row->host,
                                             "result", tls_reports_word(row->result),
                                             "count", (json_int_t)row->count));
}

static json_t *
tls_reports_status(void *context)
{
    const struct control_wiring *w = context;
    json_t *list = json_array();
    tls_reports_each(delivery_tls_reports(w->delivery), tls_reports_add, list);
    if (json_array_size(list) > 0)
        return list;
    json_decref(list);
    return NULL;
}

/* --- A site ------------------------------------------------------------------------ */

static json_t *
conversation_line(const struct transcript_line *line)
{
    static const char *const words[] = {
        [TRANSCRIPT_WE] = "we", [TRANSCRIPT_THEY] = "they", [TRANSCRIPT_NOTE] = "note"};
    return json_pack("{s:I,s:s,s:o}", "at_ms", (json_int_t)line->at_ms, "from",
                     words[line->who], "text", listing_text(line->text));
}

static json_t *
conversation_make(const struct conversation *c)
{
    json_t *lines = json_array();
    struct transcript_line line;
    size_t at = 0;
    if (c == NULL)
        return json_null();
    while (transcript_next(&c->transcript, &at, &line))
        json_array_append_new(lines, conversation_line(&line));
    return json_pack("{s:I,s:o,s:b,s:o}", "begun_ms", (json_int_t)c->begun_ms, "relay",
                     listing_text(text_from(c->relay)), "cut", c->transcript.is_cut,
                     "lines", lines);
}

static json_t *
answer_site(void *context, const json_t *request)
{
    const struct control_wiring *w = context;
    const char *name = json_field_string(request, "name");
    json_t *site = site_show_find(manager_sched(w->manager), name);
    const struct conversation *failed =
        conversations_find(delivery_conversations(w->delivery), name);
    return json_pack("{s:b,s:o,s:o}", "ok", true, "site",
                     site != NULL ? site : json_null(), "failed",
                     conversation_make(failed));
}

/* --- The level of the log ---------------------------------------------------------- */

static void
level_over(void *context)
{
    struct control_wiring *w = context;
    w->level_until_ms = 0;
    log_restyle(w->log, log_style(w->log), w->level);
    log_say(w->log, LOG_LEVEL_INFO, "main", NULL, "log level %s again",
            log_level_name(w->level));
}

static bool
level_find(const char *name, enum log_level *level)
{
    for (int l = LOG_LEVEL_ERROR; l <= LOG_LEVEL_DEBUG; l++)
        if (strcmp(name, log_level_name((enum log_level)l)) == 0) {
            *level = (enum log_level)l;
            return true;
        }
    return false;
}

static void
level_say(const struct control_wiring *w, enum log_level level, const char *by)
{
    log_say(w->log, LOG_LEVEL_INFO, "main", NULL, "log level %s, requested by %s",
            log_level_name(level), by);
}

/* The line is written at the more talkative of the two levels. */
static void
level_change(struct control_wiring *w, enum log_level level, int64_t for_ms,
             const char *by)
{
    bool lowers = level < log_level(w->log);
    if (lowers)
        level_say(w, level, by);
    loop_timer_stop(w->loop, &w->level_timer);
    w->level_until_ms = 0;
    log_restyle(w->log, log_style(w->log), level);
    if (for_ms > 0 && level != w->level) {
        w->level_until_ms = loop_now_ms(w->loop) + for_ms;
        loop_timer_start(w->loop, &w->level_timer, for_ms, level_over, w);
    }
    if (!lowers)
        level_say(w, level, by);
}

static json_t *
answer_log_level(void *context, const json_t *request)
{
    struct control_wiring *w = context;
    const char *name = json_string_value(json_object_get(request, "level"));
    const char *by = json_string_value(json_object_get(request, "by"));
    int64_t for_ms = json_field_number(request, "for_ms");
    enum log_level level = w->level;
    if (name != NULL && !level_find(name, &level))
        return questions_refuse("level is error, warning, info or debug");
    if (for_ms < 0 || for_ms > LEVEL_MAX_MS)
        return questions_refuse("a level lasts at most a year");
    if (name != NULL)
        level_change(w, level, for_ms, by != NULL ? by : "root");
    return json_pack("{s:b,s:s,s:s,s:I}", "ok", true, "level",
                     log_level_name(log_level(w->log)), "configured",
                     log_level_name(w->level), "until_ms",
                     (json_int_t)w->level_until_ms);
}

/* --- Lockouts ---------------------------------------------------------------------- */

static json_t *
answer_lockouts(void *context, const json_t *request)
{
    const struct control_wiring *w = context;
    struct lockout_entry *entries = memory_new(LOCKOUTS_SHOWN * sizeof(*entries));
    json_t *list = json_array();
    (void)request;
    size_t count = lockout_list(listener_lockout(w->listener),
                                loop_monotonic_ms(w->loop), entries, LOCKOUTS_SHOWN);
    for (size_t i = 0; i < count && i < LOCKOUTS_SHOWN; i++) {
        char client[LOCKOUT_TEXT_MAX];
        lockout_key_format(&entries[i].key, client);
        json_array_append_new(
            list, json_pack("{s:s,s:i,s:I}", "client", client, "times",
                            entries[i].lockouts, "until_ms",
                            (json_int_t)(loop_now_ms(w->loop) + entries[i].left_ms)));
    }
    free(entries);
    return json_pack("{s:b,s:I,s:o}", "ok", true, "count", (json_int_t)count,
                     "lockouts", list);
}

static bool
are_clients(const json_t *clients)
{
    struct lockout_key key;
    size_t i;
    json_t *name;
    if (!json_is_array(clients) || json_array_size(clients) > UNLOCKS_MAX)
        return false;
    json_array_foreach (clients, i, name)
        if (!json_is_string(name) ||
            !lockout_key_parse(text_from(json_string_value(name)), &key))
            return false;
    return true;
}

static json_t *
answer_unlock(void *context, const json_t *request)
{
    const struct control_wiring *w = context;
    const json_t *clients = json_object_get(request, "clients");
    json_t *list = json_array(), *name;
    size_t i;
    if (!are_clients(clients)) {
        json_decref(list);
        return questions_refuse("clients are at most 1,000 of: an IP address, an IPv6 "
                                "network of 64 bits, or uid NUMBER");
    }
    json_array_foreach (clients, i, name) {
        struct lockout_key key;
        char client[LOCKOUT_TEXT_MAX];
        (void)!lockout_key_parse(text_from(json_string_value(name)), &key);
        lockout_key_format(&key, client);
        bool locked = lockout_forgive(listener_lockout(w->listener), &key,
                                      loop_monotonic_ms(w->loop));
        if (locked)
            log_say(w->log, LOG_LEVEL_INFO, "smtpd", NULL,
                    "%s is no longer locked out, requested by root", client);
        json_array_append_new(
            list, json_pack("{s:s,s:b}", "client", client, "locked", locked));
    }
    return json_pack("{s:b,s:o}", "ok", true, "clients", list);
}

/* --- Reload ------------------------------------------------------------------------ */

static void
reload_begins(void *context)
{
    struct control_wiring *w = context;
    w->reload(w->context);
}

/* The answer follows its question: never from within. */
static json_t *
answer_reload(void *context, const json_t *request)
{
    struct control_wiring *w = context;
    (void)request;
    if (w->is_draining(w->context))
        return questions_refuse("the daemon stops");
    if (!w->reloading)
        loop_post(w->loop, &w->reload_task, reload_begins, w);
    w->reloading = true;
    return NULL;
}

void
control_wiring_reloaded(struct control_wiring *w, const json_t *errors,
                        const char *restart)
{
    json_t *answer = errors != NULL
                         ? json_pack("{s:b,s:s,s:O}", "ok", false, "error",
                                     "the settings have errors; the old "
                                     "settings stay",
                                     "errors", (json_t *)(uintptr_t)errors)
                         : json_pack("{s:b,s:s}", "ok", true, "restart", restart);
    if (errors == NULL) {
        loop_timer_stop(w->loop, &w->level_timer);
        w->level_until_ms = 0;
        w->level = log_level(w->log);
    }
    w->reloading = false;
    control_server_answer(w->control, "reload", answer);
}

void
control_wiring_stop(struct control_wiring *w)
{
    if (w->control == NULL)
        return;
    loop_timer_stop(w->loop, &w->level_timer);
    if (w->reloading)
        loop_unpost(w->loop, &w->reload_task);
    w->reloading = false;
    control_server_answer(w->control, "reload", questions_refuse("the daemon stops"));
}

void
control_wiring_start(struct control_wiring *w)
{
    struct questions *questions = control_server_questions(w->control);
    w->level = log_level(w->log);
    questions_on_count(questions, control_wiring_sessions, w->listener);
    questions_on_part(questions, "dkim", dkim_status, w);
    questions_on_part(questions, "tls_reports", tls_reports_status, w);
    questions_on(questions, "site", answer_site, w);
    questions_on(questions, "health", health_answer, w->health);
    questions_on(questions, "log-level", answer_log_level, w);
    questions_on(questions, "lockouts", answer_lockouts, w);
    questions_on(questions, "unlock", answer_unlock, w);
    questions_on(questions, "reload", answer_reload, w);
}
