/* A run in a process of its own, and what came of it: a law that is broken ends the
 * process, and so does an assertion of the daemon. */
#ifndef T_ROOF_APART_H
#define T_ROOF_APART_H

#include "t/roof/world.h"

enum { APART_LAW_MAX = 24, APART_REASON_MAX = 200, APART_KIND_MAX = 48 };

struct outcome_of_run {
    bool good;
    uint64_t seed;
    int signal; /* that ended it; 0: none */
    /* The law that was broken, the reason, and its kind: how it begins, without words
     * that have a digit. */
    char law[APART_LAW_MAX], reason[APART_REASON_MAX], kind[APART_KIND_MAX];
    uint64_t events; /* of the trace, but for logs, until its end */
    struct tally tally;
    struct plan plan; /* with its numbers of items */
};

/* quiet: nothing of it is printed. wishes->plan may be NULL: nothing is omitted. What a
 * run prints comes at its end, unless it is traced. */
void apart_run(const struct wishes *wishes, bool quiet, struct outcome_of_run *out);
/* The same, beside at most so many others; then the next one that ends. */
enum { APART_AT_ONCE = 2 };
void apart_begin(const struct wishes *wishes, bool quiet);
void apart_end(struct outcome_of_run *out);
/* CPU seconds of all that have ended. */
double apart_cpu_s(void);
/* Both broke the same law for the same kind of reason. */
bool apart_is_same(const struct outcome_of_run *a, const struct outcome_of_run *b);

#endif
