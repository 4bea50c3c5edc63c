/* Destinations: which site each belongs to, and when it is freed.
 *
 * A domain begins with a site of its own, named after it, since its servers are not
 * known before a session has looked them up. Then it moves to the site of those
 * servers, with its mail. Empty destinations stay for an hour: a look-up for each
 * message would forget the learnt state. */
#include "sched/destination.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static bool
is_unused(const struct destination *d)
{
    return d->entries == 0 && d->sessions == 0;
}

static void
leave_empty(struct destinations *set, struct destination *d)
{
    if (!d->is_empty)
        return;
    DL_DELETE2(set->empty, d, empty_prev, empty_next);
    d->is_empty = false;
    set->empty_count--;
}

static void
enter_site(struct destination *d, struct site *site, uint64_t demand)
{
    d->site = site;
    d->lane = lane_get(site, demand);
    lane_enter(d->lane);
    DL_APPEND2(site->members, d, site_prev, site_next);
    site->destinations++;
}

static void
leave_site(struct destination *d)
{
    DL_DELETE2(d->site->members, d, site_prev, site_next);
    d->site->destinations--;
    lane_leave(d->lane);
    d->lane = NULL;
}

/* Destinations of one key, which differ in their transports, are a list; only its first
 * is in the hash table, so the next takes its place there. */
static void
forget_key(struct destinations *set, struct destination *d)
{
    struct destination *first, **at;
    size_t length = strlen(d->key);
    HASH_FIND(hh, set->by_key, d->key, length, first);
    assert(first);
    if (first == d) {
        HASH_DELETE(hh, set->by_key, d);
        if (d->same)
            HASH_ADD_KEYPTR(hh, set->by_key, d->same->key, length, d->same);
        return;
    }
    for (at = &first->same; *at != d; at = &(*at)->same)
        assert(*at);
    *at = d->same;
}

/* The site may be freed with its last destination, so nothing uses it after
 * site_update(). */
static void
destination_free(struct destinations *set, struct destination *d, int64_t now_ms)
{
    struct site *site = d->site;
    leave_empty(set, d);
    assert(!d->reasons);
    set->count--;
    forget_key(set, d);
    leave_site(d);
    site_update(&set->sites, site, now_ms);
    transport_close(&set->sites.transports, d->transport);
    free(d->key);
    free(d->domain);
    free(d);
}

void
destinations_init(struct destinations *set, uint64_t seed)
{
    *set = (struct destinations){.found = 2};
    sites_init(&set->sites, seed);
}

void
destinations_free(struct destinations *set)
{
    while (set->by_key)
        destination_free(set, set->by_key, 0);
    sites_free(&set->sites);
}

const struct transport_params *
destination_transport(const struct destination *d)
{
    return &d->transport->target.transport;
}

/* Mail that waited in the old lane keeps its order. Recipients that a session carries
 * are in no queue and stay with it. */
static void
move_entries(struct destinations *set, const struct destination *d, struct lane *from,
             struct lane *to)
{
    struct entry *e, *next, *list = NULL;
    if (d->entries == 0)
        return;
    lane_take(&set->sites.flows, from, d, &list);
    DL_FOREACH_SAFE (list, e, next) {
        DL_DELETE(list, e);
        lane_append(&set->sites.flows, to, e);
    }
}

void
destination_demand(struct destinations *set, struct destination *d, uint64_t demand)
{
    struct lane *from = d->lane;
    if (from->demand == demand)
        return;
    d->lane = lane_get(d->site, demand);
    lane_enter(d->lane);
    move_entries(set, d, from, d->lane);
    lane_leave(from);
}

/* Backlogged mail moves with the last destination: its destination is not known. */
static void
move_backlog(struct sites *set, struct site *from, struct site *to, int64_t now_ms)
{
    struct id id;
    if (from->destinations > 0)
        return;
    if (from->is_crowded || from->is_due)
        site_set_crowded(set, to, true, now_ms);
    if (backlog_waits(from) && from->checked < to->checked)
        to->checked = to->checking = from->checked;
    for (enum flow_age age = FLOW_NEW; age < FLOW_AGES; age++) {
        to->backlog[age].excess += from->backlog[age].excess;
        from->backlog[age].excess = 0;
        while (backlog_take(from, age, &id))
            backlog_add(to, age, id);
    }
}

