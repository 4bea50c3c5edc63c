/* Finds settings that contradict each other or their files. */
#include "admin/settings/warnings.h"

#include "admin/settings/accounts.h"
#include "admin/settings/file_modes.h"
#include "base/net/net.h"
#include "base/sandbox/identity.h"
#include "base/event/event_post.h"
#include "sched/route/peers.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

enum {
    PORT_SMTP = 25,
    PORT_SMTPS = 465,
    PORT_SUBMISSION = 587,
    HIDDEN_MAX = 10 /* hidden routes that are named, one a line */
};

static void
warnings_count(void *context, const struct target *target)
{
    size_t *others = context;
    (void)target;
    ++*others;
}

static void
warnings_warn(struct log *log, const char *what)
{
    log_say(log, LOG_LEVEL_WARNING, "main", NULL, "%s", what);
}

static void
warn_of_fragments(const struct options *options, const struct route_table *routes,
                  struct log *log)
{
    bool is_shared = strcmp(options->defrag_registry, "local") != 0,
         joins = route_defragments(routes);
    size_t others = 0;
    peers_each_target(route_peers(routes), warnings_count, &others);
    if (is_shared && others == 0)
        warnings_warn(
            log,
            "defrag_registry is for several hosts, but defrag_peers names no "
            "other: fragments of a set that another host owns are not reassembled");
    if (!is_shared && others > 0)
        warnings_warn(
            log, "defrag_peers names other hosts, but defrag_registry is local: this "
                 "host sends them no fragments");
    if (is_shared && !joins)
        warnings_warn(log, "defrag_registry is for several hosts, but no route says "
                           "defragment=yes: this host waits for no fragments");
    if (!is_shared && joins && options->slices > 1)
        warnings_warn(
            log, "slices do not share fragments while defrag_registry is local: a "
                 "message whose fragments reach several slices is not reassembled");
}

static void
note_quota(void *context, const struct target *target)
{
    bool *has_quota = context;
    *has_quota = *has_quota || !quota_is_none(&target->transport.quota);
}

/* Nobody adds up the mail of several daemons. */
static void
warn_of_quotas(const struct options *options, const struct route_table *routes,
               struct log *log)
{
    bool of_hops = false;
    size_t others = 0;
    route_each_target(routes, note_quota, &of_hops);
    peers_each_target(route_peers(routes), warnings_count, &others);
    const char *what = options->manager.quotas.length == 0 ? "quota="
                       : of_hops                           ? "quotas and quota="
                                                           : "quotas";
    if (options->manager.quotas.length == 0 && !of_hops)
        return;
    if (options->slices > 1)
        log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                "%s: each of the %u daemons of this spool counts by itself, so all "
                "together may send %u times as much: divide the amounts",
                what, (unsigned)options->slices, (unsigned)options->slices);
    if (options->cluster != NULL || others > 0)
        log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                "%s: each host of %s counts by itself, so all together may "
                "send more: divide the amounts",
                what, options->cluster != NULL ? "the cluster" : "defrag_peers");
}

static void
note_rate_delay(void *context, const struct target *target)
{
    bool *has_delay = context;
    *has_delay = *has_delay || target->transport.rate_delay_ms > 0 ||
                 target->transport.transport_rate_delay_ms > 0;
}

static void
warn_of_group(const struct options *options, const struct route_table *routes,
              struct log *log)
{
    bool has_delay = false,
         has_redis = options->cluster_redis == NULL
                         ? options->defrag_registry[0] == 'r'
                         : strcmp(options->cluster_redis, "none") != 0;
    if (options->cluster == NULL &&
        (options->cluster_host || options->cluster_redis || options->cluster_peers ||
         options->cluster_address || options->cluster_secret))
        warnings_warn(log, "settings of a group of hosts are there, but cluster, its "
                           "name, is not set: no limit is shared");
    if (options->hands_over &&
        (options->cluster == NULL || options->cluster_secret == NULL))
        warnings_warn(log, "stop = hand_over gives the queue to nobody without cluster "
                           "and cluster_secret: it stays here");
    if (options->cluster == NULL)
        return;
    if (!has_redis && options->cluster_peers == NULL && options->slices == 1)
        warnings_warn(log, "cluster is set without cluster_redis and cluster_peers: "
                           "this host knows no other, and uses all of each limit");
    route_each_target(routes, note_rate_delay, &has_delay);
    if (has_delay)
        warnings_warn(log, "a rate delay is each host's own, also in a group: rate= "
                           "is shared");
}

