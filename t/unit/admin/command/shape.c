/* The shape of the queue: ages to the minute, the rows with most mail, what is beyond them,
 * and hostile names. */
#include "admin/command/shape.h"

#include "t/support/command_world.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

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

static struct command_world world;
static enum shape_by by;
static int left;
static char rest[200];

static int
parse(int count, char **arguments, const struct options *options)
{
    (void)options;
    if (!shape_parse(&count, arguments, &by))
        return EX_USAGE;
    left = count;
    rest[0] = '\0';
    for (int i = 0; i < count; i++)
        strcat(strcat(rest, arguments[i]), " ");
    return 0;
}

static void
parses(const char *line, enum shape_by want, const char *others)
{
    by = SHAPE_BY_RECIPIENT;
    is_number(run(parse, line), 0, line);
    is_number((int)by, (int)want, "grouping");
    is_string(rest, others, "the other arguments");
}

static void
test_arguments(void)
{
    parses("", SHAPE_BY_RECIPIENT, "");
    parses("--by sender", SHAPE_BY_SENDER, "");
    parses("--json --by=site --to a.test", SHAPE_BY_SITE, "--json --to a.test ");
    parses("--by site --by recipient --older 1h", SHAPE_BY_RECIPIENT, "--older 1h ");
    is_refused(run(parse, "--by"), EX_USAGE, "--by needs recipient, sender or site");
    is_refused(run(parse, "--by="), EX_USAGE, "--by needs recipient, sender or site");
    is_refused(run(parse, "--by domain"), EX_USAGE, "domain");
    is_string(shape_word(SHAPE_BY_SITE), "site", "its word");
}

static void
has(struct shape *s, const char *want)
{
    json_t *all = shape_make(s), *row;
    size_t index;
    char said[500] = "";
    json_array_foreach (json_object_get(all, "rows"), index, row)
        snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s=%d ", json_string_value(json_object_get(row, "name")),
                 (int)json_integer_value(json_object_get(row, "count")));
    is_string(said, want, "names and numbers");
    json_decref(all);
    shape_free(&s);
}

static struct shape *
shape_of(const struct envelope *e, enum shape_by grouping, const char *why)
{
    struct shape *s = shape_new();
    json_t *answer = why ? json_loads(why, 0, NULL) : NULL;
    shape_add_message(s, grouping, e, answer, e->birth_ms + 60000);
    json_decref(answer);
    return s;
}

static void
test_messages(void)
{
    static const char *const to[] = {"a@x.test", "b@X.test", "c@y.test", "d@x.test", "root"};
    struct envelope *e = envelope_new();
    for (size_t i = 0; i < sizeof(to) / sizeof(*to); i++)
        ok(envelope_add(e, text_from(to[i]), NOTIFY_DEFAULT, TEXT("")));
    e->recipients[3].done = true;
    has(shape_of(e, SHAPE_BY_RECIPIENT, NULL), "x.test=2 root=1 y.test=1 ");
    has(shape_of(e, SHAPE_BY_SENDER, NULL), "<>=1 ");
    e->sender = envelope_text(e, TEXT("ann@Here.test"));
    has(shape_of(e, SHAPE_BY_SENDER, NULL), "here.test=1 ");
    has(shape_of(e, SHAPE_BY_SITE, NULL), "no site=4 ");
    has(shape_of(e, SHAPE_BY_SITE, "{\"hops\":[{\"destination\":\"x.test\",\"open\":2,\"site\":{\"site\":\"mx.x.test\"}},"
                                   "{\"destination\":\"y.test\",\"open\":1}]}"),
        "mx.x.test=2 no site=1 y.test=1 ");
    has(shape_of(e, SHAPE_BY_SITE, "{\"hops\":7}"), "no site=4 ");
    envelope_free(&e);
}

TEST(queue)
{
    command_world_begin(&world, "queue_shape");
    test_arguments();
    test_messages();
    command_world_end(&world);
}
