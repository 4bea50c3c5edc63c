/* Sites: the servers behind a next hop, and their limits. Internal to sched/.
 *
 * All domains with the same servers are one site (doc/scheduler.md "Sites"): they share
 * its sessions, window, rate and health. A site holds the queues of all mail that waits
 * for it (sched/lane.h) and decides how many sessions it may have. site_bound() both
 * decides and reports its bound.
 *
 * The window is Postfix's (sched/limits/window.h). Unless the transport says
 * adaptive=no, the site also obeys the learnt limits (doc/scheduler.md "Ceiling and
 * latency"): the ceiling of sessions, the rate, latency; and it dies only when none of
 * its sessions is alive. */
#ifndef SCHED_SITE_H
#define SCHED_SITE_H

#include "base/id.h"
#include "sched/limits/bucket.h"
#include "sched/transport.h"
#include "sched/limits/ceiling.h"
#include "sched/lane.h"
#include "sched/id_queue.h"
#include "sched/limits/latency.h"
#include "sched/site_memory.h"
#include "sched/sched.h"
#include "sched/limits/window.h"

enum {
    SITE_OPEN_PAUSE_MS = 1000,  /* after a session that never greeted */
    SITE_PROBE_MIN_MS = 10000,  /* until the first probe of a dead site, then doubled */
    SITE_PROBE_MAX_MS = 45000,  /* while dead for less than SITE_PROBE_PART times
                                 * that */
    SITE_PROBE_PART = 40,       /* later: this fraction of the time it has been dead */
    SITE_PROBE_LONG_MS = 900000 /* at most */
};

/* The result of a transaction for the site; the worst has the greatest value. */
enum session_feedback {
    FEEDBACK_GOOD,
    FEEDBACK_NONE, /* refused, but not by the site's state: greylisting, a full
                    * mailbox */
    FEEDBACK_SLOW, /* the site asks us to slow down */
    FEEDBACK_BAD   /* the conversation with the site failed */
};

/* Messages that wait on disk for a site. */
struct site_backlog {
    struct id_queue ids;
    size_t repeated; /* of these, about: added while another one was there */
    size_t added;    /* since it was pruned; among them: */
    size_t excess;   /* without a due time: only the site recalls them */
};

struct site_changes;
struct site_lease;
struct site_group;
struct site {
    UT_hash_handle hh; /* in the transport's sites */
    char *key;
    struct transport *transport;
    struct site *prev, *next; /* ready */
    struct heap_node timer;
    int64_t wake_ms;
    struct lanes lanes;
    struct window window;
    struct ceiling ceiling;
    struct latency latency;
    struct bucket bucket;
    struct learnt_rate learnt;
    struct sched_session *opening; /* sessions not yet greeted, oldest first */
    struct sched_session *idlers;  /* idle ones */
    int released; /* sessions that end, to make space for another lane */
    int sessions; /* opened and not ended; among them: */
    int greeted, idle, carrying;
    unsigned failures;     /* sessions that never greeted since the last that did */
    unsigned slow;         /* slow transactions in this cohort */
    int64_t slow_since_ms; /* 0: it is not */
    unsigned
        recipients; /* that its host takes in a transaction, until then; 0: no limit
                            * is known */
    int64_t recipients_until_ms;
    struct site *stalled_prev, *stalled_next;
    bool is_stalled;                  /* mail waits, and idle sessions could carry it */
    bool dead, is_ready, has_greeted; /* has_greeted: since its last death */
    bool lacks_token; /* dead for that reason alone: only a token revives it */
    int64_t dead_since_ms, dead_until_ms, pause_until_ms, open_after_ms;
    int64_t probe_ms;                  /* between the last two probes */
    struct reason *reasons;            /* reason and suspended */
    struct reason *reason, *suspended; /* of its death; for mail that comes later */
    size_t destinations, loaded;       /* loaded: entries of loaded messages */
    struct site_backlog backlog[FLOW_AGES];
    struct destination *members;
    struct site *crowded_prev, *crowded_next; /* sites whose backlog is recalled */
    /* sched.removed when the ids of the backlog were last looked up, all of them, and
     * when the look-ups that are not over began. */
    uint64_t checked, checking;
    bool is_crowded;
    bool is_due; /* deferred mail has come due since the site died */
    uint64_t
        home_hash; /* hash of the key of the site that its domain comes from, and will
                    * probably return to: its learnt state is of that; 0: none */
    int64_t crowded_since_ms;
    struct site_lease *lease;             /* NULL: its limits are this host's own */
    struct site *lease_prev, *lease_next; /* all of the lease */
    unsigned asked; /* entries of the message that sched_is_excess() asks about */
    unsigned recalled, passed; /* since it became crowded: messages recalled, and those
                                * of new senders that passed the backlog */
};

