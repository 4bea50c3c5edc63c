/* The way of mail out: delivery with policies of MTA-STS, Maildirs, and the state of
 * smarthosts. */
#include "admin/startup/parts.h"

#include "admin/view/listing.h"
#include "base/http/http_call.h"
#include "queue/spool/slices.h"
#include "smtp/trust/sts_cache.h"

#include <stdio.h>
#include <sysexits.h>

/* --- MTA-STS ----------------------------------------------------------------------- */

static void
part_sts_make(struct daemon *d, const struct options *o)
{
    char path[SLICES_SUFFIX_MAX + 16], suffix[SLICES_SUFFIX_MAX];
    slices_suffix((unsigned)o->slices, (unsigned)o->slice, suffix);
    snprintf(path, sizeof(path), "lock/sts%s", suffix);
    d->sts.http = http_caller_new(&(struct http_caller_settings){
        .loop = d->loop,
        .net = d->net,
        .dns = d->dns,
        .tls = delivery_tls(d->delivery),
        .calls_max = STS_CACHE_FETCHES_MAX,
        .network_calls_max = STS_CACHE_NETWORK_FETCHES_MAX});
    d->sts.cache = sts_cache_new(
        &(struct sts_cache_settings){.loop = d->loop,
                                     .log = d->log,
                                     .dns = d->dns,
                                     .http = d->sts.http,
                                     .spool = queue_disk(manager_queue(d->manager)),
                                     .path = path,
                                     .port = (uint16_t)o->mta_sts_port,
                                     .reports = delivery_tls_reports(d->delivery)});
    delivery_set_sts(d->delivery, d->sts.cache);
}

/* The cache is made when mta_sts is on for the first time. */
static void
part_sts_use(struct daemon *d, const struct options *o)
{
    if (o->delivery.mta_sts && d->sts.cache == NULL)
        part_sts_make(d, o);
    if (d->sts.cache != NULL)
        sts_cache_set_port(d->sts.cache, (uint16_t)o->mta_sts_port);
    if (o->delivery.mta_sts && !tls_client_has_anchors(*delivery_tls(d->delivery)))
        log_say(
            d->log, LOG_LEVEL_WARNING, "sts", NULL,
            "no policy of MTA-STS is obeyed: there are no CA certificates (tls_ca)");
}

static void
part_sts_name_lost(void *context, const struct sts_cache_lost *lost)
{
    char text[FINDINGS_NAMED_TEXT_MAX], since[FINDINGS_AGE_MAX], left[FINDINGS_AGE_MAX];
    snprintf(text, sizeof(text),
             "its MTA-STS policy could not be fetched for %s, and holds for %s%s: %s",
             findings_age(lost->since_ms, since), findings_age(lost->left_ms, left),
             lost->forbids ? "; mail waits, since it allows none of the domain's hosts"
                           : "",
             lost->why);
    findings_name(context, "sts_unreachable", lost->domain, text);
}

void
part_sts_find(const struct daemon *d, struct finding_facts *facts)
{
    if (d->sts.cache != NULL)
        sts_cache_each_lost(d->sts.cache, part_sts_name_lost, facts);
}

/* --- Delivery ---------------------------------------------------------------------- */

int
part_anchors_start(struct daemon *d)
{
    return configuration_trust(d->configuration, d->log, d->error, DAEMON_ERROR_MAX)
               ? 0
               : EX_CONFIG;
}

/* Keys and anchors are taken over: they are no longer of the configuration. */
static struct delivery_settings
part_delivery_settings(struct configuration *c)
{
    struct delivery_settings settings = c->options.delivery;
    settings.secrets = route_secrets(c->routes);
    settings.peers = route_peers(c->routes);
    settings.rewrites = c->rewrites;
    settings.tls = c->anchors;
    settings.dkim_keys = c->dkim_keys;
    c->anchors = NULL;
    c->dkim_keys = NULL;
    return settings;
}

static void
part_delivery_connect(struct daemon *d)
{
    manager_set_channel(d->manager, TARGET_MX, delivery_open, d->delivery);
    manager_set_channel(d->manager, TARGET_SMTP, delivery_open, d->delivery);
    manager_set_channel(d->manager, TARGET_LMTP, delivery_open, d->delivery);
    manager_set_channel(d->manager, TARGET_MAILDIR, local_open, d->local);
    manager_set_channel(d->manager, TARGET_HTTP, poster_open, d->poster);
}

