/* The health of the queue and of its disk. */
#include "queue/queue_internal.h"

#include <assert.h>

void
queue_look_at_disk(struct queue *q)
{
    assert(q->share.lock >= 0); /* a daemon */
    q->filesystem_check = (struct filesystem_check){
        .disk = q->spool.disk, .log = q->spool.log, .loop = q->loop};
    filesystem_check_start(&q->filesystem_check);
    space_look(&q->drafts.space, q->journaled.journal != NULL);
}

void
queue_describe_space(const struct queue *q, char out[QUEUE_SPACE_MAX])
{
    assert((int)QUEUE_SPACE_MAX == (int)SPACE_TEXT_MAX);
    space_describe(&q->drafts.space, out);
}

struct queue_health
queue_health(struct queue *q)
{
    struct queue_health health = {.stored = q->commits.stored + q->picked_up,
                                  .retired = q->retired,
                                  .quarantined = q->spool.quarantined,
                                  .syncs = q->spool.syncs,
                                  .journaled = HASH_COUNT(q->journaled.messages),
                                  .damages = q->journaled.damages};
    health.sync_blocks = disk_sync_way(q->spool.disk) == DISK_SYNC_BLOCKS;
    if (q->journaled.journal != NULL) {
        struct journal_figures figures = journal_figures(q->journaled.journal);
        health.segments = figures.segments;
        health.free_segments = figures.free_segments;
        health.batches = figures.batches;
        health.syncs += figures.syncs;
        health.journal_full = figures.full;
    }
    drafts_tell_health(&q->drafts, &health);
    health.accepting = health.reason[0] == '\0';
    return health;
}

bool
queue_has_found_all(const struct queue *q)
{
    const struct recover *r = &q->recover;
    return r->listed && r->next == r->count && r->later_count == 0;
}

uint64_t
queue_bytes_read(const struct queue *q)
{
    return q->spool.bytes_read;
}

struct queue_apart
queue_count_apart(struct queue *q)
{
    return queue_listing_count_apart(&q->spool);
}
