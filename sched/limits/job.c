/* Jobs of a destination: slot accounts, candidates by size class, preemption.
 *
 * Within a class the oldest job stands first, and for jobs of about one size the oldest
 * has the greatest age / size. So one job of each class is enough for a decision, and a
 * bitmap tells which classes have any. */
#include "sched/limits/job.h"

#include "base/memory.h"
#include "sched/limits/limits_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    EXACT_BITS = 6, /* JOB_EXACT = 1 << EXACT_BITS */
    STEP_BITS = 4,  /* classes in a doubling = 1 << STEP_BITS */
    WORD = 64
};

unsigned
job_class(unsigned size)
{
    assert(size > 0);
    if (size <= JOB_EXACT)
        return size - 1;
    unsigned log = 31 - (unsigned)__builtin_clz(size);
    unsigned step = (size >> (log - STEP_BITS)) & ((1u << STEP_BITS) - 1);
    unsigned at = JOB_EXACT + ((log - EXACT_BITS) << STEP_BITS) + step;
    return at < JOB_CLASSES ? at : JOB_CLASSES - 1;
}

void
jobs_free(struct jobs *jobs)
{
    free(jobs->classes);
    *jobs = (struct jobs){0};
}

void
jobs_clear(struct jobs *jobs)
{
    if (jobs->class_count > 0)
        memset(jobs->classes, 0, jobs->class_count * sizeof(struct job *));
    memset(jobs->present, 0, sizeof(jobs->present));
    jobs->is_cached = false;
}

void
jobs_add(struct jobs *jobs, struct job *job, unsigned size)
{
    assert(size > 0 && size <= INT32_MAX);
    unsigned at = job_class(size);
    if (at >= jobs->class_count) {
        jobs->classes = memory_resize(jobs->classes, (at + 1) * sizeof(struct job *));
        memset(&jobs->classes[jobs->class_count], 0,
               (at + 1 - jobs->class_count) * sizeof(struct job *));
        jobs->class_count = at + 1;
    }
    job->size = size & INT32_MAX;
    job->begun = 0;
    DL_APPEND(jobs->classes[at], job);
    jobs->present[at / WORD] |= UINT64_C(1) << at % WORD;
    jobs->is_cached = false;
}

static void
job_begin(struct jobs *jobs, struct job *job)
{
    unsigned at = job_class(job->size);
    assert(!job->begun && at < jobs->class_count && jobs->classes[at]);
    DL_DELETE(jobs->classes[at], job);
    if (!jobs->classes[at])
        jobs->present[at / WORD] &= ~(UINT64_C(1) << at % WORD);
    jobs->is_cached = false;
    job->begun = 1;
    job->account = 0;
    job->served = 0;
}

/* In whole seconds, from 1: mail of the same second has the same age. */
static int64_t
job_age(const struct job *job, uint32_t now_s)
{
    int32_t age = (int32_t)(now_s - job->since_s);
    return age < 0 ? 1 : (int64_t)age + 1;
}

/* A later class of equal value holds an older job, which stands first. */
static struct job *
better(struct job *best, struct job *job, uint32_t now_s)
{
    if (!best || job_age(job, now_s) * best->size >= job_age(best, now_s) * job->size)
        return job;
    return best;
}

/* The best job not begun whose size is within space. */
static struct job *
find_candidate(const struct jobs *jobs, int64_t space, uint32_t now_s)
{
    struct job *best = NULL;
    unsigned last = space > INT32_MAX ? JOB_CLASSES - 1 : job_class((unsigned)space);
    for (unsigned word = 0; word <= last / WORD; word++) {
        for (uint64_t bits = jobs->present[word]; bits; bits &= bits - 1) {
            unsigned at = word * WORD + (unsigned)__builtin_ctzll(bits);
            struct job *first = jobs->classes[at];
            assert(first);
            if (first->size <= space)
                best = better(best, first, now_s);
        }
    }
    return best;
}

/* A job's space does not change while it is served, so the result stays valid for long;
 * "none" does not even depend on the time. */
static struct job *
candidate(struct jobs *jobs, int64_t space, uint32_t now_s)
{
    if (space <= 0)
        return NULL;
    if (jobs->is_cached && jobs->candidate_space == space &&
        (!jobs->candidate || jobs->candidate_s == now_s))
        return jobs->candidate;
    jobs->candidate = find_candidate(jobs, space, now_s);
    jobs->candidate_space = space;
    jobs->candidate_s = now_s;
    jobs->is_cached = true;
    return jobs->candidate;
}

struct job *
jobs_choose(struct jobs *jobs, const struct transport_params *t, struct job *current,
            uint32_t now_s)
{
    /* account <= 0: it has spent more than it has earned, and repays first. */
    int64_t cost = t->slot_cost;
    if (cost < 2 || !current->begun || current->account <= 0 ||
        current->size < t->minimum_slots * cost)
        return current;
    assert(current->served < current->size);
    /* All slots that it can still earn, and those it has. */
    int64_t space = (current->size - current->served + current->account) / cost;
    struct job *job = candidate(jobs, space, now_s);
    if (!job)
        return current;
    int64_t slots = current->account / cost + t->slot_loan;
    if (slots * 100 < (int64_t)job->size * (100 - t->slot_discount))
        return current;
    current->account -= job->size * cost;
    job_begin(jobs, job);
    return job;
}

void
jobs_serve(struct jobs *jobs, struct job *job)
{
    if (!job->begun)
        job_begin(jobs, job);
    assert(job->served < job->size);
    job->served++;
    job->account++;
}

void
jobs_drop(struct jobs *jobs, struct job *job)
{
    if (!job->begun)
        job_begin(jobs, job);
}

void
jobs_grow(struct job *job)
{
    assert(job->begun && job->size < INT32_MAX);
    job->size = (job->size + 1) & INT32_MAX;
}
