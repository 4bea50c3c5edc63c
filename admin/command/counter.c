/* A count for a person who waits. */
#include "admin/command/counter.h"

#include "base/loop/loop.h"

#include <inttypes.h>
#include <unistd.h>

enum { FIRST_US = 1000 * 1000, PAUSE_US = 250 * 1000, NUMBER_MAX = 32 };

void
counter_start(struct counter *c, FILE *out, bool shows, bool counts)
{
    *c = (struct counter){.out = out,
                          .shows = shows,
                          .counts = shows && counts,
                          .unit = "",
                          .next_us = loop_clock_us() + FIRST_US};
}

void
counter_start_here(struct counter *c, bool whole)
{
    counter_start(c, stderr, isatty(STDERR_FILENO), whole || !isatty(STDOUT_FILENO));
}

/* "12,345" */
static const char *
counter_number(uint64_t number, char out[NUMBER_MAX])
{
    size_t at = NUMBER_MAX - 1;
    out[at] = '\0';
    for (int digits = 0; digits == 0 || number > 0; digits++, number /= 10) {
        if (digits > 0 && digits % 3 == 0)
            out[--at] = ',';
        out[--at] = (char)('0' + number % 10);
    }
    return &out[at];
}

static void
counter_show(struct counter *c)
{
    char looked[NUMBER_MAX], done[NUMBER_MAX];
    int64_t now_us = c->counts ? loop_clock_us() : 0;
    if (!c->counts || now_us < c->next_us)
        return;
    c->next_us = now_us + PAUSE_US;
    c->visible = true;
    fprintf(c->out, "\r%s%s looked at, %s done\x1b[K",
            counter_number(c->looked, looked), c->unit, counter_number(c->done, done));
    fflush(c->out);
}

void
counter_look(struct counter *c)
{
    c->looked++;
    counter_show(c);
}

void
counter_look_at(struct counter *c, uint64_t looked)
{
    if (looked > c->looked)
        c->looked = looked;
    counter_show(c);
}

/* Finished messages were looked at, even if the daemon has not said so yet. */
void
counter_done(struct counter *c)
{
    c->done++;
    counter_look_at(c, c->done);
}

void
counter_hide(struct counter *c)
{
    if (!c->visible)
        return;
    c->visible = false;
    fputs("\r\x1b[K", c->out);
    fflush(c->out);
}

void
counter_end(struct counter *c, size_t messages, const char *more)
{
    counter_hide(c);
    if (c->shows)
        fprintf(c->out, "%zu message%s%s\n", messages, messages == 1 ? "" : "s", more);
}
