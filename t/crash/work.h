/* Workloads: what daemons, injectors and operators do with a queue. */
#ifndef T_CRASH_WORK_H
#define T_CRASH_WORK_H

#include "t/crash/act.h"

struct scenario {
    const char *name;
    void (*run)(struct work *w);
    bool fills; /* the journal: runs with a ring alone, also with the smallest one */
    bool fails; /* each of its calls, not every third one */
};
/* The last one is left to chance. */
extern const struct scenario scenarios[];
extern const unsigned scenario_count;

#endif
