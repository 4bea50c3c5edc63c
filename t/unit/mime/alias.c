/* The form of /etc/aliases: names, addresses, continuations, and what is an error. */
#include "mime/alias.h"

#include "base/buffer.h"
#include "t/support/tap.h"

static bool
on_name(void *context, struct text name, unsigned line)
{
    return buffer_format(context, "%u %.*s:", line, TEXT_ARGS(name)) ||
           buffer_add(context, TEXT(""));
}

static void
on_value(void *context, enum alias_kind kind, struct text value, unsigned line)
{
    static const char *const kinds[] = {
        [ALIAS_ADDRESS] = "", [ALIAS_EXACT] = "\\", [ALIAS_INCLUDE] = "+"};
    ok_named(line > 0, "a line");
    (void)!buffer_format(context, " %s%.*s", kinds[kind], TEXT_ARGS(value));
}

static void
on_error(void *context, unsigned line, const char *what)
{
    (void)!buffer_format(context, " [%u: %s]", line, what);
}

static void
reads_as(void (*begin)(struct alias_reading *, struct text, const struct alias_reader *), const char *file,
         const char *want)
{
    struct alias_reading reading;
    size_t steps = SIZE_MAX;
    FIXTURE(buffer, got, buffer_init, buffer_free, 64 * 1024);
    begin(&reading, text_from(file), &(struct alias_reader){on_name, on_value, on_error, &got});
    ok_named(alias_go_on(&reading, &steps), "is read to its end");
    is_text(buffer_text(&got), text_from(want), file);
}

TEST(form)
{
    reads_as(alias_begin, "", "");
    reads_as(alias_begin, "\n# a: b\n \t \n", "");
    reads_as(alias_begin, "root: ann", "1 root: ann");
    reads_as(alias_begin, "root:ann,bob\n", "1 root: ann bob");
    reads_as(alias_begin, "Root : Ann@EXAMPLE.org\r\nb: c\r\n",
             "1 root: Ann@example.org2 b: c");
    reads_as(alias_begin, "a: b,\n  c,\n\td\ne: f", "1 a: b c d4 e: f");
    reads_as(alias_begin, "a: b\n# between\n\n  , c\n", "1 a: b c");
    reads_as(alias_begin, "a: b,,c,\n", "1 a: b c");
    reads_as(alias_begin, "a:\n b\n", "1 a: b");
    reads_as(alias_begin, "@Example.ORG: x\nu@D.test: y@e.test",
             "1 @example.org: x2 u@d.test: y@e.test");
    reads_as(alias_begin, "\"a b\": \"c, d\"@x.test, e", "1 \"a b\": \"c, d\"@x.test e");
    reads_as(alias_begin, "\"plain\": \"dot.ted\"@x.test", "1 plain: dot.ted@x.test");
    reads_as(alias_begin, "\"a:b\": c", "1 \"a:b\": c");
    reads_as(alias_begin, "a: \\b, \\c@d.test", "1 a: \\b \\c@d.test");
    reads_as(alias_begin, "a: Ann Example <ann@x.test>, <b>", "1 a: ann@x.test b");
    reads_as(alias_begin, "a: :include:/x/y, \":include:/a b\"", "1 a: +/x/y +/a b");
    reads_as(alias_begin, "j\xc3\xbcrgen: \xc3\xa4@x.test",
             "1 j\xc3\xbcrgen: \xc3\xa4@x.test");
    reads_as(alias_begin, "a: b\tc",
             "1 a: [1: 'b\tc': not an address; write user or "
             "user@domain, and commas between addresses]");
}

TEST(refusals)
{
    static const char no_files[] =
        ": Petrel starts no programs and writes no files here; see routes]";
    static const struct {
        const char *value, *shown, *kind;
    } refused[] = {
        {"|/bin/x",           "|/bin/x",           "a program"  },
        {"\"|/bin/x -a, b\"", "\"|/bin/x -a, b\"", "a program"  },
        {"/var/mail/x",       "/var/mail/x",       "a file"     },
        {"/dev/null",         "/dev/null",         "a file"     },
        {"\"/a b\"",          "\"/a b\"",          "a file"     },
        {":fail: gone",       ":fail: gone",       "a directive"},
        {":blackhole:",       ":blackhole:",       "a directive"},
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        char file[200], want[400];
        snprintf(file, sizeof(file), "x: %s", refused[i].value);
        snprintf(want, sizeof(want), "1 x: [1: '%s': %s%s", refused[i].shown,
                 refused[i].kind, no_files);
        reads_as(alias_begin, file, want);
    }
}

