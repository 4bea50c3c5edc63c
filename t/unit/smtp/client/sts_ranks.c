/* Which policies of MTA-STS go first when there are too many. */
#include "smtp/client/sts_ranks.h"

#include "t/support/tap.h"

#include <stdio.h>
#include <string.h>

enum { PLACES = 40 };
static struct sts_place places[PLACES];

static struct sts_ranks
empty(size_t count_max, size_t bytes_max)
{
    memset(places, 0, sizeof(places));
    return (struct sts_ranks){.count_max = count_max, .bytes_max = bytes_max};
}

/* The numbers in the order in which they go. */
static const char *
order(const struct sts_ranks *r)
{
    static char out[200];
    out[0] = '\0';
    for (const struct sts_place *p = sts_ranks_first(r); p != NULL; p = sts_ranks_after(r, p))
        snprintf(out + strlen(out), sizeof(out) - strlen(out), "%d ", (int)(p - places));
    return out;
}

static void
test_order(void)
{
    struct sts_ranks r = empty(100, 10000);
    is_string(order(&r), "", "nothing");
    ok_named(sts_ranks_first(&r) == NULL && !sts_ranks_are_full(&r), "at first");
    sts_ranks_put(&r, &places[0], STS_VALUE_USED, 10);
    sts_ranks_put(&r, &places[1], STS_VALUE_ENFORCE, 10);
    sts_ranks_put(&r, &places[2], STS_VALUE_TESTING, 10);
    sts_ranks_put(&r, &places[3], STS_VALUE_NONE, 10);
    sts_ranks_put(&r, &places[4], STS_VALUE_FAILED, 10);
    sts_ranks_put(&r, &places[5], STS_VALUE_FAILED, 10);
    is_string(order(&r), "4 5 3 2 1 0 ", "by value, then by use");
    sts_ranks_put(&r, &places[4], STS_VALUE_FAILED, 30);
    is_string(order(&r), "5 4 3 2 1 0 ", "one that is used goes later");
    is_number((long)r.bytes, 80, "its bytes are counted anew");
    sts_ranks_put(&r, &places[5], STS_VALUE_ENFORCE, 10);
    is_string(order(&r), "4 3 2 1 5 0 ", "and one that is worth more");
    sts_ranks_remove(&r, &places[3]);
    sts_ranks_remove(&r, &places[3]);
    sts_ranks_remove(&r, &places[9]);
    is_string(order(&r), "4 2 1 5 0 ", "one may be removed twice");
    is_number((long)r.count, 5, "counted once");
}

static void
test_bounds(void)
{
    struct sts_ranks r = empty(10, 1000);
    for (int i = 0; i < 11; i++)
        sts_ranks_put(&r, &places[i], STS_VALUE_USED, 10);
    ok_named(sts_ranks_are_full(&r), "too many");
    is_string(order(&r), "0 1 2 3 4 5 6 7 8 9 10 ", "in the order of use");
    is_number((long)r.of[STS_VALUE_USED].count, 8, "four fifths are spared");
    sts_ranks_put(&r, &places[20], STS_VALUE_ENFORCE, 10);
    is_string(order(&r), "0 1 2 20 3 4 5 6 7 8 9 10 ", "a new one finds space");
    r = empty(100, 1000);
    sts_ranks_put(&r, &places[0], STS_VALUE_USED, 700);
    ok_named(!sts_ranks_are_full(&r), "as much as there may be");
    sts_ranks_put(&r, &places[1], STS_VALUE_USED, 700);
    ok_named(sts_ranks_are_full(&r) && sts_ranks_first(&r) == &places[0], "too many bytes");
    is_number((long)r.of[STS_VALUE_USED].count, 1, "the last one is spared");
    sts_ranks_put(&r, &places[2], STS_VALUE_USED, 2000);
    is_number((long)r.of[STS_VALUE_USED].count, 0, "but not one that is larger than all may be");
}

int
main(void)
{
    test_order();
    test_bounds();
    return done();
}
