/* Leases of sites: their counts and wishes, and the answers. */
#include "sched/site_lease.h"

#include "base/memory.h"
#include "sched/session.h"
#include "sched/sched_internal.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* --- The group ---------------------------------------------------------------------- */

static struct lease_terms
site_lease_terms(const struct site_lease *lease)
{
    const struct sched_group *hosts = &lease->group->hosts;
    const struct transport_params *t = site_transport(lease->site);
    return (struct lease_terms){.rate = t->rate,
                                .sessions = lease->site->window.limit,
                                .is_strict = transport_params_is_strict(t),
                                .has_bank = hosts->has_bank && !lease->is_apart,
                                .members = hosts->members,
                                .lost = hosts->lost,
                                .late = hosts->late,
                                .index = hosts->index,
                                .doubt_ms = lease->group->doubt_ms};
}

/* Behind a route the target names the servers, else the look-up does. */
static bool
site_is_shared(const struct sites *set, const struct site *site)
{
    const struct target *target = &site->transport->target;
    bool is_set = target->transport.shared == TRANSPORT_SHARED;
    bool shares = is_set || set->group->hosts.shares_addresses;
    if (target->transport.shared == TRANSPORT_NOT_SHARED)
        return false;
    switch (target->kind) {
    case TARGET_MX:
        return shares && (text_starts_nocase(text_from(site->key), TEXT("mx:")) ||
                          text_starts_nocase(text_from(site->key), TEXT("provider:")));
    case TARGET_SMTP:
        return shares || target_has_user(target);
    case TARGET_HTTP:
    case TARGET_LMTP: /* mostly of this host alone */
        return is_set;
    case TARGET_MAILDIR:
    case TARGET_HOLD:
    case TARGET_DISCARD:
    case TARGET_ERROR:
    case TARGET_UNKNOWN:
        break;
    }
    return false;
}

static struct site_lease *
site_lease_new(struct sites *set, const char *name, size_t length, bool is_apart)
{
    struct site_lease *lease = memory_new(sizeof(*lease) + length + 1);
    lease->group = set->group;
    lease->is_apart = is_apart;
    memcpy(lease->name, name, length + 1);
    if (!is_apart)
        HASH_ADD_KEYPTR(hh, set->group->by_name, lease->name, length, lease);
    return lease;
}

/* The bank knows one site of that name. Another one of current settings has a route with
 * limits of its own there; one of former settings shares them with its sessions. */
void
site_lease_join(struct sites *set, struct site *site)
{
    struct site_lease *lease;
    char name[SITE_STATE_KEY_MAX];
    if (site->lease || !site_is_shared(set, site))
        return;
    site_remembered_key(site, name);
    size_t length = strlen(name);
    HASH_FIND(hh, set->group->by_name, name, length, lease);
    if (!lease || !lease->site->transport->is_gone)
        lease = site_lease_new(set, name, length, lease != NULL);
    DL_APPEND2(lease->sites, site, lease_prev, lease_next);
    lease->site = site;
    site->lease = lease;
}

static void
leave_due(struct sites *set, struct site_lease *lease)
{
    if (!lease->is_due)
        return;
    lease->is_due = false;
    DL_DELETE(set->group->due, lease);
}

/* Once the site that has the name is gone, or wants nothing. */
static void
site_lease_rejoin(struct sites *set, struct site_lease *lease)
{
    struct site_lease *other;
    size_t length = strlen(lease->name);
    HASH_FIND(hh, set->group->by_name, lease->name, length, other);
    if (other && (other->lease.is_asked || other->lease.due_ms != 0))
        return;
    if (other) {
        leave_due(set, other);
        HASH_DELETE(hh, set->group->by_name, other);
        other->is_apart = true;
    }
    lease->is_apart = false;
    HASH_ADD_KEYPTR(hh, set->group->by_name, lease->name, length, lease);
}

/* But for one that has changed them. */
static void
site_lease_wake(struct sites *set, const struct site_lease *lease,
                const struct site *site)
{
    struct site *other;
    DL_FOREACH2 (lease->sites, other, lease_next)
        if (other != site)
            site_wake_at(set, other, 0);
}

void
site_lease_leave(struct sites *set, struct site *site)
{
    struct site_lease *lease = site->lease;
    DL_DELETE2(lease->sites, site, lease_prev, lease_next);
    site->lease = NULL;
    if (lease->sites) {
        lease->site = lease->sites->lease_prev;
        site_lease_wake(set, lease, NULL);
        return;
    }
    leave_due(set, lease);
    if (!lease->is_apart)
        HASH_DELETE(hh, set->group->by_name, lease);
    free(lease);
}

void
site_lease_change(struct sites *set, struct site *site)
{
    if (site->lease && !site_is_shared(set, site))
        site_lease_leave(set, site);
    else if (set->group)
        site_lease_join(set, site);
}

static void
site_lease_join_each(void *context, struct site *site)
{
    site_lease_join(context, site);
}

