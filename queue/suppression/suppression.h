/* Recipients that are not tried again: after a hard bounce, or a complaint.
 *
 * It judges replies of receivers, keeps the addresses in memory (suppression_list.h) and in
 * a file (appended_file.h), and says why one is refused. It never delivers, routes or
 * reports. A reply counts only if it speaks of the recipient: a 4yz, a full mailbox, and a
 * 5yz about us, our message or our login never do. postmaster is never listed. */
#ifndef QUEUE_SUPPRESSION_SUPPRESSION_H
#define QUEUE_SUPPRESSION_SUPPRESSION_H

#include "base/disk/disk.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/outcome.h"
#include "queue/suppression/suppression_list.h"

enum { SUPPRESSION_SYNC_MS = 1000, SUPPRESSION_LIMIT_MAX = 10000000 }; /* of entries */

struct suppression;

struct suppression_settings {
    bool is_on;
    bool by_domain;       /* an entry counts for the sender's domain alone */
    int64_t hard_ms;      /* how long those of bounces count; 0: for ever */
    int64_t complaint_ms; /* likewise */
    int64_t limit;        /* entries; more are not added */
};

struct suppression_counts {
    size_t entries, memory;   /* memory: bytes */
    size_t news;              /* that other hosts may not know */
    uint64_t walked;          /* entries that walks have met, for tests */
    uint64_t added;           /* by bounces and complaints, since startup */
    uint64_t refused, failed; /* at RCPT; mail that had been accepted */
    bool is_full;
    int64_t limit;
};

/* disk and path: of the file, below a directory that exists. */
struct suppression *suppression_new(struct loop *loop, struct log *log,
                                    struct disk *disk, const char *path,
                                    const struct suppression_settings *settings);
void suppression_set(struct suppression *s,
                     const struct suppression_settings *settings);
void suppression_free(struct suppression **s);
struct suppression_counts suppression_count(const struct suppression *s);

/* Judges a reply to a recipient: NONE, DOUBTFUL or HARD. */
enum suppression_class suppression_judge(const struct outcome *outcome);

/* Whether mail from sender (an address; empty: a notification) to that recipient is not
 * to be sent; *refusal is 550 5.1.1 with date and reason. s may be NULL: no. */
bool suppression_refuses(const struct suppression *s, struct text sender,
                         struct text recipient, struct outcome *refusal);
/* The refusal was used: for the counts. */
void suppression_used(struct suppression *s, bool at_rcpt);

/* A verdict about mail from sender to the recipient. is_alone: the message has no other
 * recipient; else a reply to the content may be about the others. True: the address is
 * suppressed from now on; *entry, which is borrowed, says why. */
bool suppression_hear(struct suppression *s, struct text sender, struct text recipient,
                      bool is_alone, const struct outcome *outcome,
                      struct suppression_entry *entry)
    __attribute__((warn_unused_result));
/* The same of something found out in another way; sender: an address, or a domain. Class
 * DOUBTFUL counts once, HARD and COMPLAINT suppress. reason: a reply, or words. */
bool suppression_note(struct suppression *s, struct text sender, struct text recipient,
                      enum suppression_class class, struct text reason,
                      struct suppression_entry *entry)
    __attribute__((warn_unused_result));

/* For operators. The entry's address is normal (suppression_normal()). NULL, or why not. */
const char *suppression_add(struct suppression *s,
                            const struct suppression_entry *entry);
/* How many entries the address had. */
size_t suppression_remove(struct suppression *s, struct text address);
/* Calls each with those that count now, but for the first `from`, until count were wanted:
 * it says so. until: 0: for ever. Returns from where to go on; 0: these were the last. A
 * call that goes on where the last one ended does not walk over the first again. */
size_t suppression_each(struct suppression *s, size_t from, size_t count,
                        bool (*each)(void *context,
                                     const struct suppression_entry *entry,
                                     int64_t until_ms),
                        void *context);

/* --- In a group of hosts (queue/group/group_suppression.h), and in slices
 * (suppression_slices.h) --- */

/* From now on each change here is news for the others, and so is all that is on the list;
 * again when the stream is lost. */
void suppression_share(struct suppression *s);
bool suppression_is_shared(const struct suppression *s);
/* Calls each with the news, until it returns false. They are news until they are learnt
 * from the others, too. */
void suppression_each_news(struct suppression *s,
                           bool (*each)(void *context,
                                        const struct suppression_entry *entry),
                           void *context);
/* An entry of another host, or of ours that comes back; its time by our clock. It counts
 * unless ours is newer, or as new and graver. is_ordered: all hosts hear of changes in one
 * order, so that of two of one second the later counts; else the removal. */
void suppression_learn(struct suppression *s, const struct suppression_entry *entry,
                       bool is_ordered);
/* Waits until all changes are durable. False: they are not. */
bool suppression_settle(struct suppression *s) __attribute__((warn_unused_result));

#endif