static bool
is_lent_by(const struct site *from, const struct site *to)
{
    return from->home_hash != 0 && to->sessions == 0 &&
           from->home_hash == text_hash_nocase(TEXT_HASH, text_from(to->key));
}

/* A new site of another transport is the same servers under new settings: it inherits
 * their learnt state. */
void
destination_move(struct destinations *set, struct destination *d,
                 struct transport *transport, struct text key, int64_t now_ms)
{
    struct site *from = d->site, *to = site_get(&set->sites, transport, key);
    if (from == to)
        return;
    if (to->destinations == 0 && (from->transport != transport || is_lent_by(from, to)))
        site_inherit(to, from);
    if (d->transport != transport) { /* before the mail is counted by its settings */
        transport_close(&set->sites.transports, d->transport);
        d->transport = transport_share(transport);
    }
    struct lane *lane = lane_get(to, d->lane->demand);
    lane_enter(lane); /* it stays while mail comes into it */
    move_entries(set, d, d->lane, lane);
    from->loaded -= d->entries;
    to->loaded += d->entries;
    leave_site(d);
    enter_site(d, to, lane->demand);
    lane_leave(lane);
    move_backlog(&set->sites, from, to, now_ms);
    site_update(&set->sites, from, now_ms);
    site_update(&set->sites, to, now_ms);
}

/* The settings have changed: the old site ends with its sessions. */
static void
change_target(struct destinations *set, struct destination *d,
              const struct target *target, int64_t now_ms)
{
    struct transport *c = transport_open(&set->sites.transports, target);
    /* The same servers under another transport: their learnt state still holds. */
    struct text key = text_from(d->site->key);
    destination_move(set, d, c, key, now_ms);
    transport_close(&set->sites.transports, c);
    if (d->found != 0) /* perhaps other demands count now */
        d->found = set->found - 1;
}

/* The learnt state of the old site goes with it and comes back, or a site of one domain
 * would forget it. */
void
destination_go_home(struct destinations *set, struct destination *d, int64_t now_ms)
{
    struct site *from = d->site;
    struct site *home = site_get(&set->sites, d->transport, text_from(d->key));
    if (home == from || home->dead)
        return;
    if (home->destinations == 0 && home->sessions == 0) {
        site_inherit(home, from);
        home->home_hash = text_hash_nocase(TEXT_HASH, text_from(from->key));
    }
    destination_move(set, d, d->transport, text_from(d->key), now_ms);
}

/* Its domain may demand something else by now, or the settings do, which sessions opened
 * for other domains would never learn. A dead site carries no mail, and settles new
 * mail; the probe of one on probation decides whether it lives. */
static void
destination_expire(struct destinations *set, struct destination *d, int64_t now_ms)
{
    bool is_over = d->valid_until_ms != 0 && now_ms >= d->valid_until_ms;
    bool is_stale = d->found != 0 && d->found != set->found;
    if ((!is_over && !is_stale) || d->site->dead || d->site->window.probing)
        return;
    destination_go_home(set, d, now_ms);
    if (strcmp(d->site->key, d->key) != 0)
        return;
    d->valid_until_ms = 0;
    d->found = 0;
}

/* The one with that target, or with a target of obsolete settings. Two targets of today
 * with one key stay two destinations, since they differ in their options. */
static struct destination *
find_destination(struct destinations *set, struct destination *first,
                 const struct target *target, int64_t now_ms)
{
    struct destination *d;
    for (d = first; d; d = d->same)
        if (memcmp(&d->transport->target, target, sizeof(*target)) == 0)
            return d;
    for (d = first; d; d = d->same) {
        if (d->transport->generation == set->generation)
            continue;
        change_target(set, d, target, now_ms);
        return d;
    }
    return NULL;
}

