/* The scheduler's machine: an operator ends the learnt limits of a site. */
#include "sched/sched_internal.h"

#include <string.h>
#include <strings.h>

struct limits_search {
    struct sched *s;
    const char *key;
    unsigned count;
};

/* As a new site, but for its mail, its sessions and the limits of the settings. */
static void
site_begin_anew(struct sched *s, struct site *site)
{
    struct sites *sites = &s->destinations.sites;
    struct lane *lane, *next;
    bucket_learnt_init(&site->learnt);
    site->ceiling = (struct ceiling){0};
    site->latency = (struct latency){0};
    site->slow = 0;
    site->slow_since_ms = 0;
    site->recipients = 0;
    site->open_after_ms = 0;
    if (!site->dead && !site->window.probing)
        window_init(&site->window, site_transport(site));
    HASH_ITER (hh, site->lanes.by_demand, lane, next)
        if (lane->delay_ms != 0)
            lane_resume(lane);
    site_revive(sites, site);
    sched_quota_end(s, site->transport);
    if (!site->window.probing)
        sched_site_recall(s, site);
    site_update(sites, site, s->now_ms);
}

static void
limits_forget(void *context, struct site *site)
{
    struct limits_search *search = context;
    if (strcasecmp(site->key, search->key) != 0)
        return;
    search->count++;
    site_begin_anew(search->s, site);
}

/* States from before a restart: behind the transport is the key of the site, which may
 * have spaces. */
static void
forget_states(struct limits_search *search)
{
    struct site_state_set *states = &search->s->destinations.sites.states;
    struct site_state *r, *next;
    HASH_ITER (hh, states->by_key, r, next) {
        const char *key = strchr(r->key, ' ');
        if (!key || strcasecmp(key + 1, search->key) != 0)
            continue;
        search->count++;
        HASH_DELETE(hh, states->by_key, r);
        site_state_free(&r);
    }
}

bool
sched_forget_limits(struct sched *s, int64_t now_ms, const char *key)
{
    struct limits_search search = {.s = s, .key = key};
    sched_tick(s, now_ms);
    sites_each(&s->destinations.sites, limits_forget, &search);
    forget_states(&search);
    return search.count > 0;
}
