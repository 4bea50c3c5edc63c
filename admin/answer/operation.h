/* One command of the operator for every selected message, some in each turn.
 *
 * The daemon runs it for the control socket, and a command does when no daemon runs.
 * Each message changes as a whole or not at all; of an operation that is cut short some
 * messages have changed and the others have not. */
#ifndef ADMIN_ANSWER_OPERATION_H
#define ADMIN_ANSWER_OPERATION_H

#include "admin/answer/filter.h"
#include "queue/manager/manager.h"

#include <jansson.h>

struct operation;

/* The text about a message that is not there. */
#define OPERATION_MISSING "no such message"

struct operation_events {
    void *context;
    /* The result of a message: code 0, or of sysexits; text without its name. Messages
     * that only a filter selects, and that need no change, are not reported. */
    void (*told)(void *context, struct id id, int code, const char *text);
    /* False: pause, until operation_resume(). NULL: never. */
    bool (*is_ready)(void *context);
    /* All changes are made and durable; or error says why none was made. Free the
     * operation here or later. */
    void (*ended)(void *context, const char *error);
};

/* The filter is copied, its texts are borrowed. Starts in a later turn. */
struct operation *operation_new(struct loop *loop, struct log *log,
                                struct manager *manager, enum manager_verb verb,
                                const struct filter *filter,
                                const struct operation_events *events);
void operation_free(struct operation **operation);
void operation_resume(struct operation *operation);
/* A result as JSON: id, ok, code, text. */
json_t *operation_line(struct id id, int code, const char *text);
/* Messages looked at so far. */
size_t operation_seen(const struct operation *operation);

#endif
