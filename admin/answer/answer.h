/* An answer that takes several turns, and whose lines its owner writes. */
#ifndef ADMIN_ANSWER_ANSWER_H
#define ADMIN_ANSWER_ANSWER_H

#include <jansson.h>
#include <stdbool.h>

struct answer_events {
    void *context;
    void (*line)(void *context, json_t *object); /* takes the object */
    bool (*is_ready)(void *context);             /* for a line */
    /* The last line, which is taken; NULL: it has no more to say than that it is the last.
     * The owner frees the answer, there or later. */
    void (*ended)(void *context, json_t *end);
};

#endif
