/* `petrel queue shape`: the counts of a message, and their names. */
#ifndef ADMIN_COMMAND_QUEUE_SHAPE_H
#define ADMIN_COMMAND_QUEUE_SHAPE_H

#include "admin/command/shape.h"
#include "queue/envelope/envelope.h"

enum queue_shape_by { SHAPE_BY_RECIPIENT, SHAPE_BY_SENDER, SHAPE_BY_SITE };

/* Takes --by X or --by=X out of the arguments, whose number becomes less. False: one line
 * was written to standard error. */
bool queue_shape_parse(int *count, char **arguments, enum queue_shape_by *by)
    __attribute__((warn_unused_result));
const char *queue_shape_word(enum queue_shape_by by);

/* Adds the recipients that wait, by their domains or by the site that they wait for, or
 * the message by its sender's domain. why: the daemon's answer, whose hops have the sites;
 * NULL: it does not know the message. */
void queue_shape_add(struct shape *s, enum queue_shape_by by, const struct envelope *e,
                     const json_t *why, int64_t now_ms);

#endif
