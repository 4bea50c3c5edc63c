/* The CRC32C of bytes whose parts have been summed: without reading them again. */
#include "base/crc.h"

#include <string.h>

/* To add a zero bit is a linear map of the remainder: column n is what becomes of bit n.
 * Its squares add 2, 4, 8 ... zero bits. */
enum { COLUMNS = 32 };
static const uint32_t polynomial = 0x82f63b78;

static uint32_t
join_apply(const uint32_t map[COLUMNS], uint32_t remainder)
{
    uint32_t sum = 0;
    for (unsigned i = 0; remainder != 0; i++, remainder >>= 1)
        sum ^= (remainder & 1) != 0 ? map[i] : 0;
    return sum;
}

static void
join_square(uint32_t map[COLUMNS])
{
    uint32_t square[COLUMNS];
    for (unsigned i = 0; i < COLUMNS; i++)
        square[i] = join_apply(map, map[i]);
    memcpy(map, square, sizeof(square));
}

uint32_t
crc_join(uint32_t first, uint32_t second, uint64_t second_size)
{
    uint32_t map[COLUMNS] = {polynomial};
    for (unsigned i = 1; i < COLUMNS; i++)
        map[i] = UINT32_C(1) << (i - 1);
    for (unsigned i = 0; i < 3; i++) /* from bits to bytes */
        join_square(map);
    for (; second_size > 0; second_size >>= 1) {
        if ((second_size & 1) != 0)
            first = join_apply(map, first);
        join_square(map);
    }
    return first ^ second;
}
