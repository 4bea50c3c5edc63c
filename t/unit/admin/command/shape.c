/* The shape of the queue: ages to the minute, the rows with most mail, what is beyond them,
 * and hostile names. */
#include "admin/command/shape.h"

#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

enum { MINUTE = 60 * 1000 };

static void
prints(struct shape *s, const char *want)
{
    char *said = NULL;
    size_t size;
    FILE *out = open_memstream(&said, &size);
    shape_print(s, out);
    fclose(out);
    is_string(said, want, "a table");
    free(said);
}

TEST(table)
{
    struct shape *s = shape_new();
    prints(s, "          T    5   10   20   40   80  160  320  640 1280 1280+\n"
              "TOTAL     0    0    0    0    0    0    0    0    0    0     0\n");
    shape_add(s, TEXT("b.test"), 0, 1);
    shape_add(s, TEXT("B.Test"), 5 * MINUTE, 2);
    shape_add(s, TEXT("b.test"), 5 * MINUTE + 1, 3);
    shape_add(s, TEXT("none.test"), 0, 0);
    shape_add(s, TEXT("old.test"), (int64_t)1280 * MINUTE, 4);
    shape_add(s, TEXT("old.test"), (int64_t)1280 * MINUTE + 1, 5);
    shape_add(s, TEXT("a.test"), -MINUTE, 6); /* the clock was set back */
    prints(s, "             T    5   10   20   40   80  160  320  640 1280 1280+\n"
              "   TOTAL    21    9    3    0    0    0    0    0    0    4     5\n"
              "old.test     9    0    0    0    0    0    0    0    0    4     5\n"
              "  a.test     6    6    0    0    0    0    0    0    0    0     0\n"
              "  b.test     6    3    3    0    0    0    0    0    0    0     0\n");
    shape_free(&s);
    ok(s == NULL);
    shape_free(&s);
}

/* Columns are as wide as the largest number, and escaped names stay in their line. */
TEST(wide)
{
    struct shape *s = shape_new();
    shape_add(s, TEXT("\x1b[2J\n"), 0, 1234567);
    prints(s, "                  T       5      10      20      40      80     160     320     640    1280   1280+\n"
              "      TOTAL 1234567 1234567       0       0       0       0       0       0       0       0       0\n"
              "\\x1b[2j\\x0a 1234567 1234567       0       0       0       0       0       0       0       0       0\n");
    shape_free(&s);
}

TEST(others)
{
    struct shape *s = shape_new();
    char name[30];
    for (int i = 0; i < SHAPE_ROWS + 3; i++) {
        snprintf(name, sizeof(name), "d%02d.test", i);
        shape_add(s, text_from(name), (int64_t)i * 10 * MINUTE, (uint64_t)(100 - i));
    }
    json_t *all = shape_make(s), *rows = json_object_get(all, "rows"), *other = json_object_get(all, "other");
    const json_t *total = json_object_get(all, "total"), *first = json_array_get(rows, 0);
    is_number((int)json_array_size(json_object_get(all, "ages_min")), SHAPE_AGES - 1, "bounds of ages");
    is_number((int)json_array_size(rows), SHAPE_ROWS, "rows");
    is_string(json_string_value(json_object_get(first, "name")), "d00.test", "the most first");
    is_number((int)json_integer_value(json_object_get(first, "count")), 100, "its number");
    is_number((int)json_array_size(json_object_get(first, "ages")), SHAPE_AGES, "its ages");
    is_number((int)json_integer_value(json_object_get(other, "names")), 3, "names beyond");
    is_number((int)json_integer_value(json_object_get(other, "count")), 80 + 79 + 78, "their mail");
    is_number((int)json_integer_value(json_object_get(total, "count")), 23 * 100 - 22 * 23 / 2, "all mail");
    json_int_t sum = 0;
    for (size_t i = 0; i < SHAPE_AGES; i++)
        sum += json_integer_value(json_array_get(json_object_get(other, "ages"), i));
    is_number((int)sum, 80 + 79 + 78, "by age, too");
    json_decref(all);
    char *said = NULL;
    size_t size;
    FILE *out = open_memstream(&said, &size);
    shape_print(s, out);
    fclose(out);
    ok(strstr(said, "\n   other   237 ") != NULL && strstr(said, "d19.test") && !strstr(said, "d20.test"));
    free(said);
    shape_free(&s);
}

/* Beyond the limit names count, but are not kept. */
TEST(many)
{
    struct shape *s = shape_new();
    char name[30];
    for (int i = 0; i < SHAPE_NAMES_MAX + 10; i++) {
        snprintf(name, sizeof(name), "d%d.test", i);
        shape_add(s, text_from(name), 0, 1);
    }
    shape_add(s, TEXT("d7.test"), 0, 1);
    json_t *all = shape_make(s);
    const json_t *other = json_object_get(all, "other"), *total = json_object_get(all, "total");
    is_number((int)json_integer_value(json_object_get(total, "count")), SHAPE_NAMES_MAX + 11, "all count");
    is_number((int)json_integer_value(json_object_get(other, "names")), SHAPE_NAMES_MAX - SHAPE_ROWS, "names that are kept");
    is_number((int)json_integer_value(json_object_get(other, "count")), SHAPE_NAMES_MAX + 11 - SHAPE_ROWS - 1, "other");
    json_decref(all);
    shape_free(&s);
}
