/* The settings of the client: checked, and taken over at startup and reload. */
#include "base/memory.h"
#include "smtp/delivery/canary.h"
#include "smtp/delivery/delivery_internal.h"

#include <stdlib.h>

bool
delivery_check(const struct delivery_settings *settings, struct buffer *errors)
{
    struct bind_address sources;
    struct site_keys *providers = site_keys_new(settings->providers, errors);
    bool good = bind_address_read(&sources, settings->smtp_bind, errors);
    good &= providers != NULL;
    site_keys_free(&providers);
    return good;
}

void
delivery_take_settings(struct delivery *d, const struct delivery_settings *settings)
{
    char *hostname = memory_string(settings->hostname);
    free(d->hostname);
    d->hostname = hostname;
    d->outgoing = (struct outgoing_rules){
        .hostname = hostname,
        .rewrites = rewrites_are_empty(settings->rewrites) ? NULL : settings->rewrites};
    d->outgoing_mx = d->outgoing;
    d->outgoing.bounce_sender = settings->bounce_sender;
    d->settings = *settings;
    /* Borrowed only within this call. */
    d->settings.hostname = NULL;
    d->settings.peers = NULL;
    d->settings.tls = NULL;
    d->settings.dkim_keys = NULL;
    if (d->signing == NULL)
        d->signing = signing_new(d->loop, d->log, d->dns, settings->dkim_keys);
    else
        signing_reload(d->signing, settings->dkim_keys);
    if (settings->tls != NULL) {
        tls_client_free(&d->tls);
        d->tls = settings->tls;
        d->tls_number++;
    }
    d->settings.smtp_bind = d->settings.providers = TEXT("");
    struct site_keys *providers = site_keys_new(settings->providers, NULL);
    if (providers) {
        site_keys_free(&d->providers);
        d->providers = providers;
    }
    if (!bind_address_read(&d->sources, settings->smtp_bind, NULL))
        log_say(d->log, LOG_LEVEL_WARNING, "smtp", NULL, "smtp_bind has errors");
    bind_address_for_peers(&d->peer_sources, &d->sources, settings->peers);
}

void
delivery_set_tokens(struct delivery *d, struct tokens *tokens)
{
    d->tokens = tokens;
}

void
delivery_set_sts(struct delivery *d, struct sts_cache *sts)
{
    d->sts = sts;
}

static bool
canary_skips(const struct delivery *d, const struct target *target,
             enum target_family family)
{
    enum target_family wanted = target->family != TARGET_FAMILY_UNSET
                                    ? target->family
                                    : d->settings.smtp_family;
    return wanted == TARGET_FAMILY_IPV4   ? family != TARGET_FAMILY_IPV4
           : wanted == TARGET_FAMILY_IPV6 ? family != TARGET_FAMILY_IPV6
                                          : false;
}

void
delivery_canary(const struct delivery *d, const struct target *target,
                struct canary_settings *out)
{
    *out =
        (struct canary_settings){.loop = d->loop,
                                 .net = d->net,
                                 .dns = d->dns,
                                 .events = d->events,
                                 .hostname = d->hostname,
                                 .smtp_port = d->settings.smtp_port,
                                 .sources = d->sources,
                                 .skip_v4 = canary_skips(d, target, TARGET_FAMILY_IPV4),
                                 .skip_v6 = canary_skips(d, target, TARGET_FAMILY_IPV6),
                                 .connect_timeout_ms = d->settings.connect_timeout_ms,
                                 .tls = &d->tls,
                                 .secrets = d->settings.secrets,
                                 .tokens = d->tokens};
}

struct tls_client *const *
delivery_tls(const struct delivery *d)
{
    return &d->tls;
}

struct tls_reports *
delivery_tls_reports(const struct delivery *d)
{
    return d->tls_reports;
}

const struct conversations *
delivery_conversations(const struct delivery *d)
{
    return d->conversations;
}

void
delivery_each_key_trouble(const struct delivery *d,
                          void (*each)(void *context, const char *name,
                                       const char *domain, const char *why),
                          void *context)
{
    signing_each_trouble(d->signing, each, context);
}

bool
delivery_signing(const struct delivery *d, struct signing_counts *counts)
{
    *counts = signing_counts(d->signing);
    return signing_is_on(d->signing);
}
