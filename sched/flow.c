/* Fair turns over senders, jobs within.
 *
 * The flows of a site are in a heap by virtual time; that of the flow served last is the
 * present virtual time of the turns. A flow in the heap has mail, or was served beyond
 * the present time; flow_leave() keeps the first in the heap one that has mail. */
#include "sched/flow.h"

#include "base/memory.h"
#include "sched/destination.h"
#include "sched/message.h"

#include <assert.h>
#include <stdlib.h>
#include <utlist.h>

enum {
    COST_UNIT = 1024, /* of a small transaction */
    IDLE_MAX = 1000,  /* flows of a queue without mail whose turn has not passed */
    RUN_NEW_MAX = 7,  /* transactions of new mail in a row while deferred mail waits */
    RUN_OLD_EARLY = 1000 /* run_old from which deferred mail may be early */
};

static const unsigned weights[4] = {
    [SCHED_CLASS_NORMAL] = 4, [SCHED_CLASS_URGENT] = 16, [SCHED_CLASS_BULK] = 1};

uint64_t
sched_sender(struct text address)
{
    /* A sender that forges a colliding hash only shares the other sender's turns. */
    uint64_t hash = TEXT_HASH;
    bool is_cut = false;
    for (size_t i = 0; i < address.length; i++) {
        char c = address.at[i];
        is_cut = (is_cut || c == '+' || c == '=') && c != '@';
        if (!is_cut)
            hash = text_hash_nocase(hash, text_of(&address.at[i], 1));
    }
    return hash;
}

static unsigned
flow_weight(const struct flow *f)
{
    return weights[f->key.sender & 3];
}

/* Among equals the heavier class is first: with a thousand senders that have had no
 * turn yet, urgent mail would otherwise wait for all of them. Then first come, first
 * served. */
static bool
served_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct flow *x = memory_container(a, struct flow, node);
    const struct flow *y = memory_container(b, struct flow, node);
    if (x->virtual_time != y->virtual_time)
        return x->virtual_time < y->virtual_time;
    if (flow_weight(x) != flow_weight(y))
        return flow_weight(x) > flow_weight(y);
    return x->number < y->number;
}

enum flow_age
flow_age(const struct sched_message *m)
{
    return m->attempts == 0 ? FLOW_NEW : FLOW_OLD;
}

void
flow_queue_init(struct flow_queue *q)
{
    *q = (struct flow_queue){0};
    for (int age = 0; age < FLOW_AGES; age++)
        heap_init(&q->turns[age].flows, served_before);
}

void
flow_queue_free(struct flow_queue *q)
{
    assert(q->recipients == 0);
    for (int age = 0; age < FLOW_AGES; age++) {
        assert(q->turns[age].entries == 0 && !heap_first(&q->turns[age].flows));
        heap_free(&q->turns[age].flows);
    }
}

static struct flow *
flow_find(const struct flows *flows, const struct flow_turns *turns, uint64_t sender)
{
    struct flow_key key = {.turns = (uintptr_t)turns, .sender = sender};
    struct flow *f;
    HASH_FIND(hh, flows->by_key, &key, sizeof(key), f);
    return f;
}

bool
flow_queue_has_sender(const struct flows *flows, const struct flow_queue *q,
                      const struct sched_message *m)
{
    const struct flow *f = flow_find(flows, &q->turns[flow_age(m)], m->sender);
    return f && f->waiting;
}

/* A new flow starts at the present virtual time. With 0 it would be served alone until
 * it had caught up with the others. */
static struct flow *
flow_get(struct flows *flows, struct flow_turns *turns, uint64_t sender)
{
    struct flow *f = flow_find(flows, turns, sender);
    if (f)
        return f;
    f = memory_new(sizeof(*f));
    f->key = (struct flow_key){.turns = (uintptr_t)turns, .sender = sender};
    f->virtual_time = turns->virtual_time;
    f->number = flows->number++;
    HASH_ADD(hh, flows->by_key, key, sizeof(f->key), f);
    heap_add(&turns->flows, &f->node);
    turns->idle++;
    return f;
}

