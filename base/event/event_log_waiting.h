/* Limits the log lines about mail that waits; logs the number of those omitted.
 *
 * An outage would otherwise have a line for each recipient and attempt, most of the log.
 * The first deferral of a message has a line, and its end. Those between are counted by
 * site once there are many in a minute: a line a minute has the number of each site and
 * its last reason. And once there are many first ones in a minute, a line refers to that
 * of another message of the site whose reason is the same. The history, the counters and
 * kept events have every one. */
#ifndef BASE_EVENT_EVENT_LOG_WAITING_H
#define BASE_EVENT_EVENT_LOG_WAITING_H

#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/event/event.h"

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

void event_log_waiting_start(struct event_log_waiting *w, struct loop *loop,
                             struct log *log);
/* Writes what was counted; may not have been started. */
void event_log_waiting_stop(struct event_log_waiting *w);
/* Whether the deferral has no line of its own: it is counted. */
bool event_log_waiting_counts(struct event_log_waiting *w, const struct event *v);
/* The message whose line has the reason of this event, too; time_ms 0: its own line has it.
 * style petrel alone: programs read the others. */
struct id event_log_waiting_like(struct event_log_waiting *w, const struct event *v);

#endif
