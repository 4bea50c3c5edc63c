/* Which part of the names is ours. */
#include "queue/spool/slices.h"

#include "t/support/tap.h"

static struct id
with_hash(uint64_t hash)
{
    return (struct id){.time_ms = 1, .hash = hash};
}

TEST(have)
{
    static const unsigned counts[] = {1, 2, 4, 64, ID_SLICES_MAX};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        unsigned n = counts[i], wrong = 0, owners = 0;
        for (unsigned slice = 0; slice < n; slice++) {
            struct slices s;
            slices_init(&s, n, slice);
            for (uint64_t step = 0; step < 4096; step++) {
                struct id id = with_hash(step << 28);
                bool have = slices_have(&s, id);
                wrong += have != (id_slice(id, n) == slice);
                owners += have;
            }
        }
        is_number(wrong, 0, "only what id_slice() says");
        is_number(owners, 4096, "each name has one owner");
    }
}

/* Exact at every boundary of every number of slices (SB14). */
TEST(boundaries)
{
    const uint64_t all = (UINT64_C(1) << 40) - 1;
    unsigned wrong = 0;
    for (unsigned n = 1; n <= ID_SLICES_MAX; n *= 2)
        for (unsigned slice = 0; slice < n; slice++) {
            struct slices s;
            uint64_t first = slice * ((all + 1) / n), last = first + all / n;
            slices_init(&s, n, slice);
            wrong +=
                !slices_have(&s, with_hash(first)) || !slices_have(&s, with_hash(last));
            wrong += n > 1 && (slices_have(&s, with_hash((first + all) & all)) ||
                               slices_have(&s, with_hash((last + 1) & all)));
        }
    is_number(wrong, 0, "SB14: 00..0, ff..f and all boundaries");
}

TEST(parts)
{
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {"0000-1023", true}, {"0512-0767", true}, {"0007-0007", true}, {"", false},          {"0000-1024", false},
        {"0001-0000", false}, {"000-01023", false}, {"0000 1023", false}, {"+000-1023", false}, {"0000-10230", false},
    };
    unsigned first = 0, last = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ok_named(slices_part_read(text_from(rows[i].text), &first, &last) == rows[i].good, rows[i].text);
    ok(slices_part_read(TEXT("0512-0767"), &first, &last));
    is_number(first * 1024 + last, 512 * 1024 + 767, "its bounds");
}

TEST(more)
{
    struct slices s;
    unsigned ours = 0;
    slices_init(&s, 8, 3);
    slices_add(&s, 6);
    slices_add(&s, 6);
    is_number(s.own, 3, "our own stays");
    is_number(slices_width(8), 128, "1024 units, a part for each");
    for (unsigned slice = 0; slice < 8; slice++) {
        bool overlap = slices_overlap(&s, slice * 128, slice * 128 + 127);
        ours += overlap;
        if (overlap != (slice == 3 || slice == 6))
            printf("# slice %u\n", slice);
    }
    is_number(ours, 2, "two of eight");
    ok(slices_overlap(&s, 0, 1023));
    ok(slices_overlap(&s, 0, 384));
    ok(!slices_overlap(&s, 0, 383));
    ok(slices_overlap(&s, 511, 511));
    ok(!slices_overlap(&s, 512, 767));
}

TEST(suffix)
{
    char suffix[SLICES_SUFFIX_MAX];
    slices_suffix(1, 0, suffix);
    is_string(suffix, "", "the only one has none");
    slices_part(1, 0, suffix);
    is_string(suffix, "0000-1023", "but it has a part");
    slices_suffix(2, 1, suffix);
    is_string(suffix, ".0512-1023", "the second half");
    slices_suffix(ID_SLICES_MAX, ID_SLICES_MAX - 1, suffix);
    is_string(suffix, ".1023-1023", "the last unit");
}
