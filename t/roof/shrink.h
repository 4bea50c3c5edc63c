/* Shrinks a run that broke a law: items of its plan are omitted as long as the law breaks
 * for the same kind of reason. The rest is what the defect needs. */
#ifndef T_ROOF_SHRINK_H
#define T_ROOF_SHRINK_H

#include "t/roof/apart.h"

enum { SHRINK_RUNS_MAX = 2000 };

/* run: one of these wishes that failed; then the smallest that was found within so many
 * runs and CPU seconds, whose plan says what is omitted. Returns the runs made. */
unsigned shrink_run(const struct wishes *wishes, unsigned runs_max, double cpu_max_s,
                    struct outcome_of_run *run);

#endif
