/* The scheduler's machine: messages in, actions out.
 *
 * Events only change counts, queues and lists; sched_next() looks at these and returns
 * one action after the other until there is none. So no event has to foresee its
 * consequences, and the order of actions is decided in one place: verdicts and ends
 * first, which free memory and sessions, then sessions, then loads. */
#include "sched/sched.h"

#include "sched/sched_internal.h"

#include "base/memory.h"
#include "sched/limits/retry.h"
#include "sched/site.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    CLOCK_SLACK_MS = 1000, /* a smaller backward step is waited out */
    NEW_RUN_MAX = 3,       /* new messages in a row while deferred ones are due */
    READY_TRIES = 32,      /* sites examined for one session */
    IDLE_TRIES = 32,       /* idle sessions examined to end one */
    RESERVE_PART = 10,     /* this fraction of session_limit is for sites with less
                            * than */
    RESERVE_FEW = 50       /* this fraction of it */
};

struct sched *
sched_new(const struct sched_settings *settings, const int64_t *now_ms)
{
    struct sched *s = memory_new(sizeof(*s));
    s->owner_ms = now_ms;
    s->now_ms = INT64_MIN;
    s->random = settings->seed;
    s->ending_last = &s->ending;
    message_index_init(&s->known);
    destinations_init(&s->destinations, settings->seed);
    s->hosts = hosts_new();
    sched_change(s, settings);
    return s;
}

void
sched_drain(struct sched *s)
{
    s->draining = true;
}

void
sched_cancel_drain(struct sched *s)
{
    s->draining = false;
}

/* Targets that no mail uses from now on are obsolete; their destinations move when mail
 * comes for them. */
void
sched_change(struct sched *s, const struct sched_settings *settings)
{
    assert(settings->active_limit > 0 && settings->session_limit > 0);
    s->settings = *settings;
    sched_admission_count(s);
    destinations_reload(&s->destinations);
}

/* An operator who raises a rate does not expect the mail that waits to keep the old one:
 * other limits alone are changed in place, with what the sites have learnt. */
static bool
change_limits(struct sched *s, struct transport *transport, const struct target *target)
{
    struct sites *sites = &s->destinations.sites;
    if (!target || !transport_change(&sites->transports, transport, target, s->now_ms))
        return false;
    transport->is_gone = false;
    transport->generation = s->destinations.generation;
    sites_parameters_changed(sites, transport, s->now_ms);
    return true;
}

/* Mail on disk that waits for a next hop to which no route leads would wait for
 * nothing: it is due now and gets a new route when it is loaded. Mail in memory follows
 * at the end of its attempt, by is_stranded(). */
static void
strand_mail(struct sched *s, struct transport *transport)
{
    struct site *site, *next;
    transport->is_gone = true;
    HASH_ITER (hh, transport->sites, site, next)
        sched_site_wake(s, site);
}

void
sched_rerouted(struct sched *s, const struct route_table *was,
               const struct route_table *now)
{
    struct transport *transport, *next;
    sched_tick(s);
    sched_quota_forget(s);
    HASH_ITER (hh, s->destinations.sites.transports.by_target, transport, next) {
        const struct target *target = &transport->target;
        if (route_leads_to(now, target)) {
            transport->is_gone = false;
            transport->generation = s->destinations.generation;
        } else if (!change_limits(s, transport, route_successor(was, now, target))) {
            strand_mail(s, transport);
        }
    }
}

/* --- Messages with very many destinations ----------------------------------------- */

/* Entering 50,000 destinations took 100 ms in one turn, leaving them 60 ms. So such a
 * message is in a list and enters or leaves SCHED_ENTRIES_PER_TURN of them in each
 * turn. */
static void
part_begin(struct sched_part **list, struct sched_message *m, bool forced)
{
    struct sched_part *part = memory_new(sizeof(*part));
    part->message = m;
    part->forced = forced;
    DL_APPEND(*list, part);
}

static void
part_end(struct sched_part **list)
{
    struct sched_part *part = *list;
    DL_DELETE(*list, part);
    free(part);
}

static unsigned
part_end_entry(const struct sched_part *part)
{
    unsigned left = part->message->entry_count - part->entry;
    return part->entry +
           (left < SCHED_ENTRIES_PER_TURN ? left : SCHED_ENTRIES_PER_TURN);
}

