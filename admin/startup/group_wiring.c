/* The group of hosts: start, status, stop. */
#include "admin/startup/group_wiring.h"

#include "admin/control/site_list.h"
#include "base/log/log.h"
#include "queue/group/group_lead.h"
#include "queue/queue_operator.h"

#include <string.h>

enum {
    SITES_SHOWN = 200, /* in one answer: some 200 kB */
    GROUP_WIRING_ERROR_MAX = 512
};

static bool
group_wiring_connect(struct group_wiring *w, const struct configuration *c, char *error,
                     size_t size)
{
    char place[TRUST_ANCHORS_PLACE_MAX];
    if (group_needs_tls(&c->group)) {
        w->anchors = configuration_anchors(c, place, error, size);
        if (w->anchors == NULL)
            return false;
    }
    struct redis_setup setup = {.loop = w->loop,
                                .net = w->net,
                                .dns = w->dns,
                                .tls = w->anchors,
                                .places = c->group.places,
                                .count = c->group.place_count,
                                .probe = GROUP_PROBE};
    w->redis = redis_new(&setup, error, size);
    return w->redis != NULL;
}

/* Without it each slice has its own part, so that is no reason not to start. */
static struct group_engine
group_wiring_lead(const struct group_wiring *w, const struct configuration *c)
{
    char error[GROUP_WIRING_ERROR_MAX];
    const struct options *o = &c->options;
    if (!c->group.has_lead)
        return (struct group_engine){.kind = NULL};
    struct group_lead_setup setup = {.loop = w->loop,
                                     .net = w->net,
                                     .log = w->log,
                                     .disk = queue_disk(manager_queue(w->manager)),
                                     .spool = o->spool,
                                     .settings = &c->group,
                                     .slice = (unsigned)o->slice,
                                     .slices = (unsigned)o->slices};
    struct group_engine lead = group_lead_new(&setup, error, sizeof(error));
    if (lead.kind == NULL)
        log_say(w->log, LOG_LEVEL_WARNING, "group", NULL,
                "no bank of the slices, each has its own part: %s", error);
    return lead;
}

bool
group_wiring_start(struct group_wiring *w, const struct configuration *c, char *error,
                   size_t size)
{
    if (c->group.name[0] == '\0')
        return true;
    if (c->group.place_count > 0 && !group_wiring_connect(w, c, error, size))
        return false;
    struct group_engine lead = group_wiring_lead(w, c);
    w->has_lead = lead.kind != NULL;
    w->group = group_new(&(struct group_setup){.loop = w->loop,
                                               .log = w->log,
                                               .manager = w->manager,
                                               .redis = w->redis,
                                               .lead = lead,
                                               .settings = &c->group});
    return true;
}

static bool
group_wiring_is_same(const struct redis_place *a, const struct redis_place *b)
{
    return strcmp(a->host, b->host) == 0 && a->port == b->port &&
           a->database == b->database && strcmp(a->user, b->user) == 0 &&
           strcmp(a->password, b->password) == 0 && a->tls == b->tls;
}

struct redis *
group_wiring_redis(const struct group_wiring *w, const struct configuration *c)
{
    for (size_t i = 0; w->redis != NULL && c->registry.kind == REGISTRY_REDIS &&
                       i < c->group.place_count;
         i++)
        if (group_wiring_is_same(&c->group.places[i], &c->registry.redis))
            return w->redis;
    return NULL;
}

/* The description of each, by name. */
static bool
group_wiring_add_said(void *said, const struct sibling *s)
{
    json_object_set_new(said, s->host,
                        json_pack("{s:s,s:s,s:s}", "reports", s->state, "version",
                                  s->version, "address", s->address));
    return true;
}

static json_t *
group_wiring_hosts(struct group *group, const struct group_members *members)
{
    json_t *list = json_array(), *said = json_object();
    group_siblings(group, group_wiring_add_said, said);
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
group_wiring_status(void *context)
{
    static const char *const banks[] = {
        [GROUP_BANK_NONE] = "none", [GROUP_BANK_UP] = "up", [GROUP_BANK_AWAY] = "away"};
    struct group_wiring *w = context;
    if (w->group == NULL)
        return NULL;
    struct group_state s = group_state(w->group);
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:o,s:I,s:I,s:I,s:I,s:b}", "name",
                     s.name, "host", s.host, "egress", s.egress, "bank", banks[s.bank],
                     "server", s.server, "why", s.why, "away_ms", (json_int_t)s.away_ms,
                     "hosts", group_wiring_hosts(w->group, s.members), "fallback_sites",
                     (json_int_t)s.fallback_sites, "asks", (json_int_t)s.asks,
                     "asked_sites", (json_int_t)s.sites, "failures",
                     (json_int_t)s.failures, "namesake", s.namesakes > 0);
}

struct group_wiring_list {
    const struct sched *sched;
    json_t *sites;
};

/* The view of a site costs more than a glance. */
static void
group_wiring_put(void *context, const struct sched_glance *site)
{
    struct group_wiring_list *l = context;
    if (site->is_shared && json_array_size(l->sites) < SITES_SHOWN)
        sched_look(l->sched, site->site, site_list_put, l->sites);
}

static json_t *
answer_cluster(void *context, const json_t *request)
{
    const struct group_wiring *w = context;
    json_t *group = group_wiring_status(context);
    struct group_wiring_list list = {manager_sched(w->manager), json_array()};
    (void)request;
    if (group != NULL)
        sched_glance(list.sched, group_wiring_put, &list);
    json_object_set_new(group, "sites", list.sites);
    return json_pack("{s:b,s:o}", "ok", true, "group",
                     group != NULL ? group : json_null());
}

static json_t *
answer_cluster_forget(void *context, const json_t *request)
{
    struct group_wiring *w = context;
    const char *host = json_string_value(json_object_get(request, "host"));
    if (w->group == NULL)
        return questions_refuse("this host is in no group: cluster is not set");
    if (w->has_lead)
        return questions_refuse("slices of this machine are always members");
    if (host == NULL || !group_forget(w->group, text_from(host)))
        return questions_refuse("no other host of the group has that name");
    return json_pack("{s:b}", "ok", true);
}

void
group_wiring_answer(struct group_wiring *w, struct questions *questions)
{
    questions_on_part(questions, "group", group_wiring_status, w);
    questions_on(questions, "cluster", answer_cluster, w);
    questions_on(questions, "cluster-forget", answer_cluster_forget, w);
}

void
group_wiring_find(const struct group_wiring *w, struct finding_facts *facts)
{
    if (w->group == NULL)
        return;
    struct group_state s = group_state(w->group);
    if (s.away_ms > 0)
        facts->bank_away = s.why;
    facts->bank_sites = s.fallback_sites;
}

void
group_wiring_reload(struct group_wiring *w, const struct configuration *c)
{
    /* The slices of a machine are the same until a restart. */
    if (w->group != NULL && !w->has_lead)
        group_reload(w->group, &c->group);
}

void
group_wiring_stop(struct group_wiring *w)
{
    group_free(&w->group);
    redis_free(&w->redis);
    tls_client_free(&w->anchors);
}
