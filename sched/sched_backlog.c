/* The scheduler's machine: mail that waits on disk for a site. */
#include "sched/sched_internal.h"

#include <utlist.h>

enum { REPEATED_MIN = 64 };

/* --- The ids of a site, oldest first --------------------------------------------- */

void
backlog_add(struct site *site, enum flow_age age, struct id id)
{
    id_queue_add(&site->backlog[age].ids, id);
    site->backlog[age].added++;
}

void
backlog_repeat(struct site *site, enum flow_age age, struct id id)
{
    struct site_backlog *p = &site->backlog[age];
    if (id_queue_has(&p->ids, id)) {
        p->added++;
        return;
    }
    backlog_add(site, age, id);
    p->repeated++;
    if (p->repeated >= REPEATED_MIN && p->repeated > p->ids.count / 2) {
        id_queue_unite(&p->ids);
        p->repeated = 0;
    }
}

static bool
backlog_first(const struct site *site, enum flow_age age, struct id *id)
{
    return id_queue_first(&site->backlog[age].ids, id);
}

bool
backlog_take(struct site *site, enum flow_age age, struct id *id)
{
    struct site_backlog *p = &site->backlog[age];
    bool taken = id_queue_take(&p->ids, id);
    if (p->repeated > p->ids.count)
        p->repeated = p->ids.count;
    return taken;
}

void
backlog_drop(struct site *site, enum flow_age age)
{
    struct site_backlog *p = &site->backlog[age];
    struct id id;
    if (backlog_take(site, age, &id))
        p->repeated -= p->repeated > 0;
}

size_t
backlog_count(const struct site *site)
{
    size_t count = 0;
    for (int age = 0; age < FLOW_AGES; age++)
        count += site->backlog[age].ids.count - site->backlog[age].repeated;
    return count;
}

bool
backlog_waits(const struct site *site)
{
    for (int age = 0; age < FLOW_AGES; age++)
        if (site->backlog[age].ids.count > 0)
            return true;
    return false;
}

/* --- Which mail waits there ------------------------------------------------------ */

enum {
    OVERFLOW_PART = 4, /* this fraction of its share a site may have beyond it, for mail
                        * that passes its backlog */
    PASSES = 8,        /* messages of new senders that pass a backlog at first, */
    PASS_EVERY = 8,    /* and one more for each 8 that have left it */
    SWEEP_SITES = 1000 /* in a step */
};

/* --- Into the backlog ------------------------------------------------------------- */

/* Messages beyond the share of the active set, when that is full. Half of the set is
 * free for all: a single site needs no more. */
static size_t
site_share(const struct sched *s)
{
    return (size_t)s->settings.active_limit * (size_t)s->settings.site_share / 100;
}

/* The recipients that wait at the site, and those that may be on their way to it. */
static size_t
waiting_recipients(const struct sched *s, const struct site *site)
{
    return site->lanes.counts.recipients + s->recalling_recipients;
}

/* The share by recipients: large mail for a slow site must not take all the room. */
static size_t
recipient_share(const struct sched *s)
{
    return (size_t)s->settings.recipient_limit * (size_t)s->settings.site_share / 100;
}

static bool
has_its_recipients(const struct sched *s, const struct site *site)
{
    size_t share = recipient_share(s);
    return share > 0 &&
           s->admission.recipients > (size_t)s->settings.recipient_limit / 2 &&
           waiting_recipients(s, site) >= share;
}

/* Whether the site has its share of a full active set, and mail of that age its half of
 * the share while mail of the other age waits. active: messages in memory with the one
 * in question; others: of the site; coming: those that may be on their way. */
static bool
is_full(const struct sched *s, const struct site *site, enum flow_age age, int active,
        size_t others, size_t coming)
{
    const size_t *entries = site->lanes.counts.entries;
    enum flow_age other = age == FLOW_NEW ? FLOW_OLD : FLOW_NEW;
    size_t share = site_share(s);
    if (has_its_recipients(s, site))
        return true;
    if (share == 0 || active <= s->settings.active_limit / 2)
        return false;
    return others + coming >= share &&
           (entries[other] == 0 || entries[age] + coming >= share / 2);
}