static void
warn_of_events(const struct options *options, struct log *log)
{
    if (options->post.url.length > 0 && options->post.secrets.length == 0 &&
        !event_post_is_local(options->post.url))
        warnings_warn(log, "events_secret is not set: the receiver of events cannot "
                           "know who sends them");
    if (options->post.url.length == 0 && options->post.secrets.length > 0)
        warnings_warn(log, "events_secret is set, but events is not");
}

/* --- The host's name -------------------------------------------------------------- */

/* RFC 5321 2.3.5: the name in HELO resolves, so it is neither local nor bare. */
static bool
is_full_name(struct text name)
{
    struct text bare =
        text_ends_nocase(name, TEXT(".")) ? text_before(name, name.length - 1) : name;
    return text_starts(name, TEXT("[")) ||
           (text_find(bare, '.') != TEXT_NONE &&
            !text_ends_nocase(bare, TEXT(".localhost")) &&
            !text_ends_nocase(bare, TEXT(".localdomain")));
}

bool
warnings_hostname(const char *hostname, const char *system_name,
                  char out[WARNINGS_HOSTNAME_MAX])
{
    if (hostname == NULL || is_full_name(text_from(hostname)))
        return false;
    /* An invalid system name has been replaced by localhost. */
    bool replaced = strcmp(hostname, "localhost") == 0 && system_name != NULL &&
                    strcmp(system_name, hostname) != 0;
    snprintf(out, WARNINGS_HOSTNAME_MAX,
             "hostname '%.255s' is not a full name%s%.64s%s; other servers will refuse "
             "mail: set hostname",
             hostname, replaced ? " (the system's, '" : "", replaced ? system_name : "",
             replaced ? "', is not usable)" : "");
    return true;
}

static void
warn_of_hostname(const char *hostname, struct log *log)
{
    char what[WARNINGS_HOSTNAME_MAX];
    struct utsname system;
    const char *own = uname(&system) == 0 ? system.nodename : NULL;
    if (warnings_hostname(hostname, own, what))
        warnings_warn(log, what);
}

/* ---------------------------------------------------------------------------------- */

/* The most common error with a smarthost: both sides wait for the other. */
static void
warn_of_ports(const struct target *target, struct log *log)
{
    for (size_t i = 0; i < target_host_count(target); i++) {
        struct target_host host = target_host(target, i);
        bool wants_tls = host.port == PORT_SMTPS;
        bool begins_clear = host.port == PORT_SMTP || host.port == PORT_SUBMISSION;
        if (target->tls_implicit ? !begins_clear : !wants_tls)
            continue;
        log_say(log, LOG_LEVEL_WARNING, "main", NULL, "%.*s:%u: port %u %s",
                TEXT_ARGS(host.host), (unsigned)host.port, (unsigned)host.port,
                wants_tls ? "has TLS from the first byte: write smtps://"
                          : "begins without TLS: write submission://");
    }
}

/* Mail waits for an address that this host does not have. */
static void
warn_of_source(const struct bind_address *sources, const char *option, struct log *log)
{
    static const enum net_family families[] = {NET_IPV4, NET_IPV6};
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
        struct net_address address;
        char ip[NET_ADDRESS_TEXT_MAX];
        if (!bind_address_for(sources, families[i], &address) || net_can_bind(&address))
            continue;
        net_address_ip(&address, ip);
        log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                "%s: this host does not have the address %s: mail waits until it has",
                option, ip);
    }
}