static void
site_lease_leave_each(void *context, struct site *site)
{
    if (site->lease)
        site_lease_leave(context, site);
}

void
site_group_free(struct sites *set)
{
    if (!set->group)
        return;
    sites_each(set, site_lease_leave_each, set);
    free(set->group);
    set->group = NULL;
}

struct site_visit_update {
    struct sites *set;
    int64_t now_ms;
};

static void
site_group_update(void *context, struct site *site)
{
    struct site_visit_update *v = context;
    site_update(v->set, site, v->now_ms);
}

/* For all sites. NULL: there is no group. */
static void
site_group_set(struct sites *set, const struct sched_group *hosts, int64_t now_ms)
{
    if (!hosts) {
        site_group_free(set);
    } else {
        assert(hosts->late >= 0 && hosts->late < hosts->members);
        assert(hosts->lost >= 0 && hosts->index >= 0);
        if (set->group && set->group->hosts.shares_addresses != hosts->shares_addresses)
            site_group_free(set);
        if (!set->group)
            set->group = memory_new(sizeof(*set->group));
        else if (hosts->has_bank && !set->group->hosts.has_bank)
            set->group->doubt_ms = now_ms + LEASE_DOUBT_MS;
        set->group->hosts = *hosts;
        if (now_ms < set->group->doubt_ms) /* they had no chance to be seen */
            set->group->hosts.late = 0;
        sites_each(set, site_lease_join_each, set);
    }
    sites_each(set, site_group_update, &(struct site_visit_update){set, now_ms});
}

void
site_group_shift(struct sites *set, int64_t delta_ms)
{
    if (set->group && set->group->doubt_ms != 0)
        set->group->doubt_ms += delta_ms;
}

/* --- Questions ---------------------------------------------------------------------- */

static size_t
lane_senders(const struct lane *lane)
{
    size_t senders = 0;
    for (int age = 0; age < FLOW_AGES; age++) {
        const struct flow_turns *turns = &lane->queue.turns[age];
        senders += turns->flows.count - turns->idle;
    }
    return senders;
}

/* A site on probation is tried with mail that waits on disk, too. */
static void
site_lease_add(const struct site *site, struct lease_load *load)
{
    const struct lane *lane, *next;
    size_t works = lanes_worth(&site->lanes);
    load->senders += lane_senders(&site->lanes.plain);
    HASH_ITER (hh, site->lanes.by_demand, lane, next)
        load->senders += lane_senders(lane);
    if (works == 0 && site->window.probing && backlog_waits(site))
        works = 1;
    if (site->dead)
        works = 0;
    size_t need = (size_t)site->carrying + works, most = (size_t)site->window.size;
    load->works += works;
    load->open += site->sessions;
    load->need += (int)(need < most ? need : most);
}

static struct lease_load
site_lease_load(const struct site_lease *lease)
{
    struct lease_load load = {0};
    const struct site *site;
    DL_FOREACH2 (lease->sites, site, lease_next)
        site_lease_add(site, &load);
    return load;
}

/* The first of those that ask, with its question; NULL: none does. site_update() must
 * follow. */
static struct site_lease *
site_lease_next(struct sites *set, int64_t now_ms, struct bank_question *question)
{
    struct site_lease *lease;
    while (set->group && (lease = set->group->due) != NULL) {
        struct lease_terms terms = site_lease_terms(lease);
        struct lease_load load = site_lease_load(lease);
        leave_due(set, lease);
        if (lease_ask_ms(&lease->lease, &terms) <= now_ms &&
            lease_ask(&lease->lease, now_ms, &terms, &load, &set->random, question))
            return lease;
        site_update(set, lease->site, now_ms);
    }
    return NULL;
}

/* grant NULL: no answer. */
static void
site_lease_granted(struct sites *set, const char *name, int64_t now_ms,
                   const struct bank_grant *grant)
{
    struct site_lease *lease = NULL;
    if (set->group)
        HASH_FIND_STR(set->group->by_name, name, lease);
    if (!lease) /* the site is gone */
        return;
    struct lease_terms terms = site_lease_terms(lease);
    if (grant)
        lease_granted(&lease->lease, &terms, grant, &set->random);
    else
        lease_failed(&lease->lease, now_ms);
    site_lease_wake(set, lease, lease->site);
    site_update(set, lease->site, now_ms);
}

/* --- Limits ------------------------------------------------------------------------- */

int
site_lease_limit(const struct site *site, int64_t now_ms, bool is_new, int allowed)
{
    struct lease_terms terms = site_lease_terms(site->lease);
    int leased = lease_sessions(&site->lease->lease, now_ms, &terms, is_new);
    const struct site *other;
    if (leased != INT_MAX)
        DL_FOREACH2 (site->lease->sites, other, lease_next)
            leased -= other != site ? other->sessions : 0;
    return leased < allowed ? leased : allowed;
}

