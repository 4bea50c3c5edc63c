/* CRC32C by the processor's own instruction, or by eight tables. */
#include "base/crc.h"

#include "base/crc.h"

#include <string.h>

#ifdef __x86_64__
#include <nmmintrin.h>
#endif

/* A table is linear: the entry of a byte is the exclusive-or of the entries of its
 * bits. So eight numbers give all 256, and the compiler does the work. */
#define BIT(n, bit, entry) ((n) & (1 << (bit)) ? (entry) : 0U)
#define ENTRY(n, a, b, c, d, e, f, g, h)                                               \
    BIT(n, 0, a) ^ BIT(n, 1, b) ^ BIT(n, 2, c) ^ BIT(n, 3, d) ^ BIT(n, 4, e) ^         \
        BIT(n, 5, f) ^ BIT(n, 6, g) ^ BIT(n, 7, h)
#define FOUR(n, ...)                                                                   \
    ENTRY(n, __VA_ARGS__), ENTRY(n + 1, __VA_ARGS__), ENTRY(n + 2, __VA_ARGS__),       \
        ENTRY(n + 3, __VA_ARGS__)
#define SIXTEEN(n, ...)                                                                \
    FOUR(n, __VA_ARGS__), FOUR(n + 4, __VA_ARGS__), FOUR(n + 8, __VA_ARGS__),          \
        FOUR(n + 12, __VA_ARGS__)
#define SIXTY_FOUR(n, ...)                                                             \
    SIXTEEN(n, __VA_ARGS__), SIXTEEN(n + 16, __VA_ARGS__),                             \
        SIXTEEN(n + 32, __VA_ARGS__), SIXTEEN(n + 48, __VA_ARGS__)
#define TABLE(...)                                                                     \
    {                                                                                  \
        SIXTY_FOUR(0, __VA_ARGS__), SIXTY_FOUR(64, __VA_ARGS__),                       \
            SIXTY_FOUR(128, __VA_ARGS__), SIXTY_FOUR(192, __VA_ARGS__)                 \
    }

/* tables[k][b]: the effect of byte b on the remainder k bytes later. */
static const uint32_t tables[8][256] = {
    TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede,
          0x417b1dbc, 0x82f63b78),
    TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302,
          0xff17c604, 0xfbc3faf9),
    TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14,
          0xc76580d9, 0x8b277743),
    TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b,
          0xaba65fe7, 0x52a0c93f),
    TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557,
          0x37516aae, 0x6ea2d55c),
    TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d,
          0x0e045beb, 0x1c08b7d6),
    TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd,
          0x7ab7077a, 0xf56e0ef4),
    TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599,
          0x1a00cb32, 0x34019664),
};

static uint32_t
crc_load(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t
add_by_instruction(uint32_t crc, const unsigned char *at, size_t size)
{
    uint64_t sum = crc;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof(word));
        sum = _mm_crc32_u64(sum, word);
    }
    crc = (uint32_t)sum;
    for (; size > 0; at++, size--)
        crc = _mm_crc32_u8(crc, *at);
    return crc;
}
#endif

uint32_t
crc_add_by_tables(uint32_t crc, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    crc = ~crc;
    for (; size >= 8; at += 8, size -= 8) {
        uint32_t low = crc ^ crc_load(at), high = crc_load(at + 4);
        crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^
              tables[5][low >> 16 & 0xff] ^ tables[4][low >> 24] ^
              tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
              tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
    }
    for (; size > 0; at++, size--)
        crc = tables[0][(crc ^ *at) & 0xff] ^ crc >> 8;
    return ~crc;
}

uint32_t
crc_add(uint32_t crc, const void *bytes, size_t size)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return ~add_by_instruction(~crc, bytes, size);
#endif
    return crc_add_by_tables(crc, bytes, size);
}

/* --- The sum of two parts ---------------------------------------------------------- */

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
