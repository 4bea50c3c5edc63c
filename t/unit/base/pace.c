/* Which writes wait: none while there are few bytes, then those that are not many, until the period ends. */
#include "base/pace.h"

#include "t/support/tap.h"

enum { MS = 10, NOW = 4096, MOST = 24 * 1024 };

int
main(void)
{
    struct pace p = {.period_ms = MS, .immediate = NOW, .most = MOST};
    ok_named(pace_passes(&p, 1000, 300), "the first one passes");
    ok_named(pace_passes(&p, 1000, 300) && pace_passes(&p, 1001, 300), "so do a few");
    ok_named(pace_passes(&p, 1002, NOW), "and the one that makes many of them");
    ok_named(!pace_passes(&p, 1002, 1), "the next one waits");
    is_number(pace_left_ms(&p, 1002), MS - 2, "until the period ends");
    ok_named(!pace_passes(&p, 1000 + MS - 1, MOST - 1), "although it grows");
    ok_named(pace_passes(&p, 1000 + MS - 1, MOST), "but not without bound");
    ok_named(!pace_passes(&p, 1000 + MS - 1, 1), "which changes nothing for others");
    ok_named(pace_passes(&p, 1000 + MS, NOW), "at its end what waits passes");
    ok_named(!pace_passes(&p, 1000 + MS + 1, 1), "and counts for the next period");
    ok_named(pace_passes(&p, 1000 + 3 * MS, 1), "after which all begins anew");
    return done();
}
