/* Sites: the servers behind a next hop, and how much they bear. Internal to sched/.
 *
 * All domains with the same servers are one site (doc/scheduler.md "Sites"): they share
 * its sessions, window, rate and health. A site holds the queue of all that waits for
 * it (sched/flow.h) and decides how many sessions it may have; what binds is told by
 * the same function that decides, site_bound().
 *
 * The window is Postfix's (sched/limits/window.h). Unless the transport says
 * adaptive=no, it is bounded by what was learnt: the ceiling of sessions, the rate,
 * latency (doc/scheduler.md "Ceiling and latency"), and a site dies only when no
 * session of it lives.
 */
#ifndef SCHED_SITE_H
#define SCHED_SITE_H

#include "base/id.h"
#include "sched/limits/bucket.h"
#include "sched/transport.h"
#include "sched/limits/ceiling.h"
#include "sched/flow.h"
#include "sched/limits/latency.h"
#include "sched/limits/site_state.h"
#include "sched/sched.h"
#include "sched/limits/window.h"

enum {
    SITE_OPEN_PAUSE_MS = 1000,  /* after a session that never greeted */
    SITE_PROBE_MIN_MS = 10000,  /* dead: until the first probe, then doubled */
    SITE_PROBE_MAX_MS = 45000,  /* while it is dead less than PROBE_PART times that */
    SITE_PROBE_PART = 40,       /* later: so much of the time it is dead */
    SITE_PROBE_LONG_MS = 900000 /* at most */
};

/* How a transaction went for the site; the worst is the greatest. */
enum session_feedback {
    FEEDBACK_GOOD,
    FEEDBACK_NONE, /* refused, but not because of us: greylisting, a full mailbox */
    FEEDBACK_SLOW, /* we are told to slow down */
    FEEDBACK_BAD   /* no talk to that site */
};

/* Messages that wait on disk for a site, as ids in the order they came. */
struct site_backlog {
    struct id *ids;
    size_t first, count, capacity;
};

struct site {
    UT_hash_handle hh; /* in the carrier's sites */
    char *key;
    struct transport *carrier;
    struct site *prev, *next; /* ready */
    struct heap_node timer;
    int64_t wake_ms;
    struct flow_queue queue;
    struct window window;
    struct ceiling ceiling;
    struct latency latency;
    struct bucket bucket;
    struct learnt_rate learnt;
    struct sched_session *opening; /* not yet greeted, oldest first */
    int sessions;                  /* opened and not ended, of which: */
    int greeted, idle, carrying;
    unsigned failures; /* sessions that never greeted, since one did */
    unsigned slow;     /* transactions that took too long, in this cohort */
    bool dead, is_ready, has_greeted; /* has_greeted: since its last death */
    int64_t dead_since_ms, dead_until_ms, pause_until_ms, open_after_ms;
    int64_t probe_ms;                  /* between the last two probes */
    struct reason *reasons;            /* those two */
    struct reason *reason, *suspended; /* of death; for later mail */
    size_t destinations, loaded;       /* loaded: entries of loaded messages */
    struct site_backlog backlog;
    struct destination *members;
    struct site *crowded_prev,
        *crowded_next; /* with backlogged mail that is its excess */
    bool is_crowded;
};

struct sites {
    struct carriers carriers;
    struct flows flows;
    struct heap timers;
    struct site *crowded;
    struct site_state_set remembered;
    size_t count, dead_count;
    int64_t shift_ms; /* of the clock, so far */
    uint64_t random;
};

void sites_init(struct sites *set, uint64_t seed);
void sites_free(struct sites *set); /* no site is left */

/* The one with that key, made when missing. */
struct site *site_get(struct sites *set, struct transport *carrier, struct text key);
const struct transport_params *site_transport(const struct site *site);
bool site_is_adaptive(const struct site *site);

/* What it has learnt; false: nothing worth it. The key is written to key. */
bool site_remember(const struct site *site, struct site_state *out,
                   char key[SITE_STATE_KEY_MAX]);

/* The new site takes over what the old one has learnt, within its own settings: they
 * have changed. */
void site_inherit(struct site *site, const struct site *old);

/* What keeps the site from one more session, or a session from more mail, now; until_ms
 * is set when that ends by itself (else INT64_MAX). SCHED_BOUND_NONE: nothing does. */
enum sched_bound site_bound(struct site *site, int64_t now_ms, int64_t *until_ms);
/* Sessions it may have now, whatever waits. */
int site_allows(const struct site *site, int64_t now_ms);
/* No transaction may begin before that time (a rate, a pause); <= now_ms: at once. */
int64_t site_ready_ms(struct site *site, int64_t now_ms);

/* By which jobs are told apart: it goes on when the clock is set back. */
uint32_t sites_job_s(const struct sites *set, int64_t now_ms);

/* A transaction begins: the rates count it. */
void site_take(struct site *site, int64_t now_ms);
/* One ended so; busy: sessions that carry mail, with the one that reports. True: the
 * site is dead for it (BAD only). took_ms 0: not to be compared. */
bool site_served(struct sites *set, struct site *site, int64_t now_ms,
                 enum session_feedback feedback, int busy, int64_t took_ms)
    __attribute__((warn_unused_result));
/* A session greeted; it counts as greeted already. A dead site lives, on probation. */
void site_greeted(struct sites *set, struct site *site, int64_t now_ms);
/* A session never greeted; it is counted no more. True: the site is dead for it, all
 * that waits is to be settled. is_final: so would be the next one. */
bool site_refused(struct site *site, int64_t now_ms, bool is_final)
    __attribute__((warn_unused_result));
/* No session is opened for a moment: whatever the owner makes of it, no busy loop. */
void site_pause(struct site *site, int64_t now_ms);
void site_die(struct sites *set, struct site *site, int64_t now_ms,
              const struct outcome *outcome);
/* Alive, on probation: one session first. Nothing when it lives. */
void site_revive(struct sites *set, struct site *site);

/* id waits on disk until the site lives, or has space. */
void site_backlog_add(struct site *site, struct id id);
/* The next one, oldest first; false: none. */
bool site_backlog_take(struct site *site, struct id *id);
bool site_has_backlog(const struct site *site);
/* Among its backlogged mail is some that is its excess, and comes when it has less. */
void site_set_crowded(struct sites *set, struct site *site, bool is_crowded);

/* To be called after anything about it has changed: keeps ready lists and timers true.
 * It frees a site that nobody uses: it is not used after it. */
void site_update(struct sites *set, struct site *site, int64_t now_ms);
/* A delivery or session of the carrier has begun or ended: with a transport rate delay
 * it binds all its sites. */
void sites_carrier_changed(struct sites *set, struct transport *carrier,
                           int64_t now_ms);
/* Behind the other ready ones of its carrier, and that behind the other carriers. */
void site_rotate(struct sites *set, struct site *site, int64_t now_ms);

/* Does what is due by now. */
void sites_tick(struct sites *set, int64_t now_ms);
int64_t sites_wake_ms(const struct sites *set); /* INT64_MAX = never */
/* All times come delta_ms later. */
void sites_shift(struct sites *set, int64_t delta_ms);
void sites_each(const struct sites *set, void (*each)(void *context, struct site *site),
                void *context);

#endif
