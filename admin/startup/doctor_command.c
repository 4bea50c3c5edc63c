/* Reads the settings as `check` does, and runs the checks on a loop of its own. */
#include "admin/startup/commands.h"

#include "admin/findings/doctor.h"
#include "admin/settings/complaint.h"
#include "admin/startup/configuration.h"
#include "admin/startup/copies_trial.h"
#include "base/disk/disk.h"
#include "base/http/http_call.h"
#include "smtp/oauth/tokens.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/net/net.h"
#include "smtp/delivery/smarthost_probe.h"
#include "smtp/trust/sts_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* Somebody waits: three tries, of 15 s together at most. */
enum { DOCTOR_DNS_TRY_MS = 2500, DOCTOR_DNS_TRIES = 3 };

enum { DOCTOR_ERROR_MAX = 512, DOCTOR_SENDER_MAX = REWRITES_ADDRESS_MAX + 16 };

/* One question that has been asked: a login, a way to a host, or a policy. */
struct doctor_trial {
    struct inquiry_item *item;
    char *key; /* two words: the second is at `rest` */
    const char *rest;
    struct smarthost_probe *canary;
    struct sts_query *query;
    struct doctor_trial *next;
};

struct doctor_world {
    struct doctor_setup setup;
    struct configuration *configuration;
    struct tls_client *anchors;
    struct log *log;
    struct disk *spool;
    struct http_caller *http;
    struct tokens *tokens; /* NULL: no account, or the spool cannot be read */
    struct sts_cache *sts; /* NULL: policies do not count */
    struct doctor_trial *trials;
    char sender[DOCTOR_SENDER_MAX]; /* the result of `rewrite` for root */
    char file[DOCTOR_ERROR_MAX];
};

/* --- Keys --------------------------------------------------------------------------- */

/* Made once: there may be thousands, and each domain looks for its own. */
static void
doctor_world_take_keys(struct doctor_world *w)
{
    const struct dkim_keys *from = w->configuration->dkim_keys;
    struct buffer public;
    if (from == NULL)
        return;
    w->setup.keys = memory_array(from->count + 1, sizeof(*w->setup.keys));
    buffer_init(&public, SIGN_PUBLIC_MAX);
    for (size_t i = 0; i < from->count; i++) {
        const struct dkim_key *k = &from->list[i];
        buffer_clear(&public);
        if (k->key == NULL || !sign_key_public(k->key, &public))
            continue;
        bool is_rsa = sign_key_kind(k->key) == SIGN_RSA;
        char *base64 = text_string(buffer_text(&public));
        w->setup.keys[w->setup.key_count++] =
            (struct doctor_key){.domain = k->domain,
                                .selector = k->selector,
                                .kind = is_rsa ? "rsa" : "ed25519",
                                .bits = sign_key_bits(k->key),
                                .public = text_from(base64)};
    }
    buffer_free(&public);
}

static void
doctor_world_drop_keys(struct doctor_world *w)
{
    for (size_t i = 0; i < w->setup.key_count; i++)
        free((char *)(uintptr_t)w->setup.keys[i].public.at);
    free(w->setup.keys);
}

/* --- Logins and ways ----------------------------------------------------------------- */

static void
doctor_trial_done(void *context, const struct smarthost_probe_result *result)
{
    static const enum doctor_login verdicts[] = {
        [SMARTHOST_PROBE_GOOD] = DOCTOR_LOGIN_GOOD,
        [SMARTHOST_PROBE_DOWN] = DOCTOR_LOGIN_DOWN,
        [SMARTHOST_PROBE_LOGIN] = DOCTOR_LOGIN_REFUSED,
        [SMARTHOST_PROBE_SENDER] = DOCTOR_LOGIN_SENDER,
        [SMARTHOST_PROBE_TOKEN] = DOCTOR_LOGIN_TOKEN,
        [SMARTHOST_PROBE_RECIPIENT] = DOCTOR_LOGIN_RECIPIENT};
    struct doctor_trial *t = context;
    const struct text texts[] = {[DOCTOR_WAY_TLS] = text_from(result->tls),
                                 [DOCTOR_WAY_WHERE] = text_from(result->where),
                                 [DOCTOR_WAY_DEMAND] = text_from(result->demand),
                                 [DOCTOR_WAY_INSECURE] = text_from(result->insecure),
                                 [DOCTOR_WAY_REQUIRETLS] =
                                     text_from(result->has_requiretls ? "yes" : "")};
    struct inquiry_answer answer = {
        .status = DNS_FOUND,
        .verdict = (int)verdicts[result->verdict],
        .data = {.texts = texts, .count = sizeof(texts) / sizeof(texts[0])}
    };
    snprintf(answer.reason, sizeof(answer.reason), "%s",
             result->verdict == SMARTHOST_PROBE_GOOD ? result->tls : result->text);
    inquiry_answered(t->item, &answer);
    smarthost_probe_free(&t->canary);
}

