/* Delivery into a Maildir: tmp/ -> new/, durable before it counts.
 *
 * Names are `<seconds>.M<microseconds>P<pid>Q<counter>.<host>` made unique by O_EXCL;
 * content has LF line ends, Return-Path and Delivered-To first. */
#ifndef QUEUE_MAILDIR_H
#define QUEUE_MAILDIR_H

#include "mime/address.h"
#include "queue/queue.h"
#include "sched/route/route.h"

/* The directory of a recipient: %u local part, %d domain, %% percent, both in lower
 * case (a directory with the letters as written is used where only that exists). False:
 * the expansion holds '/', starts with '.', has control bytes, or is too long: no such
 * mailbox. */
bool maildir_path(const struct target *target, const struct address *address,
                  struct buffer *out) __attribute__((warn_unused_result));

/* The part of the path that is the same for all: the directory above the first %, or
 * the whole. */
void maildir_root(const struct target *target, char root[TARGET_PATH_MAX]);
/* Whether a missing directory is made when mail comes, for some recipients at least. */
bool maildir_may_be_made(const struct target *target);

/* Whether mail for it can be taken at RCPT time: the directory exists, or may be made
 * for this recipient (queue/manager/mailbox_names.h). */
bool maildir_exists(const struct target *target, const struct address *address);

/* A delivery, some of it in a turn, each time blocking on the disk. Of the arguments
 * only the queue is needed later. */
struct maildir_delivery;
struct maildir_delivery *maildir_start(struct queue *queue, struct loop *loop,
                                       const struct target *target,
                                       const char *hostname, const struct envelope *e,
                                       unsigned recipient);
/* Writes and syncs some 64 KiB more than budget bytes at most. True: it is over, and
 * *delivery NULL. */
bool maildir_go(struct maildir_delivery **delivery, int64_t budget,
                struct outcome *outcome) __attribute__((warn_unused_result));
/* Gives it up: nothing stays. *delivery may be NULL. */
void maildir_stop(struct maildir_delivery **delivery);

#endif
