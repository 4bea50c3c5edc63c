/* Connects the HTTP server to the parts that it reports. */
#include "admin/startup/parts.h"

#include "smtp/trust/tls_reports.h"
#include "queue/spool/slices.h"

#include <assert.h>
#include <string.h>
#include <sysexits.h>

static struct tls_server *
part_http_tls(void *context)
{
    const struct daemon *d = context;
    return listener_tls(d->listener);
}

static int64_t
part_http_history_bytes(void *context)
{
    const struct daemon *d = context;
    return history_state(d->history).bytes;
}

static const char *
part_http_finding(void *context, size_t index)
{
    const struct daemon *d = context;
    const struct fault_row *row = faults_row_at(index);
    if (row == NULL)
        return NULL;
    return findings_has(d->findings.findings, row->code) ? row->code : "";
}

static bool
part_http_upstream(void *context, size_t index, struct metrics_upstream *out)
{
    const struct daemon *d = context;
    struct smarthost_health_view view;
    if (!smarthost_health_at(d->upstreams, index, &view))
        return false;
    *out = (struct metrics_upstream){.is_up = view.is_up, .good_ms = view.good_ms};
    text_copy(out->relay, sizeof(out->relay), text_from(view.relay));
    return true;
}

/* A metrics_setup.group. */
static bool
part_http_copies(void *context, struct metrics_copies *out)
{
    const struct daemon *d = context;
    if (d->copies.keeper == NULL)
        return false;
    struct copies_state s = copies_keeper_state(d->copies.keeper);
    *out = (struct metrics_copies){.is_up = s.is_ready,
                                   .behind = s.behind,
                                   .stored = s.stored,
                                   .removed = s.removed,
                                   .refused = s.refused,
                                   .losses = s.losses};
    if (d->copies.adoption != NULL) {
        struct adoption_state a = adoption_state(d->copies.adoption);
        out->adopted = a.adopted;
        out->recalled = a.recalled;
        out->given_up = a.given_up;
        out->unreadable = a.unreadable;
    }
    return true;
}

static bool
part_http_group(void *context, struct metrics_group *out)
{
    const struct daemon *d = context;
    if (d->group.group == NULL)
        return false;
    struct group_state s = group_state(d->group.group);
    size_t lost = group_members_lost(s.members);
    *out = (struct metrics_group){.has_bank = s.bank != GROUP_BANK_NONE,
                                  .is_up = s.bank == GROUP_BANK_UP,
                                  .members = s.members->count - lost,
                                  .lost = lost,
                                  .fallback_sites = s.fallback_sites,
                                  .answered =
                                      s.asks > s.failures ? s.asks - s.failures : 0,
                                  .failures = s.failures};
    return true;
}

/* A metrics_setup.tls_policy. */
static void
part_http_tls_policy(void *context, uint64_t counts[2][2])
{
    const struct daemon *d = context;
    struct tls_reports_totals t = tls_reports_totals(delivery_tls_reports(d->delivery));
    counts[0][0] = t.good[TLS_REPORTS_DANE];
    counts[0][1] = t.failed[TLS_REPORTS_DANE];
    counts[1][0] = t.good[TLS_REPORTS_STS];
    counts[1][1] = t.failed[TLS_REPORTS_STS];
}

static_assert((int)SESSION_REFUSED_REASONS <= (int)METRICS_REFUSED_MAX &&
                  (int)SESSION_ACCEPT_BOUNDS < (int)METRIC_BUCKETS_MAX,
              "they fit");

/* A metrics_setup.clients. */
static void
part_http_clients(void *context, struct metrics_clients *out)
{
    const struct daemon *d = context;
    struct session_counts counts = listener_counts(d->listener);
    *out = (struct metrics_clients){.opened = counts.opened,
                                    .logins = counts.logins,
                                    .accept_bounds = session_accept_bounds_s,
                                    .accept_bound_count = SESSION_ACCEPT_BOUNDS};
    for (int i = 0; i < SESSION_REFUSED_REASONS; i++) {
        out->refused[i] = session_refused_word((enum session_refused)i);
        out->refused_counts[i] = counts.refused[i];
    }
    memcpy(out->accepts.counts, counts.accepts, sizeof(counts.accepts));
    out->accepts.sum = (double)counts.accept_sum_us / 1e6;
}

