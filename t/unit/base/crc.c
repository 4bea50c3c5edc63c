/* CRC32C: published values, one bit at a time as the reference, both ways of computing.
 */
#include "base/crc.h"
#include "base/crc.h"
#include "t/support/tap.h"

/* By the definition: the reflected polynomial, bit after bit. */
static uint32_t
reference(uint32_t crc, const unsigned char *at, size_t size)
{
    crc = ~crc;
    for (; size > 0; at++, size--) {
        crc ^= *at;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

static void
both(const void *bytes, size_t size, uint32_t want, const char *name)
{
    is_number(crc_add(0, bytes, size), want, name);
    is_number(crc_add_by_tables(0, bytes, size), want, name);
}

/* RFC 3720 §B.4 */
TEST(published)
{
    unsigned char bytes[32];
    both("123456789", 9, 0xe3069283, "the check value");
    both("", 0, 0, "nothing");
    both(NULL, 0, 0, "nothing, not even a place");
    memset(bytes, 0, sizeof(bytes));
    both(bytes, 32, 0x8a9136aa, "32 bytes of zeroes");
    memset(bytes, 0xff, sizeof(bytes));
    both(bytes, 32, 0x62a8ab43, "32 bytes of ones");
    for (size_t i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    both(bytes, 32, 0x46dd794e, "32 bytes going up");
    for (size_t i = 0; i < 32; i++)
        bytes[i] = (unsigned char)(31 - i);
    both(bytes, 32, 0x113fdb5c, "32 bytes going down");
}

TEST(reference)
{
    unsigned char bytes[300];
    uint32_t state = 1;
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        state = state * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(state >> 24);
    }
    for (size_t start = 0; start < 16; start++) {
        for (size_t size = 0; start + size <= sizeof(bytes); size++) {
            uint32_t want = reference(0, bytes + start, size);
            wrong += crc_add(0, bytes + start, size) != want;
            wrong += crc_add_by_tables(0, bytes + start, size) != want;
        }
    }
    is_number(wrong, 0, "every length to 300 at every alignment");

    uint32_t whole = reference(0, bytes, sizeof(bytes));
    for (size_t cut = 0; cut <= sizeof(bytes); cut++) {
        uint32_t crc = crc_add(0, bytes, cut);
        wrong += crc_add(crc, bytes + cut, sizeof(bytes) - cut) != whole;
        wrong += crc_add_by_tables(crc, bytes + cut, sizeof(bytes) - cut) != whole;
    }
    is_number(wrong, 0, "going on from any cut gives the same");

    for (size_t bit = 0; bit < sizeof(bytes) * 8; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        wrong += crc_add(0, bytes, sizeof(bytes)) == whole;
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    is_number(wrong, 0, "every single bit turned is noticed");
}

TEST(join)
{
    unsigned char bytes[300];
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * 37 + i / 7);
    uint32_t all = crc_add(0, bytes, sizeof(bytes));
    for (size_t i = 0; i <= sizeof(bytes); i++)
        wrong += crc_join(crc_add(0, bytes, i), crc_add(0, bytes + i, sizeof(bytes) - i),
                          sizeof(bytes) - i) != all;
    is_number(wrong, 0, "the sum of two parts");
}
