/* Jobs: which of the messages that wait at a destination is next. Pure.
 *
 * This is Postfix's preemptive message scheduler (doc/scheduler.md "Jobs and
 * preemption"): small mail passes large mail, and the large one is delayed by a bounded
 * factor. A *job* is a message at a destination, its *size* the transactions (Postfix:
 * entries) it needs there. The order is that of arrival; the first job is the current
 * one. Every slot_cost transactions of a job earn a slot. A smaller job may spend slots
 * of the current one, one for each of its transactions, to be put directly before it,
 * and may itself be preempted. The preempted job waits, so those begun are a stack. Of
 * the jobs that the current one can ever afford the one with the greatest age / size is
 * the *candidate*. It preempts immediately when, with slot_loan slots lent, at most
 * slot_discount percent of its slots are missing. They are charged in full all the
 * same, so the account may fall below 0. A job that can never earn minimum_slots is not
 * preempted. slot_cost 0 or 1: no job is ever preempted.
 *
 * Postfix counts per transport, because there mail competes for the transport's
 * processes. Here it competes for the sessions of a destination, and a session takes
 * only the mail of its destination. So accounts are per destination, and bound the
 * delay at each; the window of another destination cannot block a job, hence there are
 * no blocker tags; sizes are exact, hence nothing is given back. The best candidate is
 * found for the present moment, not for an earlier one in the second.
 *
 * There is no scan of all jobs: those not begun stand in classes by size, first in,
 * first out, one for each size up to JOB_EXACT and sixteen for each doubling above.
 * Only the oldest job of a class is examined, so a decision looks at JOB_CLASSES jobs
 * at most, and the result is kept until something changes. The depth of the stack is at
 * most the logarithm of a size to the base slot_cost. */
#ifndef SCHED_LIMITS_JOB_H
#define SCHED_LIMITS_JOB_H

#include "sched/limits/transport_params.h"

#include <stdint.h>

enum { JOB_EXACT = 64, JOB_CLASSES = 256 };

struct job {
    union {
        struct { /* not begun */
            struct job *prev, *next;
        };
        struct {             /* begun */
            int64_t account; /* transactions not yet spent; negative: a loan */
            unsigned served;
        };
    };
    uint32_t since_s;              /* when the message was loaded, as now_s below */
    unsigned size : 31, begun : 1; /* size > 0 */
};

struct jobs { /* of a destination; zero the struct before first use */
    struct job **classes;
    unsigned class_count; /* allocated */
    uint64_t present[JOB_CLASSES / 64];
    struct job *candidate; /* while is_cached; NULL: there is none */
    uint32_t candidate_s;
    int64_t candidate_space; /* the space for which it was chosen */
    bool is_cached;
};

void jobs_free(struct jobs *jobs); /* the jobs belong to the owner */
/* Forgets all jobs. */
void jobs_clear(struct jobs *jobs);

/* Adds a new job behind all others. size >= 1, transactions. Its since_s must be set;
 * if it is less than that of an earlier job, the job counts as younger by the
 * difference. */
void jobs_add(struct jobs *jobs, struct job *job, unsigned size);

/* Returns the job served next when current is the first in order: current itself, or
 * the job that preempts it. That one has been paid for and has begun, and the owner
 * must put it directly before current. now_s may wrap. */
struct job *jobs_choose(struct jobs *jobs, const struct transport_params *t,
                        struct job *current, uint32_t now_s);

/* One transaction of the job is taken. After the last one the job belongs to the
 * owner. */
void jobs_serve(struct jobs *jobs, struct job *job);
/* The job goes without its other transactions. What was paid for it is lost. */
void jobs_drop(struct jobs *jobs, struct job *job);
/* After jobs_serve(): the transaction was not a full one, so the job needs one more
 * than announced. */
void jobs_grow(struct job *job);

#endif