static void
leave_some(struct sched *s)
{
    struct sched_part *part = s->leaving;
    struct sched_message *m = part->message;
    unsigned end = part_end_entry(part);
    message_leave(&s->destinations, m, part->entry, end, s->now_ms);
    part->entry = end;
    if (end < m->entry_count)
        return;
    part_end(&s->leaving);
    free(m);
}

void
sched_message_leave(struct sched *s, struct sched_message *m)
{
    if (m->entry_count > SCHED_ENTRIES_PER_TURN)
        part_begin(&s->leaving, m, false);
    else
        message_free(&s->destinations, &m, s->now_ms);
}

/* --- Creation and settings -------------------------------------------------------- */

static void
free_loaded(void *context, struct message_index *k)
{
    struct sched *s = context;
    struct sched_message *m = k->place == MESSAGE_INDEX_ACTIVE ? k->message : NULL;
    if (m)
        message_free(&s->destinations, &m, s->now_ms);
}

static void
empty_queue(void *context, struct site *site)
{
    struct sched *s = context;
    struct entry *list = NULL;
    lanes_take(&s->destinations.sites.flows, &site->lanes, &list);
}

/* The order matters: sessions refer to sites, queues to entries, entries to messages
 * and destinations. Each is freed when nothing refers to it any longer. */
void
sched_free(struct sched **sched)
{
    struct sched *s = *sched;
    if (!s)
        return;
    *sched = NULL;
    sched_quota_forget(s);
    site_walk_end(&s->sweep);
    struct sched_session *session, *next;
    DL_FOREACH_SAFE (s->sessions, session, next) {
        if (session->work_count > 0)
            lane_add_carrying(session->lane, -1);
        session->work_count = 0;
        session->idle = false;
        struct site *site = session->site;
        sched_session_leave(session);
        sched_session_free(session);
        /* Its domains may have moved: then nothing else would free it. */
        site_update(&s->destinations.sites, site, s->now_ms);
    }
    sites_each(&s->destinations.sites, empty_queue, s);
    struct entry *e;
    DL_FOREACH (s->settling, e)
        reason_close(&e->destination->reasons, &e->reason);
    while (s->entering)
        part_end(&s->entering);
    while (s->leaving) {
        message_leave(&s->destinations, s->leaving->message, s->leaving->entry,
                      s->leaving->message->entry_count, s->now_ms);
        free(s->leaving->message);
        part_end(&s->leaving);
    }
    message_index_each(&s->known, free_loaded, s);
    message_index_free(&s->known);
    free(s->admission.line);
    destinations_free(&s->destinations);
    hosts_free(&s->hosts);
    free(s);
}

/* The scheduler's time never goes back. When the clock does, by an operator or after a
 * boot, all waiting times move along, or mail would wait for the difference, too. */
void
sched_tick(struct sched *s)
{
    int64_t now_ms = *s->owner_ms;
    bool is_back = now_ms < s->now_ms;
    if (is_back) {
        int64_t delta = now_ms - s->now_ms;
        if (delta > -CLOCK_SLACK_MS)
            return;
        message_index_shift(&s->known, delta);
        destinations_shift(&s->destinations, delta);
        hosts_shift(s->hosts, delta);
    }
    s->now_ms = s->destinations.sites.transports.hops.now_ms = now_ms;
    sched_quota_tick(s, is_back);
    sites_tick(&s->destinations.sites, now_ms);
    struct site *idle;
    while ((idle = destinations_idle_site(&s->destinations, now_ms)) != NULL) {
        sched_backlog_clean(s, idle);
        destinations_forget_idle(&s->destinations, now_ms);
    }
}

static void
sched_update(struct sched *s, struct destination *d)
{
    destination_update(&s->destinations, d, s->now_ms);
}

/* Idle sessions do not count in session_limit, so that they block no other site. */
int
sched_working_sessions(const struct sched *s)
{
    return s->session_count - s->idle_count;
}

/* --- Messages --------------------------------------------------------------------- */

void
sched_add(struct sched *s, struct id id, int64_t due_ms, unsigned attempts)
{
    sched_tick(s);
    message_index_add(&s->known, id, due_ms < 0 ? 0 : due_ms, attempts);
}

