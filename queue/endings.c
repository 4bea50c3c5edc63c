/* Removes the files of messages whose END is durable. */
#include "queue/endings.h"

#include "base/memory.h"

#include <stdlib.h>
#include <uthash.h>
#include <utlist.h>

enum { SYNC_MS = 100 };

struct ending {
    struct id id;
    uint64_t batch;
    struct ending *prev, *next;
    UT_hash_handle hh;
};

static struct ending *
find(const struct endings *n, struct id id)
{
    struct ending *e = NULL;
    HASH_FIND(hh, n->table, &id, sizeof(id), e);
    return e;
}

static void
forget(struct endings *n, struct ending *e)
{
    DL_DELETE(n->list, e);
    HASH_DEL(n->table, e);
    free(e);
}

void
endings_add(struct endings *n, struct id id, uint64_t batch)
{
    if (find(n, id) != NULL)
        return; /* an operator is quick */
    struct ending *e = memory_new(sizeof(*e));
    e->id = id;
    e->batch = batch;
    DL_APPEND(n->list, e);
    HASH_ADD(hh, n->table, id, sizeof(e->id), e);
}

/* While its todo stays, a scan must not take it for a new message. */
static void
remove_files(struct endings *n, struct id id)
{
    if (spool_remove_all(n->spool, id) == 0)
        seen_remove(n->seen, id);
}

uint64_t
endings_end(struct endings *n, struct id id)
{
    if (n->young->journal == NULL) {
        remove_files(n, id);
        n->unsynced = true;
        return 0;
    }
    /* Until it is removed a scan finds it. */
    seen_add(n->seen, id);
    uint64_t batch = journal_end(n->young->journal, id, NULL, RECORD_END);
    endings_add(n, id, batch);
    return batch;
}

void
endings_sync(struct endings *n)
{
    loop_timer_stop(n->loop, &n->sync);
    if (n->unsynced)
        (void)spool_sync_rooms(n->spool, ROOM_BIT(ROOM_QUEUED) | ROOM_BIT(ROOM_INFO));
    n->unsynced = false;
}

static void
sync_removed(void *context)
{
    endings_sync(context);
}

void
endings_end_foreign(struct endings *n, struct id id)
{
    remove_files(n, id);
    n->unsynced = true;
    if (!heap_has(&n->sync.node))
        loop_timer_start(n->loop, &n->sync, SYNC_MS, sync_removed, n);
}

bool
endings_have(const struct endings *n, struct id id)
{
    return find(n, id) != NULL;
}

void
endings_settled(struct endings *n, uint64_t batch, int error)
{
    struct ending *e, *next;
    DL_FOREACH_SAFE (n->list, e, next) {
        if (error < 0 && e->batch == batch)
            e->batch++; /* written anew */
        if (e->batch > batch)
            break;
        struct id id = e->id;
        forget(n, e);
        remove_files(n, id);
    }
}

void
endings_stop(struct endings *n)
{
    struct ending *e, *next;
    if (heap_has(&n->sync.node))
        endings_sync(n);
    DL_FOREACH_SAFE (n->list, e, next)
        forget(n, e);
}
