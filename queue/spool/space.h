/* Free space on the spool's file system, and how much of it new mail may use.
 *
 * A reserve is kept for mail in the queue: its marks, bounces and files. Mail is
 * refused while less than the reserve is free, and accepted again when an eighth more
 * than that is free; the daemon logs both, one line each. */
#ifndef QUEUE_SPOOL_SPACE_H
#define QUEUE_SPOOL_SPACE_H

#include "base/loop/loop.h"
#include "queue/spool/spool.h"

enum {
    SPACE_EVERY_MS = 1000,      /* at most one question in that time */
    SPACE_AGAIN_MS = 10 * 1000, /* while mail is refused, also without a caller */
    SPACE_PART = 4,             /* of a small file system: the reserve, the journal */
    SPACE_FILES_RESERVE = 200,  /* at most */
    SPACE_FILES_LEAST = 64,     /* of a file system, or it is too small for a spool */
    SPACE_LEAST = 1024 * 1024,  /* the same of bytes */
    SPACE_LEAST_JOURNAL = 6 * SPACE_LEAST, /* with a journal */
    SPACE_RESERVE = 16 * 1024 * 1024,      /* at most */
    SPACE_TEXT_MAX = 512
};

struct space {
    struct spool *spool;
    struct loop *loop;
    bool logs;                             /* the daemon: changes are logged */
    int64_t bytes_reserve, inodes_reserve; /* 0: derived from the file system */

    bool known, refusing;
    int64_t asked_ms; /* monotonic */
    struct disk_space now;
    struct loop_timer again;
};

/* The caller sets the members from spool to inodes_reserve before. */
void space_start(struct space *s);
void space_stop(struct space *s);
/* False: too little space for size more bytes (0: unknown). */
bool space_has(struct space *s, int64_t size);
/* The size that a journal gets of `wanted` bytes on a file system that it shares with
 * the journals of `slices`. */
int64_t space_journal(struct space *s, int64_t wanted, unsigned slices);
/* At startup: logs when mail is refused, and when it always will be. */
void space_check(struct space *s, bool has_journal);
/* "3.1 MB and 200 files are free in /var/spool/petrel; ...", at the last question. */
void space_describe(const struct space *s, char out[SPACE_TEXT_MAX]);

#endif
