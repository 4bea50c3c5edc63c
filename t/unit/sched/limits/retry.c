/* Backoff: delays by age within bounds, jitter that spreads and never hurries. */
#include "sched/limits/retry.h"

#include "t/support/tap.h"

#define MINIMAL INT64_C(300000)
#define MAXIMAL INT64_C(4000000)

static void
test_ages(void) /* Appendix B.6, without scan granularity */
{
    static const int64_t want_s[] = {0, 300, 600, 1200, 2400, 4800, 8800, 12800, 16800};
    int64_t age = 0;
    for (size_t i = 0; i < sizeof(want_s) / sizeof(*want_s); i++) {
        is_number(age / 1000, want_s[i], "B.6 age at an attempt");
        age += retry_delay_ms(age, MINIMAL, MAXIMAL);
    }
}

TEST(bounds)
{
    is_number(retry_delay_ms(299999, MINIMAL, MAXIMAL), MINIMAL, "just below minimal");
    is_number(retry_delay_ms(300001, MINIMAL, MAXIMAL), 300001, "just above");
    is_number(retry_delay_ms(4000001, MINIMAL, MAXIMAL), MAXIMAL, "above maximal");
    is_number(retry_delay_ms(INT64_MAX, MINIMAL, MAXIMAL), MAXIMAL, "very old");
    is_number(retry_delay_ms(-5, MINIMAL, MAXIMAL), MINIMAL, "born in the future");
    is_number(retry_delay_ms(INT64_MIN, MINIMAL, MAXIMAL), MINIMAL, "absurdly so");
    is_number(retry_delay_ms(5, 1000, 1000), 1000, "equal bounds");
    is_number(retry_delay_ms(5000, 2000, 1000), 2000, "bounds crossed: minimal wins");
}

TEST(jitter)
{
    uint64_t random = 1, again = 1, other = 2;
    bool within = true, same = true, differs = false;
    int64_t low = INT64_MAX, high = 0, sum = 0;
    int seconds[31] = {0};
    for (int i = 0; i < 30000; i++) {
        int64_t delay = retry_jitter_ms(MINIMAL, &random);
        within &= delay >= MINIMAL && delay <= MINIMAL + MINIMAL / 10;
        same &= retry_jitter_ms(MINIMAL, &again) == delay;
        differs |= retry_jitter_ms(MINIMAL, &other) != delay;
        low = delay < low ? delay : low;
        high = delay > high ? delay : high;
        sum += delay - MINIMAL;
        if (within)
            seconds[(delay - MINIMAL) / 1000]++;
    }
    ok_named(within, "never below the delay, never a tenth above");
    ok_named(same, "equal seeds, equal jitter");
    ok_named(differs, "other seeds, other jitter");
    ok_named(low < MINIMAL + 100 && high > MINIMAL + 29900, "the whole tenth is used");
    ok_named(sum / 30000 > 14500 && sum / 30000 < 15500, "evenly");
    int most = 0;
    for (int i = 0; i < 31; i++)
        most = seconds[i] > most ? seconds[i] : most;
    ok_named(most < 1300, "30000 messages do not fall due in one second");
    is_number(retry_jitter_ms(0, &random), 0, "nothing of nothing");
    is_number(retry_jitter_ms(-7, &random), 0, "no negative delay");
    is_number(retry_jitter_ms(9, &random), 9, "a tenth below 1 ms is none");
}

int
main(void)
{
    test_ages();
    tap_tests("");
    return done();
}
