/* Seconds are written as printf() writes them, but for zeros at their end, and half a
 * hundredth is rounded up. */
#include "base/log/log_number.h"
#include "t/support/tap.h"

#include <string.h>

int
main(void)
{
    bool good = true;
    for (int64_t ms = -3000; ms < 200000 && good; ms++) {
        char want[64], got[LOG_NUMBER_SIZE + 1];
        /* A thousandth more decides half a hundredth. */
        snprintf(want, sizeof(want), "%.2f", (double)ms / 1000 + (ms < 0 ? 0 : 0.0001));
        size_t end = strlen(want);
        while (ms >= 0 && want[end - 1] == '0' && strchr(want, '.') != NULL)
            want[--end] = '\0';
        if (want[end - 1] == '.')
            want[end - 1] = '\0';
        got[log_number_seconds(ms, got)] = '\0';
        good = strcmp(want, got) == 0;
        if (!good)
            is_string(got, want, "seconds");
    }
    ok_named(good, "seconds to hundredths");
    char got[LOG_NUMBER_SIZE + 1];
    got[log_number_seconds(1005, got)] = '\0';
    is_string(got, "1.01", "half a hundredth");
    got[log_number_seconds(1500, got)] = '\0';
    is_string(got, "1.5", "no zero at the end");
    got[log_number_seconds(100000, got)] = '\0';
    is_string(got, "100", "but in front of the point");
    got[log_number_seconds(INT64_C(31536000000000), got)] = '\0';
    is_string(got, "31536000000", "a thousand years");
    return done();
}
