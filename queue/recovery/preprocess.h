/* Preprocessing: moves messages from S4, or from the journal, to S5, many at a time,
 * and syncs them without blocking.
 *
 *   write     bounce, local, remote, info; for a journaled message mess, too
 *   sync      all files in parallel; then todo/ (a todo that came back beside a
 *             complete info would be delivered again); then the other directories
 *   remove    the todos
 * A crash before the last step does not change the message: if todo and info are both
 * there, S5 counts only if it is complete (recover.c). */
#ifndef QUEUE_RECOVERY_PREPROCESS_H
#define QUEUE_RECOVERY_PREPROCESS_H

#include "queue/spool/spool.h"
#include "queue/journal/journaled.h"

enum {
    PREPROCESSOR_MAX = 32,
    PREPROCESSOR_FILES = PREPROCESSOR_MAX * SPOOL_PREPROCESSED_FILES
};

struct preprocess {
    struct id id;
    /* Is read within preprocess_prepare() alone: the files are written from this moment's
     * state, and the caller may then change or free it. */
    struct envelope *envelope;
    struct journaled_content *content; /* journaled, not large; is released */
    bool released;                     /* for the caller: what info/ID says */
    int result;                        /* 0; or -errno: the message has not changed */
    /* The places of the recipients' marks in the files. They count, and the envelope may
     * take them, when the move is over; preprocess_free() frees them. */
    struct mark_place *places;
    unsigned recipients;
};

struct preprocessor;
struct preprocessor_sync {
    struct disk_sync sync;
    struct preprocessor *preprocessor;
    int file;
    unsigned move;      /* index, */
    enum spool_dir dir; /* or directory */
};

struct preprocessor {
    struct spool *spool;
    /* Not called when preprocess_prepare() returned true. */
    void (*done)(void *context);
    void *context;

    struct preprocess moves[PREPROCESSOR_MAX];
    unsigned count; /* 0: idle */
    unsigned stage, running;
    bool starting;
    int dirs_result;
    struct preprocessor_sync syncs[PREPROCESSOR_FILES + SPOOL_DIRS];
    unsigned sync_count;
};

/* The caller sets the members from spool to context before, and fills moves (from id to
 * released) and count. True: all are done already. False: done is called when all are. The
 * caller reads the results, frees each move, then sets count to 0. */
bool preprocess_prepare(struct preprocessor *m);
void preprocess_free(struct preprocess *move);
/* Drops moves in progress without a callback; call it before the disk is closed. */
void preprocess_end(struct preprocessor *m);

#endif
