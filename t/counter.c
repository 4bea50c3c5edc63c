/* The count of a long command, for a terminal alone. */
#include "admin/counter.h"

#include "base/loop.h"
#include "t/tap.h"

#include <stdlib.h>

static char *written;
static size_t size;

static void
begin(struct counter *p, bool shows, bool counts)
{
    FILE *out = open_memstream(&written, &size);
    if (out == NULL)
        abort();
    counter_start(p, out, shows, counts);
}

static void
end(struct counter *p, const char *expected, const char *label)
{
    fclose(p->out);
    is_string(written, expected, label);
    free(written);
}

/* As after a pause. */
static void
step_late(struct counter *p)
{
    p->next_us = loop_clock_us();
    counter_step(p);
}

/* Whatever the machine does meanwhile. */
static void
step_early(struct counter *p)
{
    p->next_us = INT64_MAX;
    counter_step(p);
}

int
main(void)
{
    struct counter p;
    begin(&p, false, true);
    step_late(&p);
    counter_end(&p, 1, "");
    end(&p, "", "a script sees nothing");

    begin(&p, true, false);
    step_late(&p);
    counter_end(&p, 1, "");
    end(&p, "1 message\n", "beside its lines the end alone");

    begin(&p, true, true);
    ok_named(p.next_us > 0, "no count at once");
    step_early(&p);
    int64_t before_us = loop_clock_us();
    step_late(&p);
    ok_named(p.next_us > before_us, "and then a pause");
    step_early(&p);
    step_late(&p);
    counter_end(&p, 3, ", 1 failed");
    end(&p, "2 ...\r4 ...\r3 messages, 1 failed\n", "written over each other");
    return done();
}
