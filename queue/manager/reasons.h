/* The reasons of deferred mail, kept over a restart: the last outcome of each message.
 *
 * lock/reasons: a title, the outcomes (each once), the messages (an id and the number
 * of an outcome), the CRC32C of all that. Written to a draft and renamed, without a
 * sync, since it is only a hint. A file that is not exactly as written is ignored. */
#ifndef QUEUE_MANAGER_REASONS_H
#define QUEUE_MANAGER_REASONS_H

#include "base/disk/disk.h"
#include "queue/manager/deferral_reasons.h"
#include "sched/sched.h"

/* Limits of the file. Beyond them it has the messages due soonest, and its title says
 * how many were omitted. */
enum { REASONS_COUNT_MAX = 100000, REASONS_SIZE_MAX = 8 << 20 };

/* Forgets messages that sched does not know, if it knows all. Without a reason there is
 * no file. Returns 0 or a negative errno value. */
int reasons_write(struct disk *disk, const char *path, struct deferral_reasons *reasons,
                  struct sched *sched, bool knows_all);
/* Adds the reasons of the file for the messages that `wants` accepts. 0, a negative
 * errno value, or -EILSEQ: damaged or not ours, and nothing was added. */
int reasons_read(struct disk *disk, const char *path, struct deferral_reasons *reasons,
                 bool (*wants)(void *context, struct id id), void *context);
/* Without a daemon: the reasons that all slices have left in lock/. Unreadable files
 * are ignored. The caller frees the result. */
struct deferral_reasons *reasons_read_all(struct disk *disk);

#endif
