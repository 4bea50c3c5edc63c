/* Progress of a command for a person who waits: one line on a terminal, from the second
 * second on, which goes away before anything else is written there; and a line at the
 * end. Scripts get neither. */
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
    bool visible; /* the line is there now */
    const char *unit;
    uint64_t looked, done;
    int64_t next_us;
};

/* shows: out is a terminal; counts: and nothing else may be in the middle of its line. */
void counter_start(struct counter *c, FILE *out, bool shows, bool counts);
/* The same for standard error, as it is. whole: standard output gets whole lines, with
 * counter_hide() before each. */
void counter_start_here(struct counter *c, bool whole);
/* One more was looked at, or that number in all; its unit is "" or as " kB". */
void counter_look(struct counter *c);
void counter_look_at(struct counter *c, uint64_t looked);
/* Something came of one more. */
void counter_done(struct counter *c);
/* Takes the line away. */
void counter_hide(struct counter *c);
/* "12 messages", and further facts, "" for none. */
void counter_end(struct counter *c, size_t messages, const char *more);

#endif
