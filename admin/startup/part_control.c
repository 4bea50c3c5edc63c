/* The control socket, and the answers of the daemon about its parts: readiness, sockets,
 * the level of the log, lockouts, a reload. */
#include "admin/startup/parts.h"

#include "base/format_time.h"
#include "base/json_field.h"
#include "admin/view/listing.h"
#include "admin/view/site_view.h"
#include "base/memory.h"
#include "queue/queue_operator.h"
#include "smtp/delivery/failed_dialogues.h"
#include "smtp/trust/tls_reports.h"
#include "smtp/access/lockout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
    LOCKOUTS_SHOWN = 1000,
    UNLOCKS_MAX = 1000,
    READINESS_MINUTE_MS = 60 * 1000,
    READINESS_MAIL_MAX = 80
};
#define LEVEL_MAX_MS (365LL * 24 * 3600 * 1000)
#define DAY_MS       (24 * 3600 * 1000LL)

size_t
part_answers_sessions(void *listener, bool *stressed)
{
    *stressed = listener_is_stressed(listener);
    return listener_sessions(listener);
}

static json_t *
dkim_status(void *context)
{
    const struct daemon *d = context;
    const struct signing *signing = delivery_signing(d->delivery);
    struct signing_counts counts = signing_counts(signing);
    if (!signing_is_on(signing))
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
    const struct daemon *d = context;
    json_t *list = json_array();
    tls_reports_each(delivery_tls_reports(d->delivery), tls_reports_add, list);
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
conversation_make(const struct failed_dialogue *c)
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
    const struct daemon *d = context;
    const char *name = json_field_string(request, "name");
    json_t *sites = site_view_find(manager_sched(d->manager), name),
           *first = json_array_get(sites, 0);
    const struct failed_dialogue *failed =
        failed_dialogues_find(delivery_failed_dialogues(d->delivery), name);
    return json_pack("{s:b,s:O?,s:o,s:o}", "ok", true, "site", first, "sites", sites,
                     "failed", conversation_make(failed));
}

/* --- The level of the log ---------------------------------------------------------- */

