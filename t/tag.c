/* Tags: the same for the same text however it comes, another for any other text or key.
 */
#include "base/tag.h"
#include "t/tap.h"

enum { LENGTH = 3 * TAG_BLOCK + 17 };

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

static void
test_pieces(void)
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

static void
test_each_bit(void)
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
    unsigned char before[TAG_SIZE], after[TAG_SIZE], kept[TAG_BLOCK];
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

static void
test_order(void)
{
    ok_named(notices_exchange(0, 4, 4), "the words of a pair");
    ok_named(notices_exchange(0, 8, 8), "pairs");
    ok_named(notices_exchange(0, TAG_BLOCK, TAG_BLOCK), "blocks");
    ok_named(notices_exchange(TAG_BLOCK, 2 * TAG_BLOCK, 8), "pairs of two blocks");
}

static void
test_length(void)
{
    unsigned char tags[2 * TAG_BLOCK + 2][TAG_SIZE];
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

static void
test_key(void)
{
    unsigned char before[TAG_SIZE], after[TAG_SIZE];
    unsigned wrong = 0;
    tag_pieces(LENGTH, LENGTH, before);
    for (size_t i = 0; i < sizeof(key.words) / sizeof(key.words[0]); i++) {
        key.words[i] ^= 0x100;
        tag_pieces(LENGTH, LENGTH, after);
        key.words[i] ^= 0x100;
        wrong += same(before, after);
    }
    key.outer[1] ^= 1;
    tag_pieces(LENGTH, LENGTH, after);
    key.outer[1] ^= 1;
    is_number(wrong + same(before, after), 0, "each word of the key counts");
}

/* Each of the two passes alone would be blind to some of these: 2^-32 is not enough. */
static void
test_passes(void)
{
    unsigned char before[TAG_SIZE], after[TAG_SIZE];
    uint32_t pair[2] = {0 - key.words[0],
                        12345}; /* a product of 0, whatever is second */
    memcpy(text, pair, sizeof(pair));
    tag_pieces(8, 8, before);
    text[5] ^= 1;
    tag_pieces(8, 8, after);
    ok_named(!same(before, after), "what is hidden to the first");
    pair[0] = 0 - key.words[2];
    memcpy(text, pair, sizeof(pair));
    tag_pieces(8, 8, before);
    text[5] ^= 1;
    tag_pieces(8, 8, after);
    ok_named(!same(before, after), "what is hidden to the second");
    fill(text, sizeof(text), 1);
}

static void
test_unwanted(void)
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
    test_pieces();
    test_each_bit();
    test_order();
    test_length();
    test_key();
    test_passes();
    test_unwanted();
    return done();
}
