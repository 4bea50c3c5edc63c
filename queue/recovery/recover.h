/* Recovery: each startup assigns every file of the spool to its message, or removes it.
 *
 * The same scan, of todo/ alone, finds mail from injectors while the daemon runs:
 * immediately when they pull the trigger, else every 25 minutes (doc/dev/queue.md
 * "Recovery"). Idempotent: after a kill at any moment, the next startup does the
 * rest. */
#ifndef QUEUE_RECOVERY_RECOVER_H
#define QUEUE_RECOVERY_RECOVER_H

#include "base/loop/loop.h"
#include "queue/spool/due_times.h"
#include "queue/spool/id_list.h"
#include "queue/spool/id_set.h"
#include "queue/spool/queue_settings.h"
#include "queue/spool/slices.h"
#include "queue/spool/spool.h"
#include "queue/journal/journaled.h"

struct recover_row;
struct recover_trigger;

struct recover {
    struct spool *spool;
    struct loop *loop;
    struct id_set *seen;
    struct journaled *journaled;
    const struct slices *slices;
    const bool *blocked;           /* no scan: a journal must be adopted first */
    const struct id_set *withheld; /* in a journal that could not be adopted */
    queue_found *found;
    void *found_context;
    void (*damaged)(void *context, struct id id, const char *reason);
    void *damaged_context;
    void *context;
    /* The files of the message are being made, and may be removed again (preprocess.h).
     * NULL: of none. */
    bool (*is_moving)(void *context, struct id id);
    /* Files without todo or info that this process makes or removes. NULL: none. */
    bool (*is_at_work)(void *context, struct id id);

    struct recover_row *rows; /* to be examined: asked for by this process */
    size_t count, capacity, next;
    struct id_list names; /* listed; once all are, examined, oldest first */
    size_t names_next, names_asked;
    struct due_times due;         /* of the names from names_next to names_asked */
    int names_origin;             /* enum origin */
    bool names_ready;             /* they are examined, not added to */
    bool names_marked;            /* those with markers, before all others */
    struct disk_listing *listing; /* of dir, which is large; NULL: dir is the next */
    size_t strange;               /* names in it that are no ids */
    size_t idle;          /* names of the last scan of todo/ that were no news */
    struct slices wanted; /* listed, or to be listed */
    bool listed;          /* the whole spool, once for each slice */
    enum spool_dir dir;   /* being listed; 0: from the first on */
    size_t seen_now;      /* names in this turn */
    bool rescan;          /* list todo/ next */
    struct loop_task task;
    struct loop_timer scan, pause, again, tell;
    struct id *later; /* the disk did not answer for these */
    size_t later_count;
    struct recover_trigger *triggers;
};

/* The caller sets the members from spool to context before. -errno when the trigger
 * cannot be opened. */
int recover_start(struct recover *r);
void recover_stop(struct recover *r);
/* Call it when `blocked` is false again. */
void recover_go_on(struct recover *r);
/* Scans one more slice, which is in `slices` already. -errno when its trigger cannot be
 * opened. */
int recover_add_slice(struct recover *r, unsigned slice);
/* Decides before its turn whether the journal or the files have a message that startup has
 * not reported: the entry is freed if the files have it. False: the disk did not answer. */
bool recover_settle(struct recover *r, struct journaled_message *m)
    __attribute__((warn_unused_result));
/* Reports a message (again), in a later turn. */
void recover_report(struct recover *r, struct id id);
/* Reports it in a minute, when the disk may answer. */
void recover_report_later(struct recover *r, struct id id);
/* Whether every message that was there has been reported. */
bool recover_has_found_all(const struct recover *r);

#endif
