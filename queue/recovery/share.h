/* Our share of a spool that several instances use: the locks on our slices, and the
 * journals of dead instances.
 *
 * A daemon locks its part of lock/daemon, ID_SLICES_MAX bytes long: daemons with any
 * numbers of slices exclude each other exactly where they overlap. A journal that no
 * other process can be writing is adopted: at startup, and when an operator has us take
 * over the slice of a dead instance. */
#ifndef QUEUE_RECOVERY_SHARE_H
#define QUEUE_RECOVERY_SHARE_H

#include "queue/recovery/adopt.h"
#include "queue/recovery/recover.h"

/* error: NULL, or why the slice was not taken over. */
typedef void share_adopted(void *context, const char *error, unsigned messages);

struct share {
    struct spool *spool;
    struct loop *loop;
    struct recover *recover;
    const struct queue_settings *settings; /* slices > 0 */

    char journal[ADOPT_PATH_MAX]; /* of our own journal */
    struct slices slices;         /* handled by us */
    int lock;                     /* on our own slice; -1: not a daemon */
    int *taken;                   /* on slices that we took over */
    size_t taken_count;

    bool blocked;           /* a journal must be adopted first: nothing may be listed */
    bool careful;           /* or a part of one: nothing may be swept */
    struct id_set withheld; /* the messages in it */
    struct id_set made;     /* reassembled messages in adopted journals */
    uint64_t adoptions;
    struct adopt adopt;
    struct loop_timer again;

    bool taking; /* the slice `candidate` */
    unsigned candidate;
    int candidate_lock;
    share_adopted *adopted; /* then called; or NULL */
    void *adopted_context;
    char reason[200];
};

/* The caller sets the members from spool to settings before. */
void share_init(struct share *s);
/* Locks our own slice; waits up to 10 s for a process that is not a daemon. 0, or a
 * sysexits code with one line in error. */
int share_lock(struct share *s, char *error, size_t error_size);
/* At startup, before service: adopts all journals and waits for the disk. Messages that
 * another petrel is moving are found when it has finished. */
void share_adopt(struct share *s);
/* Behind queue_adopt() and queue_adopt_ignore(). */
const char *share_take_over(struct share *s, unsigned slice, share_adopted *adopted,
                            void *context) __attribute__((warn_unused_result));
void share_ignore(struct share *s, void *context);
/* Whether id is of our own slice, the one of our journal. */
bool share_is_own(const struct share *s, struct id id);
void share_stop(struct share *s);
/* Releases the locks; after all other users of the disk have stopped. */
void share_unlock(struct share *s);

#endif