static void
level_over(void *context)
{
    struct daemon *d = context;
    d->answers.level_until_ms = 0;
    log_restyle(d->log, log_style(d->log), d->answers.level);
    log_say(d->log, LOG_LEVEL_INFO, "main", NULL, "log level %s again",
            log_level_name(d->answers.level));
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
level_say(const struct daemon *d, enum log_level level, const char *by)
{
    log_say(d->log, LOG_LEVEL_INFO, "main", NULL, "log level %s, requested by %s",
            log_level_name(level), by);
}

/* The line is written at the more talkative of the two levels. */
static void
level_change(struct daemon *d, enum log_level level, int64_t for_ms, const char *by)
{
    bool lowers = level < log_level(d->log);
    if (lowers)
        level_say(d, level, by);
    loop_timer_stop(d->loop, &d->answers.level_timer);
    d->answers.level_until_ms = 0;
    log_restyle(d->log, log_style(d->log), level);
    if (for_ms > 0 && level != d->answers.level) {
        d->answers.level_until_ms = loop_now_ms(d->loop) + for_ms;
        loop_timer_start(d->loop, &d->answers.level_timer, for_ms, level_over, d);
    }
    if (!lowers)
        level_say(d, level, by);
}

static json_t *
answer_log_level(void *context, const json_t *request)
{
    struct daemon *d = context;
    const char *name = json_string_value(json_object_get(request, "level"));
    const char *by = json_string_value(json_object_get(request, "by"));
    int64_t for_ms = json_field_number(request, "for_ms");
    enum log_level level = d->answers.level;
    if (name != NULL && !level_find(name, &level))
        return questions_refuse("level is error, warning, info or debug");
    if (for_ms < 0 || for_ms > LEVEL_MAX_MS)
        return questions_refuse("a level lasts at most a year");
    if (name != NULL)
        level_change(d, level, for_ms, by != NULL ? by : "root");
    return json_pack("{s:b,s:s,s:s,s:I}", "ok", true, "level",
                     log_level_name(log_level(d->log)), "configured",
                     log_level_name(d->answers.level), "until_ms",
                     (json_int_t)d->answers.level_until_ms);
}

/* --- Lockouts ---------------------------------------------------------------------- */

static json_t *
answer_lockouts(void *context, const json_t *request)
{
    const struct daemon *d = context;
    struct lockout_entry *entries = memory_new(LOCKOUTS_SHOWN * sizeof(*entries));
    json_t *list = json_array();
    (void)request;
    size_t count = lockout_list(listener_lockout(d->listener),
                                loop_monotonic_ms(d->loop), entries, LOCKOUTS_SHOWN);
    for (size_t i = 0; i < count && i < LOCKOUTS_SHOWN; i++) {
        char client[LOCKOUT_TEXT_MAX];
        lockout_key_format(&entries[i].key, client);
        json_array_append_new(
            list, json_pack("{s:s,s:i,s:I}", "client", client, "times",
                            entries[i].lockouts, "until_ms",
                            (json_int_t)(loop_now_ms(d->loop) + entries[i].left_ms)));
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
    const struct daemon *d = context;
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
        bool locked = lockout_forgive(listener_lockout(d->listener), &key,
                                      loop_monotonic_ms(d->loop));
        if (locked)
            log_say(d->log, LOG_LEVEL_INFO, "smtpd", NULL,
                    "%s is no longer locked out, requested by root", client);
        json_array_append_new(
            list, json_pack("{s:s,s:b}", "client", client, "locked", locked));
    }
    return json_pack("{s:b,s:o}", "ok", true, "clients", list);
}

/* --- Reload ------------------------------------------------------------------------ */

/* The answer follows its question: never from within. */
static json_t *
answer_reload(void *context, const json_t *request)
{
    struct daemon *d = context;
    (void)request;
    if (d->draining > 0)
        return questions_refuse("the daemon stops");
    if (!d->answers.reloading)
        loop_post(d->loop, &d->answers.reload_task, daemon_reload, d);
    d->answers.reloading = true;
    return NULL;
}

void
part_answers_reloaded(struct daemon *d, const json_t *errors, const char *restart)
{
    json_t *answer = errors != NULL
                         ? json_pack("{s:b,s:s,s:O}", "ok", false, "error",
                                     "the settings have errors; the old "
                                     "settings stay",
                                     "errors", (json_t *)(uintptr_t)errors)
                         : json_pack("{s:b,s:s}", "ok", true, "restart", restart);
    if (errors == NULL) {
        loop_timer_stop(d->loop, &d->answers.level_timer);
        d->answers.level_until_ms = 0;
        d->answers.level = log_level(d->log);
    }
    d->answers.reloading = false;
    control_server_answer(d->control, "reload", answer);
}

/* --- Sockets and certificates -------------------------------------------------------- */

struct part_names {
    json_t *list;
    size_t count;
};

static void
listening_add(json_t *list, const struct net_address *address, const char *kind,
              const char *tls, const struct net_listener_counts *counts)
{
    char text[NET_ADDRESS_TEXT_MAX];
    net_address_format(address, text);
    json_array_append_new(list,
                          json_pack("{s:o,s:s,s:s,s:I,s:I}", "address",
                                    listing_text(text_from(text)), "kind", kind, "tls",
                                    tls, "sessions", (json_int_t)counts->open,
                                    "accepted", (json_int_t)counts->accepted));
}

/* A questions_on_part(). */
static json_t *
listening_sockets(void *context)
{
    const struct daemon *d = context;
    json_t *list = json_array();
    struct listener_view view;
    struct net_listener_counts counts;
    const struct http_place *place;
    for (size_t i = 0; listener_describe(d->listener, i, &view); i++)
        listening_add(list, view.address, view.kind, view.tls,
                      &(struct net_listener_counts){.accepted = view.accepted,
                                                    .open = view.sessions});
    for (size_t i = 0; d->http.server != NULL &&
                       (place = http_server_place(d->http.server, i)) != NULL;
         i++) {
        counts = http_server_place_counts(d->http.server, i);
        listening_add(list, &place->address, "http", place->tls ? "tls" : "none",
                      &counts);
    }
    const struct net_address *control = control_server_address(d->control, &counts);
    listening_add(list, control, "control", "none", &counts);
    struct net_address door;
    for (size_t i = 0;
         d->peer.peer != NULL && peer_door(d->peer.peer, i, &door, &counts); i++)
        listening_add(list, &door, "peer", "secret", &counts);
    return list;
}

static void
listening_add_name(void *context, const char *name)
{
    struct part_names *names = context;
    if (names->count++ < PART_NAMES_MAX)
        json_array_append_new(names->list, json_string(name));
}

/* Rounded down: -1 on the day after its end. */
static int64_t
listening_days(int64_t left_ms)
{
    return left_ms >= 0 ? left_ms / DAY_MS : -1 - (-1 - left_ms) / DAY_MS;
}

/* A questions_on_part(). */
static json_t *
listening_certificates(void *context)
{
    const struct daemon *d = context;
    const struct tls_server *server = listener_tls(d->listener);
    int64_t now_ms = loop_now_ms(d->loop);
    json_t *list = json_array();
    struct tls_certificate c;
    for (size_t i = 0; server != NULL && tls_server_certificate(server, i, &c); i++) {
        struct part_names names = {.list = json_array()};
        tls_server_each_name(server, i, listening_add_name, &names);
        json_array_append_new(
            list,
            json_pack("{s:o,s:o,s:I,s:I,s:I,s:I,s:b}", "file",
                      listing_text(text_from(part_tls_file(d, i))), "names", names.list,
                      "name_count", (json_int_t)names.count, "not_before_ms",
                      (json_int_t)c.from_ms, "not_after_ms", (json_int_t)c.until_ms,
                      "days_left", (json_int_t)listening_days(c.until_ms - now_ms),
                      "valid", c.from_ms <= now_ms && now_ms <= c.until_ms));
    }
    return list;
}

/* --- Readiness ---------------------------------------------------------------------- */

/* Mail that is held waits on purpose, and fragments wait for others. */
static bool
readiness_look_at_age(const struct daemon *d, struct health_check *check)
{
    struct manager_oldest oldest;
    int64_t most_ms = options_ready_age_ms(&d->configuration->options);
    if (most_ms == 0)
        return false;
    manager_find_oldest(d->manager, &oldest);
    int64_t age_ms = oldest.birth_ms != 0 ? loop_now_ms(d->loop) - oldest.birth_ms : 0;
    *check = (struct health_check){.name = "age", .good = age_ms <= most_ms};
    if (!check->good)
        snprintf(check->why, sizeof(check->why),
                 "the oldest message has waited for %" PRId64 " min",
                 age_ms / READINESS_MINUTE_MS);
    return true;
}

size_t
part_answers_look(void *context, struct health_check checks[HEALTH_CHECKS_MAX])
{
    struct daemon *d = context;
    struct queue_health health = queue_health(manager_queue(d->manager));
    const char *leaves = daemon_leaves(context);
    size_t count = 0;
    struct health_check *accepting = &checks[count++];
    *accepting = (struct health_check){.name = "accepting",
                                       .good = health.accepting && leaves == NULL};
    text_copy(accepting->why, sizeof(accepting->why),
              text_from(leaves != NULL ? leaves : health.reason));
    count += part_upstreams_check(d, &checks[count]);
    count += readiness_look_at_age(d, &checks[count]);
    return count;
}

static void
readiness_describe_mail(const struct daemon *d, char *out, size_t size)
{
    struct sched_counts counts = sched_count(manager_sched(d->manager));
    size_t waiting = (size_t)(counts.incoming + counts.active + counts.deferred);
    struct manager_oldest oldest;
    char age[FORMAT_TIME_MAX];
    manager_find_oldest(d->manager, &oldest);
    if (waiting == 0)
        snprintf(out, size, "nothing waiting");
    else if (oldest.birth_ms == 0)
        snprintf(out, size, "%zu waiting", waiting);
    else
        snprintf(out, size, "%zu waiting, oldest %s", waiting,
                 format_time_span(loop_now_ms(d->loop) - oldest.birth_ms, age));
}

void
part_answers_describe(void *context, char out[NOTIFY_STATUS_MAX])
{
    struct daemon *d = context;
    struct queue_health health = queue_health(manager_queue(d->manager));
    const char *leaves = daemon_leaves(context);
    size_t wrong =
        d->findings.findings != NULL ? findings_count_wrong(d->findings.findings) : 0;
    char mail[READINESS_MAIL_MAX], more[32] = "";
    readiness_describe_mail(d, mail, sizeof(mail));
    if (wrong > 0)
        snprintf(more, sizeof(more), "; %zu finding%s", wrong, wrong == 1 ? "" : "s");
    if (leaves != NULL || !health.accepting)
        snprintf(out, NOTIFY_STATUS_MAX, "not accepting mail: %.60s; %s%s",
                 leaves != NULL ? leaves : health.reason, mail, more);
    else
        snprintf(out, NOTIFY_STATUS_MAX, "accepting mail; %s%s", mail, more);
}

/* --- The control socket ------------------------------------------------------------- */

static const char *
part_control_hostname(void *context)
{
    const struct daemon *d = context;
    return d->configuration->options.hostname;
}

int
part_control_start(struct daemon *d)
{
    d->flush = flush_new(d->loop, d->log, d->manager);
    d->trials = trials_new(&(struct trials_setup){.loop = d->loop,
                                                  .events = d->events,
                                                  .manager = d->manager,
                                                  .hostname = part_control_hostname,
                                                  .leaves = daemon_leaves,
                                                  .context = d});
    d->control = control_server_new(d->loop, d->net, d->log, d->manager,
                                    d->configuration->options.control, d->error,
                                    DAEMON_ERROR_MAX);
    if (d->control == NULL)
        return EX_CANTCREAT;
    control_server_on_trials(d->control, d->trials);
    part_control_reload(d, d->configuration);
    return 0;
}

/* The first account may be a fresh one. */
void
part_control_reload(struct daemon *d, struct configuration *fresh)
{
    (void)fresh;
    questions_on_tokens(control_server_questions(d->control), d->tokens.tokens);
}

void
part_control_stop(struct daemon *d)
{
    control_server_free(&d->control);
    trials_free(&d->trials);
    flush_free(&d->flush);
}

int
part_answers_start(struct daemon *d)
{
    struct questions *questions = control_server_questions(d->control);
    d->health = (struct health){.look = part_answers_look, .context = d};
    d->answers.level = log_level(d->log);
    questions_on_count(questions, part_answers_sessions, d->listener);
    questions_on_part(questions, "dkim", dkim_status, d);
    questions_on_part(questions, "tls_reports", tls_reports_status, d);
    questions_on(questions, "site", answer_site, d);
    questions_on(questions, "health", health_answer, &d->health);
    questions_on(questions, "log-level", answer_log_level, d);
    questions_on(questions, "lockouts", answer_lockouts, d);
    questions_on(questions, "unlock", answer_unlock, d);
    questions_on(questions, "reload", answer_reload, d);
    questions_on_part(questions, "listeners", listening_sockets, d);
    questions_on_part(questions, "certificates", listening_certificates, d);
    return 0;
}

void
part_answers_stop(struct daemon *d)
{
    loop_timer_stop(d->loop, &d->answers.level_timer);
    if (d->answers.reloading)
        loop_unpost(d->loop, &d->answers.reload_task);
    d->answers.reloading = false;
    control_server_answer(d->control, "reload", questions_refuse("the daemon stops"));
}
