/* Adoption of journals whose daemon is gone: of another number of slices, of a dead
 * instance, or our own after the journal was turned off.
 *
 * Their messages of all slices move to the spool's files; then the segments are
 * removed. A journal below journal/ is named by the part of the names that its daemon
 * handled, FIRST-LAST of ID_SLICES_MAX; a process that holds the lock on some of that
 * part knows that the daemon is dead. After a kill at any moment the next pass
 * continues: until a whole journal is durable in files, its records count. */
#ifndef QUEUE_RECOVERY_ADOPT_H
#define QUEUE_RECOVERY_ADOPT_H

#include "queue/recovery/preprocess.h"
#include "queue/spool/slices.h"
#include "queue/journal/journaled.h"

enum { ADOPT_PATH_MAX = 32 };

/* The path of a slice's journal. */
void adopt_journal_path(unsigned slices, unsigned slice, char journal[ADOPT_PATH_MAX]);

struct adopt_journal {
    unsigned first, last;
    char path[ADOPT_PATH_MAX];
};
struct adopt_journals {
    struct adopt_journal *rows; /* the caller's to free */
    size_t count;
};
/* All journals whose records count. 0 or -errno. */
int adopt_list(struct disk *disk, struct adopt_journals *journals);

struct adopted {
    unsigned journals, messages;
    bool busy;       /* another petrel uses one of them: ask again soon */
    bool unreadable; /* the messages in one of them are unknown */
    bool refused;    /* the disk refused a part: `withheld` must wait */
    bool blocking;   /* busy or unreadable, with a part in `ours` */
};

/* One pass over the journals that have a part in common with `slices`, but for `own`.
 */
struct adopt {
    struct spool *spool;
    struct loop *loop;
    struct slices slices;
    struct slices ours; /* those that we handle already */
    const char *own;    /* NULL: none */
    void (*done)(void *context);
    void *context;

    /* Results; the owner frees withheld. */
    struct adopted result;
    struct id_set withheld; /* in a journal that is left: their files must not change */
    /* Reassembled messages, of this pass or an earlier one, are added; or NULL. */
    struct id_set *made;

    struct adopt_journals journals; /* from here on: private */
    size_t next;
    int lock;                   /* of the current journal; -1: none */
    struct journaled journaled; /* its messages */
    struct id *ended;           /* ended in it: remove remaining files */
    size_t ended_count, ended_next;
    struct journaled_message *at; /* the next one to move */
    unsigned before;              /* messages of other journals */
    bool failed;                  /* for a part of this journal */
    bool marked;                  /* a message of it: marker.h */
    bool running, moving, synchronous;
    struct preprocessor preprocessor;
    struct loop_task task;
};

/* The caller sets the members from spool to context before; done is called in a later
 * turn. */
void adopt_start(struct adopt *a);
/* The same at startup, before service: waits for the disk; done is not called. */
void adopt_synchronously(struct adopt *a);
bool adopt_is_running(const struct adopt *a);
/* Leaves unfinished work to the next pass; done is no longer called. */
void adopt_stop(struct adopt *a);

#endif