static struct metrics *
start_metrics(struct daemon *d)
{
    const struct configuration *c = d->configuration;
    struct metrics_setup setup = {.loop = d->loop,
                                  .manager = d->manager,
                                  .events = d->events,
                                  .sites = (size_t)c->options.metrics_sites,
                                  .count_sessions = part_answers_sessions,
                                  .count_context = d->listener,
                                  .health = &d->health,
                                  .log = d->log,
                                  .tls = part_http_tls,
                                  .tls_context = d,
                                  .clients = part_http_clients,
                                  .clients_context = d,
                                  .client_sessions_limit =
                                      (size_t)c->options.server.clients.sessions,
                                  .is_draining = daemon_is_leaving,
                                  .context = d,
                                  .history_bytes = part_http_history_bytes,
                                  .history = d,
                                  .finding = part_http_finding,
                                  .findings = d,
                                  .upstream = part_http_upstream,
                                  .upstreams = d,
                                  .tls_policy = part_http_tls_policy,
                                  .deliveries = d,
                                  .group = part_http_group,
                                  .copies = part_http_copies,
                                  .group_context = d};
    for (size_t i = 0; i < c->http.count; i++)
        if (!c->http.list[i].no_metrics)
            return metrics_new(&setup);
    return NULL;
}

/* A live_setup.status. */
static json_t *
part_http_status(void *context)
{
    return questions_ask(context, "status");
}

/* A series_setup.waiting. */
static size_t
part_http_waiting(void *context)
{
    struct sched_counts counts = sched_count(manager_sched(context));
    return counts.incoming + counts.active + counts.deferred;
}

/* Data for the API alone: not for places of health and metrics alone. */
static void
part_http_make_data(struct daemon *d)
{
    if (d->http.live != NULL)
        return;
    d->http.live =
        live_new(&(struct live_setup){.loop = d->loop,
                                      .events = d->events,
                                      .status = part_http_status,
                                      .context = control_server_questions(d->control)});
    d->http.series = series_new(&(struct series_setup){.loop = d->loop,
                                                       .events = d->events,
                                                       .waiting = part_http_waiting,
                                                       .context = d->manager});
    d->http.routes.live = d->http.live;
    d->http.routes.series = d->http.series;
}

/* An http_server_settings.key. */
static const char *
part_http_key(void *context, struct text token)
{
    const struct http_routes *routes = context;
    return routes->post != NULL ? post_door_key(routes->post, token) : NULL;
}

/* Made with the first keys, and kept: messages may be under way. */
static void
part_http_set_keys(struct daemon *d, const struct configuration *c)
{
    const struct options *o = &d->started->options;
    char path[SLICES_SUFFIX_MAX + 16], suffix[SLICES_SUFFIX_MAX];
    if (d->http.post == NULL && c->post_keys == NULL)
        return;
    slices_suffix((unsigned)o->slices, (unsigned)o->slice, suffix);
    snprintf(path, sizeof(path), "lock/posted%s", suffix);
    if (d->http.post == NULL)
        d->http.post = post_door_new(
            &(struct post_setup){.loop = d->loop,
                                 .host = listener_host(d->listener),
                                 .manager = d->manager,
                                 .questions = control_server_questions(d->control),
                                 .log = d->log,
                                 .records = path,
                                 .has_journal = o->manager.queue.journal_size > 0,
                                 .leaves = daemon_leaves,
                                 .context = d});
    if (c->post_keys != NULL)
        c->post_keys->users++;
    post_door_set_keys(d->http.post, c->post_keys);
    d->http.routes.post = d->http.post;
}

static bool
part_http_open(struct daemon *d, struct http_server_settings *settings, char *error)
{
    d->http.routes =
        (struct http_routes){.loop = d->loop,
                             .log = d->log,
                             .manager = d->manager,
                             .questions = control_server_questions(d->control),
                             .metrics = d->http.metrics,
                             .trials = d->trials,
                             .show_subjects = d->configuration->options.show_subjects,
                             .health = &d->health};
    for (size_t i = 0; i < settings->places->count; i++)
        if (!settings->places->list[i].no_page)
            part_http_make_data(d);
    settings->events = d->events;
    settings->tls = part_http_tls;
    settings->tls_context = d;
    part_http_set_keys(d, d->configuration);
    settings->route = http_routes_answer;
    settings->key = part_http_key;
    settings->context = &d->http.routes;
    d->http.server =
        http_server_new(d->loop, d->net, d->log, settings, error, DAEMON_ERROR_MAX);
    return d->http.server != NULL;
}

/* --- The control socket ------------------------------------------------------------ */

/* The server, made now if nothing listens; places need a restart. */
static struct http_server *
part_http_server(struct daemon *d)
{
    struct http_places none = {.count = 0};
    struct http_server_settings settings = configuration_http(d->configuration);
    char error[DAEMON_ERROR_MAX];
    if (d->http.server != NULL)
        return d->http.server;
    settings.places = &none;
    return part_http_open(d, &settings, error) ? d->http.server : NULL;
}

/* A control_server_on_http(). */
static const char *
part_http_take(void *context, struct net_connection *connection)
{
    struct http_server *server = part_http_server(context);
    if (server == NULL)
        return "there is no HTTP server";
    part_http_make_data(context);
    return http_server_adopt(server, connection);
}

