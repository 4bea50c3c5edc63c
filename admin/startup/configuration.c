/* Reads the settings, and fills the structs of SMTP, routes and registry from them. */
#include "admin/startup/configuration.h"

#include "admin/post/post_door.h"
#include "admin/settings/complaint.h"
#include "admin/settings/srs_secret.h"
#include "base/crypto/webhook.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/net/net.h"
#include "base/sandbox/identity.h"
#include "base/event/event.h"
#include "base/event/event_post.h"
#include "queue/queue.h"
#include "sched/route/copies.h"
#include "smtp/trust/client_certificates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { POST_BODY_MAX = 999999999, POST_BODY_SLACK = 1024 * 1024 };
enum { REGISTRY_ERROR_MAX = 512, STANDARD_ERROR_MAX = 512 };

/* For commands that any user may run: only the daemon may read keys and users, and
 * these commands do not listen. */
static struct listener_settings
configuration_public_listener(const struct options *o)
{
    struct listener_settings settings = o->server;
    settings.sender_login = settings.sender_domains = settings.listen =
        settings.tls_certificate = settings.tls_key = settings.auth_users =
            settings.relay_client_certificates = settings.auth = TEXT("");
    return settings;
}

void
configuration_free(struct configuration **c)
{
    if (*c == NULL)
        return;
    if ((*c)->routes)
        route_free(&(*c)->routes);
    rewrites_free(&(*c)->rewrites);
    alias_files_stop(&(*c)->reading_aliases);
    aliases_free(&(*c)->aliases);
    alias_files_free(&(*c)->alias_files);
    accounts_free(&(*c)->accounts);
    group_settings_free(&(*c)->group);
    copies_settings_forget(&(*c)->copies);
    free((*c)->peer_doors);
    post_keys_release(&(*c)->post_keys);
    settings_free(&(*c)->settings);
    if ((*c)->reading != NULL)
        (*c)->dkim_keys = dkim_keys_end(&(*c)->reading);
    dkim_keys_free(&(*c)->dkim_keys);
    tls_client_free(&(*c)->anchors);
    buffer_free(&(*c)->errors);
    buffer_free(&(*c)->unused);
    free(*c);
    *c = NULL;
}

/* Lines "key: error", each with the place of the key before it. */
static void
add_places(const struct settings *settings, struct text lines, struct buffer *out)
{
    struct text line;
    while (lines.length > 0 && text_cut(&lines, '\n', &line)) {
        struct text key = text_before(line, text_find(line, ':'));
        const char *place = settings_origin(settings, key);
        (void)!buffer_format(out, "%s%s%.*s\n", place ? place : "", place ? ": " : "",
                             TEXT_ARGS(line));
    }
}

static void
check_registry(struct configuration *c, struct buffer *errors)
{
    char error[REGISTRY_ERROR_MAX];
    if (!registry_configure(text_from(c->options.defrag_registry),
                            text_from(c->options.defrag_registry_password),
                            &c->registry, error, sizeof(error)))
        (void)!buffer_format(errors, "defrag_registry: %s\n", error);
}

/* The registry's Redis is the group's, too, unless that has its own. */
static void
check_group(struct configuration *c, struct buffer *errors)
{
    const struct options *o = &c->options;
    struct text registry = text_from(o->defrag_registry),
                host = text_from(o->cluster_host);
    bool is_borrowed = o->cluster_redis == NULL && redis_is_url(registry);
    if (host.length == 0) /* defrag_host may be NAME=ADDRESS */
        host = text_from(options_host_of(o));
    struct group_texts texts = {
        .cluster = text_from(o->cluster),
        .host =
            o->cluster_host == NULL ? text_before(host, text_find(host, '=')) : host,
        .redis = is_borrowed ? registry : text_from(o->cluster_redis),
        .redis_password = text_from(is_borrowed ? o->defrag_registry_password
                                                : o->cluster_redis_password),
        .peers = text_from(o->cluster_peers),
        .address = text_from(o->cluster_address),
        .egress = text_from(o->cluster_egress),
        .slice = (unsigned)o->slice,
        .slices = (unsigned)o->slices};
    if (o->cluster != NULL && is_borrowed && o->cluster_redis_password != NULL)
        (void)!buffer_format(errors,
                             "cluster_redis_password: not used, since the server "
                             "is that of defrag_registry: set cluster_redis, or "
                             "remove it\n");
    (void)!group_settings_read(&texts, &c->group, errors);
    (void)!copies_settings_read(&o->copies, &c->group, texts.host, texts.slice,
                                texts.slices, &c->copies, errors);
}