static void
warn_of_target(void *context, const struct target *target)
{
    const struct transport_params *t = &target->transport;
    warn_of_source(&target->bind, "bind=", context);
    if (target->kind == TARGET_SMTP)
        warn_of_ports(target, context);
    if (t->concurrency_limit > 0 && t->initial_concurrency > t->concurrency_limit &&
        target->kind == TARGET_SMTP)
        log_say(context, LOG_LEVEL_WARNING, "main", NULL,
                "%.*s: an initial concurrency of %d is above the limit of %d, which "
                "applies",
                TEXT_ARGS(target_host(target, 0).host), t->initial_concurrency,
                t->concurrency_limit);
    if (target->notice_count > 0 &&
        target->notices[target->notice_count - 1] >= t->lifetime_ms)
        warnings_warn(context, "notices= has a time beyond the lifetime: mail is "
                               "returned to its sender before");
    if (t->lifetime_ms > 0 && target->defragment &&
        target->notices_ms / 2 > t->lifetime_ms)
        warnings_warn(context,
                      "half of notices= is longer than the lifetime: fragments that "
                      "wait expire first");
}

struct hidden {
    const struct settings *settings;
    struct log *log;
    size_t count;
};

static void
warn_of_hidden(void *context, const char *key, const char *pattern, const char *by)
{
    struct hidden *h = context;
    const char *place = settings_origin(h->settings, text_from(key));
    if (h->count++ < HIDDEN_MAX)
        log_say(h->log, LOG_LEVEL_WARNING, "main", NULL,
                "%s%s%s: the route '%s' is never chosen, because '%s' stands before it "
                "and the first match wins: move it up, or remove it",
                place ? place : "", place ? ": " : "", key, pattern, by);
}

static void
warn_of_hidden_rewrite(void *context, const char *pattern, const char *by)
{
    struct hidden *h = context;
    const char *place = settings_origin(h->settings, TEXT("rewrite"));
    if (h->count++ < HIDDEN_MAX)
        log_say(
            h->log, LOG_LEVEL_WARNING, "main", NULL,
            "%s%srewrite: '%s' never matches, because '%s' stands before it and the "
            "first match wins: move it up, or remove it",
            place ? place : "", place ? ": " : "", pattern, by);
}

/* One account, and whether a target has its user. */
struct account_use {
    const struct oauth_account *account;
    bool is_used;
};

static void
note_account_use(void *context, const struct target *target)
{
    struct account_use *u = context;
    for (size_t i = 0; i < target_host_count(target); i++) {
        struct target_host h = target_host(target, i);
        if (text_equal_nocase(h.host, text_from(u->account->host)) &&
            text_equal(h.user, text_from(u->account->user)) &&
            (u->account->port == 0 || u->account->port == h.port))
            u->is_used = true;
    }
}

/* Most often the user is written in two ways: joe@example.org there, joe here. */
static void
warn_of_accounts(const struct options *options, const struct route_table *routes,
                 struct log *log)
{
    struct accounts accounts;
    struct buffer errors;
    buffer_init(&errors, OAUTH_REASON_MAX);
    (void)!accounts_read(options, &accounts, &errors);
    buffer_free(&errors);
    for (size_t i = 0; i < accounts.count; i++) {
        struct account_use use = {.account = &accounts.list[i]};
        route_each_target(routes, note_account_use, &use);
        if (!use.is_used)
            log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                    "oauth: no route logs in to %s as %s: write that user in front of "
                    "the host, with %%40 for @, or remove the account",
                    use.account->host, use.account->user);
    }
    accounts_free(&accounts);
}

static void
warn_of_routes(const struct settings *settings, const struct route_table *routes,
               struct log *log)
{
    struct hidden hidden = {settings, log, 0};
    route_each_target(routes, warn_of_target, log);
    route_each_hidden(routes, warn_of_hidden, &hidden);
    if (hidden.count > HIDDEN_MAX)
        log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                "%zu more routes are never chosen", hidden.count - HIDDEN_MAX);
}

/* The table is read anew, as only this needs it. */
static void
warn_of_rewrites(const struct options *options, const struct settings *settings,
                 struct log *log)
{
    struct hidden hidden = {settings, log, 0};
    struct buffer unused;
    buffer_init(&unused, 0);
    struct rewrites *rewrites = options_rewrites(options, settings, &unused);
    if (rewrites != NULL)
        rewrites_each_hidden(rewrites, warn_of_hidden_rewrite, &hidden);
    rewrites_free(&rewrites);
    buffer_free(&unused);
}

