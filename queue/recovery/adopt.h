/* Journals whose daemon is no more: of another number of slices, of a dead instance, or
 * our own after the journal was turned off.
 *
 * Their messages move to the spool's files, of whatever slice they are; then the
 * segments go. A journal below journal/ is named by the part of the names that its daemon
 * handled, FIRST-LAST of ID_SLICES_MAX; whoever holds the lock on some of that part
 * knows that the daemon is dead. Killed at any moment, the next one does the rest:
 * until all of a journal is durable in files, its records count. */
#ifndef QUEUE_ADOPT_H
#define QUEUE_ADOPT_H

#include "queue/recovery/preprocess.h"
#include "queue/spool/slices.h"
#include "queue/journal/journaled.h"

enum { ADOPT_PATH_MAX = 32 };

/* Of the journal of a slice. */
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
    bool busy;       /* another petrel is at one of them: ask again soon */
    bool unreadable; /* nothing is known of the messages in one of them */
    bool refused;    /* the disk refused something: `withheld` must wait */
    bool blocking;   /* busy or unreadable, and it may have messages of `ours` */
};

/* One pass over the journals that have a part in common with `slices`, but for `own`.
 */
struct adopt {
    struct spool *spool;
    struct loop *loop;
    struct slices slices;
    struct slices ours; /* those of them that we handle already */
    const char *own;    /* NULL: none */
    void (*done)(void *context);
    void *context;

    /* Then; withheld is the owner's to free. */
    struct adopted result;
    struct id_set withheld; /* what a journal that is left has: hands off its files */
    struct id_set *made; /* what was made of other messages, now or in an earlier pass,
                          is added; or NULL */

    struct adopt_journals journals; /* from here on: inside */
    size_t next;
    int lock;               /* of the journal at work; -1: none is */
    struct journaled young; /* what it has */
    struct id *ended;       /* of its: to be removed, if something is left */
    size_t ended_count, ended_next;
    struct journaled_message *at; /* to be moved next */
    unsigned before;              /* messages of other journals */
    bool failed;                  /* something of this journal */
    bool marked;                  /* a message of it: joined_mark.h */
    bool running, moving, at_once;
    struct preprocessor mover;
    struct loop_task task;
};

/* spool to context are the caller's to set before; done is called in a later turn. */
void adopt_start(struct adopt *a);
/* The same before there is service: waits for the disk, and done is not called. */
void adopt_at_once(struct adopt *a);
bool adopt_is_running(const struct adopt *a);
/* What is under way is left to the next pass; done is not called any more. */
void adopt_stop(struct adopt *a);

#endif
