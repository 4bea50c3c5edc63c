/* Writes seconds. */
#include "base/log/log_number.h"

#include "base/number.h"

#include <stdio.h>

size_t
log_number_seconds(int64_t ms, char out[LOG_NUMBER_SIZE])
{
    if (ms < 0) /* a clock that was set back */
        return (size_t)snprintf(out, LOG_NUMBER_SIZE, "%.2f", (double)ms / 1000);
    uint64_t hundredths = ((uint64_t)ms + 5) / 10;
    unsigned rest = (unsigned)(hundredths % 100);
    size_t length = number_write((int64_t)(hundredths / 100), out);
    if (rest == 0)
        return length;
    out[length++] = '.';
    out[length++] = (char)('0' + rest / 10);
    if (rest % 10 != 0)
        out[length++] = (char)('0' + rest % 10);
    return length;
}
