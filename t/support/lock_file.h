/* A spool on the simulated disk with nothing but a file in lock/. */
#ifndef T_SUPPORT_LOCK_FILE_H
#define T_SUPPORT_LOCK_FILE_H

#include "base/disk/disk.h"

/* An empty one; calls of the disk count from now on. */
struct disk *lock_file_home(void);

void lock_file_put(struct disk *disk, const char *path, const char *content);

#endif
