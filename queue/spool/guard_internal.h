/* The page of the crash-loop guard, as guard.c and the tests of it know it. */
#ifndef QUEUE_SPOOL_GUARD_INTERNAL_H
#define QUEUE_SPOOL_GUARD_INTERNAL_H

#include "queue/spool/guard.h"

#include <assert.h>

enum {
    GUARD_MAGIC_SIZE = 8,
    GUARD_ROWS = 64 /* ids; when all are used, the one of least weight is dropped */
};

struct guard_row {
    uint64_t time_ms, hash;
    uint32_t ends;    /* 0: free */
    uint32_t crashes; /* those of them that were crashes */
    uint32_t resting; /* deferred since */
    uint32_t unused;
};

/* The next process sees the stores in the order of the members. */
struct guard_page {
    char magic[GUARD_MAGIC_SIZE];
    volatile uint64_t time_ms, hash; /* in process; two zeros: none */
    uint32_t running;                /* cleared by a stop in order */
    volatile uint32_t crashed;       /* base/crash.h */
    struct guard_row unknown;    /* consecutive early ends with no message in process */
    volatile uint32_t suspected; /* the message in process is the suspect */
    uint32_t refuted;            /* suspects quarantined before another end */
    uint64_t used;               /* rows up to the last one that is not free */
    struct guard_row rows[GUARD_ROWS];
};
static_assert(sizeof(struct guard_page) <= 4096, "one page");

#endif
