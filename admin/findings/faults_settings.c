/* Judges of settings: those that are allowed but probably wrong. */
#include "admin/findings/faults_internal.h"

#include "base/http/http.h"
#include "base/net/net.h"
#include "base/event/event_post.h"
#include "mime/address.h"
#include "sched/route/copies.h"
#include "sched/route/peers.h"
#include "sched/route/target.h"
#include "smtp/access/client_usage.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

enum {
    PORT_SMTPS = 465,
    PORT_SUBMISSION = 587,
    HIDDEN_MAX = 10 /* hidden routes that are named, one a line */
};

/* Old names of settings, and variables that are no setting. */
bool
faults_judge_names(const struct fault_world *w, struct faults *out)
{
    struct text lines = settings_warnings(w->settings), line;
    while (text_cut(&lines, '\n', &line))
        if (line.length > 0)
            faults_found(out, "%.*s", TEXT_ARGS(line));
    return false;
}

/* --- The host's name -------------------------------------------------------------- */

/* RFC 5321 2.3.5: the name in HELO resolves, so it is neither local nor bare. */
static bool
faults_is_full_name(struct text name)
{
    struct text bare =
        text_ends_nocase(name, TEXT(".")) ? text_before(name, name.length - 1) : name;
    return text_starts(name, TEXT("[")) ||
           (text_find(bare, '.') != TEXT_NONE &&
            !text_ends_nocase(bare, TEXT(".localhost")) &&
            !text_ends_nocase(bare, TEXT(".localdomain")));
}

const char *
faults_hostname(const char *hostname, const char *system_name,
                char out[FAULTS_HOSTNAME_MAX])
{
    out[0] = '\0';
    if (hostname == NULL || faults_is_full_name(text_from(hostname)))
        return out;
    /* An invalid system name has been replaced by localhost. */
    bool replaced = strcmp(hostname, "localhost") == 0 && system_name != NULL &&
                    strcmp(system_name, hostname) != 0;
    snprintf(out, FAULTS_HOSTNAME_MAX,
             "hostname '%.255s' is not a full name%s%.64s%s; other servers will refuse "
             "mail: set hostname",
             hostname, replaced ? " (the system's, '" : "", replaced ? system_name : "",
             replaced ? "', is not usable)" : "");
    return out;
}

/* The system's name matters when hostname is read, not afterwards. */
bool
faults_judge_hostname(const struct fault_world *w, struct faults *out)
{
    char what[FAULTS_HOSTNAME_MAX];
    struct utsname system;
    bool is_reading = (out->when & FAULT_READ) != 0;
    const char *own = is_reading && uname(&system) == 0 ? system.nodename : NULL;
    return faults_hostname(w->options->hostname, own, what)[0] != '\0' &&
           faults_found(out, "%s", what);
}

/* --- Values ----------------------------------------------------------------------- */

bool
faults_judge_spool_path(const struct fault_world *w, struct faults *out)
{
    (void)out;
    return w->options->spool[0] != '/';
}

bool
faults_judge_slices(const struct fault_world *w, struct faults *out)
{
    unsigned slices = (unsigned)w->options->slices;
    return slices > 1 &&
           faults_found(
               out,
               "slices = %u: each daemon applies the limits of clients (client_..., "
               "server_...) by itself, so all together may reach %u times as much: "
               "divide them",
               slices, slices);
}

bool
faults_judge_bounces(const struct fault_world *w, struct faults *out)
{
    (void)out;
    return w->options->transport.bounce_lifetime_ms > w->options->transport.lifetime_ms;
}

/* A number without a unit is in seconds here, and in a longer unit in Postfix; 0 is the
 * same in all. */
