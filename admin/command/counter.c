/* A count for the person who waits. */
#include "admin/command/counter.h"

#include "base/loop/loop.h"

#include <unistd.h>

enum { PAUSE_US = 250 * 1000 };

void
counter_start(struct counter *c, FILE *out, bool shows, bool counts)
{
    *c = (struct counter){.out = out,
                          .shows = shows,
                          .counts = shows && counts,
                          .next_us = loop_clock_us() + PAUSE_US};
}

void
counter_start_here(struct counter *c)
{
    counter_start(c, stderr, isatty(STDERR_FILENO), !isatty(STDOUT_FILENO));
}

/* The cursor stays before the count: whatever comes next is written over it. */
void
counter_step(struct counter *c)
{
    c->steps++;
    int64_t now_us = c->counts ? loop_clock_us() : 0;
    if (!c->counts || now_us < c->next_us)
        return;
    c->next_us = now_us + PAUSE_US;
    fprintf(c->out, "%zu ...\r", c->steps);
    fflush(c->out);
}

void
counter_end(struct counter *c, size_t messages, const char *more)
{
    if (c->shows)
        fprintf(c->out, "%zu message%s%s\n", messages, messages == 1 ? "" : "s", more);
}