static void
part_poster_start(struct daemon *d)
{
    d->posts = http_caller_new(
        &(struct http_caller_settings){.loop = d->loop,
                                       .net = d->net,
                                       .dns = d->dns,
                                       .tls = delivery_tls(d->delivery),
                                       .calls_max = POSTER_CALLS_MAX,
                                       .host_calls_max = POSTER_CALLS_MAX});
    d->poster = poster_new(&(struct poster_settings){
        .loop = d->loop, .manager = d->manager, .http = d->posts});
    poster_use(d->poster, route_secrets(d->configuration->routes));
}

int
part_delivery_start(struct daemon *d)
{
    struct configuration *c = d->configuration;
    configuration_warn(c, d->log);
    struct delivery_settings settings = part_delivery_settings(c);
    d->delivery =
        delivery_new(d->loop, d->net, d->dns, d->events, d->manager, &settings);
    part_sts_use(d, &c->options);
    d->local = local_new(d->loop, d->manager, c->options.hostname);
    part_poster_start(d);
    part_delivery_connect(d);
    return 0;
}

void
part_delivery_reload(struct daemon *d, struct configuration *fresh)
{
    struct delivery_settings settings = part_delivery_settings(fresh);
    delivery_reload(d->delivery, &settings);
    part_sts_use(d, &fresh->options);
    local_reload(d->local, fresh->options.hostname);
    poster_use(d->poster, route_secrets(fresh->routes));
}

void
part_delivery_stop(struct daemon *d)
{
    poster_free(&d->poster);
    http_caller_free(&d->posts); /* before the anchors that it has */
    delivery_free(&d->delivery);
    sts_cache_free(&d->sts.cache);
    http_caller_free(&d->sts.http);
    local_free(&d->local);
}

/* --- Smarthosts -------------------------------------------------------------------- */

/* A questions_on_part(). NULL: there are none. */
static json_t *
part_upstreams_status(void *context)
{
    const struct daemon *d = context;
    struct smarthost_health_view v;
    json_t *list = NULL;
    for (size_t i = 0; smarthost_health_at(d->upstreams, i, &v); i++) {
        list = list != NULL ? list : json_array();
        json_array_append_new(list, json_pack("{s:s,s:b,s:s,s:o,s:I,s:I,s:I}", "relay",
                                              v.relay, "up", v.is_up, "code", v.code,
                                              "text", listing_text(text_from(v.text)),
                                              "since_ms", (json_int_t)v.since_ms,
                                              "success_ms", (json_int_t)v.good_ms,
                                              "next_ms", (json_int_t)v.next_ms));
    }
    return list;
}

/* A questions_on(): canaries go now. The status has their results. */
static json_t *
part_upstreams_ask(void *context, const json_t *request)
{
    const struct daemon *d = context;
    json_t *list = part_upstreams_status(context);
    (void)request;
    size_t count = smarthost_health_ask(d->upstreams);
    return json_pack("{s:b,s:I,s:o}", "ok", true, "asked", (json_int_t)count,
                     "upstreams", list != NULL ? list : json_array());
}

bool
part_upstreams_check(const struct daemon *d, struct health_check *check)
{
    const struct options *o = &d->configuration->options;
    struct smarthost_health_view view;
    if (!options_ready_needs_upstream(o))
        return false;
    *check = (struct health_check){
        .name = "upstream",
        .good = !smarthost_health_is_cut_off(d->upstreams, o->canary_grace_ms, &view)};
    if (!check->good)
        snprintf(check->why, sizeof(check->why), "%.60s: %.90s", view.relay, view.text);
    return true;
}

static void
part_upstreams_canary(void *context, const struct target *target,
                      struct smarthost_probe_settings *out)
{
    const struct daemon *d = context;
    delivery_probe_settings(d->delivery, target, out);
}

int
part_upstreams_start(struct daemon *d)
{
    struct questions *questions = control_server_questions(d->control);
    d->upstreams = smarthost_health_new(
        &(struct smarthost_health_setup){.loop = d->loop,
                                         .log = d->log,
                                         .events = d->events,
                                         .settings = part_upstreams_canary,
                                         .context = d});
    questions_on_part(questions, "upstreams", part_upstreams_status, d);
    questions_on(questions, "canary", part_upstreams_ask, d);
    part_upstreams_reload(d, d->configuration);
    return 0;
}

/* After delivery has the new settings. */
void
part_upstreams_reload(struct daemon *d, struct configuration *fresh)
{
    smarthost_health_use(d->upstreams, fresh->routes, fresh->options.hostname,
                         fresh->options.canary_interval_ms);
}

void
part_upstreams_stop(struct daemon *d)
{
    smarthost_health_free(&d->upstreams);
}