struct sites {
    struct transports transports;
    struct flows flows;
    struct heap timers;
    struct site *crowded, *stalled;
    struct site_walk *walks;
    struct site_state_set states;
    struct site_changes *changes; /* NULL: there was none */
    struct site_group *group;     /* NULL: there is none; site_lease.h */
    size_t count, dead_count;
    uint64_t direct_greetings; /* of sites that MX records named */
    int64_t shift_ms;          /* the sum of clock steps */
    uint64_t random;
};

void sites_init(struct sites *set, uint64_t seed);
void sites_free(struct sites *set); /* no site may be left */

/* 0: at the next tick. */
void site_wake_at(struct sites *set, struct site *site, int64_t wake_ms);
/* The site with that key, made if missing. */
struct site *site_get(struct sites *set, struct transport *transport, struct text key);
const struct transport_params *site_transport(const struct site *site);
bool site_is_adaptive(const struct site *site);

/* The transport's key, a blank, the site's key. */
void site_remembered_key(const struct site *site, char key[SITE_STATE_KEY_MAX]);
/* The learnt state of the site; false: nothing worth keeping. Writes its key to key. */
bool site_remember(const struct site *site, struct site_state *out,
                   char key[SITE_STATE_KEY_MAX]);

/* A new site takes back its remembered state, and tests an untried login alone. */
void site_recall(struct sites *set, struct site *site);

/* The new site, made because settings changed, or for a domain alone, takes over the
 * learnt state of the old one, within its own settings. */
void site_inherit(struct site *site, const struct site *old);

/* The transport of the sites has other parameters now: everything that was derived from
 * those of before is set anew, for the mail that waits, too. */
void sites_parameters_changed(struct sites *set, struct transport *transport,
                              int64_t now_ms);

/* The limit that keeps the site from one more session, or a session from more mail,
 * now. until_ms is set when that ends by itself (else INT64_MAX). SCHED_BOUND_NONE:
 * nothing does. */
enum sched_bound site_bound(struct site *site, int64_t now_ms, int64_t *until_ms);
/* Sessions it may have now, with any mail or none; and if one is to be opened. */
int site_allows(const struct site *site, int64_t now_ms);
int site_allows_new(const struct site *site, int64_t now_ms);
/* No transaction may begin before that time (a rate, a pause); <= now_ms: none is
 * delayed. */
int64_t site_ready_ms(struct site *site, int64_t now_ms);

/* The seconds that date jobs; they go on when the clock is set back. */
uint32_t sites_job_s(const struct sites *set, int64_t now_ms);

/* A transaction begins: the rates count it. */
void site_take(struct site *site, int64_t now_ms);
/* A transaction ended with that feedback; busy: sessions that carry mail, with this
 * one. True: this killed the site (BAD only). took_ms 0: not to be compared. */
bool site_served(struct sites *set, struct site *site, int64_t now_ms,
                 enum session_feedback feedback, int busy, int64_t took_ms)
    __attribute__((warn_unused_result));
/* A session greeted, and is counted as greeted already. A dead site lives, on
 * probation. */