/* The message is in no queue. The verdicts follow one by one, as actions: the owner may
 * log each before the next. */
void
sched_entry_settle(struct sched *s, struct entry *e, const struct outcome *outcome)
{
    e->reason = reason_open(&e->destination->reasons, outcome);
    DL_APPEND(s->settling, e);
}

static void
settle_list(struct sched *s, struct entry *list, const struct outcome *outcome)
{
    struct entry *e, *next;
    DL_FOREACH_SAFE (list, e, next) {
        DL_DELETE(list, e);
        sched_entry_settle(s, e, outcome);
    }
}

void
sched_site_settle(struct sched *s, struct site *site, const struct outcome *outcome)
{
    struct entry *list = NULL;
    lanes_take(&s->destinations.sites.flows, &site->lanes, &list);
    settle_list(s, list, outcome);
}

void
sched_lane_settle(struct sched *s, struct lane *lane, const struct destination *only,
                  const struct outcome *outcome)
{
    struct entry *list = NULL;
    lane_take(&s->destinations.sites.flows, lane, only, &list);
    settle_list(s, list, outcome);
}

void
sched_settle_dead(struct sched *s, struct site *site)
{
    struct outcome outcome;
    reason_read(site->suspended, &outcome);
    sched_site_settle(s, site, &outcome);
}

/* Mail that an operator retries revives the site; other mail for a dead site, or a
 * suspended lane, is deferred now, with the reason. */
static void
entry_wait(struct sched *s, struct entry *e, bool forced)
{
    struct destination *d = e->destination;
    struct sites *sites = &s->destinations.sites;
    struct outcome outcome;
    if (forced) {
        site_revive(sites, d->site);
        d->lane->until_ms = 0;
    }
    if (d->site->dead) {
        reason_read(d->site->suspended, &outcome);
        sched_entry_settle(s, e, &outcome);
    } else if (lane_is_suspended(d->lane, s->now_ms)) {
        lane_reason(d->lane, &outcome);
        sched_entry_settle(s, e, &outcome);
    } else {
        e->job.since_s = sites_job_s(sites, s->now_ms);
        lane_append(&sites->flows, d->lane, e);
    }
    sched_update(s, d);
}

static void
enter_some(struct sched *s)
{
    struct sched_part *part = s->entering;
    unsigned end = part_end_entry(part);
    for (; part->entry < end; part->entry++)
        entry_wait(s, &message_entries(part->message)[part->entry], part->forced);
    if (end == part->message->entry_count)
        part_end(&s->entering);
}

/* One message at a time: those that leave wait while one enters, so a turn has a
 * bound. */
bool
sched_work(struct sched *s)
{
    sched_tick(s);
    if (s->entering)
        enter_some(s);
    else if (s->leaving)
        leave_some(s);
    return s->entering || s->leaving;
}

/* The answer to SCHED_LOAD. First the sites of the message are brought up to date, as
 * time alone may have revived one or new settings moved mail to a dead one. Only then
 * is it decided whether the message stays in memory: mail that comes from the backlog
 * always does, or it would go back and forth. */
static struct sched_message *
begin_message(struct sched *s, struct id id, const struct sched_mail *mail,
              struct sched_loading *l)
{
    struct message_index *k = message_index_find(&s->known, id);
    assert(k && k->place == MESSAGE_INDEX_LOADING);
    struct sched_message *m = message_make(mail, l);
    m->id = id;
    m->attempts = k->attempts;
    bool recalled = sched_recall_end(s, k);
    for (unsigned i = 0; i < m->entry_count; i++) {
        /* With new settings its mail may have moved to a site that is dead. */
        struct site *site = message_entries(m)[i].destination->site;
        /* A time that the site remembers may have passed. */
        site_update(&s->destinations.sites, site, s->now_ms);
        if (site->dead && site->lanes.counts.recipients > 0)
            sched_settle_dead(s, site);
        if (!site->window.probing)
            sched_site_recall(s, site);
    }
    if (!recalled && sched_is_excess(s, k, m)) {
        sched_backlog_excess(s, k, m);
        return NULL;
    }
    message_index_activate(&s->known, k, m);
    bool forced = k->forced;
    k->forced = k->backlogged = 0; /* a site's rest of it is of the past */
    if (m->entry_count > SCHED_ENTRIES_PER_TURN) {
        part_begin(&s->entering, m, forced);
        return m;
    }
    for (unsigned i = 0; i < m->entry_count; i++)
        entry_wait(s, &message_entries(m)[i], forced);
    return m;
}

