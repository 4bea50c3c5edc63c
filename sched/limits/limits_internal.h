/* For the tests of host.c, job.c and window.c. No other file includes this. */
#ifndef SCHED_LIMITS_LIMITS_INTERNAL_H
#define SCHED_LIMITS_LIMITS_INTERNAL_H

#include "sched/limits/host.h"
#include "sched/limits/job.h"
#include "sched/limits/window.h"

enum host_state { HOST_UNKNOWN, HOST_OK, HOST_SUSPECT, HOST_HELD };

struct host_view {
    enum host_state state;
    int64_t until_ms;   /* HELD: the end; 0 = never held since it was good */
    int64_t service_ms; /* average of greeting times; -1 = never greeted */
    int64_t good_at_ms; /* the last time; 0 = never */
    unsigned failures;  /* in a row, each counted once */
};

size_t hosts_count(const struct hosts *hosts);
struct host_view hosts_find(const struct hosts *hosts, int64_t now_ms,
                            struct text address);

/* The class of a size, 0 to JOB_CLASSES - 1. */
unsigned job_class(unsigned size);

/* Events in a cycle at that size: ceil(1/g); 0 when the feedback is 0 (no cycle ever
 * ends). */
uint64_t window_cycle(const struct feedback *f, int size);

#endif
