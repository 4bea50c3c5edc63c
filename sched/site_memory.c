/* Keeps the learnt state of sites: over a restart, from one site to its successor, and
 * when parameters change; until an operator ends it. */
#include "sched/site_memory.h"

#include "base/memory.h"
#include "sched/limits/reply_class.h"
#include "sched/sched_internal.h"
#include "sched/site_lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- States of sites that do not exist yet --------------------------------------- */

bool
site_state_add(struct site_state_set *set, const struct site_state *r)
{
    struct site_state *old = site_state_take(set, r->key), *copy;
    site_state_free(&old);
    if (HASH_COUNT(set->by_key) >= SITE_STATE_MAX)
        return false;
    size_t length = strlen(r->key);
    copy = memory_new(sizeof(*copy) + length + 1);
    *copy = *r;
    char *key = (char *)(copy + 1);
    memcpy(key, r->key, length + 1);
    copy->key = key;
    HASH_ADD_KEYPTR(hh, set->by_key, copy->key, length, copy);
    return true;
}

struct site_state *
site_state_take(struct site_state_set *set, const char *key)
{
    struct site_state *r;
    HASH_FIND_STR(set->by_key, key, r);
    if (r)
        HASH_DELETE(hh, set->by_key, r);
    return r;
}

void
site_state_free(struct site_state **r)
{
    free(*r);
    *r = NULL;
}

void
site_state_shift(struct site_state_set *set, int64_t delta_ms)
{
    for (struct site_state *r = set->by_key; r; r = r->hh.next) {
        r->at_ms += r->at_ms > 0 ? delta_ms : 0;
        r->pause_until_ms += delta_ms;
        r->dead_since_ms += r->dead_since_ms > 0 ? delta_ms : 0;
        r->dead_until_ms += delta_ms;
        ceiling_shift(&r->ceiling, delta_ms);
        bucket_shift(&r->bucket, delta_ms);
        bucket_learnt_shift(&r->learnt, delta_ms);
    }
}

void
site_state_clear(struct site_state_set *set)
{
    struct site_state *r, *next;
    HASH_ITER (hh, set->by_key, r, next) {
        HASH_DELETE(hh, set->by_key, r);
        free(r);
    }
}

/* --- Sites ----------------------------------------------------------------------- */

/* The transport is in the key, since sites of different transports can have one key. */
void
site_remembered_key(const struct site *site, char key[SITE_STATE_KEY_MAX])
{
    char transport[ROUTE_KEY_MAX];
    route_key(&site->transport->target, TEXT(""), transport);
    snprintf(key, SITE_STATE_KEY_MAX, "%s %s", transport, site->key);
}

static bool
knows_something(const struct site *site)
{
    const struct window *w = &site->window;
    return (site->dead && !site->lacks_token) || w->probing || w->size != w->initial ||
           site->ceiling.sessions > 0 || site->learnt.phase != LEARNT_NONE ||
           site->bucket.full_at_us > 0 || site->pause_until_ms > 0;
}

bool
site_remember(const struct site *site, struct site_state *out,
              char key[SITE_STATE_KEY_MAX])
{
    if (!knows_something(site))
        return false;
    site_remembered_key(site, key);
    *out = (struct site_state){.key = key,
                               .window = site->window.probing ? 0 : site->window.size,
                               .ceiling = site->ceiling,
                               .learnt = site->learnt,
                               .bucket = site->bucket,
                               .pause_until_ms = site->pause_until_ms,
                               .dead = site->dead && !site->lacks_token,
                               .dead_since_ms = site->dead_since_ms,
                               .dead_until_ms = site->dead_until_ms,
                               .probe_ms = site->probe_ms};
    if (out->dead)
        reason_read(site->reason, &out->reason);
    return true;
}

static void
take_window(struct site *site, int size)
{
    int limit = site->window.limit;
    if (size > 0)
        site->window.size = limit > 0 && size > limit ? limit : size;
}

/* Test an untried password with a single session first. */
static void
log_in_alone(struct site *site)
{
    if (!site->dead && target_has_user(&site->transport->target))
        window_probe(&site->window);
}

/* A pause that the present settings could have begun when the state was written. */
static int64_t
pause_within(const struct site *site, const struct site_state *r)
{
    int64_t longest_ms = r->at_ms + site_transport(site)->rate_delay_ms;
    return r->pause_until_ms > longest_ms ? longest_ms : r->pause_until_ms;
}

/* Restores the state from before the restart, within the present settings. A value of
 * the file counts only where the settings still allow it. */
static void
site_take_state(struct sites *set, struct site *site, struct site_state *r)
{
    take_window(site, r->window);
    site->bucket = r->bucket;
    site->pause_until_ms = pause_within(site, r);
    if (site_is_adaptive(site)) {
        site->ceiling = r->ceiling;
        site->learnt = r->learnt;
    }
    /* A wrong password may be the reason for the restart. */
    if (r->dead && !reply_class_refuses_us(&r->reason) &&
        site_transport(site)->failed_cohort_limit > 0) {
        site->dead_since_ms = r->dead_since_ms;
        site_die(set, site, r->dead_since_ms, &r->reason);
        site->dead_until_ms = r->dead_until_ms;
        site->probe_ms = r->probe_ms;
    }
}

void
site_recall(struct sites *set, struct site *site)
{
    char key[SITE_STATE_KEY_MAX];
    site_remembered_key(site, key);
    struct site_state *r = site_state_take(&set->states, key);
    if (r)
        site_take_state(set, site, r);
    site_state_free(&r);
    log_in_alone(site);
}

void
site_inherit(struct site *site, const struct site *old)
{
    take_window(site, old->window.size);
    site->window.probing = old->window.probing;
    site->ceiling = old->ceiling;
    site->latency = old->latency;
    site->learnt = old->learnt;
    site->bucket = old->bucket;
    site->pause_until_ms = old->pause_until_ms;
    site->recipients = old->recipients;
    site->recipients_until_ms = old->recipients_until_ms;
    log_in_alone(site);
}

/* A dead site would wait for as long as the parameters of before said. */
static void
bound_probe(struct site *site, int64_t now_ms)
{
    const struct transport_params *t = site_transport(site);
    int64_t longest = t->failed_cohort_limit == 0 ? 0 /* none is dead then */
                      : site_is_adaptive(site)    ? t->maximal_backoff_ms
                                                  : t->minimal_backoff_ms;
    if (site->dead && !site->lacks_token && site->dead_until_ms > now_ms + longest)
        site->dead_until_ms = now_ms + longest;
}

void
sites_parameters_changed(struct sites *set, struct transport *transport, int64_t now_ms)
{
    struct site *site, *next;
    HASH_ITER (hh, transport->sites, site, next) {
        window_change(&site->window, &transport->target.transport);
        lanes_enter_again(&set->flows, &site->lanes);
        bound_probe(site, now_ms);
        site_lease_change(set, site);
    }
    sites_update(set, transport, now_ms);
}

/* --- An operator ends the learnt limits of a site -------------------------------- */

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
sched_forget_limits(struct sched *s, const char *key)
{
    struct limits_search search = {.s = s, .key = key};
    sched_tick(s);
    sites_each(&s->destinations.sites, limits_forget, &search);
    forget_states(&search);
    return search.count > 0;
}
