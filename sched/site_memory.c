/* Keeps the learnt state of sites: over a restart, from one site to its successor, and
 * when parameters change. */
#include "sched/limits/reply_class.h"
#include "sched/site.h"
#include "sched/site_lease.h"

#include <stdio.h>
#include <string.h>

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