static void
flow_free(struct flows *flows, struct flow_turns *turns, struct flow *f)
{
    assert(!f->waiting);
    heap_remove(&turns->flows, &f->node);
    turns->idle--;
    HASH_DELETE(hh, flows->by_key, f);
    if (f->jobs)
        jobs_free(f->jobs);
    free(f->jobs);
    free(f);
}

static unsigned
entry_limit(const struct entry *e)
{
    int limit = transport_params_recipients(destination_transport(e->destination));
    return limit > 0 ? (unsigned)limit : UINT32_MAX;
}

/* Without overflow: a limit of UINT32_MAX means none. */
static unsigned
entry_works(const struct entry *e)
{
    unsigned left = e->count - e->given, limit = entry_limit(e);
    return left / limit + (left % limit > 0);
}

static void
flow_add_jobs(struct flow *f)
{
    struct entry *e;
    DL_FOREACH (f->waiting, e)
        jobs_add(f->jobs, &e->job, entry_works(e));
}

static void
flow_make_jobs(struct flow *f)
{
    if (!f->jobs)
        f->jobs = memory_new(sizeof(*f->jobs));
}

void
flow_queue_append(struct flows *flows, struct flow_queue *q, struct entry *e)
{
    assert(e->count > e->given);
    struct flow_turns *turns = &q->turns[flow_age(e->message)];
    struct flow *f = flow_get(flows, turns, e->message->sender);
    unsigned works = entry_works(e);
    if (works > 1 && !f->jobs) {
        flow_make_jobs(f);
        flow_add_jobs(f);
    }
    turns->idle -= !f->waiting;
    turns->entries++;
    DL_APPEND(f->waiting, e);
    if (f->jobs)
        jobs_add(f->jobs, &e->job, works);
    q->recipients += e->count - e->given;
}

bool
flow_queue_may_be_early(const struct flow_queue *q)
{
    return q->turns[FLOW_OLD].entries == 0 ||
           (q->turns[FLOW_NEW].entries == 0 && q->run_old >= RUN_OLD_EARLY);
}

/* The flow that is served next; NULL when nothing waits. When only one age has mail, it
 * gets every turn. */
static struct flow *
flow_first(const struct flow_queue *q)
{
    bool is_new = q->turns[FLOW_OLD].entries == 0 ||
                  (q->turns[FLOW_NEW].entries > 0 && q->run_new < RUN_NEW_MAX);
    struct heap_node *first = heap_first(&q->turns[is_new ? FLOW_NEW : FLOW_OLD].flows);
    return first ? memory_container(first, struct flow, node) : NULL;
}

struct entry *
flow_queue_first(const struct flow_queue *q)
{
    const struct flow *first = flow_first(q);
    return first ? first->waiting : NULL;
}

/* Puts first the job that the flow serves now, by sched/limits/job.h. Jobs are made only
 * when a message needs several transactions: ordinary mail never pays for them. Without
 * them an entry may still bear the account of another flow that it has left. */
static struct entry *
flow_choose(struct flow *f, const struct transport_params *t, uint32_t job_s)
{
    if (!f->jobs)
        return f->waiting;
    struct job *first = &f->waiting->job, *job = jobs_choose(f->jobs, t, first, job_s);
    struct entry *e = memory_container(job, struct entry, job);
    if (job != first) {
        DL_DELETE(f->waiting, e);
        DL_PREPEND(f->waiting, e);
    }
    return e;
}

/* A heavier class pays less for the same mail, so its turn comes more often. */
static uint64_t
entry_cost(const struct entry *e)
{
    return e->message->cost * (uint64_t)COST_UNIT / weights[e->message->class];
}

/* A sender without mail is remembered until the turns reach its virtual time. Otherwise
 * a sender of one message at a time would be new, and served next, each time. IDLE_MAX
 * bounds the memory for them. */
static void
flow_leave(struct flows *flows, struct flow_turns *turns, struct flow *f)
{
    if (!f->waiting && ++turns->idle > IDLE_MAX)
        flow_free(flows, turns, f);
    struct heap_node *node;
    while ((node = heap_first(&turns->flows))) {
        f = memory_container(node, struct flow, node);
        if (f->waiting)
            return;
        turns->virtual_time = f->virtual_time;
        flow_free(flows, turns, f);
    }
}

