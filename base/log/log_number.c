/* Writes numbers. */
#include "base/log/log_number.h"

#include <stdio.h>
#include <string.h>

/* The digits end at end; returns the first one. */
static char *
write_digits_before(uint64_t value, char *end)
{
    do {
        *--end = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return end;
}

size_t
log_number_write(int64_t value, char out[LOG_NUMBER_SIZE])
{
    char made[LOG_NUMBER_SIZE], *end = made + sizeof(made);
    char *at = write_digits_before(value < 0 ? -(uint64_t)value : (uint64_t)value, end);
    if (value < 0)
        *--at = '-';
    memcpy(out, at, (size_t)(end - at));
    return (size_t)(end - at);
}

size_t
log_number_seconds(int64_t ms, char out[LOG_NUMBER_SIZE])
{
    char made[LOG_NUMBER_SIZE], *end = made + sizeof(made);
    /* printf() rounds half a hundredth as the binary number lies. */
    if (ms < 0 || ms % 10 == 5)
        return (size_t)snprintf(out, LOG_NUMBER_SIZE, "%.2f", (double)ms / 1000);
    uint64_t hundredths = ((uint64_t)ms + 5) / 10;
    end[-1] = (char)('0' + hundredths % 10);
    end[-2] = (char)('0' + hundredths / 10 % 10);
    end[-3] = '.';
    char *at = write_digits_before(hundredths / 100, end - 3);
    memcpy(out, at, (size_t)(end - at));
    return (size_t)(end - at);
}
