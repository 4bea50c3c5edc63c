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

/* The files of the history in all slices, oldest first, and their lines. */
enum {
    TRACE_PATH_MAX = 64,
    TRACE_FILES_MAX = 20000,      /* of all slices */
    TRACE_PIECE_BYTES = 64 * 1024 /* that are read with one call */
};

struct trace_file {
    char path[TRACE_PATH_MAX];
    uint64_t first_ms;
    uint64_t until_ms; /* the next file of its ring begins then */
    bool is_mail;
    int64_t offset; /* up to which it was read, behind a line's end */
    int64_t end;    /* nothing behind it is read */
};

/* Zeroed before the first use. */
struct trace_files {
    struct disk *spool;
    struct trace_file *list;
    size_t count;
    size_t directories; /* of slices; 0: one daemon */
};

/* Finds them anew; a file that was known keeps its offset. 0 or -errno. */
int trace_files_find(struct trace_files *files);
void trace_files_free(struct trace_files *files);

/* Reads whole lines from the file's offset on, a piece at most. Bytes read, 0: there are
 * no more now. */
size_t trace_file_read(struct disk *spool, struct trace_file *file,
                       void (*each)(void *context, struct text line), void *context);

#endif
