/* The CRC32C of bytes whose parts have been summed: without reading them again. */
#include "base/crc.h"

/* A remainder is a polynomial, and its highest bit is that of the power 0. */
static const uint32_t polynomial = 0x82f63b78;
#define JOIN_POWER(n) (UINT32_C(1) << (31 - (n)))

static uint32_t
join_multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (; a != 0; a <<= 1) {
        product ^= (a & JOIN_POWER(0)) != 0 ? b : 0;
        b = b >> 1 ^ ((b & 1) != 0 ? polynomial : 0);
    }
    return product;
}

/* Each zero bit behind some bytes is a factor: eight for a byte, in powers of two. */
uint32_t
crc_join(uint32_t first, uint32_t second, uint64_t second_size)
{
    uint32_t factor = JOIN_POWER(8);
    for (; second_size > 0; second_size >>= 1) {
        if ((second_size & 1) != 0)
            first = join_multiply(first, factor);
        factor = join_multiply(factor, factor);
    }
    return first ^ second;
}
