/* The queue: messages that are safe. The only door to spool and journal.
 *
 * qmail's states (doc/design.md "Message states"): S2 mess, S3 mess+intd, S4
 * +todo (QUEUED: durable), S5 info+local+remote (+bounce) without todo. Young mail is a
 * record of the journal instead, or S4 when an injector wrote it, and is delivered from
 * there; the first result that is not the last moves it to S5 ("preprocessed"). Nothing
 * here knows SMTP, destinations or why; queue/manager/manager.h couples it with the
 * scheduler.
 *
 * A message passes: queue_begin, queue_write..., queue_commit -> (end of turn: synced)
 * -> stored callback
 * -> queue_load, content, queue_settle per recipient, queue_defer or queue_retire. */
#ifndef QUEUE_QUEUE_H
#define QUEUE_QUEUE_H

#include "base/disk/disk.h"
#include "base/log/log.h"
#include "queue/envelope.h"

struct guard;
struct loop;
struct queue;
struct queue_draft;

struct queue_settings {
    const char *spool;
    unsigned slices, slice;
    int64_t message_size_limit;
    int64_t bytes_reserve, inodes_reserve; /* refuse new mail below; 0 = derived */
    /* The ring of young mail, in bytes; 0 = no journal, every message is files at once.
     * A larger message is a file at once. */
    int64_t journal_size, journal_message_max;
    int64_t journal_segment; /* 0 = derived from journal_size; for tests */
    bool sync_blocks;        /* never sync in the background; for tests */
};

/* The daemon: makes the directories, takes the lock, tidies and recovers
 * (doc/queue.md "Recovery"). found is called for each message, oldest first, from a
 * later turn on (never inside queue_open), as well as for what foreign injectors leave
 * (trigger FIFO, and a scan every 25 minutes). 0, or a sysexits code with one line in
 * error. */
struct queue_entry {
    struct id id;
    int64_t due_ms;
    unsigned attempts;
};
typedef void queue_found(void *context, const struct queue_entry *entry);
int queue_open(struct queue **queue, struct loop *loop, struct log *log,
               const struct queue_settings *settings, queue_found *found, void *context,
               char *error, size_t error_size);
/* An injector or operator beside (or without) a daemon: no lock, no recovery; makes
 * missing directories only where it may. queue_commit then works at once (no loop): the
 * callback comes before queue_commit returns, and the trigger is pulled. */
int queue_open_injector(struct queue **queue, struct log *log,
                        const struct queue_settings *settings, char *error,
                        size_t error_size);
/* True when a daemon holds the spool's lock. */
bool queue_has_daemon(struct queue *queue);
/* The daemon, once, at its start: warns of a file system without directory, or too small;
 * and a second from now of what it cannot promise. */
void queue_look_at_disk(struct queue *queue);
/* Something is on its way to the disk, or to its owner, that no timer waits for. */
bool queue_is_busy(const struct queue *queue);
/* Every message that was there at the start has been found. */
bool queue_has_found_all(const struct queue *queue);
void queue_close(struct queue **queue);

/* --- Accepting -------------------------------------------------------------------- */

/* Whether a message of that size (0: unknown) would be taken now; false: the reason is
 * in refusal (452 4.3.1 disk full, 451 4.3.0 unhealthy). */
bool queue_admits(struct queue *queue, int64_t size_expected, struct outcome *refusal);
/* NULL: refused for the reason in refusal, as queue_admits(). */
struct queue_draft *queue_begin(struct queue *queue, int64_t size_expected,
                                struct outcome *refusal);
/* As queue_begin(), for our own notices: they may use the journal's reserve, so that
 * they go out while the disk is too full for new mail. */
struct queue_draft *queue_begin_notice(struct queue *queue, int64_t size_expected,
                                       struct outcome *refusal);
/* Content with CRLF line ends. False: the disk failed; refusal is kept for commit; the
 * rest may still be written and is ignored. */
bool queue_write(struct queue_draft *draft, struct text bytes);
int64_t queue_draft_size(const struct queue_draft *draft);
/* Names the message from envelope and content (doc/design.md "Names"); sets e->id,
 * birth_ms (unless set), content_size, content_crc. Call it before composing a prefix
 * that shows the id. */
void queue_name(struct queue_draft *draft, struct envelope *e);
/* Takes draft and envelope (named, complete). stored is called when everything is
 * durable, in the end-of-turn stage ANSWER of this or a later turn: refusal NULL and
 * the envelope now the receiver's; or the refusal and no envelope. Exactly once. */