static void
flow_count_run(struct flow_queue *q, enum flow_age age)
{
    unsigned *run = age == FLOW_NEW ? &q->run_new : &q->run_old,
             *other = age == FLOW_NEW ? &q->run_old : &q->run_new;
    *other = 0;
    if (*run < RUN_OLD_EARLY)
        ++*run;
}

struct entry *
flow_queue_cut(struct flows *flows, struct flow_queue *q, unsigned most,
               const struct transport_params *t, uint32_t job_s, unsigned *first,
               unsigned *count)
{
    assert(q->recipients > 0);
    struct flow *f = flow_first(q);
    struct flow_turns *turns = &q->turns[flow_age(f->waiting->message)];
    /* The virtual time is the heap's key: it must not change inside the heap. */
    heap_remove(&turns->flows, &f->node);
    struct entry *e = flow_choose(f, t, job_s);
    unsigned left = e->count - e->given, limit = entry_limit(e), works = entry_works(e);
    if (most > 0 && most < limit)
        limit = most;
    *first = e->first + e->given;
    *count = left < limit ? left : limit;
    e->given += *count;
    /* A host that takes fewer recipients than the transport (RFC 9422) makes the job
     * longer than was counted. */
    if (f->jobs)
        jobs_serve(f->jobs, &e->job);
    if (f->jobs && works == entry_works(e))
        jobs_grow(&e->job);
    q->recipients -= *count;
    flow_count_run(q, flow_age(e->message));
    turns->virtual_time = f->virtual_time;
    if (e->given == e->count) {
        DL_DELETE(f->waiting, e);
        turns->entries--;
    }
    f->virtual_time += entry_cost(e);
    heap_add(&turns->flows, &f->node);
    flow_leave(flows, turns, f);
    return e;
}

/* The jobs start again: their accounts belong to a queue of before. */
static void
flow_keep(struct flow_queue *q, struct flow_turns *turns, struct flow *f,
          struct entry *kept)
{
    struct entry *e;
    if (f->jobs)
        jobs_clear(f->jobs);
    f->waiting = kept;
    DL_FOREACH (kept, e) {
        if (entry_works(e) > 1)
            flow_make_jobs(f);
        turns->entries++;
        q->recipients += e->count - e->given;
    }
    if (f->jobs)
        flow_add_jobs(f);
}

void
flow_queue_drop(struct flows *flows, struct flow_queue *q, struct entry *e)
{
    struct flow_turns *turns = &q->turns[flow_age(e->message)];
    struct flow *f = flow_find(flows, turns, e->message->sender);
    assert(f && f->waiting && e->given < e->count);
    DL_DELETE(f->waiting, e);
    turns->entries--;
    q->recipients -= e->count - e->given;
    if (f->jobs)
        jobs_drop(f->jobs, &e->job);
    if (!f->waiting)
        flow_leave(flows, turns, f);
}

/* The heap is rebuilt: flows with mail of other destinations keep their turn, flows
 * without mail are freed. */
static void
flow_turns_take(struct flows *flows, struct flow_queue *q, struct flow_turns *turns,
                const struct destination *only, struct entry **list)
{
    struct heap_node *node;
    struct heap rest;
    heap_init(&rest, served_before);
    turns->entries = 0;
    while ((node = heap_first(&turns->flows))) {
        struct flow *f = memory_container(node, struct flow, node);
        struct entry *e, *next, *kept = NULL;
        bool was_idle = !f->waiting;
        DL_FOREACH_SAFE (f->waiting, e, next) {
            DL_DELETE(f->waiting, e);
            if (!only || e->destination == only)
                DL_APPEND(*list, e);
            else
                DL_APPEND(kept, e);
        }
        flow_keep(q, turns, f, kept);
        turns->idle += !kept && !was_idle;
        if (!kept) {
            flow_free(flows, turns, f);
            continue;
        }
        heap_remove(&turns->flows, node);
        heap_add(&rest, node);
    }
    heap_free(&turns->flows);
    turns->flows = rest;
}

void
flow_queue_take(struct flows *flows, struct flow_queue *q,
                const struct destination *only, struct entry **list)
{
    q->recipients = 0;
    for (int age = 0; age < FLOW_AGES; age++)
        flow_turns_take(flows, q, &q->turns[age], only, list);
}
