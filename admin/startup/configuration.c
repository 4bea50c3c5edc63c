/* Reads the settings, and fills the structs of SMTP, routes and registry from them. */
#include "admin/startup/configuration.h"

#include "base/memory.h"
#include "base/sandbox/identity.h"

#include <stdio.h>
#include <stdlib.h>

enum { REGISTRY_ERROR_MAX = 512 };

struct listener_settings
configuration_listener(const struct options *o)
{
    return (struct listener_settings){
        .hostname = o->hostname,
        .listen = text_from(o->listen),
        .relay_from = text_from(o->relay_from),
        .tls_certificate = text_from(o->tls_certificate),
        .tls_key = text_from(o->tls_key),
        .etrn = text_from(o->etrn),
        .mt_priority = text_from(o->mt_priority),
        .auth_users = text_from(o->auth_users),
        .auth_cleartext = text_from(o->auth_cleartext),
        .sender_login = text_from(o->sender_login),
        .sender_domains = text_from(o->sender_domains),
        .auth_failure_limit = (int)o->auth_failure_limit,
        .server_tls_session_limit = (int)o->server_tls_session_limit,
        .allow_open_relay = o->allow_open_relay,
        .message_size_limit = o->message_size_limit,
        .lifetime_ms = o->lifetime_ms,
        .recipient_limit = (int)o->recipient_limit,
        .clients =
            {
                      .each = {[CLIENT_USAGE_SESSION] = text_from(o->client_session_rate),
                         [CLIENT_USAGE_MESSAGE] = text_from(o->client_message_rate),
                         [CLIENT_USAGE_RECIPIENT] =
                             text_from(o->client_recipient_rate)},
                      .all = {[CLIENT_USAGE_SESSION] = text_from(o->server_session_rate),
                        [CLIENT_USAGE_MESSAGE] = text_from(o->server_message_rate),
                        [CLIENT_USAGE_RECIPIENT] = text_from(o->server_recipient_rate)},
                      .exempt = text_from(o->rate_exempt),
                      .sessions = (int)o->server_session_limit,
                      .sessions_per_client = (int)o->client_session_limit,
                      },
        .proxy_from = text_from(o->proxy_from),
        .check_helo = o->check_helo,
        .check_sender = o->check_sender,
        .greet_delay_ms = o->greet_delay_ms,
        .refuses_partial = options_refuse_partial(o),
        .hop_limit = (int)o->hopcount_limit,
        .error_limit = (int)o->smtpd_hard_error_limit,
        .soft_error_limit = (int)o->smtpd_soft_error_limit,
        .error_delay_ms = o->smtpd_error_sleep_time_ms,
        .junk_limit = (int)o->smtpd_junk_command_limit,
        .data_rate_min = o->smtpd_min_data_rate,
        .idle_timeout_ms = o->smtpd_timeout_ms,
        .handshake_timeout_ms = o->smtpd_starttls_timeout_ms,
        .data_timeout_ms = o->smtpd_data_timeout_ms,
    };
}

struct listener_settings
configuration_public_listener(const struct options *o)
{
    struct listener_settings settings = configuration_listener(o);
    settings.sender_login = settings.sender_domains = TEXT("");
    settings.listen = settings.tls_certificate = settings.tls_key =
        settings.auth_users = TEXT("");
    return settings;
}

struct delivery_settings
configuration_delivery(const struct options *o, const struct route_table *routes)
{
    return (struct delivery_settings){
        .hostname = o->hostname,
        .smtp_port = (uint16_t)o->smtp_port,
        .smtp_bind = text_from(o->smtp_bind),
        .smtp_family = options_family(o),
        .connect_timeout_ms = o->smtp_connect_timeout_ms,
        .data_rate_min = o->smtp_min_data_rate,
        .mx_address_limit = (int)o->smtp_mx_address_limit,
        .reuse_idle_ms = o->smtp_connection_cache_time_limit_ms,
        .providers = text_from(o->providers),
        .secrets = routes ? route_secrets(routes) : NULL,
        .peers = routes ? route_peers(routes) : NULL,
    };
}

void
configuration_free(struct configuration **c)
{
    if (*c == NULL)
        return;
    if ((*c)->routes)
        route_free(&(*c)->routes);
    rewrites_free(&(*c)->rewrites);
    accounts_free(&(*c)->accounts);
    settings_free(&(*c)->settings);
    dkim_keys_free(&(*c)->dkim_keys);
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

struct configuration *
configuration_read(const struct options_sources *sources, struct buffer *out)
{
    struct configuration *c = memory_new(sizeof(*c));
    struct buffer errors;
    struct identity who;
    buffer_init(&errors, CONFIGURATION_ERRORS_MAX);
    c->settings = options_read(sources, &c->options);
    (void)!buffer_add(out, settings_errors(c->settings));
    if (out->length == 0) {
        bool is_daemon = !c->options.without_secrets;
        struct listener_settings listener =
            is_daemon ? configuration_listener(&c->options)
                      : configuration_public_listener(&c->options);
        struct delivery_settings delivery = configuration_delivery(&c->options, NULL);
        c->routes = options_routes(&c->options, &errors);
        if (c->routes != NULL) /* which has reported errors of accounts */
            (void)!accounts_read(&c->options, &c->accounts, &errors);
        c->rewrites = options_rewrites(&c->options, c->settings, &errors);
        accounts_try_secrets(&c->accounts, &errors);
        (void)!listener_check(&listener, &errors);
        (void)!delivery_check(&delivery, &errors);
        if (is_daemon)
            c->dkim_keys = dkim_keys_read(text_from(c->options.dkim_keys), &errors);
        if (is_daemon)
            check_registry(c, &errors);
        if (is_daemon && !identity_find(&who, c->options.user))
            (void)!buffer_format(&errors, "user: no such user: '%.100s'\n",
                                 c->options.user);
        add_places(c->settings, buffer_text(&errors), out);
    }
    if (out->length > 0)
        configuration_free(&c);
    buffer_free(&errors);
    return c;
}

struct tls_client *
configuration_anchors(const struct configuration *c,
                      char place[TRUST_ANCHORS_PLACE_MAX], char *error, size_t size)
{
    bool needed =
        route_demands_verify(c->routes) || c->registry.tls || c->accounts.count > 0;
    return trust_anchors_read(text_from(c->options.tls_ca), needed, place, error, size);
}

struct dkim_keys *
configuration_take_dkim_keys(struct configuration *c)
{
    struct dkim_keys *keys = c->dkim_keys;
    c->dkim_keys = NULL;
    return keys;
}

void
configuration_warn(const struct configuration *c, struct log *log)
{
    struct log *own =
        log == NULL ? log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_WARNING) : NULL;
    dkim_keys_warn(c->dkim_keys, log != NULL ? log : own);
    log_free(&own);
}

struct configuration *
configuration_new(const struct options_sources *sources)
{
    struct buffer errors;
    buffer_init(&errors, CONFIGURATION_ERRORS_MAX);
    struct configuration *c = configuration_read(sources, &errors);
    fwrite(errors.at, 1, errors.length, stderr);
    buffer_free(&errors);
    return c;
}
