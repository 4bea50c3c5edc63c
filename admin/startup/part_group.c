/* The group of hosts that share limits: its bank, its status, and one view of its hosts. */
#include "admin/startup/parts.h"

#include "base/json_field.h"
#include "admin/view/site_view.h"
#include "admin/settings/settings_digest.h"
#include "base/redis/redis.h"
#include "queue/group/group_lead.h"
#include "queue/queue_operator.h"

#include <string.h>
#include <sysexits.h>

enum {
    SITES_SHOWN = 200 /* in one answer: some 200 kB */
};

static bool
part_group_connect(struct daemon *d)
{
    const struct configuration *c = d->configuration;
    d->group.anchors = tls_client_keep(c->anchors);
    struct redis_setup setup = {.loop = d->loop,
                                .net = d->net,
                                .dns = d->dns,
                                .tls = d->group.anchors,
                                .places = c->group.places,
                                .count = c->group.place_count,
                                .probe = GROUP_PROBE};
    d->group.redis = redis_new(&setup, d->error, DAEMON_ERROR_MAX);
    return d->group.redis != NULL;
}

/* Without it each slice has its own part, so that is no reason not to start. */
static struct group_engine
part_group_lead(const struct daemon *d)
{
    char error[DAEMON_ERROR_MAX];
    const struct configuration *c = d->configuration;
    if (!c->group.has_lead)
        return (struct group_engine){.kind = NULL};
    struct group_lead_setup setup = {.loop = d->loop,
                                     .net = d->net,
                                     .log = d->log,
                                     .disk = queue_disk(manager_queue(d->manager)),
                                     .spool = c->options.spool,
                                     .slice = (unsigned)c->options.slice,
                                     .slices = (unsigned)c->options.slices};
    struct group_engine lead = group_lead_new(&setup, error, sizeof(error));
    if (lead.kind == NULL)
        log_say(d->log, LOG_LEVEL_WARNING, "group", NULL,
                "no bank of the slices, each has its own part: %s", error);
    return lead;
}

int
part_group_start(struct daemon *d)
{
    const struct group_settings *settings = &d->configuration->group;
    if (settings->name[0] == '\0')
        return 0;
    if (settings->place_count > 0 && !part_group_connect(d))
        return EX_CONFIG;
    struct group_engine lead = part_group_lead(d);
    d->group.has_lead = lead.kind != NULL;
    d->group.group = group_new(&(struct group_setup){.loop = d->loop,
                                                     .log = d->log,
                                                     .manager = d->manager,
                                                     .redis = d->group.redis,
                                                     .lead = lead,
                                                     .settings = settings});
    return 0;
}

static bool
part_group_is_same(const struct redis_place *a, const struct redis_place *b)
{
    return strcmp(a->host, b->host) == 0 && a->port == b->port &&
           a->database == b->database && strcmp(a->user, b->user) == 0 &&
           strcmp(a->password, b->password) == 0 && a->tls == b->tls;
}

struct redis *
part_group_redis(const struct daemon *d)
{
    const struct configuration *c = d->configuration;
    for (size_t i = 0; d->group.redis != NULL && c->registry.kind == REGISTRY_REDIS &&
                       i < c->group.place_count;
         i++)
        if (part_group_is_same(&c->group.places[i], &c->registry.redis))
            return d->group.redis;
    return NULL;
}

void
part_group_siblings(void *daemon, bool (*each)(void *context, const struct sibling *s),
                    void *context)
{
    const struct daemon *d = daemon;
    if (d->group.group != NULL)
        group_siblings(d->group.group, each, context);
}

/* --- Questions --------------------------------------------------------------------- */

/* The description of each, by name. */
static bool
part_group_add_said(void *said, const struct sibling *s)
{
    json_object_set_new(said, s->host,
                        json_pack("{s:s,s:s,s:s}", "reports", s->state, "version",
                                  s->version, "address", s->address));
    return true;
}

static json_t *
part_group_hosts(struct group *group, const struct group_members *members)
{
    json_t *list = json_array(), *said = json_object();
    group_siblings(group, part_group_add_said, said);
    for (size_t i = 0; i < members->count; i++) {
        const struct group_member *m = &members->all[i];
        json_t *host = json_pack("{s:s,s:s,s:b}", "name", m->name, "state",
                                 m->is_lost ? "lost" : "member", "own",
                                 strcmp(m->name, members->own) == 0);
        json_object_update(host, json_object_get(said, m->name));
        json_array_append_new(list, host);
    }
    json_decref(said);
    return list;
}

static json_t *
part_group_status(void *context)
{
    static const char *const banks[] = {
        [GROUP_BANK_NONE] = "none", [GROUP_BANK_UP] = "up", [GROUP_BANK_AWAY] = "away"};
    struct daemon *d = context;
    if (d->group.group == NULL)
        return NULL;
    struct group_state s = group_state(d->group.group);
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:o,s:I,s:I,s:I,s:I,s:b}", "name",
                     s.name, "host", s.host, "egress", s.egress, "bank", banks[s.bank],
                     "server", s.server, "why", s.why, "away_ms", (json_int_t)s.away_ms,
                     "hosts", part_group_hosts(d->group.group, s.members),
                     "fallback_sites", (json_int_t)s.fallback_sites, "asks",
                     (json_int_t)s.asks, "asked_sites", (json_int_t)s.sites, "failures",
                     (json_int_t)s.failures, "namesake", s.namesakes > 0);
}

struct part_group_list {
    const struct sched *sched;
    json_t *sites;
};

/* The view of a site costs more than a glance. */
static void
part_group_put(void *context, const struct sched_glance *site)
{
    struct part_group_list *l = context;
    if (site->is_shared && json_array_size(l->sites) < SITES_SHOWN)
        sched_look(l->sched, site->site, site_view_put, l->sites);
}

