/* The use of quotas, of senders and of next hops, kept over a restart.
 *
 * lock/quotas: a title, then a line for each name and period: "PERIOD END COUNTS NAME".
 * NAME is as in sched/route/quotas.h, or "relay KEY" of a next hop (sched_quotas()).
 * PERIOD is s, m, h or d; END is when the newest slot of the window ends, in ms since
 * 1970; COUNTS has commas between the slots, newest first (sched/limits/quota.h). It is
 * written to a draft and renamed, without a sync. */
#ifndef QUEUE_MANAGER_MANAGER_QUOTAS_H
#define QUEUE_MANAGER_MANAGER_QUOTAS_H

#include "base/disk/disk.h"
#include "sched/route/quotas.h"
#include "sched/sched.h"

enum { QUOTA_FILE_MAX = 8 << 20 /* bytes; more is omitted */ };

struct quota_file {
    struct quotas *quotas;
    struct sched *sched;
    int64_t now_ms;   /* of the wall clock */
    int64_t ahead_ms; /* the lead of that over the clock of quotas */
};
/* No file when nothing is used. 0 or a negative errno value. */
int quota_file_write(struct disk *disk, const char *path,
                     const struct quota_file *file);
/* Before the first mail is added to sched. -EILSEQ: a part is damaged, or it is not such a
 * file; the rest counts. */
int quota_file_read(struct disk *disk, const char *path, const struct quota_file *file);

#endif