typedef void queue_stored(void *context, struct envelope *e,
                          const struct outcome *refusal);
void queue_commit(struct queue_draft **draft, struct envelope **e, queue_stored *stored,
                  void *context);
/* The callback will not come; the message may or may not exist. */
void queue_commit_ignore(struct queue *queue, void *context);
void queue_discard(struct queue_draft **draft);

/* --- Delivering ------------------------------------------------------------------- */

/* NULL: gone, or damaged (then the daemon puts it into corrupt/ with a note and a log
 * line; an operator's process leaves it alone). */
struct envelope *queue_load(struct queue *queue, struct id id);
/* The same without a look at its content: who delivers it, or returns it to its sender,
 * needs queue_load(). */
struct envelope *queue_look(struct queue *queue, struct id id);
/* For a daemon, before queue_load() of what may be large, or another user's: reads at
 * most *budget bytes of its content, which it takes off. CHECKED: queue_load() reads at
 * most what is left of the budget, if it comes in this turn. MORE: again in a later
 * turn. WAITS: the disk is to answer first, which begins a turn. One message at a time:
 * another one is begun anew. */
enum queue_check { QUEUE_CHECKED, QUEUE_CHECK_MORE, QUEUE_CHECK_WAITS };
enum queue_check queue_check(struct queue *queue, struct id id, int64_t *budget);
/* Bytes of contents that these have read since the start, also in vain. */
uint64_t queue_bytes_read(const struct queue *queue);
/* The content, without the prefix. Handle < 0: -errno. */
int queue_content_open(struct queue *queue, const struct envelope *e);
int64_t queue_content_read(struct queue *queue, int content, int64_t offset, char *to,
                           size_t size);
/* All of it, when it is in memory; else nothing (at == NULL), and it must be read.
 * Valid until the content is closed, whatever becomes of the message. */
struct text queue_content_bytes(struct queue *queue, int content);
void queue_content_close(struct queue *queue, int content);

/* Recipient index is done. failure: its text goes to bounce/ID, durable no later than
 * the D mark. Written within 100 ms; a message retired before that costs no write.
 * channel: where S5 files it. From here on e must live until it is deferred or retired,
 * or the queue is closed. */
void queue_settle(struct queue *queue, struct envelope *e, unsigned index,
                  enum channel channel, const struct failure *failure);
/* Not before due_ms (attempts so far); the envelope is written down (S5) and freed. */
void queue_defer(struct queue *queue, struct envelope **e, int64_t due_ms,
                 unsigned attempts);
/* It waits for other fragments, or does not any more: its owner's envelope, before that
 * is deferred or dropped. Of S5 its mark is made or removed, unsynced, for it is a hint
 * (queue/spool/marker.h); of young mail it is kept in mind. */
void queue_wait(struct queue *queue, struct envelope *e, bool waits);
/* Nothing is left to do: the files go (todo/info first, mess last); the envelope is
 * freed. */
void queue_retire(struct queue *queue, struct envelope **e);

/* --- Crashes -------------------------------------------------------------------------
 *
 * Between these two the message counts as at work: a crash is put down to it, and after
 * two of them the start quarantines it (queue/spool/guard.h). Within one callback; they
 * nest. Whatever this header does to a message counts by itself. */
struct id queue_enter(struct queue *queue, struct id id);
void queue_leave(struct queue *queue, struct id before);
/* What counts. */
struct guard *queue_guard(struct queue *queue);

/* --- Slices ----------------------------------------------------------------------- */

/* Whether id is of a slice that this daemon handles. */
bool queue_handles(const struct queue *queue, struct id id);
/* The daemon takes over the slice of an instance that is dead, until it stops: its
 * journal moves to the spool's files, and queue_found reports what is there. NULL: told
 * is called once, in a later turn, with error NULL when all of that is durable. Else
 * why not, in one line that is valid until the next call. */
typedef void queue_adopted(void *context, const char *error, unsigned messages);
const char *queue_adopt(struct queue *queue, unsigned slice, queue_adopted *told,
                        void *context) __attribute__((warn_unused_result));
/* told will not be called; the slice is taken over all the same. */
void queue_adopt_ignore(struct queue *queue, void *context);

/* --- Operators -------------------------------------------------------------------- */

