/* Names: one spelling, sorted as they are old, each in exactly one slice. */
#include "base/id.h"
#include "t/support/tap.h"

static const unsigned char lowest[5] = {0, 0, 0, 0, 0};
static const unsigned char highest[5] = {0xff, 0xff, 0xff, 0xff, 0xff};
static const uint64_t time_last = ((uint64_t)1 << 50) - 1;

TEST(format)
{
    char name[ID_LENGTH + 1];
    id_format(id_make(0, lowest), name);
    is_string(name, "0000000000-00000000", "the lowest");
    id_format(id_make(time_last, highest), name);
    is_string(name, "ZZZZZZZZZZ-ZZZZZZZZ", "the highest");
    const unsigned char digest[5] = {0x00, 0x44, 0x32, 0x14, 0xc7};
    struct id id = id_make(33, digest);
    is_number(id.hash, 0x00443214c7, "the digest's first byte is the highest");
    ok_named(strcmp(id_format(id, name), ID_TEXT(id)) == 0, "as text in place");
    is_string(name, "0000000011-01234567", "five bits a digit");
    is_number(strlen(name), ID_LENGTH, "always the same length");
}

TEST(parse)
{
    struct id id = {1, 2}, again;
    char name[ID_LENGTH + 1];
    ok(id_parse(TEXT("01JD3ZK5Q8-9F3K2C7A"), &id));
    id_format(id, name);
    is_string(name, "01JD3ZK5Q8-9F3K2C7A", "there and back");
    ok(id_parse(TEXT("ZZZZZZZZZZ-ZZZZZZZZ"), &again) && again.time_ms == time_last);

    const char *const bad[] = {
        "",
        "01JD3ZK5Q8-9F3K2C7",   /* short */
        "01JD3ZK5Q8-9F3K2C7AA", /* long */
        "01JD3ZK5Q809F3K2C7A",  /* no hyphen */
        "01JD3ZK5Q-89F3K2C7A",  /* hyphen elsewhere */
        "01jd3zk5q8-9f3k2c7a",  /* lower case */
        "01JD3ZK5Q8-9F3K2C7I",  /* letters that Crockford leaves out */
        "01JD3ZK5Q8-9F3K2C7L",
        "01JD3ZK5Q8-9F3K2C7O",
        "U1JD3ZK5Q8-9F3K2C7A",
        "../../../../etc/pas",
        "01JD3ZK5Q8-9F3K2C7 ",
        " 1JD3ZK5Q8-9F3K2C7A",
        "01JD3ZK5Q8-9F3K2C7-",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_named(!id_parse(text_from(bad[i]), &again), bad[i]);
    ok_named(!id_parse(TEXT("01JD3ZK5Q8-9F3K2C7\0"), &again), "a NUL is no digit");
    ok_named(again.time_ms == time_last, "what cannot be read changes nothing");

    size_t wrong = 0;
    for (int c = 0; c < 256; c++) {
        memcpy(name, "01JD3ZK5Q8-9F3K2C7A", ID_LENGTH);
        name[4] = (char)c;
        if (id_parse(text_of(name, ID_LENGTH), &id)) {
            char back[ID_LENGTH + 1];
            id_format(id, back);
            wrong += memcmp(name, back, ID_LENGTH) != 0;
        }
    }
    is_number(wrong, 0, "one name has one spelling");
}

TEST(read)
{
    static const char *const good[] = {"01JD3ZK5Q8-9F3K2C7A", "01jd3zk5q8-9f3k2c7a", "01JD3ZK5Q89F3K2C7A", "01jD3zk5q89f3k2C7a"},
                             *const bad[] = {"", "-", "01JD3ZK5Q8-9F3K2C7", "01JD3ZK5Q8-9F3K2C7AA", "01JD3ZK5Q-89F3K2C7A", "01JD3ZK5Q809F3K2C7A",
                                             "01jd3zk5q8-9f3k2c7l", "01JD3ZK5Q8--F3K2C7A", "01JD3ZK5Q89F3K2C7", "01JD3ZK5Q89F3K2C7 "};
    struct id id, same;
    char name[ID_LENGTH + 1];
    ok(id_parse(TEXT("01JD3ZK5Q8-9F3K2C7A"), &same));
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ok_named(id_read(text_from(good[i]), &id) && id_compare(id, same) == 0, good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_named(!id_read(text_from(bad[i]), &id), bad[i]);
    id_format(id, name);
    is_string(name, "01JD3ZK5Q8-9F3K2C7A", "what cannot be read changes nothing");
}

static int
sign(int n)
{
    return (n > 0) - (n < 0);
}

TEST(order)
{
    const uint64_t times[] = {0, 1, 31, 32, 1700000000000, 1700000000001, time_last};
    const unsigned char hashes[][5] = {
        {0,    0,    0,    0,    0   },
        {0,    0,    0,    0,    1   },
        {0,    0,    0,    0,    0x20},
        {1,    0,    0,    0,    0   },
        {0x80, 0,    0,    0,    0   },
        {0xff, 0xff, 0xff, 0xff, 0xff}
    };
    enum { TIMES = sizeof(times) / sizeof(times[0]), HASHES = sizeof(hashes) / 5 };
    size_t wrong = 0;
    for (int a = 0; a < TIMES * HASHES; a++) {
        for (int b = 0; b < TIMES * HASHES; b++) {
            char x[ID_LENGTH + 1], y[ID_LENGTH + 1];
            struct id first = id_make(times[a / HASHES], hashes[a % HASHES]);
            struct id second = id_make(times[b / HASHES], hashes[b % HASHES]);
            id_format(first, x);
            id_format(second, y);
            wrong += sign(id_compare(first, second)) != sign(a - b);
            wrong += sign(strcmp(x, y)) != sign(a - b);
        }
    }
    is_number(wrong, 0, "the order of ids is that of their names: oldest first");
}

/* Each of the slices says "mine" of the part of all hashes that it was given. */
static bool
is_split(unsigned slices)
{
    const uint64_t all = (uint64_t)1 << 40, part = all / slices;
    for (unsigned slice = 0; slice < slices; slice++) {
        struct id first = {.hash = part * slice},
                  last = {.hash = part * (slice + 1) - 1};
        struct id middle = {.hash = part * slice + part / 2};
        if (id_slice(first, slices) != slice || id_slice(last, slices) != slice ||
            id_slice(middle, slices) != slice)
            return false;
    }
    return true;
}

TEST(slices)
{
    bool good = true, one = true, nested = true;
    for (unsigned slices = 1; slices <= 1024; slices *= 2) {
        good = good && is_split(slices);
        one = one && id_slice(id_make(5, lowest), slices) == 0 &&
              id_slice(id_make(5, highest), slices) == slices - 1;
    }
    ok_named(good, "the borders between 1, 2, 4 ... 1024 slices lie where they should");
    ok_named(one, "00..0 is in the first slice, ff..f in the last");

    size_t counts[16] = {0};
    uint64_t state = 7;
    for (size_t i = 0; i < 16000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        struct id id = {.hash = state >> 24};
        unsigned slice = id_slice(id, 16);
        for (unsigned slices = 1; slices <= 16; slices *= 2)
            nested = nested && id_slice(id, slices) == slice * slices / 16;
        if (slice < 16)
            counts[slice]++;
    }
    ok_named(nested, "a slice of 16 lies in one of 8, of 4, of 2");
    size_t sum = 0;
    bool fair = true;
    for (size_t i = 0; i < 16; i++) {
        sum += counts[i];
        fair = fair && counts[i] > 800 && counts[i] < 1200;
    }
    is_number(sum, 16000, "every digest is in exactly one slice");
    ok_named(fair, "and they are about as many in each");
}