static json_t *
answer_cluster(void *context, const json_t *request)
{
    const struct daemon *d = context;
    json_t *group = part_group_status(context);
    struct part_group_list list = {manager_sched(d->manager), json_array()};
    (void)request;
    if (group != NULL)
        sched_glance(list.sched, part_group_put, &list);
    json_object_set_new(group, "sites", list.sites);
    json_t *answer = json_pack("{s:b,s:o}", "ok", true, "group",
                               group != NULL ? group : json_null());
    json_t *copies = part_copies_status(context);
    if (copies != NULL)
        json_object_set_new(answer, "copies", copies);
    return answer;
}

static json_t *
answer_cluster_forget(void *context, const json_t *request)
{
    struct daemon *d = context;
    const char *host = json_string_value(json_object_get(request, "host"));
    if (d->group.group == NULL)
        return questions_refuse("this host is in no group: cluster is not set");
    if (d->group.has_lead)
        return questions_refuse("slices of this machine are always members");
    if (host == NULL || !group_forget(d->group.group, text_from(host)))
        return questions_refuse("no other host of the group has that name");
    return json_pack("{s:b}", "ok", true);
}

void
part_group_answer(struct daemon *d)
{
    struct questions *questions = control_server_questions(d->control);
    questions_on_part(questions, "group", part_group_status, d);
    questions_on(questions, "cluster", answer_cluster, d);
    questions_on(questions, "cluster-forget", answer_cluster_forget, d);
}

void
part_group_find(const struct daemon *d, struct finding_facts *facts)
{
    if (d->group.group == NULL)
        return;
    struct group_state s = group_state(d->group.group);
    if (s.away_ms > 0)
        facts->bank_away = s.why;
    facts->bank_sites = s.fallback_sites;
}

void
part_group_reload(struct daemon *d, struct configuration *fresh)
{
    /* The slices of a machine are the same until a restart. */
    if (d->group.group != NULL && !d->group.has_lead)
        group_reload(d->group.group, &fresh->group);
}

/* The registry, which may use the connection, is free already. */
void
part_group_stop(struct daemon *d)
{
    group_free(&d->group.group);
    redis_free(&d->group.redis);
    tls_client_free(&d->group.anchors);
}

/* --- The description of this host -------------------------------------------------- */

static void
part_cluster_add_digest(void *context, const char *key,
                        const char digest[SETTINGS_DIGEST_HEX])
{
    json_object_set_new(context, key, json_string(digest));
}

static json_t *
part_cluster_settings(const struct daemon *d)
{
    json_t *digests = json_object();
    settings_digest_each(d->configuration->settings, part_cluster_add_digest, digests);
    return digests;
}

static json_t *
part_cluster_site(const json_t *site)
{
    static const char *const members[] = {
        "site",     "limit", "shared_tokens", "lease_tokens", "lease_sessions",
        "sessions", "busy",  "waiting",       "backlogged",   "bound"};
    json_t *some = json_object();
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        json_t *value = json_object_get(site, members[i]);
        if (value != NULL)
            json_object_set(some, members[i], value);
    }
    return some;
}

/* Most mail first. */
static json_t *
part_cluster_sites(const struct daemon *d)
{
    struct site_view_totals totals;
    json_t *top = site_view_top(manager_sched(d->manager),
                                (size_t)2 * PART_CLUSTER_SITES, &totals);
    json_t *sites = json_array(), *site;
    size_t i;
    json_array_foreach (top, i, site)
        if (json_field_number(site, "hosts") > 0 &&
            json_array_size(sites) < PART_CLUSTER_SITES)
            json_array_append_new(sites, part_cluster_site(site));
    json_decref(top);
    return sites;
}

static int64_t
part_cluster_waiting(const json_t *status)
{
    const json_t *queue = json_object_get(status, "queue");
    return json_field_number(queue, "incoming") + json_field_number(queue, "active") +
           json_field_number(queue, "deferred");
}

static json_t *
part_cluster_answer(void *context, const json_t *request)
{
    static const char *const members[] = {"ok",        "version",  "uptime_s",
                                          "accepting", "reason",   "queue",
                                          "oldest_ms", "sessions", "group"};
    const struct daemon *d = context;
    json_t *status = questions_ask(control_server_questions(d->control), "status"),
           *out = json_object();
    (void)request;
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        json_t *value = json_object_get(status, members[i]);
        json_object_set_new(out, members[i], value ? json_incref(value) : json_null());
    }
    json_object_set_new(out, "state", json_string(daemon_state(context)));
    json_object_set_new(out, "waiting", json_integer(part_cluster_waiting(status)));
    if (d->http.metrics != NULL)
        json_object_set_new(out, "busy", json_real(metrics_busy(d->http.metrics)));
    json_object_set_new(out, "settings", part_cluster_settings(d));
    json_object_set_new(out, "sites", part_cluster_sites(d));
    json_decref(status);
    return out;
}

int
part_cluster_start(struct daemon *d)
{
    struct part_group *g = &d->group;
    questions_on(control_server_questions(d->control), "summary", part_cluster_answer,
                 d);
    if (g->group == NULL)
        return 0;
    g->hosts =
        (struct cluster_hosts){.calls = d->peer.give.calls,
                               .why = "this host has no peer door: cluster_secret "
                                      "is not set",
                               .host = d->started->group.host,
                               .siblings = part_group_siblings,
                               .context = d};
    control_server_service(d->control)->cluster = &g->hosts;
    return 0;
}

void
part_cluster_stop(struct daemon *d)
{
    control_session_part(control_server_service(d->control));
}