struct sched_loading *
sched_loading_new(size_t most)
{
    return message_loading(most);
}

void
sched_loading_add(struct sched *s, struct sched_loading *l,
                  const struct sched_recipient *recipient)
{
    sched_tick(s);
    message_find(&s->destinations, l, recipient, s->now_ms);
}

/* The recipients were counted in their destinations when they were found. */
void
sched_loading_drop(struct sched *s, struct sched_loading **loading)
{
    struct sched_loading *l = *loading;
    if (!l)
        return;
    *loading = NULL;
    sched_tick(s);
    for (size_t i = 0; i < l->count; i++) {
        struct destination *d = l->found[i].destination;
        d->entries--;
        d->site->loaded--;
        sched_update(s, d);
    }
    free(l);
}

struct sched_message *
sched_loaded(struct sched *s, struct id id, const struct sched_mail *mail,
             struct sched_loading **loading)
{
    sched_tick(s);
    struct sched_message *m = begin_message(s, id, mail, *loading);
    free(*loading);
    *loading = NULL;
    return m;
}

void
sched_unloaded(struct sched *s, struct id id)
{
    sched_tick(s);
    struct message_index *k = message_index_find(&s->known, id);
    assert(k && k->place == MESSAGE_INDEX_LOADING);
    (void)sched_recall_end(s, k);
    sched_admission_leave(s, k);
    sched_backlog_forget(s, k);
}

void
sched_message_settled(struct sched *s, struct sched_message *m, unsigned slot,
                      struct reason *reason)
{
    message_settle(m, slot, reason);
    if (m->unsettled > 0)
        return;
    *s->ending_last = m;
    s->ending_last = &m->next;
}

/* --- Actions ---------------------------------------------------------------------- */

static bool
next_settle(struct sched *s, struct sched_action *action)
{
    struct entry *e = s->settling;
    if (!e)
        return false;
    struct sched_message *m = e->message;
    unsigned slot = e->first + e->given;
    bool deferred = reason_verdict(e->reason) == VERDICT_DEFERRED;
    reason_read(e->reason, &s->outcome);
    *action = (struct sched_action){.verb = SCHED_SETTLE,
                                    .id = m->id,
                                    .owner = m->owner,
                                    .index = m->slots[slot].index,
                                    .site = e->destination->site->key,
                                    .outcome = &s->outcome};
    struct reason *reason = deferred ? reason_share(e->reason) : NULL;
    if (++e->given == e->count) {
        DL_DELETE(s->settling, e);
        reason_close(&e->destination->reasons, &e->reason);
    }
    sched_message_settled(s, m, slot, reason);
    return true;
}

/* It was deferred by a next hop to which no route leads any more: another attempt there
 * is pointless, and so is waiting for one. */
static bool
is_stranded(struct sched_message *m)
{
    if (m->is_astray)
        return true;
    for (unsigned i = 0; i < m->entry_count; i++) {
        const struct entry *e = &message_entries(m)[i];
        if (!e->destination->transport->is_gone)
            continue;
        for (unsigned j = e->first; j < e->first + e->count; j++)
            if (m->slots[j].state == SLOT_DEFERRED)
                return true;
    }
    return false;
}

/* An attempt of the message is over. Recipients that are too old fail first, one action
 * each; then the others wait, or the message is finished. A rate reply alone does not
 * count as an attempt, but new mail has had one afterwards: it is deferred mail now. */
