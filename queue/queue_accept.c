/* The accepting part of queue.h: from the first byte of a message to its commit. */
#include "queue/queue.h"

#include "base/loop/loop.h"
#include "base/memory.h"
#include "queue/queue_internal.h"

#include <assert.h>

static struct queue_draft *
queue_begin_draft(struct queue *q, int64_t size_expected, bool own,
                  struct outcome *refusal)
{
    if (q->own_loop != NULL)
        loop_turn(q->own_loop, 0); /* updates the clock: no other turns come */
    return draft_begin(&q->drafts, size_expected, own, refusal);
}

bool
queue_admits(struct queue *q, int64_t size_expected, struct outcome *refusal)
{
    if (q->own_loop != NULL)
        loop_turn(q->own_loop, 0); /* updates the clock: no other turns come */
    return drafts_admit(&q->drafts, size_expected, false, refusal);
}

struct queue_draft *
queue_begin(struct queue *q, int64_t size_expected, struct outcome *refusal)
{
    return queue_begin_draft(q, size_expected, false, refusal);
}

struct queue_draft *
queue_begin_own(struct queue *q, int64_t size_expected, struct outcome *refusal)
{
    return queue_begin_draft(q, size_expected, true, refusal);
}

void
queue_commit(struct queue_draft **draft, struct envelope **e, queue_stored *stored,
             void *context)
{
    struct queue *q = memory_container((*draft)->drafts, struct queue, drafts);
    commits_add(&q->commits, draft, e, stored, context);
}

bool
queue_is_storing(const struct queue *q)
{
    return commits_are_under_way(&q->commits);
}

void
queue_each_taken(struct queue *q, size_t most,
                 void (*each)(void *context, const char *came, struct id id),
                 void *context)
{
    journaled_each_taken(&q->journaled, most, each, context);
}

void
queue_commit_begin(struct queue *q)
{
    assert(q->own_loop != NULL);
    q->commits.gathers = true;
}

void
queue_commit_end(struct queue *q)
{
    commits_gathered(&q->commits);
}

void
queue_commit_ignore(struct queue *q, void *context)
{
    commits_ignore(&q->commits, context);
}
