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

/* The Maildir of a recipient: its directory, and whether that may be made. */

/* The directory of a recipient: %u local part, %d domain, %% percent; the domain and,
 * with lower, the local part in lower case. False: the expansion contains '/', starts
 * with '.', has control bytes, or is too long: no such mailbox. */
bool maildir_path(const struct target *target, const struct address *address,
                  bool lower, struct buffer *out) __attribute__((warn_unused_result));

/* user for user+tag, and else the same; a tag in a quoted string is none. */
struct address maildir_without_tag(const struct address *address);

/* The common part of all paths: the directory above the first %, or all of it. */
void maildir_root(const struct target *target, char root[TARGET_PATH_MAX]);
/* Whether a missing directory is made on delivery, at least for some recipients. */
bool maildir_may_be_made(const struct target *target);
/* Whether the missing mailbox of this recipient may be made: 1, 0, or -errno. Untrusted
 * clients choose the name, so not every name gets one: target->users may name a file of
 * those that do, such as the system's users. A line of it is a name, up to its first
 * ':' if it has one, so /etc/passwd is such a file. postmaster always gets one, because
 * every host has it (RFC 5321 §4.5.1). Names count in any case of letters; without a
 * file there are none. Users known only to NSS (LDAP, systemd-homed) are not in it. */
int maildir_may_make(const struct target *target, const struct address *address);

#endif
