/* Buffers grow up to their limit and not a byte further, and stay whole when they may
 * not. */
#include "base/buffer.h"
#include "t/support/tap.h"

/* Adds n bytes to an empty buffer of this limit, in steps: what fits must be right. */
static bool
fill(size_t limit, size_t step)
{
    struct buffer b;
    char piece[64];
    bool good = true;
    memset(piece, 'x', sizeof(piece));
    buffer_init(&b, limit);
    while (buffer_add(&b, text_of(piece, step)))
        good = good && b.length <= limit && b.capacity <= limit;
    good = good && b.length == limit / step * step;
    for (size_t i = 0; i < b.length; i++)
        good = good && b.at[i] == 'x';
    buffer_forget(&b);
    return good;
}

TEST(limits)
{
    bool good = true;
    for (size_t limit = 1; limit <= 300; limit++)
        for (size_t step = 1; step <= 64; step += 7)
            good = good && fill(limit, step);
    ok_named(good, "every limit from 1 to 300 is reached and never passed");

    struct buffer b;
    buffer_init(&b, 0);
    ok(!buffer_add_byte(&b, 'a'));
    ok(buffer_add(&b, TEXT("")));
    ok(buffer_reserve(&b, 0) != NULL);
    buffer_free(&b);

    buffer_init(&b, SIZE_MAX - 1);
    ok(buffer_add(&b, TEXT("a")));
    ok(buffer_reserve(&b, SIZE_MAX - 1) == NULL);
    is_text(buffer_text(&b), TEXT("a"), "a size near the end of all sizes is refused");
    buffer_free(&b);
}

TEST(add)
{
    struct buffer b;
    buffer_init(&b, 5);
    ok(b.at == NULL);
    is_text(buffer_text(&b), TEXT(""), "empty at first");
    ok(buffer_text(&b).at != NULL);
    ok(buffer_add(&b, TEXT("ab")));
    ok(!buffer_add(&b, TEXT("cdef")));
    is_text(buffer_text(&b), TEXT("ab"), "unchanged when it does not fit");
    ok(buffer_add(&b, TEXT("c\0d")));
    is_text(buffer_text(&b), TEXT("abc\0d"), "full to the limit, NUL included");
    ok(!buffer_add_byte(&b, 'x'));
    ok(buffer_add(&b, text_of(NULL, 0)));
    buffer_free(&b);
    ok(b.at == NULL && b.length == 0 && b.limit == 5);
    ok(buffer_add(&b, TEXT("again")));
    is_text(buffer_text(&b), TEXT("again"), "may be used again after free");
    buffer_free(&b);
}

TEST(format)
{
    struct buffer b;
    buffer_init(&b, 8);
    ok(buffer_format(&b, "%s=%d", "a", 12));
    is_text(buffer_text(&b), TEXT("a=12"), "formatted");
    ok(!buffer_format(&b, "%s", "12345"));
    is_text(buffer_text(&b), TEXT("a=12"), "unchanged when it does not fit");
    ok(buffer_format(&b, "%s", "1234"));
    is_text(buffer_text(&b), TEXT("a=121234"), "the NUL does not count");
    ok(buffer_format(&b, "%s", ""));
    ok(!buffer_format(&b, "x"));
    ok(!buffer_add_number(&b, 1));
    buffer_clear(&b);
    ok(buffer_add_number(&b, -1234567));
    is_text(buffer_text(&b), TEXT("-1234567"), "a number");
    buffer_free(&b);

    buffer_init(&b, 100000);
    ok(buffer_format(&b, "%090000d", 7));
    is_number(b.length, 90000, "a long one");
    buffer_free(&b);
}

TEST(reserve)
{
    FIXTURE(buffer, b, buffer_init, buffer_free, 1000);
    char *at = buffer_reserve(&b, 1000);
    ok(at != NULL && at == b.at);
    memset(at, 'y', 1000);
    b.length += 1000;
    ok(buffer_reserve(&b, 1) == NULL);
    ok(buffer_reserve(&b, 0) == b.at + 1000);
    buffer_take(&b, 999);
    is_text(buffer_text(&b), TEXT("y"), "one is left");
    ok(buffer_reserve(&b, 999) == b.at + 1);
}

TEST(take)
{
    struct buffer b;
    buffer_init(&b, 10);
    ok(buffer_add(&b, TEXT("0123456789")));
    buffer_take(&b, 0);
    is_text(buffer_text(&b), TEXT("0123456789"), "nothing taken");
    buffer_take(&b, 3);
    is_text(buffer_text(&b), TEXT("3456789"), "three taken");
    ok(buffer_add(&b, TEXT("abc")));
    is_text(buffer_text(&b), TEXT("3456789abc"), "their room is free again");
    buffer_take(&b, 10);
    is_text(buffer_text(&b), TEXT(""), "all taken");
    buffer_free(&b);
    buffer_take(&b, 0);
    is_number(b.length, 0, "nothing taken from nothing");
}

TEST(clear)
{
    FIXTURE(buffer, b, buffer_init, buffer_free, 1 << 20);
    ok(buffer_add(&b, TEXT("small")));
    char *at = b.at;
    buffer_clear(&b);
    ok_named(b.length == 0 && b.at == at, "a small allocation is kept");
    ok(buffer_format(&b, "%0500000d", 1));
    buffer_clear(&b);
    ok_named(b.length == 0 && b.at == NULL && b.capacity == 0, "a large one is not");
    ok(buffer_add(&b, TEXT("again")));
    is_text(buffer_text(&b), TEXT("again"), "and it goes on");
}

TEST(fit)
{
    FIXTURE(buffer, b, buffer_init, buffer_free, 1 << 20);
    buffer_fit(&b);
    ok_named(b.at == NULL && b.capacity == 0, "nothing to give back");
    ok(buffer_format(&b, "%01050d", 7) && buffer_add_byte(&b, 'x'));
    ok(b.capacity >= 2000);
    buffer_fit(&b);
    is_number(b.capacity, 1051, "as large as its content");
    ok_named(b.at[1050] == 'x' && b.at[0] == '0', "which is as it was");
    ok(buffer_add(&b, TEXT("y")));
    is_number(b.length, 1052, "it can grow again");
}