/* A sender without mail in memory is not delayed by the backlog that another sender has
 * made, and neither is mail that an operator retries. */
static bool
passes_backlog(const struct sched *s, const struct message_index *k,
               const struct lane *lane, const struct sched_message *m, size_t others)
{
    const struct site *site = lane->site;
    size_t share = site_share(s), half = (size_t)s->settings.active_limit / 2;
    if (others >= (share > half ? share : half) + share / OVERFLOW_PART)
        return false;
    size_t recipients = recipient_share(s);
    if (has_its_recipients(s, site) &&
        waiting_recipients(s, site) >= recipients + recipients / OVERFLOW_PART)
        return false;
    return k->forced ||
           (site->passed < PASSES + site->recalled / PASS_EVERY &&
            !flow_queue_has_sender(&s->destinations.sites.flows, &lane->queue, m));
}

/* The oldest message in the site's backlog that is still there. */
static struct message_index *
backlog_oldest(struct sched *s, struct site *site, enum flow_age age)
{
    struct id id;
    while (backlog_first(site, age, &id)) {
        struct message_index *k = message_index_find(&s->known, id);
        if (k && k->backlogged && k->place == MESSAGE_INDEX_WAITING)
            return k;
        backlog_drop(site, age); /* gone, or loaded by time */
        if (k)
            k->backlogged = k->listed = 0;
    }
    return NULL;
}

void
sched_backlog_clean(struct sched *s, struct site *site)
{
    for (enum flow_age age = FLOW_NEW; age < FLOW_AGES; age++)
        (void)backlog_oldest(s, site, age);
}

void
sched_backlog_forget(struct sched *s, const struct message_index *k)
{
    s->removed += k->was_listed;
    message_index_remove(&s->known, message_index_id(k));
}

static bool
backlog_is_known(const void *context, struct id id)
{
    const struct sched *s = context;
    return message_index_find(&s->known, id) != NULL;
}

static void
backlog_check_begin(const struct sched *s, struct site *site, size_t most)
{
    site->checking = s->removed;
    for (enum flow_age age = FLOW_NEW; age < FLOW_AGES; age++) {
        struct site_backlog *p = &site->backlog[age];
        if (p->repeated > 0 && p->ids.count <= most) {
            id_queue_unite(&p->ids);
            p->repeated = 0;
        }
        id_queue_sift_begin(&p->ids);
    }
}

/* Repeated ids were looked up, too. */
static void
backlog_check_end(struct site *site)
{
    site->checked = site->checking;
    for (enum flow_age age = FLOW_NEW; age < FLOW_AGES; age++)
        site->backlog[age].repeated = 0;
}

void
sched_backlog_check(const struct sched *s, struct site *site, size_t *most)
{
    while (site->checked != s->removed) {
        if (site->checking == site->checked)
            backlog_check_begin(s, site, *most);
        for (enum flow_age age = FLOW_NEW; age < FLOW_AGES; age++)
            if (!id_queue_sift(&site->backlog[age].ids, most, backlog_is_known, s))
                return;
        backlog_check_end(site);
    }
}

/* A walk of its own, since the sites that have ids of removed messages are not known. */
bool
sched_backlog_sweep(struct sched *s)
{
    size_t most = SCHED_BACKLOG_CHECKED;
    if (s->sweep == NULL) {
        s->sweeping = s->removed;
        s->sweep = site_walk_begin(&s->destinations.sites);
    }
    for (int sites = 0; s->sweep->site != NULL; sites++) {
        struct site *site = s->sweep->site;
        if (sites == SWEEP_SITES)
            return true;
        sched_backlog_check(s, site, &most);
        if (site->checked < s->sweeping)
            return true;
        site_walk_pass(s->sweep);
    }
    s->swept = s->sweeping;
    site_walk_end(&s->sweep);
    return false;
}