static struct doctor_trial *
doctor_trial_new(struct doctor_world *w, struct inquiry_item *item, const char *key)
{
    struct doctor_trial *t = memory_new(sizeof(*t));
    t->item = item;
    t->key = memory_string(key);
    char *blank = strchr(t->key, ' ');
    if (blank != NULL) {
        *blank = '\0';
        t->rest = blank + 1;
    }
    t->next = w->trials;
    w->trials = t;
    return t;
}

/* As deliveries go there. */
static struct smarthost_probe_settings
doctor_trial_settings(struct doctor_world *w, const struct target *target)
{
    const struct options *o = &w->configuration->options;
    enum target_family family = target->family != TARGET_FAMILY_UNSET
                                    ? target->family
                                    : o->delivery.smtp_family;
    struct smarthost_probe_settings settings = {
        .loop = w->setup.loop,
        .net = w->setup.net,
        .dns = w->setup.dns,
        .hostname = o->hostname,
        .smtp_port = (uint16_t)o->delivery.smtp_port,
        .skip_v4 = family == TARGET_FAMILY_IPV6,
        .skip_v6 = family == TARGET_FAMILY_IPV4,
        .connect_timeout_ms = o->delivery.connect_timeout_ms,
        .tls = &w->anchors,
        .secrets = route_secrets(w->configuration->routes),
        .tokens = w->tokens};
    (void)!bind_address_read(&settings.sources, o->delivery.smtp_bind, NULL);
    return settings;
}

/* An inquiry_source.start: the key is the number. */
static void
doctor_login_start(void *context, struct inquiry_item *item, const char *key)
{
    struct doctor_world *w = context;
    struct doctor_trial *t = doctor_trial_new(w, item, key);
    struct doctor_host host = {.target = NULL};
    uint64_t number = 0;
    (void)text_number(text_from(key), DOCTOR_HOSTS_MAX, &number);
    (void)!doctor_host_at(w->configuration->routes, true, (size_t)number, &host);
    struct smarthost_probe_settings settings = doctor_trial_settings(w, host.target);
    t->canary = smarthost_probe_new(&settings, host.target, host.at, w->sender,
                                    doctor_trial_done, t);
}

/* An inquiry_source.start. */
static void
doctor_way_start(void *context, struct inquiry_item *item, const char *key)
{
    struct doctor_world *w = context;
    const struct options *o = &w->configuration->options;
    struct doctor_trial *t = doctor_trial_new(w, item, key);
    const struct target *target = doctor_route(&w->setup, t->rest);
    const char *at = strrchr(t->rest, '@');
    struct smarthost_probe_settings settings = doctor_trial_settings(w, target);
    settings.recipient = at != NULL ? t->rest : NULL;
    if (target->kind == TARGET_MX) {
        bool is_secure = target->tls != TARGET_TLS_NONE;
        settings.domain = at != NULL ? at + 1 : t->rest;
        settings.only = settings.domain[0] != '[' ? t->key : NULL;
        settings.dane = is_secure && o->delivery.dane && !target->no_dane &&
                        dns_is_trusted(w->setup.dns);
        settings.sts = is_secure && !target->no_sts ? w->sts : NULL;
    }
    t->canary =
        smarthost_probe_new(&settings, target, 0, w->sender, doctor_trial_done, t);
}

