/* Which writes wait: none while there are few bytes, then those that are not many, until the period ends. */
#include "base/pace.h"

#include "t/support/tap.h"

int
main(void)
{
    struct pace p = {0};
    ok_named(pace_passes(&p, 1000, 300), "the first one passes");
    ok_named(pace_passes(&p, 1000, 300) && pace_passes(&p, 1001, 300), "so do a few");
    ok_named(pace_passes(&p, 1002, PACE_IMMEDIATE), "and the one that makes many of them");
    ok_named(!pace_passes(&p, 1002, 1), "the next one waits");
    is_number(pace_left_ms(&p, 1002), PACE_MS - 2, "until the period ends");
    ok_named(!pace_passes(&p, 1000 + PACE_MS - 1, PACE_MOST - 1), "although it grows");
    ok_named(pace_passes(&p, 1000 + PACE_MS - 1, PACE_MOST), "but not without bound");
    ok_named(!pace_passes(&p, 1000 + PACE_MS - 1, 1), "which changes nothing for others");
    ok_named(pace_passes(&p, 1000 + PACE_MS, PACE_IMMEDIATE), "at its end what waits passes");
    ok_named(!pace_passes(&p, 1000 + PACE_MS + 1, 1), "and counts for the next period");
    ok_named(pace_passes(&p, 1000 + 3 * PACE_MS, 1), "after which all begins anew");
    return done();
}
