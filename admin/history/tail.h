/* The lines of a ring (ring.h) that are not in its files yet, in shared memory: a line
 * added there survives the process without a system call, and the next one finds it
 * (ring_resume()). After a power cut it is not trusted, even if parts of it have
 * reached the disk: a page that has may stand beside one that has not. */
#ifndef ADMIN_HISTORY_TAIL_H
#define ADMIN_HISTORY_TAIL_H

#include "base/disk/disk.h"

enum {
    TAIL_BOOT_MAX = 48,
    TAIL_PATH_MAX = 64,
    TAIL_HEAD = 128 /* bytes of the file that are no lines */
};

struct tail_page;

struct tail {
    struct disk *disk;
    char path[TAIL_PATH_MAX];
    struct tail_page *page;
    size_t size; /* of the file */
    bool is_shared;
};

/* The lines from `from` on are written at the offset of that file. */
struct tail_mark {
    uint64_t first_ms; /* 0: no file */
    int64_t offset;
    uint64_t from;
};

/* boot names this start of the system; "": unknown. Then, or where the file cannot be
 * mapped, lines are kept in memory of the process. size: of the file. */
void tail_open(struct tail *tail, struct disk *disk, const char *path, size_t size,
               const char *boot);
void tail_close(struct tail *tail); /* without lines the file goes, too */

/* A line with its LF. False: it does not fit now. */
bool tail_put(struct tail *tail, struct text line) __attribute__((warn_unused_result));
/* The lines added since the tail was cleared, by an earlier process, too. */
struct text tail_lines(const struct tail *tail);
void tail_clear(struct tail *tail);

/* From now on the lines from `at` on go to the offset of that file. */
void tail_set_mark(struct tail *tail, uint64_t first_ms, int64_t offset,
                   const char *at);
struct tail_mark tail_mark(const struct tail *tail);

#endif
