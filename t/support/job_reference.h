/* The rules of doc/scheduler.md "Jobs and preemption" as they are told, with lists that
 * are scanned: what sched/limits/job.c is compared with. One destination, all sizes
 * known. */
#ifndef T_SUPPORT_JOB_REFERENCE_H
#define T_SUPPORT_JOB_REFERENCE_H

#include "base/memory.h"
#include "sched/limits/job.h"

#include <stdlib.h>
#include <utlist.h>

struct ref {
    struct ref *prev, *next, *parent;
    unsigned number;
    int64_t size, selected, available, used, loaded_s;
    int level, children;
};

struct reference {
    struct ref *order;
    struct transport_params t;
    unsigned preemptions, depth, hidden; /* hidden: a class had a better one inside */
    bool exact_use;                      /* each child used what it was given */
};

void reference_add(struct reference *r, unsigned number, unsigned size, int64_t now_s);

/* The number of the message that is served; there must be one. */
unsigned reference_serve(struct reference *r, int64_t now_s);

void reference_end(struct reference *r);

#endif
