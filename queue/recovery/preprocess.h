/* From S4, or from the journal, to S5: many messages at a time, durable without
 * waiting.
 *
 *   write     bounce, local, remote, info; for young mail mess too
 *   sync      each file, all at once; then todo/ (a todo that came back over a finished
 *             info would be delivered again); then the other directories
 * then the todos go. A crash anywhere before leaves the message what it was: whoever
 * finds both believes S5 only when it is whole (recover.c). */
#ifndef QUEUE_PREPROCESS_H
#define QUEUE_PREPROCESS_H

#include "queue/spool/spool.h"
#include "queue/journal/journaled.h"

enum {
    PREPROCESSOR_MAX = 32,
    PREPROCESSOR_FILES = PREPROCESSOR_MAX * SPOOL_PREPROCESSED_FILES
};

struct preprocess {
    struct envelope *envelope; /* then preprocessed */
    bool owned;                /* the envelope is for the mover's user to free */
    struct journaled_content *content; /* of young mail that is not large; released */
    bool young;
    int result; /* 0 or -errno: the message is what it was */
};

struct preprocessor;
struct preprocessor_sync {
    struct disk_sync sync;
    struct preprocessor *mover;
    int file;
    unsigned move;      /* index, */
    enum spool_dir dir; /* or directory */
};

struct preprocessor {
    struct spool *spool;
    void (*done)(
        void *context); /* not called when preprocess_prepare() was done at once */
    void *context;

    struct preprocess moves[PREPROCESSOR_MAX];
    unsigned count; /* 0: idle */
    unsigned stage, running;
    bool starting;
    int dirs_result;
    struct preprocessor_sync syncs[PREPROCESSOR_FILES + SPOOL_DIRS];
    unsigned sync_count;
};

/* spool to context are the caller's to set before. The caller fills moves and count.
 * True: done already. Else done is called once all are; count is then still set, and
 * the caller's to make 0 when the results have been read. */
bool preprocess_prepare(struct preprocessor *m);
/* Nobody hears of what is under way; to be called before the disk is closed. */
void preprocess_end(struct preprocessor *m);

#endif
