/* The suppressed addresses of a spool's slices: one list, without a lock.
 *
 * Each daemon has a file of its own, writes it alone, and reads what is new in those of the
 * others every 2 s. What it learns there it writes to its own, so each file has all: one
 * that is lost, or of a slice that is down, is missed by nobody. At startup the files of
 * another number of slices are taken over, and removed. Redis, when a group has one, does
 * the same with a stream (queue/group/group_suppression.h), and then no file is read. */
#ifndef QUEUE_SUPPRESSION_SUPPRESSION_SLICES_H
#define QUEUE_SUPPRESSION_SUPPRESSION_SLICES_H

#include "queue/suppression/suppression.h"

enum { SUPPRESSION_SLICES_MS = 2000 };

struct suppression_slices;

/* name: the path of the file of a spool without slices. We are slice `slice` of `slices`, and
 * hold its lock: no daemon writes a file of a part of it. NULL: there is nobody else. All
 * that is there is read before it returns. It is freed before s. */
struct suppression_slices *suppression_slices_new(struct loop *loop, struct log *log,
                                                  struct disk *disk,
                                                  struct suppression *s,
                                                  const char *name, unsigned slices,
                                                  unsigned slice);
void suppression_slices_free(struct suppression_slices **slices);

#endif
