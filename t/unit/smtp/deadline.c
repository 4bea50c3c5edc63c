/* smtp/patience: slow commands, slow content, and pauses that do no harm. */
#include "smtp/deadline.h"

#include "t/support/tap.h"

static const struct deadline_rules rules = {300000, 180000, 50};
enum { SPAN_MS = 360000, SPAN_BYTES = 50 * 360 };

static void
commands(void)
{
    struct deadline p = {0};
    deadline_noted(&p, false, 0, true, 1000);
    is_number(deadline_due_ms(&p, &rules), 301000, "a command has its time");
    ok(deadline_lasts(&p, &rules, 300999));
    ok(!deadline_lasts(&p, &rules, 301000));
    deadline_noted(&p, false, 0, false, 200000);
    is_number(deadline_due_ms(&p, &rules), 301000, "a part of one does not prolong it");
    deadline_noted(&p, false, 0, true, 250000);
    is_number(deadline_due_ms(&p, &rules), 550000, "a whole one does");
    struct deadline_rules none = {0, 180000, 0};
    is_number(deadline_due_ms(&p, &none), INT64_MAX, "no time-out, no end");
    deadline_noted(&p, true, 0, true, 250000);
    is_number(deadline_due_ms(&p, &none), INT64_MAX, "nor for content");
    ok(deadline_lasts(&p, &none, INT64_MAX - 1));
}

static void
content(void)
{
    struct deadline p = {0};
    deadline_noted(&p, false, 0, true, 1000);
    deadline_noted(&p, true, 0, true, 5000);
    is_number(deadline_due_ms(&p, &rules), 5000 + SPAN_MS, "a span begins with DATA");
    deadline_noted(&p, true, SPAN_BYTES - 1, false, 6000);
    ok(!deadline_lasts(&p, &rules, 5000 + SPAN_MS));
    deadline_noted(&p, true, 1, false, 7000);
    ok_named(deadline_lasts(&p, &rules, 5000 + SPAN_MS), "just enough");
    is_number(deadline_due_ms(&p, &rules), 5000 + 2 * SPAN_MS, "the next span");
    ok_named(!deadline_lasts(&p, &rules, 5000 + 2 * SPAN_MS),
             "in which the bytes of the one before do not count");
    deadline_noted(&p, false, 0, true, 500000);
    is_number(deadline_due_ms(&p, &rules), 800000, "then it is commands again");
    deadline_noted(&p, true, 0, true, 600000);
    deadline_noted(&p, true, 17, false, 600000);
    ok(!deadline_lasts(&p, &rules, 600000 + SPAN_MS));
}

/* The byte each second of slowloris against 9600 baud with long pauses. */
static void
kinds_of_slow(void)
{
    struct deadline loris = {0}, line = {0};
    int64_t now_ms = 0, loris_ms = 0;
    deadline_noted(&loris, true, 0, true, 0);
    deadline_noted(&line, true, 0, true, 0);
    bool line_lasts = true;
    for (int second = 0; second < 7200; second++, now_ms += 1000) {
        deadline_noted(&loris, true, 1, false, now_ms);
        if (second % 240 >= 170) /* 170 s of silence, 70 s of sending */
            deadline_noted(&line, true, 960, false, now_ms);
        if (loris_ms == 0 && !deadline_lasts(&loris, &rules, now_ms))
            loris_ms = now_ms;
        line_lasts = line_lasts && deadline_lasts(&line, &rules, now_ms);
    }
    is_number(loris_ms, SPAN_MS, "slowloris is found at the end of a span");
    ok_named(line_lasts, "a slow line with pauses is not");
}

int
main(void)
{
    commands();
    content();
    kinds_of_slow();
    return done();
}
