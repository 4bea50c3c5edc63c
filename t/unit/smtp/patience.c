/* smtp/patience: slow commands, slow content, and pauses that do no harm. */
#include "smtp/patience.h"

#include "t/support/tap.h"

static const struct patience_rules rules = {300000, 180000, 50};
enum { SPAN_MS = 360000, SPAN_BYTES = 50 * 360 };

static void
commands(void)
{
    struct patience p = {0};
    patience_noted(&p, false, 0, true, 1000);
    is_number(patience_due_ms(&p, &rules), 301000, "a command has its time");
    ok(patience_lasts(&p, &rules, 300999));
    ok(!patience_lasts(&p, &rules, 301000));
    patience_noted(&p, false, 0, false, 200000);
    is_number(patience_due_ms(&p, &rules), 301000, "a part of one does not prolong it");
    patience_noted(&p, false, 0, true, 250000);
    is_number(patience_due_ms(&p, &rules), 550000, "a whole one does");
    struct patience_rules none = {0, 180000, 0};
    is_number(patience_due_ms(&p, &none), INT64_MAX, "no time-out, no end");
    patience_noted(&p, true, 0, true, 250000);
    is_number(patience_due_ms(&p, &none), INT64_MAX, "nor for content");
    ok(patience_lasts(&p, &none, INT64_MAX - 1));
}

static void
content(void)
{
    struct patience p = {0};
    patience_noted(&p, false, 0, true, 1000);
    patience_noted(&p, true, 0, true, 5000);
    is_number(patience_due_ms(&p, &rules), 5000 + SPAN_MS, "a span begins with DATA");
    patience_noted(&p, true, SPAN_BYTES - 1, false, 6000);
    ok(!patience_lasts(&p, &rules, 5000 + SPAN_MS));
    patience_noted(&p, true, 1, false, 7000);
    ok_named(patience_lasts(&p, &rules, 5000 + SPAN_MS), "just enough");
    is_number(patience_due_ms(&p, &rules), 5000 + 2 * SPAN_MS, "the next span");
    ok_named(!patience_lasts(&p, &rules, 5000 + 2 * SPAN_MS),
             "in which the bytes of the one before do not count");
    patience_noted(&p, false, 0, true, 500000);
    is_number(patience_due_ms(&p, &rules), 800000, "then it is commands again");
    patience_noted(&p, true, 0, true, 600000);
    patience_noted(&p, true, 17, false, 600000);
    ok(!patience_lasts(&p, &rules, 600000 + SPAN_MS));
}

/* The byte each second of slowloris against 9600 baud with long pauses. */
static void
kinds_of_slow(void)
{
    struct patience loris = {0}, line = {0};
    int64_t now_ms = 0, loris_ms = 0;
    patience_noted(&loris, true, 0, true, 0);
    patience_noted(&line, true, 0, true, 0);
    bool line_lasts = true;
    for (int second = 0; second < 7200; second++, now_ms += 1000) {
        patience_noted(&loris, true, 1, false, now_ms);
        if (second % 240 >= 170) /* 170 s of silence, 70 s of sending */
            patience_noted(&line, true, 960, false, now_ms);
        if (loris_ms == 0 && !patience_lasts(&loris, &rules, now_ms))
            loris_ms = now_ms;
        line_lasts = line_lasts && patience_lasts(&line, &rules, now_ms);
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