/* --- Policies ----------------------------------------------------------------------- */

static void
doctor_policy_found(void *context, const struct sts_policy *policy, bool is_unknown)
{
    struct doctor_trial *t = context;
    struct inquiry_answer answer = {.status = DNS_NO_DATA};
    (void)is_unknown; /* it has its own few look-ups alone */
    t->query = NULL;
    if (policy != NULL) {
        answer.status = DNS_FOUND;
        if (policy->mode == STS_MODE_NONE)
            answer.verdict = DOCTOR_POLICY_EMPTY;
        else if (sts_matches(policy->patterns, text_from(t->rest)))
            answer.verdict = DOCTOR_POLICY_NAMES;
        else
            answer.verdict = policy->mode == STS_MODE_ENFORCE ? DOCTOR_POLICY_FORBIDS
                                                              : DOCTOR_POLICY_TESTING;
    }
    inquiry_answered(t->item, &answer);
}

/* An inquiry_source.start. */
static void
doctor_policy_start(void *context, struct inquiry_item *item, const char *key)
{
    struct doctor_world *w = context;
    struct doctor_trial *t = doctor_trial_new(w, item, key);
    t->query = sts_cache_ask(w->sts, t->key, doctor_policy_found, t);
}

/* Nothing is kept: the check is that of a sender that comes for the first time. */
static void
doctor_world_open_policies(struct doctor_world *w)
{
    const struct options *o = &w->configuration->options;
    if (!o->delivery.mta_sts || !tls_client_has_anchors(w->anchors))
        return;
    w->setup.policy = (struct inquiry_source){doctor_policy_start, w};
    w->sts =
        sts_cache_new(&(struct sts_cache_settings){.loop = w->setup.loop,
                                                   .log = w->log,
                                                   .dns = w->setup.dns,
                                                   .http = w->http,
                                                   .path = "",
                                                   .port = (uint16_t)o->mta_sts_port});
}

static void
doctor_ignore_token(void *context, const struct tokens_view *view)
{
    (void)context;
    (void)view;
}

static void
doctor_world_open_tokens(struct doctor_world *w)
{
    const struct accounts *accounts = &w->configuration->accounts;
    if (accounts->count == 0 ||
        disk_open(&w->spool, w->configuration->options.spool, false) != 0)
        return;
    w->tokens = tokens_new(&(struct tokens_settings){.loop = w->setup.loop,
                                                     .log = w->log,
                                                     .spool = w->spool,
                                                     .http = w->http,
                                                     .changed = doctor_ignore_token});
    tokens_set(w->tokens, accounts->list, accounts->count);
}

static void
doctor_world_name_sender(struct doctor_world *w)
{
    struct rewrites_answer answer = {.address = ""};
    rewrites_find(w->configuration->rewrites, TEXT("root"), &answer);
    if (answer.address[0] != '\0')
        (void)text_copy(w->sender, sizeof(w->sender), text_from(answer.address));
    else
        snprintf(w->sender, sizeof(w->sender), "root@%.500s",
                 w->configuration->options.hostname);
}

/* --- The world ---------------------------------------------------------------------- */

static void
doctor_world_note_file(void *context, const char *path)
{
    struct doctor_world *w = context;
    if (w->file[0] == '\0')
        (void)text_copy(w->file, sizeof(w->file), text_from(path));
}

/* NULL: the errors are on standard error. A user that may not read secrets gets the
 * rest. */
static struct configuration *
doctor_read_settings(const struct options_sources *sources)
{
    struct options_sources without = *sources;
    struct buffer errors;
    buffer_init(&errors, CONFIGURATION_ERRORS_MAX);
    struct configuration *c = configuration_read(sources, &errors);
    if (c == NULL && geteuid() != 0) {
        struct buffer others;
        buffer_init(&others, CONFIGURATION_ERRORS_MAX);
        without.without_secrets = true;
        c = configuration_read(&without, &others);
        buffer_free(&others);
    }
    if (c == NULL)
        complaint_write(&errors);
    buffer_free(&errors);
    return c;
}

