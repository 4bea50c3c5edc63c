/* Lanes: the mail of a site by its destinations' demands for a session's TLS. Internal to
 * sched/.
 *
 * A *demand* is a number that the owner gives (sched_session_demand()); 0 is none. Mail
 * of a destination with a demand waits in the lane of that demand, and only sessions
 * that have proven it take mail from there. All sessions take mail from the *plain* lane,
 * that of demand 0. So nothing is searched: a session has two queues to choose from, and
 * they take turns.
 *
 * A lane *lacks* sessions while more transactions wait in it than its sessions without
 * mail can begin. Lanes that lack some are in a list, and get the next sessions of their
 * site in turn. When none of the hosts could prove the demand, the lane is *suspended*:
 * its mail is deferred, and that of other lanes goes on. */
#ifndef SCHED_LANE_H
#define SCHED_LANE_H

#include "sched/flow.h"

enum {
    LANE_SUSPEND_MS = 60000, /* after a session that proved nothing, then doubled... */
    LANE_SUSPEND_MAX_MS = 900000 /* ...up to this */
};

/* Facts, and what follows from them now: only lane_update() sets these. */
struct lane_counts {
    size_t entries[FLOW_AGES], recipients; /* waiting */
    size_t lacks, spares, matched; /* sessions it lacks; has without use; waiting
                                            * transactions for which there is one */
    size_t unproven;               /* it lacks some, and has no session at all */
};

struct site;
struct lane {
    UT_hash_handle hh; /* in its site's; the plain one is a member of it */
    struct site *site;
    struct lane *prev, *next; /* of those that lack sessions */
    uint64_t demand;
    struct flow_queue queue;
    size_t destinations;
    int sessions, carrying; /* of those that have this proof, or are to get it */
    struct lane_counts counts;
    bool is_listed;
    int64_t until_ms,
        delay_ms; /* suspended; delay_ms != 0: until a session proves it */
    struct reason *reasons, *reason;
};

/* All lanes of a site. */
struct lanes {
    struct lane plain;
    struct lane *by_demand, *lacking; /* those that have lacked longest first */
    struct lane_counts counts;        /* the sums */
    bool plain_turn;                  /* the plain one gets the next session */
};

void lanes_init(struct site *site);
void lanes_free(struct lanes *lanes); /* nothing may wait, and no session be left */

/* The lane of that demand, made if missing: lane_enter() or lane_add_session() follows. */
struct lane *lane_get(struct site *site, uint64_t demand);
/* A destination is in it, or is no longer; sessions, and those that carry mail, are more
 * or less. A lane that nothing uses is freed. */
void lane_enter(struct lane *lane);
void lane_leave(struct lane *lane);
void lane_add_session(struct lane *lane, int change);
void lane_add_carrying(struct lane *lane, int change);

void lane_append(struct flows *flows, struct lane *lane, struct entry *e);
/* flow_queue_drop(), flow_queue_cut(), flow_queue_take(). */
void lane_drop(struct flows *flows, struct lane *lane, struct entry *e);
struct entry *lane_cut(struct flows *flows, struct lane *lane, unsigned most,
                       const struct transport_params *t, uint32_t job_s,
                       unsigned *first, unsigned *count);
void lane_take(struct flows *flows, struct lane *lane, const struct destination *only,
               struct entry **list);
void lanes_take(struct flows *flows, struct lanes *lanes, struct entry **list);

/* The transport of the site has other parameters: all mail that waits is appended anew. */
void lanes_enter_again(struct flows *flows, struct lanes *lanes);

/* How many sessions could have mail at a time, at the least: one for each entry, or more if
 * the transport bounds the recipients of a transaction. */
size_t lanes_worth(const struct lanes *lanes);
/* For the whole site: transactions that lack a session, and those that have one. */
size_t lanes_lack(const struct lanes *lanes);
size_t lanes_matched(const struct lanes *lanes);
/* A lane without a session of its own waits, and no other mail does. */
bool lanes_lack_proof(const struct lanes *lanes);
/* Sessions without mail that no waiting mail can use. */
bool lanes_have_spare(const struct lanes *lanes);
/* The lane that gets the next session; NULL: none lacks one. */
struct lane *lanes_next(const struct lanes *lanes);
/* It got one: the others come before it. */
void lanes_turn(struct lanes *lanes, struct lane *lane);
/* An entry that waits, the next one if possible; NULL: none waits. */
struct entry *lanes_first(const struct lanes *lanes);

/* No host could prove the demand. */
void lane_suspend(struct lane *lane, int64_t now_ms, const struct outcome *outcome,
                  uint64_t *random);
/* A session has proven it, or an operator wants it tried. */
void lane_resume(struct lane *lane);
bool lane_is_suspended(const struct lane *lane, int64_t now_ms);
/* For a suspended lane: the reason for mail that comes later. */
void lane_reason(const struct lane *lane, struct outcome *outcome);
void lanes_shift(struct lanes *lanes, int64_t delta_ms);

#endif
