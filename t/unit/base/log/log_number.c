/* Seconds are written as printf() writes them, and half a hundredth is rounded up. */
#include "base/log/log_number.h"
#include "t/support/tap.h"

int
main(void)
{
    bool good = true;
    for (int64_t ms = -3000; ms < 200000 && good; ms++) {
        char want[64], got[LOG_NUMBER_SIZE + 1];
        /* A thousandth more decides half a hundredth. */
        snprintf(want, sizeof(want), "%.2f", (double)ms / 1000 + (ms < 0 ? 0 : 0.0001));
        got[log_number_seconds(ms, got)] = '\0';
        good = strcmp(want, got) == 0;
        if (!good)
            is_string(got, want, "seconds");
    }
    ok_named(good, "seconds to hundredths");
    char got[LOG_NUMBER_SIZE + 1];
    got[log_number_seconds(1005, got)] = '\0';
    is_string(got, "1.01", "half a hundredth");
    got[log_number_seconds(INT64_C(31536000000000), got)] = '\0';
    is_string(got, "31536000000.00", "a thousand years");
    return done();
}
