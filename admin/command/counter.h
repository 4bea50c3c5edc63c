/* Progress of a command on a terminal: a count, four times a second, and a line at the
 * end. Scripts do not get it. */
#ifndef ADMIN_COMMAND_COUNTER_H
#define ADMIN_COMMAND_COUNTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Plain data. */
struct counter {
    FILE *out;
    bool shows, counts;
    size_t steps;
    int64_t next_us;
};

/* shows: out is a terminal; counts: and the lines of the answer go elsewhere. */
void counter_start(struct counter *c, FILE *out, bool shows, bool counts);
/* The same for standard error, as it is. */
void counter_start_here(struct counter *c);
/* One more message. */
void counter_step(struct counter *c);
/* "12 messages", and what else is known of them, "" for nothing. */
void counter_end(struct counter *c, size_t messages, const char *more);

#endif
