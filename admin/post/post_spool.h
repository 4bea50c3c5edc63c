/* Keeps a body that must be read twice: in memory while it is small, else in a file without
 * a name, which goes with the process. */
#ifndef ADMIN_POST_POST_SPOOL_H
#define ADMIN_POST_POST_SPOOL_H

#include "base/buffer.h"
#include "base/disk/disk.h"

enum { POST_SPOOL_MEMORY = 32 * 1024 };

struct post_spool {
    struct disk *disk; /* borrowed: the spool's directory */
    const char *path;
    int file; /* -1: none */
    struct buffer memory;
};

/* path: below disk, for the file, and of no other process; borrowed. */
void post_spool_init(struct post_spool *s, struct disk *disk, const char *path);
void post_spool_free(struct post_spool *s);
/* False: the disk fails. */
bool post_spool_add(struct post_spool *s, struct text bytes)
    __attribute__((warn_unused_result));
/* The number of bytes from there on, at most size; 0: none, or the disk fails. */
size_t post_spool_read(const struct post_spool *s, uint64_t offset, char *to,
                       size_t size);

#endif