bool
faults_judge_units(const struct fault_world *w, struct faults *out)
{
    static const struct {
        const char *key, *unit;
    } rows[] = {
        {"maximal_queue_lifetime", "days" },
        {"bounce_queue_lifetime",  "days" },
        {"delay_warning_time",     "hours"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct text key = text_from(rows[i].key);
        const char *value = settings_written(w->settings, key);
        uint64_t number;
        if (value != NULL && text_number(text_from(value), UINT64_MAX, &number) &&
            number > 0)
            faults_found(out,
                         "%s: %s: %s without a unit is %s seconds, in Postfix %s: "
                         "write %s%c or %ss",
                         settings_origin(w->settings, key), rows[i].key, value, value,
                         rows[i].unit, value, rows[i].unit[0], value);
    }
    return false;
}

/* By SMTP the others come later. By HTTP all recipients of a message come together. */
bool
faults_judge_bursts(const struct fault_world *w, struct faults *out)
{
    const struct options *o = w->options;
    const int kind = CLIENT_USAGE_RECIPIENT;
    struct client_usage_rules rules = {0};
    struct buffer errors;
    buffer_init(&errors, FAULTS_TEXT_MAX);
    bool good =
        o->http_keys != NULL && client_usage_read(&rules, &o->server.clients, &errors);
    const struct rate *rates[] = {&rules.each[kind], &rules.all[kind]};
    for (size_t i = 0; i < sizeof(rates) / sizeof(*rates) && good; i++)
        if (rates[i]->amount > 0 &&
            rates[i]->burst < (uint64_t)o->server.recipient_limit)
            faults_found(out,
                         "%s: a message by HTTP with more recipients than its burst "
                         "of %" PRIu32 " is refused for good: append ,burst=%u, or set "
                         "recipient_limit = %" PRIu32,
                         i == 0 ? "client_recipient_rate" : "server_recipient_rate",
                         rates[i]->burst, (unsigned)o->server.recipient_limit,
                         rates[i]->burst);
    if (good)
        client_usage_rules_free(&rules);
    buffer_free(&errors);
    return false;
}

/* --- Targets ---------------------------------------------------------------------- */

/* Those with four digits are what providers offer where the others are blocked. */
static const struct {
    unsigned port;
    bool tls_first;
} mail_ports[] = {
    {25,              false},
    {PORT_SMTPS,      true },
    {PORT_SUBMISSION, false},
    {2465,            true },
    {2525,            false},
    {2587,            false}
};

/* The most common error with a smarthost: both sides wait for the other. */
static void
faults_find_port(const struct target *target, const struct target_host *host,
                 struct faults *out)
{
    out->row = faults_row("port_tls");
    for (size_t i = 0; i < sizeof(mail_ports) / sizeof(*mail_ports); i++)
        if (mail_ports[i].port == host->port &&
            mail_ports[i].tls_first != target->tls_implicit)
            faults_found(out, "%.*s:%u: port %u %s", TEXT_ARGS(host->host),
                         (unsigned)host->port, (unsigned)host->port,
                         target->tls_implicit
                             ? "begins without TLS: write submission://"
                             : "has TLS from the first byte: write smtps://");
}

/* These ports are for clients that log in. smtp://HOST:587 is not asked: it sends in
 * cleartext to a server that offers no TLS, so it never was for a password. */
static void
faults_find_login(const struct target *target, const struct target_host *host,
                  struct faults *out)
{
    bool is_submission = target->tls_implicit ? host->port == PORT_SMTPS
                                              : host->port == PORT_SUBMISSION &&
                                                    target->tls >= TARGET_TLS_ENCRYPT;
    out->row = faults_row("login_missing");
    if (is_submission && host->user.length == 0 && target->cert == 0 &&
        !target_is_loopback(host->host))
        faults_found(out,
                     "%.*s:%u: port %u usually takes mail only after a login, and no "
                     "user is set: write %s://USER@%.*s, and a line '%.*s USER "
                     "PASSWORD' into the file that auth_passwords names, unless this "
                     "host is known there by its address",
                     TEXT_ARGS(host->host), (unsigned)host->port, (unsigned)host->port,
                     target->tls_implicit ? "smtps" : "submission",
                     TEXT_ARGS(host->host), TEXT_ARGS(host->host));
}

static void
faults_find_hosts(const struct target *target, struct faults *out)
{
    for (size_t i = 0; i < target_host_count(target); i++) {
        struct target_host host = target_host(target, i);
        faults_find_port(target, &host, out);
        faults_find_login(target, &host, out);
    }
}

/* Anybody who knows its URL may post to the application. */
static void
faults_find_web(const struct target *target, struct faults *out)
{
    out->row = faults_row("web_unsigned");
    if (target->kind == TARGET_HTTP && target->tls_implicit && target->user == 0 &&
        target->sign == 0 && !http_url_is_private(target->host))
        faults_found(out,
                     "https://%s%s cannot know who posts: write ?sign=NAME, or "
                     "https://USER@, and a line in auth_passwords",
                     target->host, target->path + target->url);
}

/* In production nobody would get mail. */
static void
faults_find_redirect(const struct target *target, struct faults *out)
{
    out->row = faults_row("redirected");
    if (target->to[0] != '\0')
        faults_found(out,
                     "a route redirects its mail to %s: its recipients do not get it",
                     target->to);
}

/* Mail waits for an address that this host does not have. */
static void
faults_find_source(const struct bind_address *sources, const char *option,
                   struct faults *out)
{
    static const enum net_family families[] = {NET_IPV4, NET_IPV6};
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
        struct net_address address;
        char ip[NET_ADDRESS_TEXT_MAX];
        if (!bind_address_for(sources, families[i], &address) || net_can_bind(&address))
            continue;
        net_address_ip(&address, ip);
        faults_found(out,
                     "%s: this host does not have the address %s: mail waits until it "
                     "has",
                     option, ip);
    }
}

