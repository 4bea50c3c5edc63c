/* The queue of a site: which message a session gets next. Internal to sched/.
 *
 * Senders take turns, by the cost of their mail, so that a campaign does not delay
 * another sender's single message (doc/scheduler.md "Fair sharing between senders").
 * Among the mail of one sender the jobs of sched/limits/job.h decide. The turns are
 * start-time fair queuing: each sender has a virtual time that advances by the cost of
 * its served mail, slower for a class of higher weight. The sender with the least is
 * next, and a new one starts at the present virtual time. A *flow* is a sender that has
 * mail waiting at the site, or that had mail and was served beyond the present virtual
 * time: it is not new when it returns.
 *
 * New mail and mail that was deferred before have turns of their own. New mail goes
 * first, and deferred mail gets what it leaves, at least one transaction in eight while
 * both wait. Otherwise a flushed deferred queue would delay all new mail until the flush
 * is over, or new mail that comes faster than the site takes it would starve the other. */
#ifndef SCHED_FLOW_H
#define SCHED_FLOW_H

#include "base/heap.h"
#include "sched/limits/job.h"
#include "sched/limits/reason.h"

#include <uthash.h>

struct sched_message;
struct destination;
struct flow_queue;

struct entry {                 /* recipients of one message at one destination */
    struct entry *prev, *next; /* in its flow, or in the list of those to be settled */
    struct sched_message *message;
    struct destination *destination;
    union {
        struct job job;        /* waiting or taken */
        struct reason *reason; /* to be settled: the reason */
    };
    unsigned first, count; /* slots of the message */
    unsigned given;        /* slots from the front that are taken or settled */
};

struct flow_key {
    uint64_t turns;  /* their address; no padding may be in a key */
    uint64_t sender; /* with the class in it */
};
struct flow {
    UT_hash_handle hh;
    struct flow_key key;
    struct heap_node node;
    uint64_t virtual_time,
        number; /* number: first come, first served among equals of a weight */
    struct entry *waiting; /* the first is the current job, before those it preempted */
    struct jobs *jobs;     /* NULL while all need one transaction: they go in order */
};

struct flows { /* of all sites, by turns and sender */
    struct flow *by_key;
    uint64_t number;
};

enum flow_age { FLOW_NEW, FLOW_OLD, FLOW_AGES }; /* OLD: attempted before */

struct flow_turns {
    struct heap flows;     /* the first has mail */
    size_t idle;           /* flows without */
    uint64_t virtual_time; /* of the flow served last */
    size_t entries;        /* waiting */
};

struct flow_queue {
    struct flow_turns turns[FLOW_AGES];
    unsigned run_new;  /* transactions of new mail since the last of deferred mail */
    unsigned run_old;  /* and the other way round */
    size_t recipients; /* waiting */
};

enum flow_age flow_age(const struct sched_message *m);

void flow_queue_init(struct flow_queue *q);
void flow_queue_free(struct flow_queue *q); /* nothing must wait */

/* Appends behind the other mail of its sender. e->job.since_s is set. */
void flow_queue_append(struct flows *flows, struct flow_queue *q, struct entry *e);
/* Whether mail of the message's sender waits, of the same age and class. */
bool flow_queue_has_sender(const struct flows *flows, const struct flow_queue *q,
                           const struct sched_message *m);
/* Whether the next transaction may be bound to a session that is still busy with
 * another. Not with deferred mail where new mail waits or came lately: it would find all
 * sessions bound to a flush twice. */
bool flow_queue_may_be_early(const struct flow_queue *q);
/* The entry whose sender is next; NULL when nothing waits. */
struct entry *flow_queue_first(const struct flow_queue *q);
/* Cuts the next transaction off the entry to be served now; something must wait. first
 * and count are its slots: at most `most` recipients (0: as the transport says). job_s
 * is now_s of sched/limits/job.h. */
struct entry *flow_queue_cut(struct flows *flows, struct flow_queue *q, unsigned most,
                             const struct transport_params *t, uint32_t job_s,
                             unsigned *first, unsigned *count);
/* Removes one that waits. */
void flow_queue_drop(struct flows *flows, struct flow_queue *q, struct entry *e);
/* Removes all entries, or those of one destination, in the order of their flows and in
 * order within each, and appends them to *list. */
void flow_queue_take(struct flows *flows, struct flow_queue *q,
                     const struct destination *only, struct entry **list);

#endif
