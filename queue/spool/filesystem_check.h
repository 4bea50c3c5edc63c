/* Warns of guarantees that the spool's file system does not give, each with its remedy,
 * once after startup. No mail is refused for them. */
#ifndef QUEUE_SPOOL_FILESYSTEM_CHECK_H
#define QUEUE_SPOOL_FILESYSTEM_CHECK_H

#include "base/disk/disk.h"
#include "base/log/log.h"
#include "base/loop/loop.h"

enum {
    /* Some syncs are measured: not during startup, which would delay the first 220. */
    FILESYSTEM_CHECK_AFTER_MS = 1000,
    /* A faster sync has written nothing. The fastest disks that keep their data need
     * twice that. */
    FILESYSTEM_CHECK_SYNC_MIN_US = 8,
    FILESYSTEM_CHECK_TEXT_MAX = 256
};

struct filesystem_check {
    struct disk *disk;
    struct log *log;
    struct loop *loop;
    struct loop_timer timer;
    char unsafe
        [FILESYSTEM_CHECK_TEXT_MAX]; /* why mail may be lost there; "": it is not */
};

/* The caller sets the members from disk to loop before. Checks once, a second later. */
void filesystem_check_start(struct filesystem_check *n);
void filesystem_check_stop(struct filesystem_check *n);

#endif