/* hold/ID with reason as content: queue_found no longer reports it. Frees nothing.
 * durable: waits for the disk; else a crash may undo it, for a hold that is then made
 * again. */
int queue_hold(struct queue *queue, const struct envelope *e, const char *reason,
               bool durable);
/* Moves every file of id to corrupt/ with a note; counted and logged. */
void queue_quarantine(struct queue *queue, struct id id, const char *reason);
/* Undoes queue_hold() or queue_quarantine(), durably: hold/ID goes, else the files come
 * back from corrupt/ if the message is whole again. queue_found does not report it. 0;
 * or -ENOENT: it is neither held nor quarantined; -EBADMSG: still damaged; -EEXIST: the
 * spool has another of that name; or -errno. */
int queue_release(struct queue *queue, struct id id);
enum queue_place {
    QUEUE_MAILDROP,
    QUEUE_INCOMING,
    QUEUE_DEFERRED,
    QUEUE_DEFRAG, /* its mark says so; a daemon knows better */
    QUEUE_HOLD,
    QUEUE_CORRUPT
};
/* Why it is in HOLD or CORRUPT: "TIME REASON", TIME in seconds since the epoch, or "".
 * 0, or -errno (-ENOENT: it is not there). */
enum { QUEUE_NOTE_MAX = 640 };
int queue_note(struct queue *queue, struct id id, enum queue_place place,
               char note[QUEUE_NOTE_MAX]);
/* All messages, oldest first. MAILDROP: todo/ID, where injectors put them (without a
 * journal what came by SMTP is there too). */
int queue_each(struct queue *queue,
               bool (*each)(void *context, struct id id, enum queue_place place),
               void *context);
/* As queue_load(), of a message that queue_each() has just found there: without a look
 * at its content. For who lists many. */
struct envelope *queue_peek(struct queue *queue, struct id id, enum queue_place place);
/* Removes every file of id, wherever it is. False: there was none. */
bool queue_remove(struct queue *queue, struct id id);
/* The same, of a message that queue_each() has just found, not in HOLD nor CORRUPT:
 * without a look around. */
bool queue_remove_listed(struct queue *queue, struct id id);
/* Messages whose end is on its way, and their files to be removed. More than that:
 * whoever ends many waits a little. */
enum { QUEUE_ENDINGS_MAX = 10000 };
size_t queue_endings(const struct queue *queue);
/* For who waits until what was retired or removed up to now cannot come back: asks once
 * with a zeroed point, and with the same one again, 20 ms later or so, until true. */
struct queue_point {
    bool begun, lined, moved;
    uint64_t round, batch;
};
bool queue_is_over(struct queue *queue, struct queue_point *point);

/* What the start has found in the journal (without a journal: in todo/, and there
 * perhaps others, too) that was made of other messages, oldest first: before
 * queue_found reports anything; and what came so from journals that were adopted, by
 * whom and whenever. Some may be over. ids are the caller's to free. */
size_t queue_made(struct queue *queue, struct id **ids);
/* Grows when a journal is adopted while we run, before queue_found reports what it had.
 */
uint64_t queue_adoptions(const struct queue *queue);

struct queue_health {
    bool accepting;
    char reason[160]; /* when not */
    uint64_t stored, retired, quarantined, syncs;
    bool sync_blocks; /* the system does not sync in the background */
    unsigned young;   /* messages in the journal */
    unsigned segments, free_segments;
    uint64_t batches;                /* of the journal, each with one sync */
    bool journal_full;               /* intake waits for the spool */
    unsigned damages;                /* pieces of it that the start kept in corrupt/ */
    const char *path;                /* of the spool, borrowed */
    int64_t bytes_free, inodes_free; /* at most a second ago; -1: unknown */
    int64_t bytes_reserve, inodes_reserve;
};
struct queue_health queue_health(struct queue *queue);
/* For who was refused with 452: how much directory the spool has and needs, and where. */
enum { QUEUE_SPACE_MAX = 512 };
void queue_describe_space(const struct queue *queue, char out[QUEUE_SPACE_MAX]);
/* Counted in their directories: what the scheduler does not know. */
struct queue_apart {
    size_t held, quarantined;
};
struct queue_apart queue_count_apart(struct queue *queue);

/* The spool's directory, for what others keep there. Lives as long as the queue. */
struct disk *queue_disk(struct queue *queue);

#endif
