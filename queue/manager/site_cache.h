/* What deliveries have taught about sites, kept over a restart: windows, ceilings,
 * rates, dead marks (doc/scheduler.md "Destination status cache").
 *
 * lock/sites, a line of JSON for each site, written as a whole and renamed, without any
 * sync: it is a hint, and what cannot be read of it is left out. */
#ifndef QUEUE_SITE_CACHE_H
#define QUEUE_SITE_CACHE_H

#include "base/disk/disk.h"
#include "sched/sched.h"

enum {
    SITE_CACHE_EVERY_MS = 60000,
    SITE_CACHE_SIZE_MAX = 4 << 20, /* of the file; what is more is not written */
    SITE_CACHE_AGE_MAX_MS = 86400000
};

/* No file when nothing is known. 0 or a negative errno value. */
int site_cache_write(struct disk *disk, const char *path, const struct sched *sched,
                     int64_t now_ms);
/* Before the first mail is added. Those of another time (older than a day, or of the
 * future) are left out. How many sites. */
unsigned site_cache_read(struct disk *disk, const char *path, struct sched *sched,
                         int64_t now_ms);

#endif