static void
enter_key(struct destinations *set, struct destination *first, struct destination *d)
{
    size_t length = strlen(d->key);
    if (first) {
        d->same = first->same;
        first->same = d;
    } else {
        HASH_ADD_KEYPTR(hh, set->by_key, d->key, length, d);
    }
}

/* The generation marks the target as one of today's settings: find_destination() must
 * not take it for another target. */
struct destination *
destination_get(struct destinations *set, const struct target *target,
                struct text domain, int64_t now_ms)
{
    char key[ROUTE_KEY_MAX];
    size_t length = route_key(target, domain, key);
    struct destination *first;
    HASH_FIND(hh, set->by_key, key, length, first);
    struct destination *d = find_destination(set, first, target, now_ms);
    if (!d) {
        d = memory_new(sizeof(*d));
        d->key = text_string(text_of(key, length));
        d->domain = text_string(target->kind == TARGET_MX ? domain : TEXT(""));
        text_lower(d->domain, strlen(d->domain));
        d->transport = transport_open(&set->sites.transports, target);
        enter_site(d, site_get(&set->sites, d->transport, text_of(key, length)), 0);
        enter_key(set, first, d);
        set->count++;
    }
    d->transport->generation = set->generation;
    d->transport->is_gone = false;
    destination_expire(set, d, now_ms);
    return d;
}

void
destinations_reload(struct destinations *set)
{
    set->generation++;
}

/* Mail on disk that waits for a site needs the site to go on trying. */
static bool
is_needed(const struct destination *d)
{
    return backlog_waits(d->site) && d->site->destinations == 1;
}

/* One that is still needed is kept for another hour, at the end of the list: the list
 * stays in the order of time. */
static void
forget_or_keep(struct destinations *set, struct destination *d, bool keep,
               int64_t now_ms)
{
    if (!keep) {
        destination_free(set, d, now_ms);
        return;
    }
    DL_DELETE2(set->empty, d, empty_prev, empty_next);
    d->free_at_ms = now_ms + DESTINATION_KEEP_MS;
    DL_APPEND2(set->empty, d, empty_prev, empty_next);
}

/* The list is bounded, since mail to very many domains would otherwise keep all of them
 * for an hour. */
static void
note_empty(struct destinations *set, struct destination *d, int64_t now_ms)
{
    d->free_at_ms = now_ms + DESTINATION_KEEP_MS;
    d->is_empty = true;
    DL_APPEND2(set->empty, d, empty_prev, empty_next);
    if (++set->empty_count > DESTINATION_EMPTY_MAX)
        forget_or_keep(set, set->empty, is_needed(set->empty), now_ms);
}

void
destination_update(struct destinations *set, struct destination *d, int64_t now_ms)
{
    struct site *site = d->site;
    /* A domain that does not exist has nothing to remember. */
    if (is_unused(d) && d->forget && !site->dead && !backlog_waits(site)) {
        destination_free(set, d, now_ms);
        return;
    }
    if (!is_unused(d))
        leave_empty(set, d);
    else if (!d->is_empty)
        note_empty(set, d, now_ms);
    site_update(&set->sites, site, now_ms);
}

struct site *
destinations_idle_site(const struct destinations *set, int64_t now_ms)
{
    const struct destination *d = set->empty;
    return d && d->free_at_ms <= now_ms ? d->site : NULL;
}

void
destinations_forget_idle(struct destinations *set, int64_t now_ms)
{
    struct destination *d = set->empty;
    forget_or_keep(set, d, d->site->dead || is_needed(d), now_ms);
}

int64_t
destinations_wake_ms(const struct destinations *set)
{
    int64_t wake = sites_wake_ms(&set->sites);
    if (set->empty && set->empty->free_at_ms < wake)
        wake = set->empty->free_at_ms;
    return wake;
}

void
destinations_shift(struct destinations *set, int64_t delta_ms)
{
    struct destination *d, *first, *next;
    HASH_ITER (hh, set->by_key, first, next)
        for (d = first; d; d = d->same) {
            d->free_at_ms += delta_ms;
            if (d->valid_until_ms != 0)
                d->valid_until_ms += delta_ms;
        }
    sites_shift(&set->sites, delta_ms);
}
