/* The judge: recovers the current world, compares it with the shadow, delivers what is
 * left, and looks whether anything remains (T1-T6, T9-T11 of
 * doc/dev/design.md "Crash invariants"). */
#ifndef T_CRASH_JUDGE_H
#define T_CRASH_JUDGE_H

#include "t/crash/daemon.h"
#include "t/crash/shadow.h"

enum { SLICES_MAX = 4 };

/* How the machine comes back. */
struct comeback {
    unsigned slices;
    int64_t step_ms; /* its clock is off by this */
    bool copied;     /* restored from a plain copy of the spool */
    bool killed;     /* the first process after it is killed in the end */
    bool ordered;    /* what survived is what came first: nothing half removed */
    uint64_t seed;
};
/* Any of them, by chance. */
struct comeback comeback_any(uint64_t chance, unsigned slices_max);

struct finding {
    unsigned wrong;
    char what[400]; /* the first thing that was */
    unsigned found, quarantined, unasked;
    unsigned excused; /* what only a disorderly cut or a disk error excuses */
};

/* The world is used up afterwards. */
void judge(const struct shadow *shadow, const struct setup *setup,
           const struct comeback *comeback, struct finding *finding);
/* Recovery alone, to be killed. */
void judge_recover(const struct setup *setup, const struct comeback *comeback);

#endif
