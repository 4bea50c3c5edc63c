/* Why deferred mail waits, kept over a restart: the last outcome of each message.
 *
 * lock/reasons: a title, the outcomes (each once), the messages (an id and the number
 * of an outcome), the CRC32C of all that. Written as a whole and renamed, without any
 * sync: it is a hint. What is not exactly as it was written is ignored as a whole. */
#ifndef QUEUE_REASONS_H
#define QUEUE_REASONS_H

#include "base/disk/disk.h"
#include "queue/manager/deferral_reasons.h"
#include "sched/sched.h"

/* Of the file; with more messages those due soonest are in it, and its title says how
 * many were left out. */
enum { REASONS_COUNT_MAX = 100000, REASONS_SIZE_MAX = 8 << 20 };

/* Messages that sched does not know are forgotten when it knows all. No file when
 * nothing is left. 0 or a negative errno value. */
int reasons_write(struct disk *disk, const char *path, struct deferral_reasons *reasons,
                  struct sched *sched, bool knows_all);
/* Adds what the file has of the messages that are wanted. 0, a negative errno value, or
 * -EILSEQ: it is not whole, or not ours, and nothing was added. */
int reasons_read(struct disk *disk, const char *path, struct deferral_reasons *reasons,
                 bool (*wants)(void *context, struct id id), void *context);
/* Without a daemon: what all of them have left in lock/. A file that cannot be read
 * tells nothing. The caller frees it. */
struct deferral_reasons *reasons_read_all(struct disk *disk);

#endif
