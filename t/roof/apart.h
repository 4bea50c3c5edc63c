/* A run in a process of its own, and what came of it: a law that is broken ends the
 * process, and so does an assertion of the daemon. */
#ifndef T_ROOF_APART_H
#define T_ROOF_APART_H

#include "t/roof/world.h"

enum { APART_LAW_MAX = 24, APART_REASON_MAX = 200 };

struct outcome_of_run {
    bool good;
    int signal; /* that ended it; 0: none */
    /* The law that was broken, and the kind of the reason: without numbers. */
    char law[APART_LAW_MAX], reason[APART_REASON_MAX];
    uint64_t events; /* of the trace, but for logs, until its end */
    struct tally tally;
    struct plan plan; /* with its numbers of items */
};

/* quiet: nothing of it is printed. wishes->plan may be NULL: nothing is omitted. */
void apart_run(const struct wishes *wishes, bool quiet, struct outcome_of_run *out);
/* Both broke the same law for the same kind of reason. */
bool apart_is_same(const struct outcome_of_run *a, const struct outcome_of_run *b);

#endif