void site_greeted(struct sites *set, struct site *site, int64_t now_ms);
/* A session never greeted, and is not counted any longer. True: this killed the site,
 * and all that waits is to be settled. is_final: the next session would end in the same
 * way. */
bool site_refused(struct site *site, int64_t now_ms, bool is_final)
    __attribute__((warn_unused_result));
/* Opens no session for a moment, so that no caller can make a busy loop. */
void site_pause(struct site *site, int64_t now_ms);
void site_die(struct sites *set, struct site *site, int64_t now_ms,
              const struct outcome *outcome);
/* Revives it on probation: one session first. Does nothing to a live site. */
void site_revive(struct sites *set, struct site *site);

/* All its logins have failed to get a token: it is dead until token_gain(). */
void token_lose(struct sites *set, struct site *site);
void token_gain(struct sites *set, struct site *site);
/* The lack of its transport, as a deferral. */
struct outcome token_reason(const struct sites *set, const struct site *site);

/* Adds an id that waits on disk until the site lives or has space. */
void backlog_add(struct site *site, enum flow_age age, struct id id);
/* Adds an id that is there already, unless the message has changed its site: an operator
 * has retried it in vain. Memory is bounded, however often that happens. */
void backlog_repeat(struct site *site, enum flow_age age, struct id id);
/* Takes the oldest; false: none. */
bool backlog_take(struct site *site, enum flow_age age, struct id *id);
/* Drops the oldest, which is not recalled: another one of that id was, or it is gone. */
void backlog_drop(struct site *site, enum flow_age age);
bool backlog_waits(const struct site *site);
size_t backlog_count(const struct site *site);
/* Whether its backlog is recalled while the site has space for it. */
void site_set_crowded(struct sites *set, struct site *site, bool is_crowded,
                      int64_t now_ms);

/* To be called after each change of the site: updates ready lists and timers. Frees a
 * site that nothing uses; the caller must not use it afterwards. */
void site_update(struct sites *set, struct site *site, int64_t now_ms);
/* site_update() for all sites of the transport. */
void sites_update(struct sites *set, struct transport *transport, int64_t now_ms);
/* A delivery or session of the transport has begun or ended: a transport rate delay, or
 * a quota, limits all its sites. */
void sites_transport_changed(struct sites *set, struct transport *transport,
                             int64_t now_ms);
/* Moves it behind the other ready sites of its transport, and the transport behind the
 * others. */
void site_rotate(struct sites *set, struct site *site, int64_t now_ms);

/* Runs the timers that are due. */
void sites_tick(struct sites *set, int64_t now_ms);
int64_t sites_wake_ms(const struct sites *set); /* INT64_MAX = never */
/* Moves all times by delta_ms. */
void sites_shift(struct sites *set, int64_t delta_ms);
void sites_each(const struct sites *set, void (*each)(void *context, struct site *site),
                void *context);

/* Deaths and lives, until the owner of the scheduler asks (sched_site_change()). *changes is
 * made when the first comes. why: NULL when it works again. */
void site_changes_add(struct site_changes **changes, const char *site, int64_t dead_ms,
                      const struct outcome *why);
/* The oldest. False: there is none. */
bool site_changes_take(struct site_changes *changes, struct site_change *out);
void site_changes_free(struct site_changes **changes);

/* Walks over all sites, some at a time, while sites come and go between the steps: those
 * that are there from begin to end are met once, others perhaps. */

struct site_walk {
    struct site_walk *prev, *next;
    struct sites *set; /* NULL: the sites are gone */
    struct site *site; /* the next one; NULL: none is left */
};

struct site_walk *site_walk_begin(struct sites *set);
/* Meets at most `most`; each frees none. False: none is left. */
bool site_walk_step(struct site_walk *walk, size_t most,
                    void (*each)(void *context, struct site *site), void *context);
/* Leaves the site where it stands, which is not NULL, for the next one. */
void site_walk_pass(struct site_walk *walk);
void site_walk_end(struct site_walk **walk); /* NULL inside: nothing */

#endif
