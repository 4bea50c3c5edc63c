/* Our share of a spool that others use, too: the locks on our slices, and the journals
 * of instances that are no more.
 *
 * A daemon locks its part of lock/daemon, ID_SLICES_MAX bytes long: daemons of whatever
 * number of slices exclude each other exactly where they overlap. What a journal has
 * that nobody else can be writing any more is adopted: at the start, and when the
 * operator has us take over the slice of a dead instance. */
#ifndef QUEUE_SHARE_H
#define QUEUE_SHARE_H

#include "queue/recovery/adopt.h"
#include "queue/queue_operator.h"
#include "queue/recovery/recover.h"

struct share {
    struct spool *spool;
    struct loop *loop;
    struct recover *recover;
    const struct queue_settings *settings; /* slices > 0 */

    char journal[ADOPT_PATH_MAX]; /* of our own journal */
    struct slices slices;         /* that we handle */
    int lock;                     /* on our own slice; -1: we are no daemon */
    int *taken;                   /* on those that we took over */
    size_t taken_count;

    bool blocked; /* a journal is still to be adopted: nothing may be listed */
    bool careful; /* or something in one: nothing may be swept */
    struct id_set withheld; /* what it has */
    struct id_set made;     /* by adoption: what was made of other messages */
    uint64_t adoptions;
    struct adopt adopt;
    struct loop_timer again;

    bool taking; /* this slice, */
    unsigned candidate;
    int candidate_lock;
    queue_adopted *told; /* for it; NULL: nobody waits to hear */
    void *told_context;
    char reason[200];
};

/* spool to settings are the caller's to set before. */
void share_init(struct share *s);
/* Locks our own slice; waits up to 10 s for who is no daemon. 0, or a sysexits code
 * with one line in error. */
int share_lock(struct share *s, char *error, size_t error_size);
/* Before there is service: adopts what there is, and waits for the disk. What another
 * petrel moves just now is found when that has come to its end. */
void share_adopt(struct share *s);
/* Behind queue_adopt() and queue_adopt_ignore(). */
const char *share_take_over(struct share *s, unsigned slice, queue_adopted *told,
                            void *context) __attribute__((warn_unused_result));
void share_ignore(struct share *s, void *context);
/* Of our own slice, which our journal is about. */
bool share_is_own(const struct share *s, struct id id);
void share_stop(struct share *s);
/* After the disk's other users: the locks. */
void share_unlock(struct share *s);

#endif
