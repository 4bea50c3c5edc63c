/* Jobs: whose turn it is among the messages that wait at one destination. Pure.
 *
 * Postfix's preemptive message scheduler (doc/scheduler.md "Jobs and preemption"), so
 * that small mail passes large mail and the large one is stretched by a bounded factor.
 * A *job* is a message at a destination, its *size* the transactions (Postfix: entries)
 * it needs there. The order is that of arrival; the first job is the current one. Every
 * slot_cost transactions of a job earn a slot; a smaller job may spend slots of the
 * current one, one for each of its transactions, to be put directly before it, and may
 * be preempted in its turn. The one it passed waits, so those begun are a stack. Of the
 * jobs that the current one can ever afford the one with the greatest age / size is the
 * *candidate*; it comes at once when, with slot_loan slots lent, slot_discount percent
 * of its slots may still be missing. They are charged in full all the same: the account
 * may go below 0. A job that can never earn minimum_slots is not preempted. slot_cost 0
 * or 1: none ever is.
 *
 * Where we differ from Postfix, which counts per transport, because what mail competes
 * for there is the transport's processes: here it is the sessions of a destination, and
 * a session takes only its destination's mail. So accounts are per destination, and
 * bound the stretch at each; a job cannot be blocked by another destination's window,
 * hence no blocker tags; sizes are exact, hence nothing is given back. The best
 * candidate is that of now, not of an earlier moment of the second.
 *
 * Nothing is scanned: those not begun stand in classes by size, first in, first out,
 * one for each size up to JOB_EXACT and sixteen for each doubling above. Of a class the
 * oldest job is looked at, so a decision looks at JOB_CLASSES jobs at most, and the
 * result is kept until something changes. The depth of the stack is at most the
 * logarithm of a size to the base slot_cost. */
#ifndef SCHED_JOB_H
#define SCHED_JOB_H

#include "sched/limits/transport_params.h"

#include <stdint.h>

enum { JOB_EXACT = 64, JOB_CLASSES = 256 };

struct job {
    union {
        struct { /* not begun */
            struct job *prev, *next;
        };
        struct {             /* begun */
            int64_t account; /* transactions not yet spent; below 0: a loan */
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
    int64_t candidate_space; /* for which it was chosen */
    bool is_cached;
};

void jobs_free(struct jobs *jobs); /* the jobs are the owner's */
/* Forgets all jobs. */
void jobs_clear(struct jobs *jobs);

/* A new job behind all others. size >= 1, transactions. Its since_s must be set, and
 * not before that of an earlier one, or it counts as that much younger than it is. */
void jobs_add(struct jobs *jobs, struct job *job, unsigned size);

/* Who is served next when current is the first in order: current, or the job that
 * preempts it, which is paid for and has begun, and which the owner must put directly
 * before it. now_s may wrap. */
struct job *jobs_choose(struct jobs *jobs, const struct transport_params *t,
                        struct job *current, uint32_t now_s);

/* One transaction of the job is taken. Once it has taken them all, it is the owner's.
 */
void jobs_serve(struct jobs *jobs, struct job *job);
/* Then: that was less than a whole one, so it has one more to take than it said. */
void jobs_grow(struct job *job);

/* The class of a size, 0 to JOB_CLASSES - 1. */
unsigned job_class(unsigned size);

#endif
