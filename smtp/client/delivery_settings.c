/* The settings of the client: checked, and taken over at startup and reload. */
#include "base/memory.h"
#include "smtp/client/delivery_internal.h"

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

struct tls_client *const *
delivery_tls(const struct delivery *d)
{
    return &d->tls;
}

bool
delivery_signing(const struct delivery *d, struct signing_counts *counts)
{
    *counts = signing_counts(d->signing);
    return signing_is_on(d->signing);
}
