/* The body of a POST: the message as a mailbox gets it (queue/manager/message_head.h), or
 * that as JSON; read from the queue in pieces, as often as it is needed. */
#ifndef QUEUE_POSTER_POSTER_BODY_H
#define QUEUE_POSTER_POSTER_BODY_H

#include "queue/poster/poster_json.h"
#include "queue/queue.h"

struct poster_body {
    struct queue *queue;
    int content; /* a handle, or a failure */
    struct buffer head;
    int64_t skip; /* of the content, which are in head */
    int64_t size; /* of the whole message */
    int64_t at;
    struct poster_json *json; /* NULL: the message as it is */
};

/* False: the content cannot be read; only to be closed then. The envelope is borrowed, and
 * so is json, its members (poster_json.h); empty: the message as it is. b stays where it
 * is until it is closed. */
bool poster_body_open(struct poster_body *b, struct queue *queue,
                      const struct envelope *e, struct text json)
    __attribute__((warn_unused_result));
void poster_body_close(struct poster_body *b);
void poster_body_rewind(struct poster_body *b);
/* Adds the next bytes, as many as out has room for; perhaps none before the end. False:
 * they cannot be read. */
bool poster_body_next(struct poster_body *b, struct buffer *out)
    __attribute__((warn_unused_result));

bool poster_body_is_over(const struct poster_body *b);

#endif