int64_t
site_lease_delay(struct site *site, int64_t now_ms, int64_t ready_ms)
{
    struct lease_terms terms = site_lease_terms(site->lease);
    int64_t leased_ms = lease_ready_ms(&site->lease->lease, now_ms, &terms);
    return leased_ms > ready_ms ? leased_ms : ready_ms;
}

uint32_t
site_lease_passes(const struct site *site, int64_t now_ms, int64_t until_ms)
{
    struct lease_terms terms = site_lease_terms(site->lease);
    return lease_passes(&site->lease->lease, now_ms, until_ms, &terms);
}

void
site_lease_take(struct site *site, int64_t now_ms)
{
    struct lease_terms terms = site_lease_terms(site->lease);
    lease_take(&site->lease->lease, now_ms, &terms);
}

/* Idle sessions over the lease end now, others when they are idle. Those of a former route are
 * not kept for mail, which takes the new one. */
static void
site_lease_release(struct site *site, int64_t now_ms)
{
    struct sched_session *session;
    int over = site->sessions;
    if (!site->transport->is_gone || site == site->lease->site)
        over -= site->released + site_lease_limit(site, now_ms, false, INT_MAX);
    DL_FOREACH2 (site->idlers, session, idlers_next) {
        if (over <= 0)
            return;
        over -= !session->released;
        sched_session_release(session);
    }
}

void
site_lease_update(struct sites *set, struct site *site, int64_t now_ms)
{
    struct site_lease *lease = site->lease;
    struct lease_load load = site_lease_load(lease);
    if (lease->is_apart && load.works > 0)
        site_lease_rejoin(set, lease);
    if (lease->site->transport->is_gone && !site->transport->is_gone)
        lease->site = site; /* its route is back */
    if (load.open < lease->open)
        site_lease_wake(set, lease, site);
    lease->open = load.open;
    struct lease_terms terms = site_lease_terms(lease);
    lease_update(&lease->lease, now_ms, &terms, &load);
    bool is_due = lease_ask_ms(&lease->lease, &terms) <= now_ms;
    if (!is_due) {
        leave_due(set, lease);
    } else if (!lease->is_due) {
        lease->is_due = true;
        DL_APPEND(set->group->due, lease);
    }
    site_lease_release(site, now_ms);
}

int64_t
site_lease_wake_ms(const struct site *site, int64_t now_ms)
{
    struct lease_terms terms = site_lease_terms(site->lease);
    const struct lease *lease = &site->lease->lease;
    int64_t ask = lease_ask_ms(lease, &terms);
    int64_t wake = lease_wake_ms(lease, now_ms, &terms);
    return ask > now_ms && ask < wake ? ask : wake;
}

void
site_lease_shift(const struct site *site, int64_t delta_ms)
{
    if (site == site->lease->site)
        lease_shift(&site->lease->lease, delta_ms);
}

void
site_lease_view(const struct site *site, int64_t now_ms, struct sched_site *view)
{
    struct lease_terms terms = site_lease_terms(site->lease);
    const struct lease *l = &site->lease->lease;
    const struct rate *r = &terms.rate;
    int sessions = lease_sessions(l, now_ms, &terms, false);
    view->hosts = terms.members + terms.lost;
    view->lease_tokens = l->tokens;
    if (r->amount > 0)
        view->shared_tokens =
            (int)(LEASE_PERIOD_MS * (int64_t)r->amount / r->period_ms);
    view->lease_sessions = sessions == INT_MAX ? 0 : sessions;
}

/* --- For the owner of the scheduler ---------------------------------------------- */

void
sched_members(struct sched *s, const struct sched_group *group)
{
    sched_tick(s);
    site_group_set(&s->destinations.sites, group, s->now_ms);
}

static void
sched_group_count(void *context, struct site *site)
{
    size_t *count = context;
    *count += site->lease != NULL;
}

size_t
sched_shared_sites(const struct sched *s)
{
    size_t count = 0;
    sites_each(&s->destinations.sites, sched_group_count, &count);
    return count;
}

size_t
sched_wishes(struct sched *s, size_t most,
             void (*each)(void *context, const struct sched_wish *wish), void *context)
{
    struct sites *sites = &s->destinations.sites;
    struct bank_question question;
    size_t count = 0;
    sched_tick(s);
    for (; count < most; count++) {
        struct site_lease *lease = site_lease_next(sites, s->now_ms, &question);
        if (!lease)
            break;
        struct site *site = lease->site;
        struct sched_wish wish = {.site = lease->name,
                                  .is_account =
                                      target_has_user(&site->transport->target),
                                  .question = &question};
        each(context, &wish);
        site_update(sites, site, s->now_ms);
    }
    return count;
}

void
sched_granted(struct sched *s, const char *site, const struct bank_grant *grant)
{
    sched_tick(s);
    site_lease_granted(&s->destinations.sites, site, s->now_ms, grant);
}