TEST(errors)
{
    reads_as(alias_begin, "no colon",
             " [1: 'no colon': not of the form NAME: ADDRESS, "
             "...]");
    reads_as(alias_begin, "a:\nb: c", "1 a: [1: a name without an address]2 b: c");
    reads_as(alias_begin, "a:", "1 a: [1: a name without an address]");
    reads_as(alias_begin, "a: ,,\nb: c,", "1 a: [1: a name without an address]2 b: c");
    reads_as(alias_begin, "a: ,\n ,c", "1 a: c");
    reads_as(alias_begin, "  a: b\n",
             " [1: 'a: b': a continuation without a name before "
             "it; remove the blanks before it]");
    reads_as(alias_begin, "a b: c",
             " [1: 'a b': not a name; write user, user@domain, "
             "@domain or * before the colon, in quotes where it has "
             "blanks or signs]");
    reads_as(alias_begin, "a: \"b", "1 a: [1: '\"b': a quote does not end]");
    reads_as(alias_begin, "a: b # c",
             "1 a: [1: 'b # c': not an address; write user or "
             "user@domain, and commas between addresses]");
    reads_as(alias_begin, "a: :include:x",
             "1 a: [1: ':include:x': write :include:/PATH, an absolute path]");
    reads_as(alias_begin, "a: b\x01", " [1: a control character]");
    char long_one[5000] = "a: ", want[300];
    memset(long_one + 3, 'x', 3000);
    snprintf(want, sizeof(want), "1 a: [1: '%.60s': too long]", long_one + 3);
    reads_as(alias_begin, long_one, want);
}

TEST(include)
{
    reads_as(alias_begin_include, "ann@x.test\n# no\n\nbob, \\eve\n",
             " ann@x.test bob \\eve");
    reads_as(alias_begin_include, ":include:/x",
             " [1: ':include:/x': a file of :include: cannot include another]");
    reads_as(alias_begin_include, "  ann  \r\n", " ann");
    reads_as(alias_begin_include, "name: ann",
             " [1: 'name: ann': not an address; write user or user@domain, and commas "
             "between addresses]");
}

TEST(address)
{
    char out[ALIAS_NAME_MAX], error[ALIAS_ERROR_MAX];
    ok(alias_read_address(TEXT(" Ann@X.Test "), out, error));
    is_string(out, "Ann@x.test", "one address");
    ok(alias_read_address(TEXT("ann"), out, error));
    ok(!alias_read_address(TEXT("a@x.test, b@x.test"), out, error));
    ok_named(strstr(error, "several need") != NULL, "two need a file");
    ok(!alias_read_address(TEXT("@x.test"), out, error));
    ok(!alias_read_address(TEXT(""), out, error));
    ok(alias_key(TEXT("Ann@x.test"), out));
    is_string(out, "ann@x.test", "as names are compared");
    char large[ALIAS_NAME_MAX + 1];
    memset(large, 'a', sizeof(large));
    ok(!alias_key(text_of(large, sizeof(large)), out));
}

static bool
count_name(void *context, struct text name, unsigned line)
{
    (void)name;
    (void)line;
    ++*(size_t *)context;
    return true;
}

static void
count_value(void *context, enum alias_kind kind, struct text value, unsigned line)
{
    (void)kind;
    (void)value;
    (void)line;
    ++*(size_t *)context;
}

static void
count_error(void *context, unsigned line, const char *what)
{
    (void)line;
    (void)what;
    ++*(size_t *)context;
}

/* Also within a line: no call does more than it may, and each does something. */
TEST(steps)
{
    enum { FEW = 3 };
    static const char file[] = "a: b, c, d,,, e, f, g, h, i, j,\n\n# comment\n"
                               " k, l, |m, n\nbad\n: x\no: \"p\nq: r, s, t, u, v";
    struct buffer whole, parts;
    struct alias_reading r;
    size_t seen = 0, most = 0, calls = 0, steps = FEW;
    struct alias_reader counts = {count_name, count_value, count_error, &seen};
    alias_begin(&r, text_from(file), &counts);
    for (; !alias_go_on(&r, &steps); steps = FEW, seen = 0, calls++) {
        is_number(steps, 0, "it ends when it may do no more");
        most = seen > most ? seen : most;
    }
    ok_named(most <= FEW, "lines and addresses are steps");
    ok_named(calls > 8, "and a file needs many of them");

    buffer_init(&whole, 64 * 1024);
    buffer_init(&parts, 64 * 1024);
    steps = SIZE_MAX;
    alias_begin(&r, text_from(file),
                &(struct alias_reader){on_name, on_value, on_error, &whole});
    ok_named(alias_go_on(&r, &steps), "in one call");
    alias_begin(&r, text_from(file),
                &(struct alias_reader){on_name, on_value, on_error, &parts});
    do
        steps = 1;
    while (!alias_go_on(&r, &steps));
    is_text(buffer_text(&parts), buffer_text(&whole), "the same in single steps");
    steps = 0;
    alias_begin_include(&r, TEXT("a\nb"), &counts);
    ok_named(!alias_go_on(&r, &steps), "nothing without a step");
    buffer_free(&whole);
    buffer_free(&parts);
}
