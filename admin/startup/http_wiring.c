/* Connects the HTTP server to the parts that it reports. */
#include "admin/startup/http_wiring.h"

#include "smtp/trust/tls_reports.h"

#include <assert.h>
#include <string.h>

enum { ERROR_ROOM = 512 };

static struct tls_server *
http_wiring_tls(void *context)
{
    const struct http_wiring *w = context;
    return listener_tls(w->listener);
}

static int64_t
http_wiring_history_bytes(void *context)
{
    return history_state(context).bytes;
}

static const char *
http_wiring_finding(void *context, size_t index)
{
    const struct findings_wiring *f = context;
    const struct finding_row *row = findings_row_at(index);
    if (row == NULL)
        return NULL;
    return findings_has(f->findings, row->code) ? row->code : "";
}

static bool
http_wiring_upstream(void *context, size_t index, struct metrics_upstream *out)
{
    const struct upstream_wiring *w = context;
    struct upstream_view view;
    if (!upstreams_at(w->upstreams, index, &view))
        return false;
    *out = (struct metrics_upstream){.is_up = view.is_up, .good_ms = view.good_ms};
    text_copy(out->relay, sizeof(out->relay), text_from(view.relay));
    return true;
}

/* A metrics_setup.group. */
static bool
http_wiring_group(void *context, struct metrics_group *out)
{
    const struct group_wiring *w = context;
    if (w->group == NULL)
        return false;
    struct group_state s = group_state(w->group);
    size_t lost = group_members_lost(s.members);
    *out = (struct metrics_group){.has_bank = s.bank != GROUP_BANK_NONE,
                                  .is_up = s.bank == GROUP_BANK_UP,
                                  .members = s.members->count - lost,
                                  .lost = lost,
                                  .fallback_sites = s.fallback_sites,
                                  .asks = s.asks,
                                  .failures = s.failures};
    return true;
}