struct peer_settings
configuration_peer(const struct configuration *c)
{
    return (struct peer_settings){
        .listen = c->peer_doors,
        .listen_count = c->peer_door_count,
        .secret = text_from(c->options.cluster_secret),
        .group = text_from(c->options.cluster).length > 0 ? c->group.name : "",
        .message_size_limit = c->options.message_size_limit};
}

/* Errors of the list are those of listener_check(). */
static void
check_peer(struct configuration *c, struct buffer *errors)
{
    struct endpoint *endpoints;
    struct buffer unused;
    size_t count;
    buffer_init(&unused, CONFIGURATION_ERRORS_MAX);
    (void)!policy_endpoints_read(c->options.server.listen, &endpoints, &count, &unused);
    policy_endpoints_keep(endpoints, &count, true);
    if (count > 0)
        c->peer_doors = memory_array(count, sizeof(*c->peer_doors));
    for (size_t i = 0; i < count; i++)
        c->peer_doors[c->peer_door_count++] = endpoints[i].address;
    free(endpoints);
    buffer_free(&unused);
    struct peer_settings settings = configuration_peer(c);
    /* The name of the group has an error of its own. */
    if (c->options.cluster != NULL && c->group.name[0] == '\0')
        settings.group = c->options.cluster;
    (void)!peer_check(&settings, errors);
}

/* Never a value: tokens are secrets. */
static void
check_token(const char *key, const char *token, struct buffer *errors)
{
    if (token != NULL && strlen(token) < HTTP_TOKEN_MIN)
        (void)!buffer_format(errors, "%s: has fewer than %d characters\n", key,
                             HTTP_TOKEN_MIN);
}

static void
check_http(struct configuration *c, struct buffer *errors)
{
    const struct options *o = &c->options;
    (void)!http_places_read(text_from(o->http), &c->http, errors);
    (void)!http_names_check(text_from(o->http_names), errors);
    check_token("http_token", o->http_token, errors);
    check_token("http_read_token", o->http_read_token, errors);
    if (o->http_keys != NULL)
        c->post_keys = post_keys_read(o->http_keys, o->server.sender_domains, errors);
    for (size_t i = 0; i < c->http.count; i++)
        if (c->http.list[i].tls && o->server.tls_certificate.length == 0)
            (void)!buffer_add_error(errors, "http", TEXT("tls"),
                                    "needs tls_certificate");
}

struct fault_world
configuration_faults(const struct configuration *c)
{
    return (struct fault_world){.options = &c->options,
                                .settings = c->settings,
                                .routes = c->routes,
                                .rewrites = c->rewrites,
                                .accounts = &c->accounts};
}

struct sandbox_rules
configuration_sandbox(const struct configuration *c)
{
    return (struct sandbox_rules){.options = &c->options,
                                  .settings = c->settings,
                                  .routes = c->routes,
                                  .alias_files = c->alias_files};
}

/* Base64 in JSON takes a third more. Content-Length has at most nine digits. */
static size_t
post_size_max(const struct options *o)
{
    int64_t limit = o->server.message_size_limit;
    bool all = limit == 0 || limit > POST_BODY_MAX / 2;
    return (size_t)(all ? POST_BODY_MAX : limit + limit / 2 + POST_BODY_SLACK);
}

struct http_server_settings
configuration_http(const struct configuration *c)
{
    return (struct http_server_settings){
        .places = &c->http,
        .names = {.hostname = text_from(c->options.hostname),
                  .more = text_from(c->options.http_names)},
        .stream_path = c->post_keys != NULL ? POST_PATH : NULL,
        .stream_max = post_size_max(&c->options),
        .token = text_from(c->options.http_token),
        .read_token = text_from(c->options.http_read_token)
    };
}

static void
check_quotas(struct text table, struct buffer *errors)
{
    struct quotas *quotas = quotas_new();
    (void)!quotas_set(quotas, table, errors);
    quotas_free(&quotas);
}

