/* Latency: what is slower than at its best, what is noise, what is forgotten. */
#include "sched/limits/latency.h"

#include "t/support/tap.h"

static int64_t
long_ms(const struct latency *l)
{
    return (l->long_us + 500) / 1000;
}

static void
note_many(struct latency *l, int count, int64_t milliseconds)
{
    for (int i = 0; i < count; i++)
        latency_note(l, milliseconds);
}

static void
test_begin(void)
{
    struct latency l = {0};
    is_number(latency_judge(&l), LATENCY_FINE, "nothing measured");
    is_number(latency_short_ms(&l), 0, "no short average");
    is_number(long_ms(&l), 0, "no long average");
    latency_note(&l, 9000);
    is_number(latency_judge(&l), LATENCY_FINE, "slow from the beginning is how it is");
    is_number(latency_short_ms(&l), 9000, "the first is the average");
    is_number(long_ms(&l), 9000, "both");
}

static void
test_slower(void)
{
    struct latency l = {0};
    note_many(&l, 20, 100);
    note_many(&l, 100, 190);
    is_number(latency_judge(&l), LATENCY_FINE, "not twice");
    note_many(&l, 30, 250);
    is_number(latency_judge(&l), LATENCY_HOLD, "more than twice");
    note_many(&l, 30, 600);
    is_number(latency_judge(&l), LATENCY_SHRINK, "more than 4 times");
    note_many(&l, 30, 250);
    is_number(latency_judge(&l), LATENCY_HOLD, "better");
    note_many(&l, 30, 100);
    is_number(latency_judge(&l), LATENCY_FINE, "well");
    ok_named(long_ms(&l) < 130, "the long average hardly moved");
}

static void
test_step(void) /* how many answers it takes to notice */
{
    struct latency l = {0};
    note_many(&l, 50, 100);
    int hold = 0, shrink = 0;
    for (int i = 1; i <= 50; i++) {
        latency_note(&l, 1000);
        if (hold == 0 && latency_judge(&l) != LATENCY_FINE)
            hold = i;
        if (shrink == 0 && latency_judge(&l) == LATENCY_SHRINK)
            shrink = i;
    }
    printf("# ten times as slow: held after %d, shrunk after %d\n", hold, shrink);
    ok_named(hold >= 2 && hold <= 4, "hold after a few");
    ok_named(shrink > hold && shrink <= 10, "shrink after some more");
}

TEST(outliers)
{
    struct latency l = {0};
    note_many(&l, 50, 100);
    latency_note(&l, 300000);
    is_number(latency_judge(&l), LATENCY_FINE, "one slow answer says nothing");
    bool quiet = true;
    for (int i = 0; i < 200; i++) {
        note_many(&l, 15, 100);
        latency_note(&l, 60000);
        quiet &= latency_judge(&l) == LATENCY_FINE;
    }
    ok_named(quiet, "nor does one now and then");
}

TEST(noise)
{
    struct latency l = {0};
    note_many(&l, 50, 0);
    note_many(&l, 50, 50);
    is_number(latency_judge(&l), LATENCY_FINE, "0 to 50 ms is noise");
    note_many(&l, 50, 60);
    is_number(latency_judge(&l), LATENCY_HOLD, "60 is not");
    note_many(&l, 50, 150);
    is_number(latency_judge(&l), LATENCY_SHRINK, "nor is 150");
}

TEST(follow)
{
    struct latency l = {0};
    note_many(&l, 10, 1000);
    note_many(&l, 60, 100);
    is_number(long_ms(&l), latency_short_ms(&l), "down at once");
    ok_named(long_ms(&l) < 110, "to what it is now");
    int count = 0;
    while (count < 100000) {
        latency_note(&l, 300);
        count++;
        if (count > 50 && latency_judge(&l) == LATENCY_FINE)
            break;
    }
    printf("# three times as slow: accepted after %d answers\n", count);
    ok_named(count > 1000 && count < 5000, "up slowly, but up");
}

TEST(limits)
{
    struct latency l = {0};
    note_many(&l, 3, INT64_MIN);
    is_number(latency_short_ms(&l), 0, "negative counts as 0");
    note_many(&l, 500, INT64_MAX);
    ok_named(latency_short_ms(&l) > 3590000 && latency_short_ms(&l) <= 3600000,
             "an hour at most");
    is_number(latency_judge(&l), LATENCY_SHRINK, "no overflow");
}

int
main(void)
{
    test_begin();
    test_slower();
    test_step();
    tap_tests("");
    return done();
}
