/* Arenas: zeroed, aligned, apart from each other, and at the limit NULL. */
#include "base/arena.h"
#include "t/support/tap.h"

#include <malloc.h>

TEST(pieces)
{
    enum { PIECES = 2000 };
    static unsigned char *pieces[PIECES];
    struct arena a;
    bool zero = true, aligned = true, intact = true;
    arena_init(&a, 64 << 20);
    for (size_t i = 0; i < PIECES; i++) {
        size_t size = i * 7 % 301;
        pieces[i] = arena_get(&a, size);
        aligned = aligned && (uintptr_t)pieces[i] % _Alignof(max_align_t) == 0;
        for (size_t k = 0; k < size; k++)
            zero = zero && pieces[i][k] == 0;
        memset(pieces[i], (int)(i % 255 + 1), size);
    }
    for (size_t i = 0; i < PIECES; i++)
        for (size_t k = 0; k < i * 7 % 301; k++)
            intact = intact && pieces[i][k] == i % 255 + 1;
    ok_named(zero, "all memory is zeroed");
    ok_named(aligned, "and aligned for any type");
    ok_named(intact, "no piece lies in another");
    arena_free(&a);
    ok(a.chunks == NULL && a.used == 0);

    unsigned char *big = arena_get(&a, 1 << 20);
    ok_named(big != NULL && big[0] == 0 && big[(1 << 20) - 1] == 0,
             "a piece larger than any chunk, in an arena used again");
    ok(arena_get(&a, 1) != NULL);
    arena_free(&a);
}

TEST(limit)
{
    struct arena a;
    bool exact = true, closed = true;
    for (size_t limit = 1; limit < 3000; limit += 13) {
        arena_init(&a, limit);
        closed = closed && arena_get(&a, limit + 1) == NULL && a.used == 0;
        exact = exact && arena_get(&a, limit) != NULL;
        closed = closed && arena_get(&a, 1) == NULL;
        arena_free(&a);
    }
    ok_named(exact, "a piece as large as the limit is given");
    ok_named(closed, "a byte more is not");

    arena_init(&a, 1000);
    size_t count = 0;
    while (count < 2000 && arena_get(&a, 0) != NULL)
        count++;
    ok_named(count > 0 && count <= 1000, "pieces of nothing come to an end too");
    arena_free(&a);

    arena_init(&a, 0);
    ok(arena_get(&a, 1) == NULL);
    ok(arena_get(&a, SIZE_MAX) == NULL);
    arena_free(&a);
}

TEST(copy)
{
    struct arena a;
    arena_init(&a, 32);
    struct text t = arena_copy(&a, TEXT("user@example"));
    is_text(t, TEXT("user@example"), "a copy is equal");
    ok_named(t.at[t.length] == '\0', "and has a NUL behind it");
    ok(arena_copy(&a, TEXT("this is much too long for it")).at == NULL);
    struct text empty = arena_copy(&a, text_of(NULL, 0));
    ok(empty.at != NULL && empty.length == 0 && empty.at[0] == '\0');
    arena_free(&a);

    arena_init(&a, 4);
    ok_named(arena_copy(&a, TEXT("1234")).at == NULL, "the NUL needs its room");
    is_text(arena_copy(&a, TEXT("123")), TEXT("123"), "exactly fits");
    ok(arena_copy(&a, TEXT("")).at == NULL);
    arena_free(&a);
}

/* Many clients have one small message each. */
TEST(small)
{
    FIXTURE(arena, a, arena_init, arena_free, 1 << 20);
    ok(arena_copy(&a, TEXT("sender@example.org")).at != NULL);
    ok_named(malloc_usable_size(a.chunks) <= 320, "a small arena takes little memory");
    ok(arena_get(&a, 5000) != NULL && arena_get(&a, 10) != NULL);
    ok_named(malloc_usable_size(a.chunks) >= 5000, "chunks grow with it");
}