static int
doctor_world_copies(void *context, char *why, size_t size)
{
    struct doctor_world *w = context;
    char said[COPIES_TRIAL_WHY_MAX];
    int result = (int)copies_trial(w->configuration, said);
    snprintf(why, size, "%s", said);
    return result;
}

static bool
doctor_world_open(struct doctor_world *w, char *error)
{
    const struct configuration *c = w->configuration;
    const struct options *o = &c->options;
    struct text servers = text_from(o->dns_servers);
    doctor_world_name_sender(w);
    settings_each_file(c->settings, doctor_world_note_file, w);
    w->setup = (struct doctor_setup){
        .options = o,
        .routes = c->routes,
        .accounts = &c->accounts,
        .rewrites = c->rewrites,
        .aliases = c->aliases,
        .has_secrets = !o->without_secrets,
        .file = w->file[0] != '\0' ? w->file : NULL,
        .login = {doctor_login_start, w},
        .way = {doctor_way_start,   w},
        .sender = w->sender,
        .loop = loop_new()
    };
    w->setup.net = net_new(w->setup.loop);
    w->setup.dns = dns_new(w->setup.loop, servers, error, DOCTOR_ERROR_MAX);
    w->setup.validating = dns_new(w->setup.loop, servers, error, DOCTOR_ERROR_MAX);
    if (w->setup.dns == NULL || w->setup.validating == NULL)
        return false;
    dns_set_patience(w->setup.dns, DOCTOR_DNS_TRY_MS, DOCTOR_DNS_TRIES);
    dns_set_patience(w->setup.validating, DOCTOR_DNS_TRY_MS, DOCTOR_DNS_TRIES);
    dns_set_trust(w->setup.dns, o->dns_trust);
    dns_set_trust(w->setup.validating, DNS_TRUST_YES);
    if (!configuration_trust(w->configuration, NULL, error, DOCTOR_ERROR_MAX))
        return false;
    w->anchors = tls_client_keep(c->anchors);
    w->setup.anchors = w->anchors;
    if (c->copies.place_count > 0 && !o->without_secrets) {
        w->setup.copies = doctor_world_copies;
        w->setup.copies_context = w;
    }
    w->log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    doctor_world_take_keys(w);
    w->http = http_caller_new(&(struct http_caller_settings){.loop = w->setup.loop,
                                                             .net = w->setup.net,
                                                             .dns = w->setup.dns,
                                                             .tls = &w->anchors});
    doctor_world_open_policies(w);
    if (!o->without_secrets)
        doctor_world_open_tokens(w);
    return true;
}

static void
doctor_world_close(struct doctor_world *w)
{
    for (struct doctor_trial *t = w->trials, *next; t != NULL; t = next) {
        next = t->next;
        smarthost_probe_free(&t->canary);
        if (w->sts != NULL)
            sts_cache_cancel(&t->query);
        free(t->key);
        free(t);
    }
    sts_cache_free(&w->sts);
    doctor_world_drop_keys(w);
    tokens_free(&w->tokens);
    http_caller_free(&w->http);
    if (w->spool != NULL)
        disk_close(&w->spool);
    tls_client_free(&w->anchors);
    log_free(&w->log);
    dns_free(&w->setup.validating);
    dns_free(&w->setup.dns);
    net_free(&w->setup.net);
    loop_free(&w->setup.loop);
    configuration_free(&w->configuration);
}

int
doctor_command(int count, char **arguments, const struct options_sources *sources)
{
    struct doctor_world w = {.file = ""};
    struct doctor_request request;
    char error[DOCTOR_ERROR_MAX] = "";
    int code = EX_UNAVAILABLE;
    if (!doctor_read_request(count, arguments, &request))
        return EX_USAGE;
    w.configuration = doctor_read_settings(sources);
    if (w.configuration == NULL)
        return EX_CONFIG;
    if (doctor_world_open(&w, error))
        code = doctor_run(&w.setup, &request);
    else
        fprintf(stderr, "petrel doctor: %s\n", error);
    doctor_world_close(&w);
    return code;
}
