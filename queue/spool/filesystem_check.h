/* What the spool's file system cannot promise: told once after a start, each with its
 * remedy. Nothing is refused for it. */
#ifndef QUEUE_FILESYSTEM_CHECK_H
#define QUEUE_FILESYSTEM_CHECK_H

#include "base/disk/disk.h"
#include "base/log/log.h"
#include "base/loop/loop.h"

enum {
    /* After the start, so that nobody waits for the first 220: asking takes some syncs.
     */
    FILESYSTEM_CHECK_AFTER_MS = 1000,
    /* A sync that is faster has written nothing. The fastest disks that keep what they
     * are told need twice that. */
    FILESYSTEM_CHECK_SYNC_MIN_US = 8
};

struct filesystem_check {
    struct disk *disk;
    struct log *log;
    struct loop *loop;
    struct loop_timer timer;
};

/* disk to loop are the caller's to set before. Asks once, a second from now. */
void filesystem_check_start(struct filesystem_check *n);
void filesystem_check_stop(struct filesystem_check *n);

/* One line for each thing that is wrong. */
void filesystem_check_warn(struct log *log, const char *path,
                           const struct disk_traits *nature, enum disk_syncing way);

#endif