bool
faults_judge_source(const struct fault_world *w, struct faults *out)
{
    struct bind_address sources;
    if (bind_address_read(&sources, w->options->delivery.smtp_bind, NULL))
        faults_find_source(&sources, "smtp_bind", out);
    return false;
}

static void
faults_find_target(void *context, const struct target *target)
{
    struct faults *out = context;
    const struct transport_params *t = &target->transport;
    bool is_smtp = target->kind == TARGET_SMTP;
    out->row = faults_row("bind_missing");
    faults_find_source(&target->bind, "bind=", out);
    if (is_smtp)
        faults_find_hosts(target, out);
    faults_find_web(target, out);
    faults_find_redirect(target, out);
    out->row = faults_row("concurrency");
    if (t->concurrency_limit > 0 && t->initial_concurrency > t->concurrency_limit &&
        is_smtp)
        faults_found(
            out,
            "%.*s: an initial concurrency of %d is above the limit of %d, which "
            "applies",
            TEXT_ARGS(target_host(target, 0).host), t->initial_concurrency,
            t->concurrency_limit);
    faults_if(out, "notices_late",
              target->notice_count > 0 &&
                  target->notices[target->notice_count - 1] >= t->lifetime_ms);
    faults_if(out, "fragments_expire",
              t->lifetime_ms > 0 && target->defragment &&
                  target->notices_ms / 2 > t->lifetime_ms);
}

bool
faults_judge_targets(const struct fault_world *w, struct faults *out)
{
    route_each_target(w->routes, faults_find_target, out);
    return false;
}

/* The targets to which mail with REQUIRETLS may go, and those that the settings close to it. */
struct faults_required {
    const struct fault_world *world;
    size_t open, closed;
};

static void
faults_find_required(void *context, const struct target *target)
{
    struct faults_required *r = context;
    const struct delivery_settings *d = &r->world->options->delivery;
    const struct target *asked =
        route_asked(r->world->routes, target, TARGET_REQUIRES_TLS);
    if (asked == target || target_peer(target) != NULL) /* it does not leave, or else */
        return;
    bool unproven = target->kind == TARGET_MX && (target->no_dane || !d->dane) &&
                    (target->no_sts || !d->mta_sts);
    *(asked->kind == TARGET_ERROR || unproven ? &r->closed : &r->open) += 1;
}

bool
faults_judge_required(const struct fault_world *w, struct faults *out)
{
    static const struct address elsewhere = {.local = TEXT("postmaster"),
                                             .domain = TEXT("elsewhere.invalid")};
    struct faults_required r = {.world = w};
    (void)out;
    if (w->options->server.tls_certificate.length == 0) /* it is not offered */
        return false;
    route_each_target(w->routes, faults_find_required, &r);
    faults_find_required(&r, route_find(w->routes, &elsewhere));
    return r.open == 0 && r.closed > 0;
}

/* --- Routes and rewrites that are never chosen ------------------------------------ */

struct faults_hidden {
    const struct settings *settings;
    struct faults *out;
    size_t count;
};

static const char *
faults_place(const struct faults_hidden *h, const char *key, const char **colon)
{
    const char *place = settings_origin(h->settings, text_from(key));
    *colon = place != NULL ? ": " : "";
    return place != NULL ? place : "";
}

static void
faults_find_hidden(void *context, const char *key, const char *pattern, const char *by)
{
    struct faults_hidden *h = context;
    const char *colon, *place = faults_place(h, key, &colon);
    if (h->count++ < HIDDEN_MAX)
        faults_found(h->out,
                     "%s%s%s: the route '%s' is never chosen, because '%s' stands "
                     "before it and the first match wins: move it up, or remove it",
                     place, colon, key, pattern, by);
}

