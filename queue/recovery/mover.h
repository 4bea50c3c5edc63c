/* From S4, or from the journal, to S5: many messages at a time, durable without
 * waiting.
 *
 *   write     bounce, local, remote, info; for young mail mess too
 *   sync      each file, all at once; then todo/ (a todo that came back over a finished
 *             info would be delivered again); then the other rooms
 * then the todos go. A crash anywhere before leaves the message what it was: whoever
 * finds both believes S5 only when it is whole (recover.c). */
#ifndef QUEUE_MOVER_H
#define QUEUE_MOVER_H

#include "queue/spool/spool.h"
#include "queue/journal/young.h"

enum { MOVER_MAX = 32, MOVER_FILES = MOVER_MAX * SPOOL_PREPROCESSED_FILES };

struct move {
    struct envelope *envelope;     /* then preprocessed */
    bool owned;                    /* the envelope is for the mover's user to free */
    struct young_content *content; /* of young mail that is not large; released */
    bool young;
    int result; /* 0 or -errno: the message is what it was */
};

struct mover;
struct mover_sync {
    struct disk_sync sync;
    struct mover *mover;
    int file;
    unsigned move;  /* index, */
    enum room room; /* or room */
};

struct mover {
    struct spool *spool;
    void (*done)(void *context); /* not called when mover_start() was done at once */
    void *context;

    struct move moves[MOVER_MAX];
    unsigned count; /* 0: idle */
    unsigned stage, running;
    bool starting;
    int rooms_result;
    struct mover_sync syncs[MOVER_FILES + ROOMS];
    unsigned sync_count;
};

/* spool to context are the caller's to set before. The caller fills moves and count.
 * True: done already. Else done is called once all are; count is then still set, and
 * the caller's to make 0 when the results have been read. */
bool mover_start(struct mover *m);
/* Nobody hears of what is under way; to be called before the disk is closed. */
void mover_stop(struct mover *m);

#endif
