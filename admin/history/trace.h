/* A search in the history's files, in all slices, with or without a daemon.
 *
 * Two passes, each in steps: the first finds messages, all queries being met by some
 * line of each, and lines without a message that meet all; the second gathers the lines
 * of the newest of them. Files that go meanwhile are skipped. */
#ifndef ADMIN_HISTORY_TRACE_H
#define ADMIN_HISTORY_TRACE_H

#include "admin/history/trace_query.h"
#include "base/disk/disk.h"

#include <jansson.h>

enum {
    TRACE_FOUND_MAX = 10000, /* that meet some queries; beyond, the older half goes */
    TRACE_LINES_MAX = 4 * 1024 * 1024, /* bytes of lines gathered for all ... */
    TRACE_LINES_LEAST = 16 * 1024,     /* ... and at least for each */
    TRACE_LIMIT_MAX = 500,             /* lives in an answer of the daemon */
    TRACE_LIMIT_USUAL = 20,
    TRACE_FOLLOWED = 1000, /* messages, the newest; all their lines are followed */
    TRACE_STEP_BYTES = 256 * 1024 /* that the daemon reads in a turn */
};

struct trace_request {
    struct trace_query queries[TRACE_QUERIES_MAX]; /* none: everything */
    size_t count;
    int64_t since_ms; /* only lines from then on are compared; 0: all */
    size_t limit;     /* of lives: the newest ones */
    bool follows;     /* trace_follow() will be called */
};

struct trace;
/* spool is borrowed; the request is copied. 0, or -errno (-ENOENT: there is no
 * history). */
int trace_begin(struct trace **trace, struct disk *spool,
                const struct trace_request *request);
void trace_end(struct trace **trace);
/* Reads some `bytes`. MORE: call again. */
enum progress trace_step(struct trace *trace, size_t bytes);
/* When it is done: the lives (life.h), oldest first; NULL behind the last. */
json_t *trace_take(struct trace *trace);
/* The time of the oldest line about mail; -1: there is none. */
int64_t trace_reaches_ms(const struct trace *trace);

/* The life of one message, in one go; NULL: the history has no line of it. */
json_t *trace_life(struct disk *spool, struct id id);

/* For `trace -f`, when it is done: each line that was written since then, and that
 * belongs to a message found or meets all queries, now or together with earlier
 * ones. */
void trace_follow(struct trace *trace,
                  void (*each)(void *context, struct id id, struct text line),
                  void *context);

#endif