bool
faults_judge_hidden_routes(const struct fault_world *w, struct faults *out)
{
    struct faults_hidden hidden = {w->settings, out, 0};
    route_each_hidden(w->routes, faults_find_hidden, &hidden);
    return hidden.count > HIDDEN_MAX &&
           faults_found(out, "%zu more routes are never chosen",
                        hidden.count - HIDDEN_MAX);
}

static void
faults_find_hidden_rewrite(void *context, const char *pattern, const char *by)
{
    struct faults_hidden *h = context;
    const char *colon, *place = faults_place(h, "rewrite", &colon);
    if (h->count++ < HIDDEN_MAX)
        faults_found(h->out,
                     "%s%srewrite: '%s' never matches, because '%s' stands before it "
                     "and the first match wins: move it up, or remove it",
                     place, colon, pattern, by);
}

bool
faults_judge_hidden_rewrites(const struct fault_world *w, struct faults *out)
{
    struct faults_hidden hidden = {w->settings, out, 0};
    rewrites_each_hidden(w->rewrites, faults_find_hidden_rewrite, &hidden);
    return false;
}

/* --- Several hosts ---------------------------------------------------------------- */

static void
faults_count_target(void *context, const struct target *target)
{
    size_t *others = context;
    (void)target;
    ++*others;
}

static size_t
faults_peers(const struct fault_world *w)
{
    size_t others = 0;
    peers_each_target(route_peers(w->routes), faults_count_target, &others);
    return others;
}

bool
faults_judge_fragments(const struct fault_world *w, struct faults *out)
{
    bool is_shared = strcmp(w->options->defrag_registry, "local") != 0,
         joins = route_defragments(w->routes), has_others = faults_peers(w) > 0;
    faults_if(out, "fragments_alone", is_shared && !has_others);
    faults_if(out, "fragments_local", !is_shared && has_others);
    faults_if(out, "fragments_unwanted", is_shared && !joins);
    faults_if(out, "fragments_sliced", !is_shared && joins && w->options->slices > 1);
    return false;
}

/* One account, and whether a target has its user. */
struct faults_account {
    const struct oauth_account *account;
    bool is_used;
};

static void
faults_find_user(void *context, const struct target *target)
{
    struct faults_account *u = context;
    for (size_t i = 0; i < target_host_count(target); i++) {
        struct target_host h = target_host(target, i);
        if (text_equal_nocase(h.host, text_from(u->account->host)) &&
            text_equal(h.user, text_from(u->account->user)) &&
            (u->account->port == 0 || u->account->port == h.port))
            u->is_used = true;
    }
}

/* Most often the user is written in two ways: joe@example.org there, joe here. */
bool
faults_judge_accounts(const struct fault_world *w, struct faults *out)
{
    for (size_t i = 0; i < w->accounts->count; i++) {
        struct faults_account use = {.account = &w->accounts->list[i]};
        route_each_target(w->routes, faults_find_user, &use);
        if (!use.is_used)
            faults_found(out,
                         "oauth: no route logs in to %s as %s: write that user in "
                         "front of the host, with %%40 for @, or remove the account",
                         use.account->host, use.account->user);
    }
    return false;
}

static void
faults_find_quota(void *context, const struct target *target)
{
    bool *has_quota = context;
    *has_quota = *has_quota || !quota_is_none(&target->transport.quota);
}

static bool
faults_have_redis(const struct options *o)
{
    return o->cluster_redis == NULL ? o->defrag_registry[0] == 'r'
                                    : strcmp(o->cluster_redis, "none") != 0;
}

/* An address is tried once by each that keeps a list. Slices read each other's. */
bool
faults_judge_suppression(const struct fault_world *w, struct faults *out)
{
    const struct options *o = w->options;
    if (o->manager.suppression.is_on && o->cluster != NULL && !faults_have_redis(o))
        faults_found(out,
                     "suppress: each host of the cluster has a list of its own, so a "
                     "dead address is tried once by each: `petrel suppress export` and "
                     "import carry entries over");
    return false;
}

