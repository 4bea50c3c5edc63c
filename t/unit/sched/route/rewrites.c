/* The table `rewrite`: which entry counts for an address, and what is none. */
#include "sched/route/rewrites.h"

#include "t/support/tap.h"

static struct rewrites *
table_of(const char *table, const char *hostname, const char *local_domains)
{
    struct buffer errors;
    struct rewrites_settings settings = {.table = text_from(table),
                                         .hostname = hostname,
                                         .local_domains = text_from(local_domains)};
    buffer_init(&errors, 4096);
    struct rewrites *r = rewrites_new(&settings, &errors);
    is_text(buffer_text(&errors), TEXT(""), "no errors");
    buffer_free(&errors);
    if (r == NULL)
        abort();
    return r;
}

/* want: "" it stays; with " (local)" behind it by that pattern, " (is local)" by another one. */
static void
finds(const struct rewrites *r, const char *address, const char *want)
{
    struct rewrites_answer answer;
    char got[600];
    rewrites_find(r, text_from(address), &answer);
    snprintf(got, sizeof(got), "%s%s", answer.address, answer.by_local ? " (local)" : answer.local ? " (is local)" : "");
    is_string(got, want, address);
}

TEST(patterns)
{
    struct rewrites *r = table_of("# a comment\n"
                                  "ann@example.org boss@example.net\n"
                                  "\n"
                                  "example.org =, .example.org @example.org\n"
                                  "\"a, b\"@x.test  c@x.test\n"
                                  "local alerts@example.com",
                                  "vps7.host.test", "");
    ok(!rewrites_are_empty(r));
    finds(r, "ann@example.org", "boss@example.net");
    finds(r, "Ann@example.org", "boss@example.net");
    finds(r, "bob@example.org", "");
    finds(r, "Bob@sub.example.org", "Bob@example.org");
    finds(r, "bob@a.b.example.org", "bob@example.org");
    finds(r, "bob@badexample.org", "");
    finds(r, "\"a, b\"@x.test", "c@x.test");
    finds(r, "other@x.test", "");
    static const char *const local[] = {
        "root",         "root@vps7",      "root@localhost", "root@localhost.localdomain",
        "a@b.local",    "a@b.c.lan",      "a@b.internal",   "a@router.home.arpa",
        "\"x y\"",      "\"x@y.test\"",      "a@B.LAN",        "r@vps7.host.test", "postmaster"};
    for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
        finds(r, local[i], "alerts@example.com (local)");
    static const char *const others[] = {"a@host.test", "a@[127.0.0.1]", "a@lan.test",
                                         "a@local.example", "a@other.host.test"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        finds(r, others[i], "");
    rewrites_free(&r);
    ok(r == NULL);
    rewrites_free(&r);
}

TEST(order)
{
    struct rewrites *r =
        table_of("example.org =\n* relay@example.org\nann@example.org x@y.test", "h.test", "");
    finds(r, "a@example.org", "");
    finds(r, "a@b.test", "relay@example.org");
    finds(r, "root", "relay@example.org (is local)");
    finds(r, "ann@example.org", "");
    rewrites_free(&r);
    r = table_of("* @only.test\nlocal a@b.test", "h.test", "");
    finds(r, "root", "root@only.test (is local)");
    finds(r, "root@h.test", "root@only.test (is local)");
    finds(r, "\"a@b\"", "\"a@b\"@only.test (is local)");
    finds(r, "\"a@b.test\"@c.test", "\"a@b.test\"@only.test");
    rewrites_free(&r);
    r = table_of("local a@b.test\n* @only.test", "h.test", "x.test h.test");
    finds(r, "root@h.test", "root@only.test");
    finds(r, "root@h", "a@b.test (local)");
    rewrites_free(&r);
    r = table_of("", "h.test", "");
    ok(rewrites_are_empty(r) && rewrites_are_empty(NULL));
    finds(r, "root", "");
    rewrites_free(&r);
}

TEST(length)
{
    struct rewrites *r = table_of("* @example.org", "h.test", "");
    char lengthy[700];
    memset(lengthy, 'x', sizeof(lengthy));
    lengthy[699] = '\0';
    finds(r, lengthy, "");
    lengthy[505] = '\0';
    finds(r, lengthy, "");
    rewrites_free(&r);
}

static void
refuses(const char *table, const char *want)
{
    struct rewrites_settings settings = {.table = text_from(table), .hostname = "h.test"};
    FIXTURE(buffer, errors, buffer_init, buffer_free, 4096);
    ok_named(rewrites_new(&settings, &errors) == NULL, table);
    ok_named(errors.length > 0 && memmem(errors.at, errors.length, want, strlen(want)),
             want);
}

TEST(errors)
{
    refuses("local", "rewrite: 'local': invalid replacement; use user@domain");
    refuses("local x", "rewrite: 'local x': invalid replacement");
    refuses("local *@x.test y", "text after the replacement");
    refuses("local %u@x.test@", "invalid replacement");
    refuses("* .x.test", "invalid replacement");
    refuses("* @", "invalid replacement");
    refuses("* @*", "invalid replacement");
    refuses("a@b@c x@y.test", "invalid pattern");
    refuses("*.x.test x@y.test", "invalid pattern");
    refuses("a@ x@y.test", "invalid pattern");
    refuses(", x@y.test", "invalid pattern");
    refuses("x.test a@b.test\nX.TEST c@d.test", "duplicate pattern");
    refuses("local a@b.test\nLocal =", "duplicate pattern");
    FIXTURE(buffer, table, buffer_init, buffer_free, 1024 * 1024);
    for (int i = 0; i <= REWRITES_MAX; i++)
        if (!buffer_format(&table, "d%d.test a@b.test\n", i))
            abort();
    if (!buffer_add_byte(&table, '\0'))
        abort();
    refuses(table.at, "more than 10000 entries");
}

static void
note(void *context, const char *pattern, const char *by)
{
    char *all = context;
    snprintf(all + strlen(all), 200 - strlen(all), "%s<%s ", pattern, by);
}

TEST(hidden)
{
    char all[200] = "";
    struct rewrites *r = table_of("a@x.test =\n.x.test =\nx.test =\nb@x.test =\n"
                                  "sub.x.test =\n* =\nlocal a@b.test\nz.test =",
                                  "h.test", "");
    rewrites_each_hidden(r, note, all);
    is_string(all, "b@x.test<x.test sub.x.test<.x.test local<* z.test<* ", "entries in vain");
    rewrites_free(&r);
}
