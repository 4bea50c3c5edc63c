/* Delivery into a Maildir: tmp/ -> new/, durable before it counts.
 *
 * Names are `<seconds>.M<microseconds>P<pid>Q<counter>.<host>` made unique by O_EXCL;
 * content has LF line ends, Return-Path and Delivered-To first. */
#ifndef QUEUE_MANAGER_MAILDIR_H
#define QUEUE_MANAGER_MAILDIR_H

#include "mime/address.h"
#include "queue/queue.h"
#include "sched/route/route.h"

/* Whether mail for it can be accepted at RCPT time: the directory exists, or may be
 * made for this recipient (maildir_may_make()). */
bool maildir_exists(const struct target *target, const struct address *address);

/* A delivery, in pieces of a turn. Each piece blocks on the disk. Only the queue must
 * live on after maildir_start(). */
struct maildir_delivery;
struct maildir_delivery *maildir_start(struct queue *queue, struct loop *loop,
                                       const struct target *target,
                                       const char *hostname, const struct envelope *e,
                                       unsigned recipient);
/* Writes and syncs at most about 64 KiB more than budget bytes. True: it has ended, and
 * *delivery is NULL. */
bool maildir_go(struct maildir_delivery **delivery, int64_t budget,
                struct outcome *outcome) __attribute__((warn_unused_result));
/* Gives it up without a trace. *delivery may be NULL. */
void maildir_stop(struct maildir_delivery **delivery);

#endif