static bool
next_end(struct sched *s, struct sched_action *action)
{
    struct sched_message *m = s->ending;
    if (!m)
        return false;
    *action = (struct sched_action){.id = m->id, .owner = m->owner};
    if (message_expire(m, s->now_ms, &action->index, &s->outcome)) {
        action->verb = SCHED_SETTLE;
        action->outcome = &s->outcome;
        action->expired = true;
        return true;
    }
    bool counts;
    int64_t delay = message_delay_ms(m, s->now_ms, &counts);
    struct message_index *k = message_index_find(&s->known, m->id);
    sched_admission_leave(s, k);
    if (delay < INT64_MAX) {
        action->verb = SCHED_WAIT;
        action->attempts = m->attempts;
        if (counts || m->attempts == 0)
            action->attempts++;
        if (action->attempts > MESSAGE_INDEX_ATTEMPTS_MAX)
            action->attempts = MESSAGE_INDEX_ATTEMPTS_MAX;
        bool stranded = is_stranded(m);
        action->due_ms =
            s->now_ms + (stranded ? 1 : retry_jitter_ms(delay, &s->random));
        if (!stranded)
            sched_backlog_dead(k, m);
        message_index_wait(&s->known, k, action->due_ms, action->attempts);
    } else {
        action->verb = SCHED_FINISH;
        sched_backlog_forget(s, k);
    }
    s->ending = m->next;
    if (!s->ending)
        s->ending_last = &s->ending;
    sched_message_leave(s, m);
    return true;
}

/* Whether any site may have one more session. */
static bool
has_sessions_left(const struct sched *s)
{
    return sched_working_sessions(s) < s->settings.session_limit;
}

/* The session that has been idle for longest, rather one for which no mail waits. */
static struct sched_session *
first_to_go(const struct sched *s)
{
    struct sched_session *session;
    int looked = 0;
    DL_FOREACH2 (s->resting, session, rest_next)
        if (session->released || !session->site->is_stalled || ++looked == IDLE_TRIES)
            return session;
    return s->resting;
}

/* With idle sessions there are never more than twice as many as may work. When more than
 * half of all are idle, these alone are in the way: one ends for the mail that needs its
 * place. Its owner ends it in this turn. */
static bool
make_session_place(struct sched *s)
{
    if (s->session_count / 2 < s->settings.session_limit)
        return true;
    sched_session_release(first_to_go(s));
    return false;
}

/* Idle sessions come first, unless they lack the proof of the mail that waits.
 *
 * The last tenth of a large limit is reserved for sites with few sessions. Otherwise
 * slow sites with many would make all others wait until one of their sessions ends. */
bool
sched_has_budget(const struct sched *s, const struct site *site)
{
    int limit = s->settings.session_limit, space = limit - sched_working_sessions(s);
    bool idle_first = site->lanes.lacking == NULL;
    if (!has_sessions_left(s) || (idle_first && site->idle >= space))
        return false;
    int few = limit / RESERVE_FEW;
    return few == 0 || space > limit / RESERVE_PART ||
           site->sessions - site->idle < few;
}

/* A site that may have a session now. Near the limit its idle sessions, which will ask
 * again, come first. READY_TRIES bounds the search of one call when many sites are
 * beyond their part. */
static struct site *
ready_choose(struct sched *s)
{
    struct sites *sites = &s->destinations.sites;
    if (!has_sessions_left(s))
        return NULL;
    for (int i = 0; i < READY_TRIES && sites->transports.ready; i++) {
        struct site *site = sched_next_ready(s, NULL);
        site_update(sites, site, s->now_ms); /* a connection queue may have grown
                                              * meanwhile */
        if (!site->is_ready)
            continue;
        if (sched_has_budget(s, site))
            return site;
        site_rotate(sites, site, s->now_ms);
    }
    return NULL;
}

/* A member of the site for backlogged mail: the right one is not known. */
static struct destination *
site_member(const struct site *site, int64_t now_ms)
{
    struct destination *d = site->members;
    for (int i = 0; d && i < READY_TRIES; i++, d = d->site_next)
        if (!lane_is_suspended(d->lane, now_ms))
            return d;
    return site->members;
}

/* The destination whose servers are looked up: that of the next mail that lacks a
 * session, or of backlogged mail. */
static struct destination *
site_destination(const struct site *site, int64_t now_ms)
{
    const struct lane *lane = lanes_next(&site->lanes);
    const struct entry *first = lane ? flow_queue_first(&lane->queue) : NULL;
    return first ? first->destination : site_member(site, now_ms);
}

/* The site goes behind the others, so that each gets a session before one gets its
 * second. */
