/* The beginning of a message, which is part prefix and part content: its whole header. */
#ifndef QUEUE_MANAGER_MESSAGE_HEAD_H
#define QUEUE_MANAGER_MESSAGE_HEAD_H

#include "mime/header.h"
#include "queue/queue.h"

enum { MESSAGE_HEAD_MAX = 256 * 1024 }; /* of a header that can be read */

struct message_head {
    struct buffer bytes; /* a little more than the header may be in it */
    struct header_scan scan;
    int error; /* -errno: it cannot be read; else 0 */
};

/* content: open, or -errno. False: the header is too long (scan.length), or cannot be
 * read (error). To be freed in any case. */
bool message_head_read(struct message_head *h, struct queue *queue, int content,
                       const struct envelope *e);
void message_head_free(struct message_head *h);

/* The header as a mailbox gets it, a Maildir or one behind LMTP.
 *
 * Appends the prefix, and the header that the content begins with: without the
 * Return-Path of an earlier delivery (RFC 5321 §4.4); of mail that is ours with the
 * empty line that it lacks. A header that is too long stays as it is: out has the prefix alone.
 * Returns how many bytes of content are in out; -errno: it cannot be read, nothing is to be
 * delivered now, and what is in out is undefined. content: open, or -errno. */
int64_t message_head_for_mailbox(struct queue *queue, int content,
                                 const struct envelope *e, struct buffer *out);

#endif
