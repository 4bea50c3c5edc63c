/* Names in todo/ and mess/ that other users have made and that are no message.
 *
 * Every local user may make names there, and wake the daemon. So what they make costs the
 * daemon little, and nothing that lasts: no line of the log and no inode for each. */
#ifndef QUEUE_SPOOL_JUNK_H
#define QUEUE_SPOOL_JUNK_H

#include "base/id.h"
#include "base/loop/loop.h"

enum {
    JUNK_NOTES_MAX = 100, /* notes and log lines for messages of others, in one run */
    JUNK_TELL_MS = 60 * 1000
};

struct spool;

/* Counts since the last log line; notes: since startup. */
struct junk {
    unsigned notes;
    size_t removed, stuck, unnoted, strange;
    bool has_told;
    int64_t told_ms;
};

enum junk_fate { JUNK_NONE, JUNK_REMOVED, JUNK_STUCK };

/* Removes what can be no file of a message: a link, a directory, a FIFO, a socket. STUCK:
 * the system does not allow it. */
enum junk_fate junk_remove(struct spool *s, const char *path);
/* The same for todo/ID, where an empty file of another user is none, either. */
enum junk_fate junk_remove_queued(struct spool *s, struct id id);
/* Whether todo/ID is another user's, and there is no info/ID, which is ours. */
bool junk_is_foreign(struct spool *s, struct id id);
/* Whether one more quarantined message of others gets a note and a line. */
bool junk_takes_note(struct spool *s);
/* count names in todo/ are no ids; the others are counted here. */
void junk_note_strange(struct spool *s, size_t count);
/* Logs the counts, at most once a minute. How long to wait before the next call, in ms; or
 * 0: there is nothing left to tell. */
int64_t junk_tell(struct spool *s, int64_t now_ms);

#endif
