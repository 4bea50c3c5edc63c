/* Makes the cache of MTA-STS policies when mta_sts is on for the first time. */
#include "admin/startup/sts_wiring.h"

#include "base/http/http_call.h"
#include "base/log/log.h"
#include "base/tls/tls.h"
#include "queue/spool/slices.h"
#include "smtp/trust/sts_cache.h"

#include <stdio.h>

static void
sts_wiring_start(struct sts_wiring *w, const struct token_keeper *p,
                 const struct options *o)
{
    char path[SLICES_SUFFIX_MAX + 16], suffix[SLICES_SUFFIX_MAX];
    slices_suffix((unsigned)o->slices, (unsigned)o->slice, suffix);
    snprintf(path, sizeof(path), "lock/sts%s", suffix);
    w->http = http_caller_new(&(struct http_caller_settings){
        .loop = p->loop,
        .net = p->net,
        .dns = p->dns,
        .tls = delivery_tls(p->delivery),
        .calls_max = STS_CACHE_FETCHES_MAX,
        .network_calls_max = STS_CACHE_NETWORK_FETCHES_MAX});
    w->cache = sts_cache_new(
        &(struct sts_cache_settings){.loop = p->loop,
                                     .log = p->log,
                                     .dns = p->dns,
                                     .http = w->http,
                                     .spool = queue_disk(manager_queue(p->manager)),
                                     .path = path,
                                     .port = (uint16_t)o->mta_sts_port,
                                     .reports = delivery_tls_reports(p->delivery)});
    delivery_set_sts(p->delivery, w->cache);
}

void
sts_wiring_use(struct sts_wiring *w, const struct token_keeper *parts,
               const struct options *options)
{
    if (options->mta_sts && w->cache == NULL)
        sts_wiring_start(w, parts, options);
    if (w->cache != NULL)
        sts_cache_set_port(w->cache, (uint16_t)options->mta_sts_port);
    if (options->mta_sts && !tls_client_has_anchors(*delivery_tls(parts->delivery)))
        log_say(
            parts->log, LOG_LEVEL_WARNING, "sts", NULL,
            "no policy of MTA-STS is obeyed: there are no CA certificates (tls_ca)");
}

static void
sts_wiring_name_lost(void *context, const struct sts_cache_lost *lost)
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
sts_wiring_find(const struct sts_wiring *w, struct finding_facts *facts)
{
    if (w->cache != NULL)
        sts_cache_each_lost(w->cache, sts_wiring_name_lost, facts);
}

void
sts_wiring_stop(struct sts_wiring *w)
{
    sts_cache_free(&w->cache);
    http_caller_free(&w->http);
}