static void
check_copies(struct text table, struct buffer *errors)
{
    struct copies *copies = copies_new(table, errors);
    copies_free(&copies);
}

/* A command that any user may run goes on without files that only the daemon can read. */
static void
begin_aliases(struct configuration *c, struct buffer *errors)
{
    if (c->routes != NULL)
        c->reading_aliases = alias_files_begin(
            &c->options, c->routes, c->options.without_secrets ? &c->unused : errors);
}

static void
check_events(const struct options *o, struct buffer *errors)
{
    struct text secrets = o->post.secrets, word;
    size_t count = 0;
    uint64_t kinds;
    const char *why = o->post.url.length > 0 ? event_post_check_url(o->post.url) : NULL;
    if (why != NULL)
        (void)!buffer_add_error(errors, "events", o->post.url, why);
    if (!event_record_kinds(text_from(o->events_types), &kinds, &word))
        (void)!buffer_add_error(errors, "events_types", word, "no such event");
    while (text_word(&secrets, ", \t\r\n", &word))
        if (++count > WEBHOOK_SECRETS_MAX || !webhook_is_secret(word))
            (void)!buffer_format(errors, "events_secret: secret %zu: %s\n", count,
                                 count > WEBHOOK_SECRETS_MAX
                                     ? "more than 8"
                                     : "needs 24 characters at least, or whsec_ and "
                                       "Base64 of 24 bytes at least");
}

static void
check_all(struct configuration *c)
{
    struct buffer *errors = &c->errors;
    struct identity who;
    bool is_daemon = !c->options.without_secrets;
    struct listener_settings listener =
        is_daemon ? c->options.server : configuration_public_listener(&c->options);
    c->routes = options_routes(&c->options, errors);
    if (c->routes != NULL) /* which has reported errors of accounts */
        (void)!accounts_read(&c->options, &c->accounts, errors);
    c->rewrites = options_rewrites(&c->options, c->settings, errors);
    begin_aliases(c, errors);
    srs_secret_check(&c->options, c->routes, errors);
    check_quotas(c->options.manager.quotas, errors);
    check_copies(c->options.manager.copy_to, errors);
    check_events(&c->options, errors);
    accounts_read_secrets(&c->accounts, errors);
    (void)!listener_check(&listener, errors);
    (void)!delivery_check(&c->options.delivery, errors);
    if (!is_daemon)
        return;
    c->reading = dkim_keys_begin(text_from(c->options.dkim_keys), errors);
    check_registry(c, errors);
    check_group(c, errors);
    check_peer(c, errors);
    check_http(c, errors);
    if (!identity_find(&who, c->options.user))
        (void)!buffer_format(errors, "user: no such user: '%.100s'\n", c->options.user);
}

struct configuration *
configuration_begin(const struct options_sources *sources)
{
    struct configuration *c = memory_new(sizeof(*c));
    buffer_init(&c->errors, CONFIGURATION_ERRORS_MAX);
    buffer_init(&c->unused, CONFIGURATION_ERRORS_MAX);
    c->settings = options_read(sources, &c->options);
    if (settings_errors(c->settings).length == 0)
        check_all(c);
    return c;
}

bool
configuration_go_on(struct configuration *c)
{
    return alias_files_go_on(c->reading_aliases) &&
           (c->reading == NULL || dkim_keys_go_on(c->reading));
}

struct configuration *
configuration_end(struct configuration *c, struct buffer *out)
{
    if (c->reading != NULL)
        c->dkim_keys = dkim_keys_end(&c->reading);
    (void)!alias_files_end(&c->reading_aliases, &c->aliases, &c->alias_files);
    (void)!buffer_add(out, settings_errors(c->settings));
    add_places(c->settings, buffer_text(&c->errors), out);
    if (out->length > 0)
        configuration_free(&c);
    return c;
}

struct configuration *
configuration_read(const struct options_sources *sources, struct buffer *out)
{
    struct configuration *c = configuration_begin(sources);
    while (!configuration_go_on(c))
        ;
    return configuration_end(c, out);
}

