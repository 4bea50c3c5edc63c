/* The page of the crash-loop guard (queue/spool/guard.h); its own business, and the
 * tests'.
 */
#ifndef QUEUE_GUARD_INTERNAL_H
#define QUEUE_GUARD_INTERNAL_H

#include "queue/spool/guard.h"

enum {
    GUARD_MAGIC_SIZE = 8,
    GUARD_ROWS = 64 /* ids that are remembered; then those of the least weight go */
};

struct guard_row {
    uint64_t time_ms, hash;
    uint32_t ends;    /* 0: free */
    uint32_t crashes; /* those of them that were crashes */
    uint32_t resting; /* deferred since */
    uint32_t unused;
};

/* Stores are seen by the next process in the order in which they are written here. */
struct guard_page {
    char magic[GUARD_MAGIC_SIZE];
    volatile uint64_t time_ms, hash; /* at work; two zeros: none */
    uint32_t running;                /* nobody has stopped it in order */
    volatile uint32_t crashed;       /* base/crash.h */
    struct guard_row unknown; /* early ends, one after another, with nothing at work */
    volatile uint32_t suspected; /* what is at work is the suspect */
    uint32_t refuted; /* suspects that were quarantined, and it ended again */
    uint64_t used;    /* rows up to the last one that is not free */
    struct guard_row rows[GUARD_ROWS];
};
_Static_assert(sizeof(struct guard_page) <= 4096, "one page");

#endif
