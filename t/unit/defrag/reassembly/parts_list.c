/* defrag/reassembly/parts_list.c: what a joined message was made of, written and read. */
#include "defrag/reassembly/parts_list.h"

#include "t/support/tap.h"

#include <stdlib.h>

static struct id
an_id(unsigned char n)
{
    return id_make(1750000000000 + n, (const unsigned char[]){n, 2, 3, 4, 5});
}

static unsigned
depth_of(struct text made_of)
{
    const struct envelope e = {.fragment.made_of = made_of};
    return parts_list_depth(&e);
}

TEST(round)
{
    FIXTURE(buffer, b, buffer_init, buffer_free, 1000);
    parts_list_begin(2, &b);
    parts_list_add(an_id(1), (const unsigned[]){0}, 1, &b);
    parts_list_add(an_id(2), (const unsigned[]){7, 4294967295U, 12}, 3, &b);
    struct text rest = buffer_text(&b);
    struct id id;
    unsigned *indexes;
    size_t count;
    is_number(depth_of(rest), 2, "depth");
    ok(parts_list_next(&rest, &id, &indexes, &count));
    ok(id_compare(id, an_id(1)) == 0 && count == 1 && indexes[0] == 0);
    free(indexes);
    ok(parts_list_next(&rest, &id, &indexes, &count));
    ok(id_compare(id, an_id(2)) == 0 && count == 3 && indexes[0] == 7 &&
       indexes[1] == 4294967295U && indexes[2] == 12);
    free(indexes);
    ok(!parts_list_next(&rest, &id, &indexes, &count));
}

/* For any input, only ids and numbers come out. */
TEST(bad)
{
    static const struct {
        const char *made_of;
        unsigned depth, parts;
    } rows[] = {
        {"",                                                      0,              0},
        {"3",                                                     3,              0},
        {"x\n",                                                   PARTS_LIST_DEPTH_MAX, 0},
        {"-1\n",                                                  PARTS_LIST_DEPTH_MAX, 0},
        {"1001\n",                                                PARTS_LIST_DEPTH_MAX, 0},
        {"1\n\n\n",                                               1,              0},
        {"1\n01JD3ZK5Q8-9F3K2C7A",                                1,              1},
        {"1\n01JD3ZK5Q8-9F3K2C7 1\n",                             1,              0},
        {"1\n01JD3ZK5Q8-9F3K2C7A 1 x 2\nno\n"
         "01JD3ZK5Q8-9F3K2C7B    \n01JD3ZK5Q8-9F3K2C7C", 1,              3},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct text rest = text_from(rows[i].made_of);
        struct id id;
        unsigned *indexes, parts = 0;
        size_t count;
        is_number(depth_of(rest), rows[i].depth, rows[i].made_of);
        while (parts_list_next(&rest, &id, &indexes, &count)) {
            parts++;
            ok(count <= 2);
            free(indexes);
        }
        is_number(parts, rows[i].parts, rows[i].made_of);
    }
}
