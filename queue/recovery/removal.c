/* Removes the files of messages whose END is durable.
 *
 * With a journal, END is durable before the first file goes. A slice that was taken
 * over has no journal here: its messages leave todo/ and info/, these are synced, and
 * the other files go after that (doc/dev/queue.md "Slices"). */
#include "queue/recovery/removal.h"

#include "base/memory.h"

#include <limits.h>
#include <stdlib.h>
#include <uthash.h>
#include <utlist.h>

enum {
    SYNC_MS = 100,
    PER_TURN = 100,
    PAUSE_MS = 10,
    TURN_US = 5 * 1000,
    GATE_MS = 5,
    RETRY_MS = 10 * 1000
};

struct ending {
    struct id id;
    uint64_t batch;
    unsigned dirs; /* where it may have files */
    bool is_foreign;
    struct ending *prev, *next;
    UT_hash_handle hh;
};

static struct ending *
removal_find(const struct removal *n, struct id id)
{
    struct ending *e = NULL;
    HASH_FIND(hh, n->table, &id, sizeof(id), e);
    return e;
}

static void
removal_forget(struct removal *n, struct ending **list, struct ending *e)
{
    DL_DELETE(*list, e);
    HASH_DEL(n->table, e);
    free(e);
}

static void
forget_all(struct removal *n, struct ending **list)
{
    struct ending *e, *next;
    DL_FOREACH_SAFE (*list, e, next)
        removal_forget(n, list, e);
}

static void
removal_add_one(struct removal *n, struct ending **list, struct id id, unsigned dirs,
                uint64_t batch)
{
    if (removal_find(n, id) != NULL)
        return; /* an operator was faster */
    struct ending *e = memory_new(sizeof(*e));
    e->id = id;
    e->dirs = dirs;
    e->batch = batch;
    DL_APPEND(*list, e);
    HASH_ADD(hh, n->table, id, sizeof(e->id), e);
}

void
removal_add(struct removal *n, struct id id, uint64_t batch)
{
    removal_add_one(n, &n->list, id, SPOOL_ANYWHERE, batch);
}

static void removal_try_again(void *context);

/* Files that stay would be delivered again after the next startup. */
static bool
removal_refused(struct removal *n, struct id id, unsigned dirs, bool is_foreign)
{
    if (removal_find(n, id) != NULL)
        return false;
    removal_add_one(n, &n->refused, id, dirs, 0);
    n->refused->prev->is_foreign = is_foreign;
    if (!n->stopping && !heap_has(&n->retry.node))
        loop_timer_start(n->loop, &n->retry, RETRY_MS, removal_try_again, n);
    return false;
}

/* While its todo exists, a scan must not take it for a new message. False: the disk refuses
 * that now. */
static bool
removal_remove_files(struct removal *n, struct id id, unsigned dirs)
{
    if (spool_remove_in(n->spool, id, dirs) < 0)
        return removal_refused(n, id, dirs, false);
    id_set_remove(n->seen, id);
    return true;
}

static bool remove_foreign(struct removal *n, struct id id);

/* Up to the first that is refused again: a disk that is broken is not asked, and logged,
 * for each. */
static void
removal_try_again(void *context)
{
    struct removal *n = context;
    bool good = true;
    for (unsigned i = 0; n->refused != NULL && good && (n->stopping || i < PER_TURN);
         i++) {
        struct ending e = *n->refused;
        removal_forget(n, &n->refused, n->refused);
        n->unsynced = true;
        good = e.is_foreign ? remove_foreign(n, e.id)
                            : removal_remove_files(n, e.id, e.dirs);
    }
    if (n->refused != NULL && !n->stopping)
        loop_timer_start(n->loop, &n->retry, good ? PAUSE_MS : RETRY_MS,
                         removal_try_again, n);
    if (n->removed != NULL)
        n->removed(n->context);
}

/* The removal stands for END in the files, and follows its event. The batch of one that
 * waits is the number at the gate. */
static void
removal_pass_gate(void *context)
{
    struct removal *n = context;
    struct ending *e, *next;
    DL_FOREACH_SAFE (n->barred, e, next) {
        if (!gate_is_open(n->spool->gate, e->batch))
            break;
        struct id id = e->id;
        unsigned dirs = e->dirs;
        bool is_foreign = e->is_foreign;
        removal_forget(n, &n->barred, e);
        if (is_foreign) {
            (void)remove_foreign(n, id);
        } else {
            (void)removal_remove_files(n, id, dirs);
            n->unsynced = true;
        }
    }
    if (n->barred != NULL)
        loop_timer_start(n->loop, &n->gate, GATE_MS, removal_pass_gate, n);
    else if (n->removed != NULL)
        n->removed(n->context);
}

/* True: it waits for its event. */
static bool
is_kept_back(struct removal *n, struct id id, unsigned dirs, bool is_foreign)
{
    if (gate_is_open(n->spool->gate, gate_number(n->spool->gate)))
        return false;
    if (removal_find(n, id) != NULL)
        return true; /* an operator was faster */
    removal_add_one(n, &n->barred, id, dirs, gate_number(n->spool->gate));
    n->barred->prev->is_foreign = is_foreign;
    if (!heap_has(&n->gate.node))
        loop_timer_start(n->loop, &n->gate, GATE_MS, removal_pass_gate, n);
    return true;
}

