/* Numbers are written as printf() writes them. */
#include "base/number.h"
#include "t/support/tap.h"

static void
is_written(int64_t value)
{
    char want[64], got[NUMBER_SIZE + 1];
    snprintf(want, sizeof(want), "%" PRId64, value);
    got[number_write(value, got)] = '\0';
    is_string(got, want, "a number");
}

static void
has_digits(uint64_t value, unsigned radix, size_t count, const char *want)
{
    char got[32] = "########################";
    number_write_digits(value, radix, count, got);
    ok_named(got[count] == '#', "not a byte more");
    got[count] = '\0';
    is_string(got, want, "digits");
}

int
main(void)
{
    static const int64_t numbers[] = {0, 7, 10, 99, 100, -1, -10, 1234567890123, INT64_MAX, INT64_MIN, INT64_MIN + 1};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        is_written(numbers[i]);
    has_digits(0, 10, 3, "000");
    has_digits(7, 10, 2, "07");
    has_digits(2026, 10, 4, "2026");
    has_digits(12345, 10, 4, "2345");
    has_digits(0xdeadbeef, 16, 8, "deadbeef");
    has_digits(0xbeef, 16, 8, "0000beef");
    has_digits(UINT64_MAX, 16, 16, "ffffffffffffffff");
    has_digits(UINT64_MAX, 10, 20, "18446744073709551615");
    has_digits(5, 10, 0, "");
    return done();
}
