/* The header of a message as a Maildir keeps it. */
#ifndef QUEUE_MANAGER_MAILDIR_HEADER_H
#define QUEUE_MANAGER_MAILDIR_HEADER_H

#include "queue/queue.h"

enum { MAILDIR_HEADER_MAX = 256 * 1024 }; /* a longer one stays unchanged */

/* Appends the prefix, and the header that the content begins with: without the
 * Return-Path of an earlier delivery (RFC 5321 §4.4); of mail that is ours with the
 * empty line that it lacks. Returns how many bytes of content are in out; -1: prefix and
 * content stay as they are, and what is in out is undefined. */
int64_t maildir_header(struct queue *queue, int content, const struct envelope *e,
                       struct buffer *out);

#endif