uint64_t
removal_end(struct removal *n, struct id id, unsigned dirs)
{
    if (n->journaled->journal == NULL) {
        if (is_kept_back(n, id, dirs, false))
            return 0;
        (void)removal_remove_files(n, id, dirs);
        n->unsynced = true;
        return 0;
    }
    /* Until it is removed a scan finds it. */
    id_set_add(n->seen, id);
    uint64_t batch = journal_end(n->journaled->journal, id, NULL, RECORD_END);
    removal_add_one(n, &n->list, id, dirs, batch);
    return batch;
}

/* --- Other slices ---------------------------------------------------------------- */

/* A removal that cannot be synced is left to the next startup. */
static void
sync_removals(struct removal *n)
{
    int result = 0;
    if (n->unsynced)
        result =
            spool_sync_dirs(n->spool, SPOOL_BIT(SPOOL_TODO) | SPOOL_BIT(SPOOL_INFO));
    n->unsynced = false;
    if (result < 0)
        forget_all(n, &n->foreign);
    DL_CONCAT(n->gone, n->foreign);
    n->foreign = NULL;
}

static void
remove_gone(struct removal *n, unsigned most)
{
    struct ending *e, *next;
    DL_FOREACH_SAFE (n->gone, e, next) {
        if (most-- == 0)
            break;
        struct id id = e->id;
        removal_forget(n, &n->gone, e);
        (void)removal_remove_files(n, id, SPOOL_ANYWHERE);
    }
}

static void
removal_go_on(void *context)
{
    struct removal *n = context;
    if (n->gone == NULL)
        sync_removals(n);
    remove_gone(n, PER_TURN);
    if (n->gone != NULL || n->foreign != NULL)
        loop_timer_start(n->loop, &n->sync, n->gone != NULL ? PAUSE_MS : SYNC_MS,
                         removal_go_on, n);
}

void
removal_sync(struct removal *n)
{
    sync_removals(n);
}

/* Content goes last: files that survive a power cut must not look like a damaged
 * message. */
static bool
remove_foreign(struct removal *n, struct id id)
{
    n->unsynced = true;
    if (spool_remove(n->spool, SPOOL_TODO, id) < 0)
        return removal_refused(n, id, SPOOL_ANYWHERE, true);
    id_set_remove(n->seen, id);
    if (spool_remove(n->spool, SPOOL_INFO, id) < 0)
        return removal_refused(n, id, SPOOL_ANYWHERE, true);
    removal_add_one(n, &n->foreign, id, SPOOL_ANYWHERE, 0);
    if (!heap_has(&n->sync.node))
        loop_timer_start(n->loop, &n->sync, SYNC_MS, removal_go_on, n);
    return true;
}

void
removal_end_foreign(struct removal *n, struct id id)
{
    if (!is_kept_back(n, id, SPOOL_ANYWHERE, true))
        (void)remove_foreign(n, id);
}

/* --------------------------------------------------------------------------------- */

bool
removal_have(const struct removal *n, struct id id)
{
    return removal_find(n, id) != NULL;
}

size_t
removal_count(const struct removal *n)
{
    return HASH_COUNT(n->table);
}

bool
removal_are_removed(const struct removal *n, uint64_t batch)
{
    return n->refused == NULL && (n->due == NULL || n->due->batch > batch);
}

static void
remove_due(void *context)
{
    struct removal *n = context;
    int64_t until_us = loop_clock_us() + TURN_US;
    unsigned left = PER_TURN;
    /* Beyond REMOVAL_MAX all are removed in this turn. */
    while (n->due != NULL && (n->stopping || HASH_COUNT(n->table) > REMOVAL_MAX ||
                              (left-- > 0 && loop_clock_us() < until_us))) {
        struct id id = n->due->id;
        unsigned dirs = n->due->dirs;
        removal_forget(n, &n->due, n->due);
        (void)removal_remove_files(n, id, dirs);
    }
    if (n->due != NULL)
        loop_post(n->loop, &n->task, remove_due, n);
    if (n->removed != NULL)
        n->removed(n->context);
}

void
removal_hurry(struct removal *n)
{
    n->stopping = true;
    gate_wait(n->spool->gate);
    removal_pass_gate(n);
    removal_try_again(n);
    loop_unpost(n->loop, &n->task);
    remove_due(n);
}

void
removal_settled(struct removal *n, uint64_t batch, int error, uint64_t again)
{
    struct ending *e, *next;
    bool some = false;
    DL_FOREACH_SAFE (n->list, e, next) {
        if (error < 0 && e->batch <= batch)
            e->batch = again;
        if (e->batch > batch)
            break;
        DL_DELETE(n->list, e);
        DL_APPEND(n->due, e);
        some = true;
    }
    if (some)
        remove_due(n);
}

void
removal_stop(struct removal *n)
{
    if (heap_has(&n->sync.node)) {
        loop_timer_stop(n->loop, &n->sync);
        sync_removals(n);
        remove_gone(n, UINT_MAX);
    }
    loop_timer_stop(n->loop, &n->gate);
    loop_timer_stop(n->loop, &n->retry);
    loop_unpost(n->loop, &n->task);
    forget_all(n, &n->barred);
    forget_all(n, &n->due);
    forget_all(n, &n->list);
    forget_all(n, &n->foreign);
    forget_all(n, &n->gone);
    forget_all(n, &n->refused);
}
