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
#include "base/loop/loop.h"
#include "base/event/event.h"

/* Limits the log lines about mail that waits; logs the number of those omitted.
 *
 * An outage would otherwise have a line for each recipient and attempt, most of the log.
 * The first deferral of a message has a line, and its end. Those between are counted by
 * site once there are many in a minute: a line a minute has the number of each site and
 * its last reason. And once there are many first ones in a minute, a line refers to that
 * of another message of the site whose reason is the same. The history, the counters and
 * kept events have every one. */
enum {
    EVENT_LOG_WAITING_LINES = 20, /* of all sites, in a minute, of either kind: whole */
    EVENT_LOG_WAITING_SITES = 1000, /* counted apart in a minute */
    EVENT_LOG_WAITING_MS = 60000
};

struct event_log_waiting_site;
struct event_log_waiting {
    struct loop *loop; /* NULL: every deferral has its line */
    struct log *log;
    struct loop_timer timer; /* runs while anything was counted in this minute */
    unsigned lines, first_lines;
    uint64_t others; /* of sites beyond the table */
    struct event_log_waiting_site *sites;
};

struct event_log {
    struct log *log;
    bool is_history;
    struct event_log_waiting waiting;
};

void event_log(struct event_log *l, const struct event *event);

/* The line of the history. log: of log_new_apart(). */
void event_log_history(struct log *log, const struct event *event);

/* --- Within this room ------------------------------------------------------------- */

void event_log_petrel(struct event_log *l, const struct event *event);
/* False: there is no such line in that style; the petrel one is written. */
bool event_log_postfix(struct event_log *l, const struct event *event);

void event_log_waiting_start(struct event_log_waiting *w, struct loop *loop,
                             struct log *log);
/* Writes what was counted; may not have been started. */
void event_log_waiting_stop(struct event_log_waiting *w);

#endif
