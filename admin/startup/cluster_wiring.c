/* Tells other hosts of this one, and the control socket of the others. */
#include "admin/startup/cluster_wiring.h"

#include "admin/control/json_field.h"
#include "admin/control/site_list.h"
#include "admin/http/metrics.h"
#include "admin/settings/settings_digest.h"

#include <string.h>

/* --- This host ---------------------------------------------------------------------- */

static void
cluster_wiring_add_digest(void *context, const char *key,
                          const char digest[SETTINGS_DIGEST_HEX])
{
    json_object_set_new(context, key, json_string(digest));
}

static json_t *
cluster_wiring_settings(const struct cluster_wiring *w)
{
    json_t *digests = json_object();
    settings_digest_each((*w->configuration)->settings, cluster_wiring_add_digest,
                         digests);
    return digests;
}

static json_t *
cluster_wiring_site(const json_t *site)
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
cluster_wiring_sites(const struct cluster_wiring *w)
{
    struct site_list_totals totals;
    json_t *top =
        site_list_top(manager_sched(w->manager), (size_t)2 * CLUSTER_SITES, &totals);
    json_t *sites = json_array(), *site;
    size_t i;
    json_array_foreach (top, i, site)
        if (json_field_number(site, "hosts") > 0 &&
            json_array_size(sites) < CLUSTER_SITES)
            json_array_append_new(sites, cluster_wiring_site(site));
    json_decref(top);
    return sites;
}

static int64_t
cluster_wiring_waiting(const json_t *status)
{
    const json_t *queue = json_object_get(status, "queue");
    return json_field_number(queue, "incoming") + json_field_number(queue, "active") +
           json_field_number(queue, "deferred");
}

static json_t *
cluster_wiring_answer(void *context, const json_t *request)
{
    static const char *const members[] = {"ok",        "version",  "uptime_s",
                                          "accepting", "reason",   "queue",
                                          "oldest_ms", "sessions", "group"};
    const struct cluster_wiring *w = context;
    json_t *question = json_pack("{s:s}", "command", "status"), *out = json_object();
    json_t *status = questions_answer(control_server_questions(w->control), question);
    (void)request;
    json_decref(question);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        json_t *value = json_object_get(status, members[i]);
        json_object_set_new(out, members[i], value ? json_incref(value) : json_null());
    }
    json_object_set_new(out, "state", json_string(w->state(w->context)));
    json_object_set_new(out, "waiting", json_integer(cluster_wiring_waiting(status)));
    if (*w->metrics != NULL)
        json_object_set_new(out, "busy", json_real(metrics_busy(*w->metrics)));
    json_object_set_new(out, "settings", cluster_wiring_settings(w));
    json_object_set_new(out, "sites", cluster_wiring_sites(w));
    json_decref(status);
    return out;
}

/* --- The others ---------------------------------------------------------------------- */

static void
cluster_wiring_siblings(void *context,
                        bool (*each)(void *context, const struct sibling *sibling),
                        void *each_context)
{
    const struct cluster_wiring *w = context;
    group_siblings(*w->group, each, each_context);
}

void
cluster_wiring_start(struct cluster_wiring *w)
{
    struct questions *questions = control_server_questions(w->control);
    questions_on(questions, "summary", cluster_wiring_answer, w);
    if (*w->group == NULL)
        return;
    (void)text_copy(w->host, sizeof(w->host), text_from(group_state(*w->group).host));
    w->hosts =
        (struct cluster_hosts){.calls = w->calls,
                               .why = "this host has no peer door: cluster_secret "
                                      "is not set",
                               .host = w->host,
                               .siblings = cluster_wiring_siblings,
                               .context = w};
    control_server_service(w->control)->cluster = &w->hosts;
}

void
cluster_wiring_stop(struct cluster_wiring *w)
{
    if (w->control != NULL)
        control_session_part(control_server_service(w->control));
}
