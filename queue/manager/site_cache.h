/* The learnt state of sites, kept over a restart: windows, ceilings, rates, dead marks
 * (doc/scheduler.md "Destination status cache").
 *
 * lock/sites has a line of JSON for each site, written to a draft and renamed, without
 * a sync: it is only a hint, and unreadable parts are ignored. */
#ifndef QUEUE_MANAGER_SITE_CACHE_H
#define QUEUE_MANAGER_SITE_CACHE_H

#include "base/disk/disk.h"
#include "sched/sched.h"

enum {
    SITE_CACHE_EVERY_MS = 60000,
    SITE_CACHE_SIZE_MAX = 4 << 20, /* of the file; more is omitted */
    SITE_CACHE_AGE_MAX_MS = 86400000
};

/* No file when nothing is known. 0 or a negative errno value. */
int site_cache_write(struct disk *disk, const char *path, const struct sched *sched,
                     int64_t now_ms);
/* To be called before the first mail is added. Ignores sites whose time is more than a
 * day ago or in the future. Returns the number of sites. */
unsigned site_cache_read(struct disk *disk, const char *path, struct sched *sched,
                         int64_t now_ms);

#endif