/* Nobody adds up the mail of several daemons. */
bool
faults_judge_quotas(const struct fault_world *w, struct faults *out)
{
    const struct options *o = w->options;
    bool of_hops = false;
    route_each_target(w->routes, faults_find_quota, &of_hops);
    bool of_senders = o->manager.quotas.length > 0;
    const char *what = !of_senders ? "quota="
                       : of_hops   ? "quotas and quota="
                                   : "quotas";
    if (!of_senders && !of_hops)
        return false;
    if (o->slices > 1)
        faults_found(out,
                     "%s: each of the %u daemons of this spool counts by itself, so "
                     "all together may send %u times as much: divide the amounts",
                     what, (unsigned)o->slices, (unsigned)o->slices);
    if (o->cluster != NULL || faults_peers(w) > 0)
        faults_found(out,
                     "%s: each host of %s counts by itself, so all together may "
                     "send more: divide the amounts",
                     what, o->cluster != NULL ? "the cluster" : "defrag_peers");
    return false;
}

/* All of them would fail, or stay here; nobody would hear of it. */
static const char *
faults_copy_ends(const struct target *t)
{
    if (t == NULL || t->kind == TARGET_ERROR)
        return "is refused by its route";
    if (t->kind == TARGET_UNKNOWN)
        return "is in a domain of ours without a mailbox; set `local`, or a route";
    if (t->kind == TARGET_DISCARD)
        return "is discarded by its route";
    return t->kind == TARGET_HOLD ? "is held by its route" : NULL;
}

bool
faults_judge_copies(const struct fault_world *w, struct faults *out)
{
    struct copies *copies = copies_new(w->options->manager.copy_to, NULL);
    struct text mailbox;
    struct address address;
    for (unsigned i = 0; copies != NULL && copies_address(copies, i, &mailbox); i++) {
        bool good = address_parse(mailbox, &address);
        const char *why =
            faults_copy_ends(good ? route_find(w->routes, &address) : NULL);
        if (why != NULL)
            faults_found(out, "copy_to: mail for <%.*s> %s", TEXT_ARGS(mailbox), why);
    }
    copies_free(&copies);
    return false;
}

bool
faults_judge_events(const struct fault_world *w, struct faults *out)
{
    const struct options *o = w->options;
    faults_if(out, "events_unsigned",
              o->post.url.length > 0 && o->post.secrets.length == 0 &&
                  !event_post_is_local(o->post.url));
    faults_if(out, "events_secret_unused",
              o->post.url.length == 0 && o->post.secrets.length > 0);
    return false;
}

static void
faults_find_delay(void *context, const struct target *target)
{
    bool *has_delay = context;
    *has_delay = *has_delay || target->transport.rate_delay_ms > 0 ||
                 target->transport.transport_rate_delay_ms > 0;
}

bool
faults_judge_group(const struct fault_world *w, struct faults *out)
{
    const struct options *o = w->options;
    bool has_delay = false, is_group = o->cluster != NULL,
         has_redis = faults_have_redis(o);
    faults_if(out, "cluster_unnamed",
              !is_group && (o->cluster_host || o->cluster_redis || o->cluster_peers ||
                            o->cluster_address || o->cluster_secret));
    faults_if(out, "hand_over_alone",
              o->hands_over && (!is_group || o->cluster_secret == NULL));
    faults_if(out, "cluster_alone",
              is_group && !has_redis && o->cluster_peers == NULL && o->slices == 1);
    route_each_target(w->routes, faults_find_delay, &has_delay);
    faults_if(out, "rate_delay_unshared", is_group && has_delay);
    return false;
}

/* Not for one slice: a daemon that is not busy needs no other. */
bool
faults_find_cores(int64_t slices, int cores, struct faults *out)
{
    int64_t most = slices;
    while (most * 2 <= cores && most * 2 <= ID_SLICES_MAX)
        most *= 2;
    return slices > 1 && most != slices &&
           faults_found(out,
                        "slices = %" PRId64 ", and this host has %d cores: slices = "
                        "%" PRId64 " uses them, if the daemons are busy",
                        slices, cores, most);
}

bool
faults_judge_cores(const struct fault_world *w, struct faults *out)
{
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof(cores), &cores) == 0 &&
           faults_find_cores(w->options->slices, CPU_COUNT(&cores), out);
}

/* --- Reading ---------------------------------------------------------------------- */

void
faults_log(const struct fault_world *world, enum fault_when when, struct log *log)
{
    struct faults found = {.when = when};
    faults_judge(&found, world);
    for (size_t i = 0; i < found.count; i++)
        log_say(log, LOG_LEVEL_WARNING, "main", NULL, "%s", found.items[i].text);
    faults_free(&found);
}
