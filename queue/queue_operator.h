/* The queue for operators: hold, release, remove, list, take over a slice, health. */
#ifndef QUEUE_QUEUE_OPERATOR_H
#define QUEUE_QUEUE_OPERATOR_H

#include "queue/queue.h"
#include "base/loop/loop.h"
#include "queue/spool/spool.h"

/* Writes hold/ID with reason as content: queue_found no longer reports the message.
 * Frees nothing. durable: waits for the disk; otherwise a crash may undo the hold, so
 * the caller must then be able to make it again. */
int queue_hold(struct queue *queue, const struct envelope *e, const char *reason,
               bool durable);
/* Moves every file of id to corrupt/ with a note; counted and logged. */
void queue_quarantine(struct queue *queue, struct id id, const char *reason);
/* Undoes queue_hold() or queue_quarantine(), durably: removes hold/ID, or moves the
 * files back from corrupt/ if the message is complete again. queue_found does not
 * report it. Returns 0, -ENOENT: neither held nor quarantined, -EBADMSG: still damaged,
 * -EEXIST: the spool has another message of that name, or -errno. */
int queue_release(struct queue *queue, struct id id);
/* Makes it durable that the message is released (envelope->delivery.released), before
 * queue_release(): beside the due time, or by a mark while it is in todo/. One that only
 * the journal has says so when it moves. 0, or -errno, which is logged. */
int queue_keep_release(struct queue *queue, const struct envelope *e);

enum queue_place {
    QUEUE_MAILDROP,
    QUEUE_INCOMING,
    QUEUE_DEFERRED,
    QUEUE_DEFRAG, /* by its mark in defrag/; a daemon knows better */
    QUEUE_HOLD,
    QUEUE_CORRUPT
};
/* Why a message is in HOLD or CORRUPT: "TIME REASON", TIME in seconds since the epoch,
 * or "". Returns 0, or -errno (-ENOENT: the message is not there). */
enum { QUEUE_NOTE_MAX = 640 };
int queue_note(struct queue *queue, struct id id, enum queue_place place,
               char note[QUEUE_NOTE_MAX]);
/* All messages, oldest first. MAILDROP: todo/ID, where injectors put them (without a
 * journal, also mail received by SMTP). */
int queue_each(struct queue *queue,
               bool (*each)(void *context, struct id id, enum queue_place place),
               void *context);
/* Loads a message that queue_each() has just reported at that place, without checking
 * its content; for long lists. */
struct envelope *queue_peek(struct queue *queue, struct id id, enum queue_place place);
/* Certainly there is no such message, not even in corrupt/. False also when the disk does not
 * say so. */
bool queue_lacks(struct queue *queue, struct id id);
/* Removes every file of id, wherever it is. False: there was none. */
bool queue_remove(struct queue *queue, struct id id);
/* The same, of a message that was taken and is another host's: queue_each_taken() does not know
 * it any more, for it may come again. */
void queue_disown(struct queue *queue, struct id id);
/* Removes a message that queue_each() has just reported outside HOLD and CORRUPT,
 * without a search of the other directories. */
bool queue_remove_listed(struct queue *queue, struct id id);
/* Messages whose removal is in progress. At the limit, a caller that removes many
 * messages waits a little. */
enum { QUEUE_REMOVALS_MAX = 10000 };
size_t queue_removals(const struct queue *queue);

/* The daemon takes over the slice of a dead instance, until the daemon stops: the
 * journal of that slice moves to the spool's files, and queue_found reports its
 * messages. NULL: adopted is called once, in a later turn, with error NULL when all
 * of that is durable. Otherwise returns the reason, in one line that is valid until the
 * next call. */
typedef void queue_adopted(void *context, const char *error, unsigned messages);
const char *queue_adopt(struct queue *queue, unsigned slice, queue_adopted *adopted,
                        void *context) __attribute__((warn_unused_result));
/* adopted will not be called; the slice is taken over all the same. */
void queue_adopt_ignore(struct queue *queue, void *context);

struct queue_health {
    bool accepting;
    char reason[160]; /* when not */
    uint64_t stored, retired, quarantined, syncs;
    bool sync_blocks;   /* the system does not sync in the background */
    const char *unsafe; /* why the file system may lose mail, borrowed; "" else */
    unsigned journaled; /* messages in the journal */
    unsigned segments, free_segments;
    uint64_t batches;                /* of the journal, each with one sync */
    bool journal_full;               /* new mail waits for the spool */
    unsigned damages;                /* pieces of it that startup kept in corrupt/ */
    const char *path;                /* of the spool, borrowed */
    int64_t bytes_free, inodes_free; /* at most a second old; -1: unknown */
    int64_t bytes_reserve, inodes_reserve;
};
struct queue_health queue_health(struct queue *queue);
/* The explanation of a 452: how much space the spool has and needs, and where. */
enum { QUEUE_SPACE_MAX = 512 };
void queue_describe_space(const struct queue *queue, char out[QUEUE_SPACE_MAX]);
/* Messages unknown to the scheduler, counted in their directories. For
 * a daemon's queue. */
struct queue_apart {
    size_t held, quarantined;
    int64_t oldest_held_ms; /* birth, as its id says; 0: none is held */
    bool is_partial;        /* of many after startup: more are being counted */
};
struct queue_apart queue_count_apart(struct queue *queue);

/* Counts hold/ and corrupt/, in steps where they are large.
 *
 * A directory is read again only when it has changed. One of few names is read whole, and
 * the count is exact. A larger one is read in steps, and until that is over the count is
 * the one before; the first count is that of the names seen so far, and says so. */

enum { QUEUE_APART_STEP = 1000 /* names read in a turn */ };

struct queue_apart_count {
    struct spool *spool;
    struct loop *loop;
    struct loop_task task; /* reads on */
    struct queue_apart_directory {
        bool is_counted;
        int64_t changed_ms, counted_ms; /* the directory; when reading it began */
        struct queue_apart result, next;
        struct disk_listing *listing; /* being read; NULL: none is */
        int64_t next_changed_ms, next_counted_ms;
    } held, corrupt;
};

struct queue_apart queue_apart_count(struct queue_apart_count *c);
void queue_apart_stop(struct queue_apart_count *c);

#endif