bool
sched_backlog_is_swept(const struct sched *s)
{
    return s->swept == s->removed;
}

/* Whether deferred mail must wait behind older mail until a session is greeted. A site on
 * probation may still be dead: it is probed without mail, and then gets the mail that has
 * waited longest. */
static bool
waits_for_probe(struct sched *s, const struct message_index *k, struct site *site,
                enum flow_age age)
{
    if (!site->window.probing || site->is_crowded || age != FLOW_OLD || k->forced)
        return false;
    const struct message_index *first = backlog_oldest(s, site, age);
    return first && id_compare(message_index_id(first), message_index_id(k)) < 0;
}

/* Whether the message must wait on disk behind the backlog of the site. A dead site, or a
 * suspended lane, settles it without delay: the backlog would return it without end.
 * others: messages of the site that are in memory. */
static bool
is_excluded(struct sched *s, const struct message_index *k, struct lane *lane,
            struct sched_message *m, size_t others)
{
    struct site *site = lane->site;
    enum flow_age age = flow_age(m);
    struct id first;
    bool is_behind = site->is_crowded && backlog_first(site, age, &first);
    if (site->dead || lane_is_suspended(lane, s->now_ms))
        return false;
    if (waits_for_probe(s, k, site, age))
        return true;
    if (site_share(s) == 0 ||
        (!is_behind && !is_full(s, site, age, s->active, others, 0)))
        return false;
    if (!passes_backlog(s, k, lane, m, others))
        return true;
    site->passed += !k->forced;
    return false;
}

bool
sched_is_excess(struct sched *s, const struct message_index *k, struct sched_message *m)
{
    bool is_excess = true;
    for (unsigned i = 0; i < m->entry_count; i++)
        message_entries(m)[i].destination->site->asked++;
    /* Each site once: a message may have 50,000 domains of a few sites, in any order. */
    for (unsigned i = 0; i < m->entry_count; i++) {
        struct lane *lane = message_entries(m)[i].destination->lane;
        struct site *site = lane->site;
        /* A message to many domains of the site must not exceed the share by itself, or
         * it would be read and backlogged without end. */
        size_t own = site->asked;
        site->asked = 0;
        if (own > 0 && is_excess)
            is_excess = is_excluded(s, k, lane, m, site->loaded - own);
    }
    return is_excess;
}

/* Its site has space for it again when some of the site's mail has left, or a probe was
 * greeted. */
void
sched_backlog_excess(struct sched *s, struct message_index *k, struct sched_message *m)
{
    struct site *site = message_entries(m)[0].destination->site;
    /* Even if another site has it, which may never recall it. */
    if (k->listed)
        backlog_repeat(site, flow_age(m), m->id);
    else
        backlog_add(site, flow_age(m), m->id);
    site->backlog[flow_age(m)].excess++;
    k->backlogged = k->listed = k->was_listed = 1;
    if (site->window.probing && !site->is_crowded)
        site->is_due = true;
    else
        site_set_crowded(&s->destinations.sites, site, true, s->now_ms);
    sched_admission_leave(s, k);
    message_index_wait(&s->known, k, MESSAGE_INDEX_BACKLOGGED_MS, k->attempts);
    message_free(&s->destinations, &m, s->now_ms);
}

/* The mail of a dead site is loaded when the site lives, in its order. */
void
sched_backlog_dead(struct message_index *k, struct sched_message *m)
{
    for (unsigned i = 0; i < m->entry_count && !k->backlogged; i++) {
        const struct entry *e = &message_entries(m)[i];
        struct site *site = e->destination->site;
        if (!site->dead)
            continue;
        for (unsigned j = e->first; j < e->first + e->count && !k->backlogged; j++) {
            if (m->slots[j].state != SLOT_DEFERRED)
                continue;
            if (k->listed)
                backlog_repeat(site, FLOW_OLD, m->id);
            else
                backlog_add(site, FLOW_OLD, m->id);
            k->backlogged = k->listed = k->was_listed = 1;
        }
    }
}