/* A metrics_setup.tls_policy. */
static void
http_wiring_tls_policy(void *context, uint64_t counts[2][2])
{
    struct tls_reports_totals t = tls_reports_totals(delivery_tls_reports(context));
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
http_wiring_clients(void *context, struct metrics_clients *out)
{
    struct session_counts counts = listener_counts(context);
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
start_metrics(const struct http_wiring *w, const struct configuration *c)
{
    struct metrics_setup setup = {.loop = w->loop,
                                  .manager = w->manager,
                                  .events = w->events,
                                  .sites = (size_t)c->options.metrics_sites,
                                  .count_sessions = w->count_sessions,
                                  .count_context = w->listener,
                                  .health = w->health,
                                  .log = w->log,
                                  .tls = http_wiring_tls,
                                  .tls_context = (void *)(uintptr_t)w,
                                  .clients = http_wiring_clients,
                                  .clients_context = w->listener,
                                  .client_sessions_limit =
                                      (size_t)c->options.server_session_limit,
                                  .is_draining = w->is_draining,
                                  .context = w->context,
                                  .history_bytes = http_wiring_history_bytes,
                                  .history = w->history,
                                  .finding = http_wiring_finding,
                                  .findings = w->findings,
                                  .upstream = http_wiring_upstream,
                                  .upstreams = (void *)(uintptr_t)w->upstreams,
                                  .tls_policy = http_wiring_tls_policy,
                                  .deliveries = (void *)(uintptr_t)w->delivery,
                                  .group = http_wiring_group,
                                  .group_context = (void *)(uintptr_t)w->group};
    for (size_t i = 0; i < c->http.count; i++)
        if (!c->http.list[i].no_metrics)
            return metrics_new(&setup);
    return NULL;
}

/* A live_setup.status. */
static json_t *
http_wiring_status(void *context)
{
    json_t *question = json_pack("{s:s}", "command", "status");
    json_t *status = questions_answer(context, question);
    json_decref(question);
    return status;
}

/* A series_setup.waiting. */
static size_t
http_wiring_waiting(void *context)
{
    struct sched_counts counts = sched_count(manager_sched(context));
    return counts.incoming + counts.active + counts.deferred;
}

/* Data for the API alone: not for places of health and metrics alone. */
static void
http_wiring_make_data(struct http_wiring *w)
{
    if (w->live != NULL)
        return;
    w->live = live_new(&(struct live_setup){.loop = w->loop,
                                            .events = w->events,
                                            .status = http_wiring_status,
                                            .context = w->questions});
    w->series = series_new(&(struct series_setup){.loop = w->loop,
                                                  .events = w->events,
                                                  .waiting = http_wiring_waiting,
                                                  .context = w->manager});
    w->routes.live = w->live;
    w->routes.series = w->series;
}

static bool
http_wiring_open(struct http_wiring *w, struct http_server_settings *settings,
                 char *error, size_t error_size)
{
    w->routes = (struct http_routes){.loop = w->loop,
                                     .log = w->log,
                                     .manager = w->manager,
                                     .questions = w->questions,
                                     .metrics = w->metrics,
                                     .trials = w->trials,
                                     .health = w->health};
    for (size_t i = 0; i < settings->places->count; i++)
        if (!settings->places->list[i].no_page)
            http_wiring_make_data(w);
    settings->events = w->events;
    settings->tls = http_wiring_tls;
    settings->tls_context = w;
    settings->route = http_routes_answer;
    settings->context = &w->routes;
    w->server = http_server_new(w->loop, w->net, w->log, settings, error, error_size);
    return w->server != NULL;
}

/* --- The control socket ------------------------------------------------------------ */

/* The server, made now if nothing listens; places need a restart. */
static struct http_server *
http_wiring_server(struct http_wiring *w)
{
    struct http_places none = {.count = 0};
    struct http_server_settings settings = configuration_http(w->configuration);
    char error[ERROR_ROOM];
    if (w->server != NULL)
        return w->server;
    settings.places = &none;
    return http_wiring_open(w, &settings, error, sizeof(error)) ? w->server : NULL;
}

/* A control_server_on_http(). */
static const char *
http_wiring_take(void *context, struct net_connection *connection)
{
    struct http_server *server = http_wiring_server(context);
    if (server == NULL)
        return "there is no HTTP server";
    http_wiring_make_data(context);
    return http_server_adopt(server, connection);
}

/* Where browsers of this host, or of others, find it; the host name stands for an
 * address that is any of them. */
static json_t *
http_wiring_url(const struct http_wiring *w, const struct http_place *place)
{
    struct net_address address = place->address;
    char text[NET_ADDRESS_TEXT_MAX];
    const char *scheme = place->tls ? "https" : "http";
    if (net_address_is_wildcard(&address))
        return json_sprintf("%s://%s:%u/", scheme, w->configuration->options.hostname,
                            (unsigned)address.port);
    net_address_format(&address, text);
    return json_sprintf("%s://%s/", scheme, text);
}

static json_t *
http_wiring_urls(const struct http_wiring *w)
{
    json_t *urls = json_array();
    const struct http_place *place;
    for (size_t i = 0; (place = http_server_place(w->server, i)) != NULL; i++)
        if (!place->no_page && place->address.family != NET_UNIX)
            json_array_append_new(urls, http_wiring_url(w, place));
    return urls;
}

/* A questions_on(): a key for POST /api/session. */
static json_t *
http_wiring_page(void *context, const json_t *request)
{
    struct http_wiring *w = context;
    const json_t *value = json_object_get(request, "access");
    const char *access = value != NULL ? json_string_value(value) : "operate";
    bool reads = access != NULL && strcmp(access, "read") == 0;
    char key[HTTP_SECRET_SIZE];
    if (access == NULL || (!reads && strcmp(access, "operate") != 0))
        return questions_refuse("access is read or operate");
    struct http_server *server = http_wiring_server(w);
    if (server == NULL)
        return questions_refuse("there is no HTTP server");
    http_keys_make(http_server_keys(server), reads ? HTTP_MAY_READ : HTTP_MAY_OPERATE,
                   key);
    log_say(w->log, LOG_LEVEL_INFO, "http", NULL,
            "a key that may %s was made, requested by root", access);
    return json_pack("{s:b,s:s,s:s,s:o}", "ok", true, "key", key, "access", access,
                     "urls", http_wiring_urls(w));
}

/* A questions_on(). Counted from the first question on, where no page has had it counted
 * before. */
static json_t *
http_wiring_series(void *context, const json_t *request)
{
    struct http_wiring *w = context;
    struct buffer text;
    (void)request;
    http_wiring_make_data(w);
    buffer_init(&text, SERIES_TEXT_MAX);
    json_t *answer = series_write(w->series, &text)
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
http_wiring_hostname(void *context)
{
    const struct http_wiring *w = context;
    return json_string(w->configuration->options.hostname);
}

/* --- public ------------------------------------------------------------------------ */

bool
http_wiring_start(struct http_wiring *w, const struct configuration *c, char *error,
                  size_t error_size)
{
    struct http_server_settings settings = configuration_http(c);
    w->configuration = c;
    w->questions = control_server_questions(w->control);
    questions_on(w->questions, "page", http_wiring_page, w);
    questions_on(w->questions, "series", http_wiring_series, w);
    questions_on_part(w->questions, "hostname", http_wiring_hostname, w);
    control_server_on_http(w->control, http_wiring_take, w);
    if (settings.places->count == 0)
        return true;
    w->metrics = start_metrics(w, c);
    bool good = http_wiring_open(w, &settings, error, error_size);
    if (w->metrics != NULL)
        metrics_set_server(w->metrics, w->server);
    return good;
}

void
http_wiring_reload(struct http_wiring *w, const struct configuration *c)
{
    if (w->metrics != NULL)
        metrics_note_reload(w->metrics, c != NULL);
    if (c != NULL)
        w->configuration = c;
    if (c == NULL || w->server == NULL)
        return;
    struct http_server_settings settings = configuration_http(c);
    http_server_reload(w->server, &settings);
    if (w->metrics != NULL) {
        metrics_set_sites(w->metrics, (size_t)c->options.metrics_sites);
        metrics_set_limit(w->metrics, (size_t)c->options.server_session_limit);
    }
}

void
http_wiring_stop(struct http_wiring *w)
{
    if (w->control != NULL)
        control_server_on_http(w->control, NULL, NULL);
    http_server_free(&w->server);
    live_free(&w->live);
    series_free(&w->series);
    metrics_free(&w->metrics);
}
