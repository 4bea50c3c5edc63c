/* `petrel queue shape`: its arguments, and what of a message counts where. */
#include "admin/command/shape.h"

#include "t/support/command_world.h"
#include "t/support/tap.h"

#include <string.h>
#include <sysexits.h>

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

TEST(arguments)
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

TEST(messages)
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

int
main(void)
{
    command_world_begin(&world, "queue_shape");
    tap_tests("");
    command_world_end(&world);
    return done();
}