/* Where browsers of this host, or of others, find it; the host name stands for an
 * address that is any of them. */
static json_t *
part_http_url(const struct daemon *d, const struct http_place *place)
{
    struct net_address address = place->address;
    char text[NET_ADDRESS_TEXT_MAX];
    const char *scheme = place->tls ? "https" : "http";
    if (net_address_is_wildcard(&address))
        return json_sprintf("%s://%s:%u/", scheme, d->configuration->options.hostname,
                            (unsigned)address.port);
    net_address_format(&address, text);
    return json_sprintf("%s://%s/", scheme, text);
}

static json_t *
part_http_urls(const struct daemon *d)
{
    json_t *urls = json_array();
    const struct http_place *place;
    for (size_t i = 0; (place = http_server_place(d->http.server, i)) != NULL; i++)
        if (!place->no_page && place->address.family != NET_UNIX)
            json_array_append_new(urls, part_http_url(d, place));
    return urls;
}

/* A questions_on(): a key for POST /api/session. */
static json_t *
part_http_page(void *context, const json_t *request)
{
    struct daemon *d = context;
    const json_t *value = json_object_get(request, "access");
    const char *access = value != NULL ? json_string_value(value) : "operate";
    bool reads = access != NULL && strcmp(access, "read") == 0;
    char key[HTTP_SECRET_SIZE];
    if (access == NULL || (!reads && strcmp(access, "operate") != 0))
        return questions_refuse("access is read or operate");
    struct http_server *server = part_http_server(d);
    if (server == NULL)
        return questions_refuse("there is no HTTP server");
    http_keys_make(http_server_keys(server), reads ? HTTP_MAY_READ : HTTP_MAY_OPERATE,
                   key);
    log_say(d->log, LOG_LEVEL_INFO, "http", NULL,
            "a key that may %s was made, requested by root", access);
    return json_pack("{s:b,s:s,s:s,s:o}", "ok", true, "key", key, "access", access,
                     "urls", part_http_urls(d));
}

/* A questions_on(). Counted from the first question on, where no page has had it counted
 * before. */
static json_t *
part_http_series(void *context, const json_t *request)
{
    struct daemon *d = context;
    struct buffer text;
    (void)request;
    part_http_make_data(d);
    buffer_init(&text, SERIES_TEXT_MAX);
    json_t *answer = series_write(d->http.series, &text)
                         ? json_loadb(text.at, text.length, 0, NULL)
                         : NULL;
    buffer_free(&text);
    if (answer == NULL)
        return questions_refuse("the series do not fit");
    json_object_set_new(answer, "ok", json_true());
    return answer;
}

/* A questions_on_part(). */
static json_t *
part_http_hostname(void *context)
{
    const struct daemon *d = context;
    return json_string(d->configuration->options.hostname);
}

/* --- Start, reload, stop ------------------------------------------------------------ */

int
part_http_start(struct daemon *d)
{
    struct questions *questions = control_server_questions(d->control);
    struct http_server_settings settings = configuration_http(d->configuration);
    questions_on(questions, "page", part_http_page, d);
    questions_on(questions, "series", part_http_series, d);
    questions_on_part(questions, "hostname", part_http_hostname, d);
    control_server_on_http(d->control, part_http_take, d);
    if (settings.places->count == 0)
        return 0;
    d->http.metrics = start_metrics(d);
    bool good = part_http_open(d, &settings, d->error);
    if (d->http.metrics != NULL)
        metrics_set_server(d->http.metrics, d->http.server);
    if (good)
        return 0;
    return net_passed_is_missing(d->net) ? EX_CONFIG : EX_UNAVAILABLE;
}

void
part_http_reload(struct daemon *d, struct configuration *fresh)
{
    if (d->http.metrics != NULL)
        metrics_note_reload(d->http.metrics, true);
    if (d->http.server == NULL)
        return;
    struct http_server_settings settings = configuration_http(fresh);
    http_server_reload(d->http.server, &settings);
    part_http_set_keys(d, fresh);
    d->http.routes.show_subjects = fresh->options.show_subjects;
    if (d->http.metrics != NULL) {
        metrics_set_sites(d->http.metrics, (size_t)fresh->options.metrics_sites);
        metrics_set_limit(d->http.metrics,
                          (size_t)fresh->options.server.clients.sessions);
    }
}

void
part_http_refused(struct daemon *d)
{
    if (d->http.metrics != NULL)
        metrics_note_reload(d->http.metrics, false);
}

void
part_http_stop(struct daemon *d)
{
    control_server_on_http(d->control, NULL, NULL);
    http_server_free(&d->http.server);
    post_door_free(&d->http.post);
    live_free(&d->http.live);
    series_free(&d->http.series);
    metrics_free(&d->http.metrics);
}