static void
warn_of_values(const struct options *options, struct log *log)
{
    if (options->spool[0] != '/')
        warnings_warn(log, "spool is not an absolute path: it depends on the directory "
                           "in which the daemon is started");
    if (options->slices > 1)
        log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                "slices = %u: each daemon applies the limits of clients (client_..., "
                "server_...) by itself, so all together may reach %u times as much: "
                "divide them",
                (unsigned)options->slices, (unsigned)options->slices);
    if (options->transport.bounce_lifetime_ms > options->transport.lifetime_ms)
        warnings_warn(
            log, "bounce_queue_lifetime is longer than maximal_queue_lifetime, which "
                 "ends bounces, too");
}

/* A number without a unit is in seconds here, and in a longer unit in Postfix; 0 is the
 * same in all. */
static void
warn_of_units(const struct settings *settings, struct log *log)
{
    static const struct {
        const char *key, *unit;
    } rows[] = {
        {"maximal_queue_lifetime", "days" },
        {"bounce_queue_lifetime",  "days" },
        {"delay_warning_time",     "hours"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const char *value = settings_written(settings, text_from(rows[i].key));
        uint64_t number;
        if (value != NULL && text_number(text_from(value), UINT64_MAX, &number) &&
            number > 0)
            log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                    "%s: %s: %s without a unit is %s seconds, in Postfix %s: write "
                    "%s%c or %ss",
                    settings_origin(settings, text_from(rows[i].key)), rows[i].key,
                    value, value, rows[i].unit, value, rows[i].unit[0], value);
    }
}

static void
warn_of_names(const struct settings *settings, struct log *log)
{
    struct text lines = settings_warnings(settings), line;
    while (text_cut(&lines, '\n', &line))
        if (line.length > 0)
            log_say(log, LOG_LEVEL_WARNING, "main", NULL, "%.*s", TEXT_ARGS(line));
}

void
warnings_say(const struct options *options, const struct settings *settings,
             const struct route_table *routes, struct log *log)
{
    struct bind_address sources;
    warn_of_names(settings, log);
    warn_of_hostname(options->hostname, log);
    if (bind_address_read(&sources, options->delivery.smtp_bind, NULL))
        warn_of_source(&sources, "smtp_bind", log);
    file_modes_warn(options, settings, log);
    warn_of_values(options, log);
    warn_of_units(settings, log);
    warn_of_routes(settings, routes, log);
    warn_of_rewrites(options, settings, log);
    warn_of_fragments(options, routes, log);
    warn_of_accounts(options, routes, log);
    warn_of_quotas(options, routes, log);
    warn_of_events(options, log);
    warn_of_group(options, routes, log);
}

void
warnings_at_start(const struct options *options, const struct settings *settings,
                  const struct route_table *routes, struct log *log)
{
    warnings_say(options, settings, routes, log);
    if (options->user != NULL)
        file_modes_foresee(options, settings, log);
}

bool
warnings_cores(int64_t slices, int cores, char out[WARNINGS_CORES_MAX])
{
    int64_t most = slices;
    while (most * 2 <= cores && most * 2 <= ID_SLICES_MAX)
        most *= 2;
    if (slices < 2 || most == slices)
        return false;
    snprintf(out, WARNINGS_CORES_MAX,
             "slices = %" PRId64 ", and this host has %d cores: slices = %" PRId64
             " uses them, if the daemons are busy",
             slices, cores, most);
    return true;
}

static void
warn_of_cores(const struct options *options, struct log *log)
{
    char what[WARNINGS_CORES_MAX];
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof(cores), &cores) == 0 &&
        warnings_cores(options->slices, CPU_COUNT(&cores), what))
        warnings_warn(log, what);
}

/* Root can read them all; the daemon that the service manager starts is `user`. */
static void
warn_of_unreadable(const struct options *options, const struct settings *settings,
                   struct log *log)
{
    struct identity who;
    if (!identity_find(&who, options->user) || !who.change)
        return;
    if (identity_try_on(&who))
        file_modes_foresee(options, settings, log);
    if (!identity_take_off(&who))
        warnings_warn(log,
                      "root cannot be regained: what follows is checked as `user`");
}

void
warnings_at_check(const struct options *options, const struct settings *settings,
                  const struct route_table *routes)
{
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_WARNING);
    warnings_say(options, settings, routes, log);
    warn_of_cores(options, log);
    warn_of_unreadable(options, settings, log);
    log_free(&log);
}