/* --- Out of the backlog ----------------------------------------------------------- */

void
sched_site_wake(struct sched *s, struct site *site)
{
    struct id id;
    for (enum flow_age age = FLOW_NEW; age < FLOW_AGES; age++)
        while (backlog_take(site, age, &id)) {
            struct message_index *k = message_index_find(&s->known, id);
            if (!k)
                continue;
            bool waits = k->backlogged && k->place == MESSAGE_INDEX_WAITING;
            k->backlogged = k->listed = 0;
            if (waits && k->due_ms > s->now_ms)
                message_index_wait(&s->known, k, s->now_ms, k->attempts);
        }
}

void
sched_site_recall(struct sched *s, struct site *site)
{
    if (!site->dead && backlog_waits(site))
        site_set_crowded(&s->destinations.sites, site, true, s->now_ms);
}

/* Messages with a due time stay. Only when there is no other and few are new there is
 * nothing to do: a site with a million messages may die every second while they are
 * retried. */
static void
prune(struct sched *s, struct site *site, enum flow_age age)
{
    const struct site_backlog *p = &site->backlog[age];
    struct id_queue all = p->ids;
    struct id id;
    if (p->excess == 0 && p->added <= p->ids.count / 2)
        return;
    site->backlog[age] = (struct site_backlog){0};
    while (id_queue_take(&all, &id)) {
        struct message_index *k = message_index_find(&s->known, id);
        if (!k)
            continue;
        if (!k->backlogged) {
            k->listed = 0;
        } else if (message_index_is_backlogged(k)) {
            k->backlogged = k->listed = 0;
            message_index_wait(&s->known, k, s->now_ms, k->attempts);
        } else {
            backlog_add(site, age, id);
        }
    }
    site->backlog[age].added = 0;
}

void
sched_site_prune(struct sched *s, struct site *site)
{
    for (enum flow_age age = FLOW_NEW; age < FLOW_AGES; age++)
        prune(s, site, age);
    site_set_crowded(&s->destinations.sites, site, false, s->now_ms);
}

/* A site on probation gets one message at a time, since a failure would settle all. */
static bool
site_may_recall(const struct sched *s, const struct site *site, enum flow_age age)
{
    if (site->window.probing && (site->lanes.counts.recipients > 0 || s->recalling > 0))
        return false;
    return !is_full(s, site, age, s->active + 1, site->loaded, s->recalling);
}

/* Takes the next message out of the backlog of a site that has space for it: as many
 * are recalled as leave. Sites take turns. */
struct message_index *
sched_recall_next(struct sched *s)
{
    struct sites *sites = &s->destinations.sites;
    struct site *site, *next;
    DL_FOREACH_SAFE2 (sites->crowded, site, next, crowded_next) {
        if (site->dead)
            sched_site_prune(s, site);
        for (enum flow_age age = FLOW_NEW; age < FLOW_AGES && !site->dead; age++) {
            struct message_index *k = backlog_oldest(s, site, age);
            struct id id;
            if (!k || !site_may_recall(s, site, age) || sched_admission_blocks(s, k))
                continue;
            (void)backlog_take(site, age, &id);
            k->backlogged = k->listed = 0;
            k->recalled = 1;
            site->recalled++;
            DL_DELETE2(sites->crowded, site, crowded_prev, crowded_next);
            DL_APPEND2(sites->crowded, site, crowded_prev, crowded_next);
            return k;
        }
        if (!backlog_waits(site))
            site_set_crowded(sites, site, false, s->now_ms);
    }
    return NULL;
}

/* The message, which was being loaded, is loaded or cannot be. True: it came from the
 * backlog of a site. */
bool
sched_recall_end(struct sched *s, struct message_index *k)
{
    bool recalled = k->recalled;
    k->recalled = 0;
    s->recalling -= recalled;
    s->recalling_recipients -= recalled ? k->recipients : 0;
    return recalled;
}
