/* TAP for C: ok(), is_text(), done(). */
#include "t/support/tap.h"

int tap_count, tap_failed;

bool
tap_result(bool good, const char *name, const char *file, int line)
{
    tap_count++;
    printf("%s %d - %s\n", good ? "ok" : "not ok", tap_count, name);
    if (!good) {
        tap_failed++;
        printf("# failed at %s:%d\n", file, line);
    }
    fflush(stdout);
    return good;
}

bool
tap_number(int64_t got, int64_t want, const char *name, const char *file, int line)
{
    if (!tap_result(got == want, name, file, line))
        printf("#   got %" PRId64 ", want %" PRId64 "\n", got, want);
    return got == want;
}

bool
tap_text(struct text got, struct text want, const char *name, const char *file, int line)
{
    bool good = text_equal(got, want);
    if (!tap_result(good, name, file, line))
        printf("#   got  '%.*s'\n#   want '%.*s'\n", TEXT_ARGS(got), TEXT_ARGS(want));
    return good;
}

static struct tap_test *tests;

void
tap_register(struct tap_test *test)
{
    struct tap_test **at = &tests;
    while (*at != NULL && (*at)->line < test->line)
        at = &(*at)->next;
    test->next = *at;
    *at = test;
}

void
tap_tests(const char *part)
{
    for (const struct tap_test *t = tests; t != NULL; t = t->next)
        if (strstr(t->name, part) != NULL)
            t->run();
}

int
done(void)
{
    printf("1..%d\n", tap_count);
    return tap_failed != 0;
}
