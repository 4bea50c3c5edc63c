/* A copier: another place that keeps a copy of each message (queue/copies/). Without one none of
 * this costs anything.
 *
 * The queue says what happens, in its order: a message is made durable, its state changes, it
 * ends. A message whose copy is waited for is answered when it is durable here and
 * queue_copied() has been called; our own mail (queue_begin_own()) is not waited for, but what
 * it replaces ends after it has been said. */
#ifndef QUEUE_QUEUE_COPIER_H
#define QUEUE_QUEUE_COPIER_H

#include "base/buffer.h"
#include "base/id.h"
#include "base/outcome.h"

struct commit;
struct queue;

struct queue_copier {
    void *context;
    /* Whether new mail can be accepted. False: refusal says why not. */
    bool (*admits)(void *context, struct outcome *refusal);
    /* The message is being made durable: its envelope and content, borrowed. False: call
     * again when it is durable. waiter: for queue_copied(); NULL: nobody waits. */
    bool (*store)(void *context, struct id id, struct text form, struct text content,
                  struct commit *waiter);
    /* It is durable, and the copier reads it by queue_copy_open(). waiter as above. */
    void (*stored)(void *context, struct id id, struct commit *waiter);
    /* It was found: at startup, or later, of sendmail(1) or of another slice. */
    void (*found)(void *context, struct id id);
    /* Marks, due time, hold: what queue_copy_open() gives has changed. */
    void (*changed)(void *context, struct id id);
    /* The message ends, or was refused: its waiter is forgotten. */
    void (*ended)(void *context, struct id id);
};

/* Copied; NULL: none any more, and what waits for it is not answered. */
void queue_set_copier(struct queue *queue, const struct queue_copier *copier);
/* The copy is safe; or it cannot be made, and the message is refused, and ends. Once for each
 * waiter that has not ended. */
void queue_copied(struct queue *queue, struct commit *waiter,
                  const struct outcome *refusal);

/* A message as it is now. Release by queue_copy_close(). */
struct queue_copy {
    struct buffer form; /* envelope_write_given() */
    int content;        /* queue_content_read() */
    int64_t content_size;
};
enum queue_copying {
    QUEUE_COPY_OPEN,
    QUEUE_COPY_GONE, /* there is no such message, or it is quarantined */
    QUEUE_COPY_LATER /* it cannot be read now, or is too large */
};
/* without_content: content is -1. */
enum queue_copying queue_copy_open(struct queue *queue, struct id id,
                                   bool without_content, struct queue_copy *copy);
void queue_copy_close(struct queue *queue, struct queue_copy *copy);
/* The numbers of the journal's last batch, and of the last one that is durable; 0: there is no
 * journal, and what was stored is durable. */
uint64_t queue_batch(const struct queue *queue);
uint64_t queue_batch_durable(const struct queue *queue);

#endif
