/* The log as a reader of events: each style (log.h) has its lines.
 *
 *     petrel, json  a line for each kind, its fields named as in Postfix's log; kinds of
 *                   which there are many (connected, loaded, ended ...) at level debug
 *     postfix       Postfix's lines, for tools that read them (event_log_postfix.c)
 *
 * The lines of the history are like petrel's: `event` is their first field, and a
 * sentence is their remark (admin/history/). */
#ifndef BASE_EVENT_EVENT_LOG_H
#define BASE_EVENT_EVENT_LOG_H

#include "base/log/log.h"
#include "base/event/event.h"
#include "base/event/event_log_waiting.h"

/* The petrel line of an event: places in it, where that of the history is another. */
struct event_log_line {
    const struct event *event; /* NULL: the line cannot be copied */
    uint64_t number;           /* log.h */
    size_t fields;             /* they begin */
    size_t cipher, cipher_end; /* it is not in the history; 0: none */
    size_t message_id;         /* it is in the history alone; 0: nowhere */
};

struct event_log {
    struct log *log;
    bool is_history;
    struct event_log_waiting waiting;
    struct event_log_line line; /* the last one */
};

void event_log(struct event_log *l, const struct event *event);

/* The line of the history. log: of log_new_apart(). before: the reader that has logged the
 * event already, or NULL; its line is copied. */
void event_log_history(const struct event_log *before, struct log *log,
                       const struct event *event);

/* --- Within this room ------------------------------------------------------------- */

void event_log_petrel(struct event_log *l, const struct event *event);
/* False: there is no such line in that style; the petrel one is written. */
bool event_log_postfix(struct event_log *l, const struct event *event);

#endif
