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
struct manager;
struct queue;

struct copies_keeper_setup {
    struct loop *loop;
    struct log *log;
    struct queue *queue;
    struct manager *manager; /* of the queue: for lock/ended. NULL: there is none */
    struct copies_engine *engine;
    const struct copies_settings *settings;
    const char *identity; /* of the spool */
    const char *who;      /* the owner of our copies, for the scripts */
    /* Another host owns our copies: close it. owner: its name. */
    void (*fenced)(void *context, const char *owner);
    void *context;
};

/* It waits for copies_keeper_open() whenever the engine has connected. */
struct copies_keeper *copies_keeper_new(const struct copies_keeper_setup *setup);
void copies_keeper_free(struct copies_keeper **keeper);

/* Our copies are ours, and number is that of the last batch in the engine; the next one has a
 * larger number than least, too. What is here and not there is stored: at the first time, and when
 * the engine has lost something, all messages are looked at. */
void copies_keeper_open(struct copies_keeper *keeper, uint64_t number, uint64_t least);
/* They are not: nothing is sent, and new mail is refused. */
void copies_keeper_close(struct copies_keeper *keeper, const char *why);
/* The messages of all batches up to that number are durable here, whether the engine has them or
 * not. */
uint64_t copies_keeper_durable(struct copies_keeper *keeper);

/* The message has ended, and the engine has not heard of it. */
bool copies_keeper_is_ending(const struct copies_keeper *keeper, struct id id);
/* The message is here: so is its copy, as it is now. */
bool copies_keeper_has(const struct copies_keeper *keeper, struct id id);
/* The message has ended here, and its copy is there: it is removed. */
void copies_keeper_remove(struct copies_keeper *keeper, struct id id);

struct copies_state {
    bool is_ready, is_away; /* neither: it is being connected */
    const char *why;        /* it is not; "" */
    uint64_t behind;        /* messages that have no copy yet */
    /* Since startup. gaps: so much happened while the engine was away that it may have messages
     * that have ended. */
    uint64_t stored, refused, removed, batches, bytes, losses, gaps;
    int64_t away_since_ms; /* monotonic; 0: it is not away */
};
struct copies_state copies_keeper_state(const struct copies_keeper *keeper);

#endif
