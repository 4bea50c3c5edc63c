/* The enumerator: in the middle of a running workload, after each change of the disk,
 * every kind of power cut upon a copy of the world, each judged. */
#ifndef T_CRASH_CUTS_H
#define T_CRASH_CUTS_H

#include "t/crash/work.h"
#include "t/sim/sim_disk.h"

struct limits {
    unsigned each;   /* items tried of a kind, by chance when there are more */
    unsigned random; /* tosses of the coin at each point */
    unsigned again;  /* one of so many states is cut in its recovery too; 0 = none */
    unsigned step;   /* only every step-th point */
    uint64_t point;  /* only this one; 0 = all. For a second look */
    /* Not at each point, but at the end, after that call has failed with this errno. */
    uint64_t fail_at;
    int error;
};

struct tally {
    uint64_t points, states, recovery_states, duplicates, found, unasked, quarantined;
    uint64_t kinds[SIM_CUT_KINDS], copied, sliced, stepped, wrong;
};

/* Runs the scenario and all its cuts; adds to tally, prints what is wrong (at most a
 * few). True: the call of fail_at came. */
bool cuts_run(const struct scenario *scenario, const struct setup *setup, uint64_t seed,
              const struct limits *limits, struct tally *tally);
/* Where a run is, for last words. */
void cuts_where(char *out, size_t size);

#endif
