/* Keeps a copy of each message in the engine: stores it while our disk syncs it, keeps its state,
 * and removes it when the message ends.
 *
 * The answer to a client follows our sync and the acknowledgement of the engine. What a turn
 * stores, changes and ends is a batch; one is under way at a time, and the next one gathers
 * meanwhile. A message is in the engine before what it replaces is removed there. While the
 * engine is away new mail is refused, or, unless `copies_required`, it is behind: stored oldest
 * first when the engine is back. */
#ifndef QUEUE_COPIES_COPIES_KEEPER_H
#define QUEUE_COPIES_COPIES_KEEPER_H

#include "base/id.h"
#include "base/log/log.h"
#include "queue/copies/copies_engine.h"
#include "queue/copies/copies_keys.h"

struct copies_keeper;
struct loop;
struct queue;

struct copies_keeper_events {
    void *context;
    /* The engine is connected; before the first batch on this connection, or when it has lost
     * batches. was: the number of the last batch that it has; known: that of the last one
     * that it has acknowledged to this process (0: none yet). was < known: it has lost
     * something. is_whole: since then it has heard of all, or will. NULL: all messages are
     * stored again at the first time, after a loss, and unless is_whole. */
    void (*met)(void *context, uint64_t was, uint64_t known, bool is_whole);
    /* Another host owns our copies: nothing is stored any more. owner: its name. */
    void (*fenced)(void *context, const char *owner);
};

struct copies_keeper_setup {
    struct loop *loop;
    struct log *log;
    struct queue *queue;
    struct copies_engine *engine;
    const struct copies_settings *settings;
    const char *identity; /* of the spool */
    /* The owner of the copies, "HOST RUN" (adoption.h); nothing is sent then before
     * copies_keeper_open(). NULL: the host does, and they are ours. */
    const char *who;
    struct copies_keeper_events events;
};

struct copies_keeper *copies_keeper_new(const struct copies_keeper_setup *setup);
void copies_keeper_free(struct copies_keeper **keeper);

/* The message is here, and its copy is missing: it is stored again. */
void copies_keeper_again(struct copies_keeper *keeper, struct id id);
/* All messages that are here, oldest first. */
void copies_keeper_again_all(struct copies_keeper *keeper);
/* The message has ended here, and its copy is there: it is removed. */
void copies_keeper_remove(struct copies_keeper *keeper, struct id id);

/* The copies are ours, number is that of the last batch: batches go on from there. At each
 * connection. */
void copies_keeper_open(struct copies_keeper *keeper, uint64_t number);
/* They are not: nothing is sent, and all new mail is refused. */
void copies_keeper_close(struct copies_keeper *keeper, const char *why);
/* The last batch that the engine has acknowledged. */
uint64_t copies_keeper_known(const struct copies_keeper *keeper);
/* The message has ended, and the engine has not heard of it. */
bool copies_keeper_is_ending(const struct copies_keeper *keeper, struct id id);

struct copies_state {
    bool is_ready;
    const char *why; /* it is not; "" */
    uint64_t behind; /* messages that have no copy yet */
    uint64_t stored, refused, removed, batches, bytes, losses; /* since startup */
    int64_t away_since_ms; /* monotonic; 0: it is not away */
};
struct copies_state copies_keeper_state(const struct copies_keeper *keeper);

#endif
