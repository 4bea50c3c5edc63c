/* The queue: messages stored durably, from acceptance to removal. The only door to
 * spool and journal. It never knows SMTP, destinations or the reason of a delivery;
 * queue/manager/manager.h couples it with the scheduler.
 *
 * The states on disk are qmail's (doc/dev/design.md "Message states"): S2 mess, S3
 * mess+intd, S4 +todo (QUEUED: durable), S5 info+local+remote (+bounce) without todo. A
 * new message is a journal record instead ("journaled"), or S4 when an injector wrote
 * it, and is delivered from there. The first result that does not end the message moves
 * it to S5 ("preprocessed").
 *
 * The way of a message:
 *   queue_begin(), queue_write() ..., queue_name(), queue_commit()
 *   end of the turn: synced, then the stored callback
 *   queue_load(), queue_content_open(), queue_settle() per recipient
 *   queue_defer() or queue_retire()
 *
 * Operators' commands are in queue/queue_operator.h, the parts for fragments in
 * queue/queue_fragments.h. */
#ifndef QUEUE_QUEUE_H
#define QUEUE_QUEUE_H

#include "base/disk/disk.h"
#include "base/log/log.h"
#include "queue/envelope/envelope.h"
#include "queue/spool/queue_settings.h"

struct guard;
struct loop;
struct queue;
struct queue_draft;

/* Opens the queue for a daemon: makes the directories, takes the lock, cleans up and
 * recovers (doc/dev/queue.md "Recovery"). found is called for each message, oldest first,
 * from a later turn on (never inside queue_open()); also for messages of other
 * injectors (trigger FIFO, and a scan every 25 minutes). Returns 0, or a sysexits code
 * with one line in error. */
int queue_open(struct queue **queue, struct loop *loop, struct log *log,
               const struct queue_settings *settings, queue_found *found, void *context,
               char *error, size_t error_size);
/* Opens the queue for an injector or an operator, with or without a daemon: no lock, no
 * recovery; makes missing directories only with permission to. queue_commit() then
 * works immediately (no loop): the callback comes before queue_commit() returns, and
 * the trigger is pulled. */
int queue_open_injector(struct queue **queue, struct log *log,
                        const struct queue_settings *settings, char *error,
                        size_t error_size);
/* True when a daemon holds the spool's lock. */
bool queue_has_daemon(struct queue *queue);
/* For the daemon, once, at startup: warns of a file system that is too small or misses
 * a directory; a second later, of guarantees that the file system does not give. */
void queue_check_disk(struct queue *queue);
/* True when every message that was there at startup has been reported. */
bool queue_has_found_all(const struct queue *queue);
void queue_close(struct queue **queue);
/* The spool's directory, for files of other modules. Lives as long as the queue. */
struct disk *queue_disk(struct queue *queue);

/* --- Accepting -------------------------------------------------------------------- */

/* Whether a message of that size (0: unknown) would be accepted now. False: refusal has
 * the reason (452 4.3.1 disk full, 451 4.3.0 unhealthy). */
bool queue_admits(struct queue *queue, int64_t size_expected, struct outcome *refusal);
/* NULL: refused for the reason in refusal, as queue_admits(). */
struct queue_draft *queue_begin(struct queue *queue, int64_t size_expected,
                                struct outcome *refusal);
/* As queue_begin(), for our own mail (notifications, reassembled messages): it may use
 * the journal's reserve, because it lets other mail leave a full disk. */
struct queue_draft *queue_begin_own(struct queue *queue, int64_t size_expected,
                                    struct outcome *refusal);
/* Adds content with CRLF line ends. False: the disk failed; queue_commit() will refuse;
 * the rest may still be written and is ignored. */
bool queue_write(struct queue_draft *draft, struct text bytes);
int64_t queue_draft_size(const struct queue_draft *draft);
/* Names the message after envelope and content (doc/dev/design.md "Names"); sets e->id,
 * birth_ms (unless set), content_size, content_crc. Call it before composing a prefix
 * that shows the id. */
void queue_name(struct queue_draft *draft, struct envelope *e);
/* Takes draft and envelope (named, complete). stored is called exactly once, in the
 * end-of-turn stage ANSWER of this or a later turn: either everything is durable,
 * refusal is NULL and the receiver owns the envelope; or with a refusal and no
 * envelope. */
typedef void queue_stored(void *context, struct envelope *e,
                          const struct outcome *refusal);
void queue_commit(struct queue_draft **draft, struct envelope **e, queue_stored *stored,
                  void *context);
/* Before queue_commit(): the draft is a notification that reports e's failures. While
 * both are journaled, the note that they are reported becomes durable with it. */
void queue_reports(struct queue_draft *draft, const struct envelope *e);
/* Before queue_commit(): the message comes from another host (e->moved). Its state there
 * is durable with it, and a hold before it: envelope_write_given(). */
