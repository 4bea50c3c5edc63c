/* The identity of a spool: 128 random bits in lock/identity, made with it. All its slices
 * have it; another one under the name of a host proves that the old spool is gone. */
#ifndef QUEUE_SPOOL_SPOOL_IDENTITY_H
#define QUEUE_SPOOL_SPOOL_IDENTITY_H

#include "base/text.h"

struct disk;

enum { SPOOL_IDENTITY_DIGITS = 32 };

/* Reads it, or makes it of random. 0; or -errno, and out is "". */
int spool_identity(struct disk *spool, const uint64_t random[2],
                   char out[SPOOL_IDENTITY_DIGITS + 1])
    __attribute__((warn_unused_result));

#endif