static bool
next_open(struct sched *s, struct sched_action *action)
{
    struct site *site = ready_choose(s);
    if (!site || !make_session_place(s))
        return false;
    struct destination *d = site_destination(site, s->now_ms);
    assert(d);
    lanes_turn(&site->lanes, d->lane);
    struct sched_session *session = sched_session_new(site, d, s->now_ms);
    s->sessions_opened++;
    DL_APPEND(s->sessions, session);
    s->session_count++;
    *action = (struct sched_action){.verb = SCHED_OPEN,
                                    .session = session,
                                    .target = &site->transport->target,
                                    .domain = session->domain};
    sched_update(s, d);
    site_rotate(&s->destinations.sites, site, s->now_ms);
    sites_transport_changed(&s->destinations.sites, site->transport, s->now_ms);
    return true;
}

/* NULL, too, if it waits for room. */
static struct message_index *
first_due(const struct sched *s, enum message_index_age age)
{
    struct message_index *k = message_index_first(&s->known, age);
    return k && k->due_ms <= s->now_ms && !sched_admission_blocks(s, k) ? k : NULL;
}

/* The due message that is loaded next; NULL: none is due. Neither age starves: they are
 * loaded in turn, and NEW_RUN_MAX bounds the new ones in a row. */
static struct message_index *
due_next(struct sched *s, struct message_index *fresh, struct message_index *old)
{
    if (!fresh && !old)
        return NULL;
    bool take_old = !fresh || (old && (s->old_turn || s->new_run >= NEW_RUN_MAX));
    s->old_turn = !take_old;
    s->new_run = take_old || !old ? 0 : s->new_run + 1;
    return take_old ? old : fresh;
}

/* The backlog and due mail take turns for each free place. */
static struct message_index *
waiting_next(struct sched *s)
{
    struct message_index *k = NULL;
    if (s->recall_turn ||
        (!first_due(s, MESSAGE_INDEX_NEW) && !first_due(s, MESSAGE_INDEX_OLD)))
        k = sched_recall_next(s); /* may make mail of a dead site due */
    s->recall_turn = !k;
    if (!k)
        k = due_next(s, first_due(s, MESSAGE_INDEX_NEW),
                     first_due(s, MESSAGE_INDEX_OLD));
    return k;
}

/* Large mail that lacks room stands in line, so that it need not be looked at again. */
static struct message_index *
load_choose(struct sched *s)
{
    struct message_index *k = sched_admission_first(s);
    while (!k && (k = waiting_next(s)) != NULL && !sched_admission_has(s, k)) {
        sched_admission_wait(s, k);
        k = NULL;
    }
    return k;
}

static bool
next_load(struct sched *s, struct sched_action *action)
{
    if (s->active >= s->settings.active_limit) {
        s->old_turn = false; /* the next free place is for new mail */
        return false;
    }
    struct message_index *k = load_choose(s);
    if (!k)
        return false;
    s->recalling += k->recalled;
    s->recalling_recipients += k->recalled ? k->recipients : 0;
    sched_admission_enter(s, k);
    message_index_load(&s->known, k);
    *action = (struct sched_action){.verb = SCHED_LOAD, .id = message_index_id(k)};
    return true;
}

/* While draining nothing begins; work under way is settled and ended. */
bool
sched_next(struct sched *s, struct sched_action *action)
{
    sched_tick(s);
    if (next_settle(s, action) || next_end(s, action))
        return true;
    return !s->draining && (next_open(s, action) || next_load(s, action));
}

/* With a full active set, or without room, no due message can be loaded, and the owner
 * calls sched_next() after the event that frees a place. */
int64_t
sched_wake_ms(const struct sched *s)
{
    if (s->draining)
        return INT64_MAX;
    int64_t wake = destinations_wake_ms(&s->destinations);
    for (int age = 0; age < MESSAGE_INDEX_AGES && s->active < s->settings.active_limit;
         age++) {
        const struct message_index *k =
            message_index_first(&s->known, (enum message_index_age)age);
        if (k && k->due_ms < wake && !message_index_is_backlogged(k) &&
            !sched_admission_blocks(s, k))
            wake = k->due_ms;
    }
    return wake;
}
