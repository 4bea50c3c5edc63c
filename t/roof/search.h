/* Runs of many seeds, two at a time, and what is done about the first that fails. */
#ifndef T_ROOF_SEARCH_H
#define T_ROOF_SEARCH_H

#include "t/roof/world.h"

#include <time.h>

#define SEARCH_KEPT "t/roof/seeds"

struct search {
    uint64_t first, runs;
    time_t end;       /* in place of runs, unless 0 */
    double cpu_max_s; /* then it ends, too, unless 0 */
    unsigned failures_max;
    bool shrinks;     /* the first failure: once for all searches */
    const char *news; /* failures go to that file of the build, and are none; or NULL */
};

/* Adds to what search_print() prints. Returns the number that failed. */
unsigned search_run(const struct search *s, const struct wishes *wishes);
/* Prints the sum of all runs, and how fast they were. */
void search_print(void);

/* An environment variable; NULL: it is unset, or empty as make leaves it. */
const char *search_wish(const char *name);

#endif
