/* Removes the files of messages whose END is durable. */
#include "queue/endings.h"

#include "base/memory.h"

#include <stdlib.h>
#include <uthash.h>
#include <utlist.h>

struct ending {
    struct id id;
    uint64_t batch;
    struct ending *prev, *next;
};

void
endings_add(struct endings *n, struct id id, uint64_t batch)
{
    struct ending *e = memory_new(sizeof(*e));
    e->id = id;
    e->batch = batch;
    DL_APPEND(n->list, e);
}

/* While its todo stays, a scan must not take it for a new message. */
static void
remove_files(struct endings *n, struct id id)
{
    if (spool_remove_all(n->spool, id) == 0)
        seen_remove(n->seen, id);
}

void
endings_end(struct endings *n, struct id id)
{
    if (n->young->journal == NULL) {
        remove_files(n, id);
        return;
    }
    /* Until it is removed a scan finds it. */
    seen_add(n->seen, id);
    endings_add(n, id, journal_end(n->young->journal, id, NULL, RECORD_END));
}

bool
endings_have(const struct endings *n, struct id id)
{
    const struct ending *e;
    DL_FOREACH (n->list, e)
        if (id_compare(e->id, id) == 0)
            return true;
    return false;
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
        DL_DELETE(n->list, e);
        remove_files(n, e->id);
        free(e);
    }
}

void
endings_stop(struct endings *n)
{
    struct ending *e, *next;
    DL_FOREACH_SAFE (n->list, e, next) {
        DL_DELETE(n->list, e);
        free(e);
    }
}
