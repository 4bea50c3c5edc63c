/* Start-up is recovery: every file of the spool finds its message again, or goes.
 *
 * The same look, at todo/ alone, serves what injectors bring while we run: at once when
 * they pull the trigger, else every 25 minutes (doc/queue.md "Recovery"). Idempotent:
 * killed at any moment, the next start does the rest. The rules are at look_at(). */
#ifndef QUEUE_RECOVER_H
#define QUEUE_RECOVER_H

#include "base/loop/loop.h"
#include "queue/spool/id_set.h"
#include "queue/queue.h"
#include "queue/spool/slices.h"
#include "queue/spool/spool.h"
#include "queue/journal/journaled.h"

struct found_name;
struct recover_row;
struct recover_trigger;

struct recover {
    struct spool *spool;
    struct loop *loop;
    struct id_set *seen;
    struct journaled *young;
    const struct slices *slices;
    const bool *blocked; /* nothing is listed: a journal is still to be adopted */
    const struct id_set *withheld; /* a journal has them that could not be adopted */
    queue_found *found;
    void (*damaged)(void *context, struct id id, const char *reason);
    void *damaged_context;
    void *context;

    struct found_name *names; /* while a list is made */
    struct recover_row *rows; /* to be looked at, oldest first */
    size_t count, capacity, next;
    struct slices wanted; /* what is listed, or to be */
    bool listed;          /* the whole spool, once for each slice */
    enum spool_dir dir;   /* the next to be listed; 0: from the first on */
    size_t seen_now;      /* names in this turn */
    bool rescan;          /* todo/ is to be listed */
    struct loop_task task;
    struct loop_timer scan, pause, again;
    struct id *later; /* the disk did not answer for these */
    size_t later_count;
    struct recover_trigger *triggers;
};

/* spool to context are the caller's to set before. -errno when the trigger cannot be
 * opened. */
int recover_start(struct recover *r);
void recover_stop(struct recover *r);
/* `blocked` is false again. */
void recover_go_on(struct recover *r);
/* One more slice, which `slices` has already. -errno when its trigger cannot be opened.
 */
int recover_add_slice(struct recover *r, unsigned slice);
/* Report a message (again), in a later turn. */
void recover_report(struct recover *r, struct id id);
/* Report it in a minute, when the disk may answer. */
void recover_report_later(struct recover *r, struct id id);

#endif