void queue_takes(struct queue_draft *draft);
/* The messages taken, ended or not, as far back as the journal knows: the
 * newest `most` of them, oldest first. came: HOST/ID, valid during the call. For
 * startup: it reads the journal. */
void queue_each_taken(struct queue *queue, size_t most,
                      void (*each)(void *context, const char *came, struct id id),
                      void *context);
/* The same of posted messages; mark: envelope.posted. */
void queue_each_posted(struct queue *queue, size_t most,
                       void (*each)(void *context, const char *mark, struct id id),
                       void *context);
/* For an injector: messages committed between these two become durable together. One
 * that is refused before any of them is a message refuses all. The callbacks come from
 * the second; a crash within it may leave some of them, as messages. */
void queue_commit_begin(struct queue *queue);
void queue_commit_end(struct queue *queue);
/* The callback will not come; the message may or may not exist. */
void queue_commit_ignore(struct queue *queue, void *context);
void queue_discard(struct queue_draft **draft);

/* --- Delivering ------------------------------------------------------------------- */

/* NULL: gone, or damaged (then the daemon puts the message into corrupt/ with a note
 * and a log line; an operator's process leaves it alone). */
struct envelope *queue_load(struct queue *queue, struct id id);
/* As queue_load(), but does not check the content: to deliver the message, or to return
 * it to its sender, use queue_load(). */
struct envelope *queue_load_envelope(struct queue *queue, struct id id);
/* Spreads the content check of queue_load() over turns; for a daemon, before it loads a
 * message that may be large or another user's. Reads at most *budget bytes and
 * subtracts them. One message at a time: a call for another one starts anew. */
enum queue_check {
    QUEUE_CHECKED,    /* queue_load() in this turn reads at most the rest of budget */
    QUEUE_CHECK_MORE, /* call again in a later turn */
    QUEUE_CHECK_WAITS /* for the disk; its answer begins a turn */
};
enum queue_check queue_check(struct queue *queue, struct id id, int64_t *budget);
/* Bytes of content that these calls have read since startup, also in vain. */
uint64_t queue_bytes_read(const struct queue *queue);
/* The content, without the prefix. Returns a handle, or -errno. */
int queue_content_open(struct queue *queue, const struct envelope *e);
int64_t queue_content_read(struct queue *queue, int content, int64_t offset, char *to,
                           size_t size);
/* The whole content if it is in memory; at == NULL if it must be read. Valid until the
 * content is closed, even when the message has gone. */
struct text queue_content_bytes(struct queue *queue, int content);
void queue_content_close(struct queue *queue, int content);

/* Marks recipient index as done. failure: its text goes to bounce/ID, durable no later
 * than the D mark. Written within 100 ms; a message retired before that costs no write.
 * From here on e must live until it is deferred or retired, or the queue is closed. */
void queue_settle(struct queue *queue, struct envelope *e, unsigned index,
                  const struct failure *failure);
/* Writes the marks of e now. False: the disk refuses them; a failure that is not on
 * disk would be reported again after a crash, and is better reported later. */
bool queue_may_notify(struct queue *queue, const struct envelope *e);
/* The failures and successes that e has now are reported by a notification that is
 * durable: no later one reports them again. Unless queue_reports() has noted it, a crash
 * before this is on disk, within 100 ms, repeats the notification. */
void queue_notified(struct queue *queue, struct envelope *e);
/* Not before due_ms (attempts made up to now); the envelope is written (S5) and
 * freed. */
void queue_defer(struct queue *queue, struct envelope **e, int64_t due_ms,
                 unsigned attempts);
/* Nothing is left to do: the files are removed (todo/info first, mess last); the
 * envelope is freed. */
void queue_retire(struct queue *queue, struct envelope **e);

/* Makes ends and marks durable soon: without it within 100 ms. */
void queue_hurry(struct queue *queue);

/* Messages of the journal that wait in line to become files, and whether this one
 * does. */
size_t queue_moves(const struct queue *queue);
bool queue_waits_for_move(const struct queue *queue, struct id id);
/* Messages are on their way to the disk, which no list of messages has yet. */
bool queue_is_storing(const struct queue *queue);
/* Another host has taken the spool (holder.h): the process must end and write nothing. */
bool queue_is_lost(const struct queue *queue);
/* Messages take more than a quarter of the journal. */
bool queue_is_filling(const struct queue *queue);

/* --- Crashes ---------------------------------------------------------------------- */

/* These two bracket work on a message: a crash in between is attributed to it, and
 * after two of them startup quarantines the message (queue/spool/guard.h). Use them
 * within one callback; they nest. The functions of this header do so themselves. */
struct id queue_enter(struct queue *queue, struct id id);
void queue_leave(struct queue *queue, struct id before);
/* The record of work in progress that startup reads after a crash. */
struct guard *queue_guard(struct queue *queue);

/* --- Slices ----------------------------------------------------------------------- */

/* Whether id belongs to a slice that this daemon handles. */
bool queue_handles(const struct queue *queue, struct id id);

#endif
