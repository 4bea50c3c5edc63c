/* The sets that have ended, kept over a restart: a later fragment of one passes, and begins
 * no set that could never be complete.
 *
 * lock/fragments: a title, then a line for each set: "KEY ENDED MEMORY REASON". KEY is the
 * set's in 64 hexadecimal digits; ENDED, in ms since 1970, and MEMORY, in ms, say for how
 * long it is remembered; REASON is a word. Lines are appended in the turn in which their
 * sets end, before anything that these release is tried, and never synced: a kill forgets
 * none, a power cut the last. */
#ifndef DEFRAG_CLOSED_FILE_H
#define DEFRAG_CLOSED_FILE_H

#include "base/log/log.h"
#include "defrag/set/set.h"
#include "queue/manager/manager.h"

enum {
    CLOSED_FILE_SETS_MAX = 10000, /* kept when it is written anew, with twice as many */
    CLOSED_FILE_MAX = 4 << 20     /* bytes; of a longer one the rest is ignored */
};

struct closed_file {
    struct manager *manager;
    struct log *log;
    char path[MANAGER_HINT_MAX];
    struct buffer lines; /* not written yet */
    size_t count;        /* of its lines */
    bool is_stale;       /* damaged or missing: to be written anew */
    int error;           /* of the last write: logged once */
};

/* Reads the file into sets, which are empty. A time that is not over now was another
 * clock's, and counts as now. */
void closed_file_start(struct closed_file *f, struct manager *manager, struct log *log,
                       struct sets *sets, int64_t now_ms);
void closed_file_note(struct closed_file *f, const struct set_closed *closed,
                      int64_t now_ms);
/* Writes what has been noted. */
void closed_file_flush(struct closed_file *f, const struct sets *sets);
void closed_file_end(struct closed_file *f);

#endif
