/* One ring of the history: RING_FILES files of a directory, each named after the time of
 * its first line, WORD.NAME (the ten characters of an id). The oldest file goes when a
 * new one begins. Nothing is synced. */
#ifndef ADMIN_HISTORY_RING_H
#define ADMIN_HISTORY_RING_H

#include "admin/history/tail.h"

enum {
    RING_FILES = 8,
    RING_FOUND_MAX = 64, /* files that startup may find; beyond, the oldest goes */
    RING_DIRECTORY_MAX = 32,
    RING_NAME_MAX = 64
};

struct ring {
    struct disk *disk;
    const char *directory, *word;
    int64_t limit;
    struct tail *tail; /* that ring_write()'s lines are of, or NULL */
    struct ring_file {
        uint64_t first_ms;
        int64_t size;
    } files[RING_FOUND_MAX];
    unsigned count;
    int file;       /* the last one, or -1 */
    int64_t looked; /* the second in which its size was asked for */
    bool torn;      /* its last line has no LF */
};

/* Finds the files in the directory, which exists, repairs a torn last line, and keeps to
 * limit. 0 or -errno. disk, directory and word are borrowed. */
int ring_open(struct ring *ring, struct disk *disk, const char *directory,
              const char *word, int64_t limit);
/* The same for a ring with a tail, which is borrowed; its lines are then in the files,
 * once, and it is clear. */
int ring_resume(struct ring *ring, struct disk *disk, const char *directory,
                const char *word, int64_t limit, struct tail *tail, int64_t now_ms);
void ring_close(struct ring *ring);
/* Whole lines, each at most LOG_LINE_MAX bytes. -errno: some may be missing. */
int ring_write(struct ring *ring, int64_t now_ms, struct text lines);
/* Removes files whose last line is older. */
void ring_expire(struct ring *ring, int64_t before_ms);
int64_t ring_bytes(const struct ring *ring);

/* The first time of a file of that word; false: the name is not such a file's. */
bool ring_read_name(const char *name, const char *word, uint64_t *first_ms);

#endif
