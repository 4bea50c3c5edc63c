/* Writes whole numbers as text. */
#include "base/number.h"

#include <assert.h>
#include <string.h>

size_t
number_write(int64_t value, char out[NUMBER_SIZE])
{
    if (value >= 0 && value < 10) { /* most are */
        out[0] = (char)('0' + value);
        return 1;
    }
    char made[NUMBER_SIZE], *end = made + sizeof(made), *at = end;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        *--at = '-';
    memcpy(out, at, (size_t)(end - at));
    return (size_t)(end - at);
}

void
number_write_digits(uint64_t value, unsigned radix, size_t count, char *out)
{
    assert(radix == 10 || radix == 16);
    /* Constants, which the compiler divides by without a division. */
    if (radix == 16)
        for (; count > 0; value /= 16)
            out[--count] = "0123456789abcdef"[value % 16];
    else
        for (; count > 0; value /= 10)
            out[--count] = (char)('0' + value % 10);
}