bool
configuration_trust(struct configuration *c, struct log *log, char *error, size_t size)
{
    char place[TRUST_ANCHORS_PLACE_MAX];
    bool needed = route_demands_verify(c->routes) || c->registry.redis.tls ||
                  group_needs_tls(&c->group) || copies_need_tls(&c->copies) ||
                  c->accounts.count > 0 ||
                  text_starts(c->options.post.url, TEXT("https:"));
    c->anchors =
        trust_anchors_read(text_from(c->options.tls_ca), needed, place, error, size);
    if (c->anchors == NULL)
        return false;
    if (log != NULL)
        trust_anchors_say(place, log);
    if (c->options.without_secrets ||
        client_certificates_read(c->routes, c->anchors, error, size))
        return true;
    tls_client_free(&c->anchors);
    return false;
}

static void
warn_of_http(const struct http_places *places, struct log *log)
{
    for (size_t i = 0; i < places->count; i++) {
        const struct http_place *place = &places->list[i];
        char address[NET_ADDRESS_TEXT_MAX];
        bool local = place->address.family == NET_UNIX ||
                     place->address.family == NET_PASSED || /* not known yet */
                     net_address_is_loopback(&place->address);
        net_address_format(&place->address, address);
        if (!local && !place->tls)
            log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                    "http = %s: keys and tokens go over the network in cleartext; set "
                    "?tls, or use a proxy with TLS",
                    address);
        if (place->access != HTTP_MAY_NOTHING && place->address.family != NET_UNIX)
            log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                    "http = %s: every user of this host, and every container that "
                    "shares its network, may %s",
                    address, place->access == HTTP_MAY_READ ? "read" : "operate");
    }
}

void
configuration_warn(const struct configuration *c, struct log *log)
{
    struct log *own =
        log == NULL ? log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_WARNING) : NULL;
    dkim_keys_warn(c->dkim_keys, log != NULL ? log : own);
    warn_of_http(&c->http, log != NULL ? log : own);
    alias_files_warn(&c->options, c->routes, c->aliases, c->alias_files,
                     log != NULL ? log : own);
    log_free(&own);
}

struct configuration *
configuration_new(const struct options_sources *sources)
{
    struct buffer errors;
    buffer_init(&errors, CONFIGURATION_ERRORS_MAX);
    struct configuration *c = configuration_read(sources, &errors);
    complaint_write(&errors);
    buffer_free(&errors);
    return c;
}

bool
configuration_is_good(const struct options_sources *sources, struct buffer *errors)
{
    struct configuration *c = configuration_read(sources, errors);
    bool good = c != NULL;
    configuration_free(&c);
    return good;
}

/* --- sendmail -bs --------------------------------------------------------------------- */

static void
configuration_served(void *context)
{
    loop_stop(context);
}

int
configuration_serve_standard(const struct options *o)
{
    char error[STANDARD_ERROR_MAX];
    struct buffer errors;
    struct queue *queue;
    struct loop *loop = loop_new();
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_WARNING);
    struct event_hub *events = event_hub_new(log);
    buffer_init(&errors, CONFIGURATION_ERRORS_MAX);
    struct route_table *routes = options_routes(o, &errors);
    struct listener_settings listener = configuration_public_listener(o);
    struct alias_files *files = NULL;
    struct buffer unused; /* errors are the daemon's, which expands stored recipients */
    buffer_init(&unused, CONFIGURATION_ERRORS_MAX);
    if (routes != NULL)
        (void)!alias_files_read(o, routes, &listener.aliases, &files, &unused);
    buffer_free(&unused);
    int code = routes != NULL && listener_check(&listener, &errors) ? 0 : EX_CONFIG;
    complaint_write(&errors);
    if (code == 0)
        code =
            queue_open_injector(&queue, log, &o->manager.queue, error, sizeof(error));
    else
        snprintf(error, sizeof(error), "the settings have errors");
    if (code == 0) {
        struct net *net = net_new(loop);
        listener_serve_standard(loop, net, events, queue, routes, &listener,
                                configuration_served, loop);
        loop_run(loop);
        net_free(&net);
        queue_close(&queue);
    } else {
        fprintf(stderr, "sendmail: %s\n", error);
    }
    aliases_free(&listener.aliases);
    alias_files_free(&files);
    route_free(&routes);
    buffer_free(&errors);
    event_hub_free(&events);
    log_free(&log);
    loop_free(&loop);
    return code;
}
