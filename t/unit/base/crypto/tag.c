/* Tags: the same for the same text however it comes, another for any other text or key.
 */
#include "base/crypto/tag.h"
#include "t/support/tap.h"

enum { BLOCK = 1024, LENGTH = 3 * BLOCK + 17 };

static struct tag_key key;
static unsigned char text[LENGTH];

/* Bytes without a pattern. */
static void
fill(void *at, size_t size, uint64_t seed)
{
    unsigned char *byte = at;
    for (size_t i = 0; i < size; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        byte[i] = (unsigned char)(seed >> 56);
    }
}

/* In pieces of so many bytes. */
static void
tag_pieces(size_t length, size_t piece, unsigned char out[TAG_SIZE])
{
    struct tag *t = tag_new(&key);
    for (size_t at = 0; at < length; at += piece)
        tag_add(t, text_of(text + at, length - at < piece ? length - at : piece));
    tag_add(t, TEXT(""));
    tag_end(&t, out);
    if (t != NULL)
        ok_named(false, "it is gone");
}

static bool
same(const unsigned char a[TAG_SIZE], const unsigned char b[TAG_SIZE])
{
    return memcmp(a, b, TAG_SIZE) == 0;
}

TEST(pieces)
{
    static const size_t lengths[] = {0,    1,    7,    8,    1023,  1024,
                                     1025, 2047, 2048, 2049, LENGTH};
    unsigned char whole[TAG_SIZE], out[TAG_SIZE];
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        unsigned wrong = 0;
        tag_pieces(lengths[i], LENGTH, whole);
        for (size_t piece = 1; piece <= 1100; piece += piece < 9 ? 1 : 13) {
            tag_pieces(lengths[i], piece, out);
            wrong += !same(whole, out);
        }
        is_number(wrong, 0, "cut into pieces of any size");
    }
}

TEST(each_bit)
{
    static const size_t lengths[] = {1, 9, 1024, LENGTH};
    unsigned char whole[TAG_SIZE], out[TAG_SIZE];
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        unsigned wrong = 0;
        tag_pieces(lengths[i], LENGTH, whole);
        for (size_t bit = 0; bit < lengths[i] * 8; bit++) {
            text[bit / 8] ^= (unsigned char)(1u << bit % 8);
            tag_pieces(lengths[i], LENGTH, out);
            text[bit / 8] ^= (unsigned char)(1u << bit % 8);
            wrong += same(whole, out);
        }
        is_number(wrong, 0, "each bit counts");
    }
}

/* Exchanges words, or blocks. */
static bool
notices_exchange(size_t a, size_t b, size_t size)
{
    unsigned char before[TAG_SIZE], after[TAG_SIZE], kept[BLOCK];
    tag_pieces(LENGTH, LENGTH, before);
    for (int i = 0; i < 2; i++) {
        memcpy(kept, text + a, size);
        memcpy(text + a, text + b, size);
        memcpy(text + b, kept, size);
        if (i == 0)
            tag_pieces(LENGTH, LENGTH, after);
    }
    return !same(before, after);
}

TEST(order)
{
    ok_named(notices_exchange(0, 4, 4), "the words of a pair");
    ok_named(notices_exchange(0, 8, 8), "pairs");
    ok_named(notices_exchange(0, BLOCK, BLOCK), "blocks");
    ok_named(notices_exchange(BLOCK, 2 * BLOCK, 8), "pairs of two blocks");
}

TEST(length)
{
    unsigned char tags[2 * BLOCK + 2][TAG_SIZE];
    unsigned wrong = 0;
    memset(text, 0, sizeof(text));
    size_t count = sizeof(tags) / sizeof(tags[0]);
    for (size_t i = 0; i < count; i++) {
        tag_pieces(i, LENGTH, tags[i]);
        for (size_t k = 0; k < i; k++)
            wrong += same(tags[i], tags[k]);
    }
    is_number(wrong, 0, "zeros at the end count");
    fill(text, sizeof(text), 1);
}

/* RFC 8439 §2.5.2. */
TEST(vector)
{
    static const struct tag_key of_rfc = {
        {0x85, 0xd6, 0xbe, 0x78, 0x57, 0x55, 0x6d, 0x33, 0x7f, 0x44, 0x52,
         0xfe, 0x42, 0xd5, 0x06, 0xa8, 0x01, 0x03, 0x80, 0x8a, 0xfb, 0x0d,
         0xb2, 0xfd, 0x4a, 0xbf, 0xf6, 0xaf, 0x41, 0x49, 0xf5, 0x1b}
    };
    static const unsigned char wanted[TAG_SIZE] = {0xa8, 0x06, 0x1d, 0xc1, 0x30, 0x51,
                                                   0x36, 0xc6, 0xc2, 0x2b, 0x8b, 0xaf,
                                                   0x0c, 0x01, 0x27, 0xa9};
    unsigned char out[TAG_SIZE];
    struct tag *t = tag_new(&of_rfc);
    tag_add(t, TEXT("Cryptographic Forum Research Group"));
    tag_end(&t, out);
    ok_named(same(out, wanted), "as RFC 8439 has it");
}

TEST(key)
{
    unsigned char before[TAG_SIZE], after[TAG_SIZE];
    unsigned wrong = 0;
    tag_pieces(LENGTH, LENGTH, before);
    for (size_t i = 0; i < TAG_KEY_SIZE; i++) {
        key.bytes[i] ^= 4; /* no bit that RFC 8439 §2.5 clears */
        tag_pieces(LENGTH, LENGTH, after);
        key.bytes[i] ^= 4;
        wrong += same(before, after);
    }
    is_number(wrong, 0, "each byte of the key counts");
}

TEST(unwanted)
{
    struct tag *t = tag_new(&key);
    tag_add(t, TEXT("nobody wants to know"));
    tag_end(&t, NULL);
    tag_end(&t, NULL);
    ok(t == NULL);
}

int
main(void)
{
    fill(&key, sizeof(key), 2);
    fill(text, sizeof(text), 1);
    tap_tests("");
    return done();
}
