/* MTA-STS: records, policies and patterns, as RFC 8461 has them, and as strangers write them. */
#include "smtp/trust/sts.h"

#include "base/memory.h"
#include "t/support/tap.h"

TEST(records)
{
    static const struct {
        const char *texts[3];
        const char *id; /* NULL: none */
    } rows[] = {
        {{"v=STSv1; id=20160831085700Z;"}, "20160831085700Z"},
        {{"v=STSv1;id=a"}, "a"},
        {{"v=STSv1 ; \t id=a ; "}, "a"},
        {{"v=STSv1; x=1; id=7; id=8"}, "7"},
        {{"v=STSv1;; id=7"}, "7"},
        {{"v=STSv1; id=12345678901234567890123456789012"}, "12345678901234567890123456789012"},
        {{"v=spf1 -all", "v=STSv1; id=a", "something"}, "a"},
        {{"v=STSv10; id=b", "v=STSv1; id=a"}, "a"},
        {{"v=STSv1; id=123456789012345678901234567890123"}, NULL},
        {{"v=STSv1; id=a", "v=STSv1; id=a"}, NULL},
        {{"v=STSv1; id=a", "v=STSv1; x=a"}, NULL},
        {{"v=STSv1;"}, NULL},
        {{"v=STSv1"}, NULL},
        {{"v=STSv1; id="}, NULL},
        {{"v=STSv1; id=a-b"}, NULL},
        {{"v=STSv1; id= a"}, NULL},
        {{"v=STSv1; id=a b"}, NULL},
        {{"v=STSv1; ID=a"}, NULL},
        {{"V=STSv1; id=a"}, NULL},
        {{"v=stsv1; id=a"}, NULL},
        {{" v=STSv1; id=a"}, NULL},
        {{"v=STSv2; id=a"}, NULL},
        {{""}, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct text texts[3];
        size_t count = 0;
        char id[STS_ID_MAX + 1] = "";
        while (count < 3 && rows[i].texts[count] != NULL) {
            texts[count] = text_from(rows[i].texts[count]);
            count++;
        }
        bool found = sts_read_record(texts, count, id);
        is_string(found ? id : "none", rows[i].id ? rows[i].id : "none", rows[i].texts[0]);
    }
    char id[STS_ID_MAX + 1];
    ok_named(!sts_read_record(NULL, 0, id), "no record at all");
    struct text nul = TEXT("v=STSv1; id=a\0b");
    ok_named(!sts_read_record(&nul, 1, id), "a NUL is not part of an id");
}

/* "mode age patterns" or the reason. */
static void
policy_is(struct text file, const char *want, const char *name)
{
    struct sts_policy policy;
    const char *why;
    char got[600];
    if (sts_policy_read(file, &policy, &why))
        snprintf(got, sizeof(got), "%s %u %s", sts_mode_word(policy.mode), policy.max_age_s,
                 policy.patterns);
    else
        snprintf(got, sizeof(got), "%s", why);
    is_string(got, want, name);
    sts_policy_free(&policy);
}

TEST(policies)
{
    static const struct {
        const char *file, *want, *name;
    } rows[] = {
        {"version: STSv1\nmode: enforce\nmx: mail.example.com\nmx: *.example.net\nmx: backup.example.com\n"
         "max_age: 604800\n",
         "enforce 604800 *.example.net backup.example.com mail.example.com", "the RFC's example"},
        {"version: STSv1\r\nmode: testing\r\nmx: a.test\r\nmax_age: 1\r\n", "testing 1 a.test", "CRLF"},
        {"max_age: 0\nmx: a.test\nmode: enforce\nversion: STSv1", "enforce 0 a.test",
         "any order, no end of the last line"},
        {"version:STSv1\nmode:enforce  \nmx:\ta.test \nmax_age:31557600\n", "enforce 31557600 a.test",
         "blanks around values are optional"},
        {"version: STSv1\nmode: enforce\nmode: none\nmax_age: 1\nmax_age: 9\nmx: a.test\nversion: STSv2\n",
         "enforce 1 a.test", "of a second one the first counts"},
        {"version: STSv1\nmode: enforce\nmx: B.test\nmx: a.test\nmx: b.TEST\nmax_age: 1\n",
         "enforce 1 a.test b.test", "sorted, lower case, once"},
        {"version: STSv1\nmode: none\nmax_age: 1\n", "none 1 ", "none needs no mx"},
        {"version: STSv1\nmode: none\nmx: a.test\nmax_age: 1\n", "none 1 ", "and has none"},
        {"version: STSv1\nmode: enforce\nmx: a.test\nmax_age: 1\nx-new_key.1: a: b\n\n", "enforce 1 a.test",
         "unknown keys and empty lines are ignored"},
        {"\xef\xbb\xbfversion: STSv1\nmode: enforce\nmx: a.test\nmax_age: 1\n",
         "a line of it is not \"key: value\"", "a byte order mark"},
        {"version: STSv2\nmode: enforce\nmx: a.test\nmax_age: 1\n", "its version is not STSv1", "version 2"},
        {"mode: enforce\nmx: a.test\nmax_age: 1\n", "it has no version", "no version"},
        {"version: STSv1\nmx: a.test\nmax_age: 1\n", "it has no mode", "no mode"},
        {"version: STSv1\nmode: enforce\nmx: a.test\n", "it has no max_age", "no max_age"},
        {"version: STSv1\nmode: enforce\nmax_age: 1\n", "it has no mx", "no mx"},
        {"version: STSv1\nmode: testing\nmax_age: 1\n", "it has no mx", "no mx, testing"},
        {"version: STSv1\nmode: Enforce\nmx: a.test\nmax_age: 1\n",
         "its mode is not enforce, testing or none", "modes have one case"},
        {"version: STSv1\nmode: enforce\nmx: a.test\nmax_age: 31557601\n",
         "its max_age is not a number from 0 to 31557600", "too old"},
        {"version: STSv1\nmode: enforce\nmx: a.test\nmax_age: -1\n",
         "its max_age is not a number from 0 to 31557600", "a negative age"},
        {"version: STSv1\nmode: enforce\nmx: a.test\nmax_age:\n",
         "its max_age is not a number from 0 to 31557600", "no age"},
        {"version: STSv1\nmode: enforce\nmx: a..test\nmax_age: 1\n", "an mx of it is not the name of a host",
         "an empty label"},
        {"version: STSv1\nmode: enforce\nmx: a.test b.test\nmax_age: 1\n",
         "an mx of it is not the name of a host", "two names in a line"},
        {"version: STSv1\nmode: enforce\nmx: \nmax_age: 1\n", "an mx of it is not the name of a host",
         "an empty mx"},
        {"version: STSv1\nmode: enforce\nmx: a.test.\nmax_age: 1\n", "an mx of it is not the name of a host",
         "a final dot"},
        {"<html>\n", "a line of it is not \"key: value\"", "a page"},
        {"", "it has no version", "nothing"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        policy_is(text_from(rows[i].file), rows[i].want, rows[i].name);
    policy_is(TEXT("version: STSv1\nmode: enforce\nmx: a\0b.test\nmax_age: 1\n"),
              "an mx of it is not the name of a host", "a NUL in a name");
}

TEST(sizes)
{
    static char file[STS_POLICY_MAX + 64];
    size_t length = (size_t)snprintf(file, sizeof(file), "version: STSv1\nmode: enforce\nmax_age: 1\n");
    size_t head = length;
    for (int i = 0; i < 1100; i++)
        length += (size_t)snprintf(file + length, sizeof(file) - length, "mx: h%d.test\n", i);
    policy_is(text_of(file, length), "it has too many mx", "more than a thousand");
    length = head;
    for (int i = 0; i < 50; i++)
        length += (size_t)snprintf(file + length, sizeof(file) - length, "mx: h%d%.*s.test\n", i, 180,
                                   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."
                                   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."
                                   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    policy_is(text_of(file, length), "it has too many mx", "and long ones");
    memset(file + head, '\n', sizeof(file) - head);
    policy_is(text_of(file, STS_POLICY_MAX + 1), "it is too long", "one octet too long");
    policy_is(text_of(file, STS_POLICY_MAX), "it has no mx", "not too long");
}

TEST(patterns)
{
    static const struct {
        const char *patterns, *host;
        bool want;
    } rows[] = {
        {"mail.example.com", "mail.example.com", true},
        {"mail.example.com", "MAIL.Example.com.", true},
        {"mail.example.com", "xmail.example.com", false},
        {"mail.example.com", "example.com", false},
        {"*.example.com", "mail.example.com", true},
        {"*.example.com", "MAIL.EXAMPLE.COM", true},
        {"*.example.com", "a.mail.example.com", false},
        {"*.example.com", "example.com", false},
        {"*.example.com", ".example.com", false},
        {"*.example.com", "mailexample.com", false},
        {"a.test *.example.com b.test", "b.test", true},
        {"a.test *.example.com b.test", "mx.example.com", true},
        {"a.test *.example.com b.test", "c.test", false},
        {"a.test", "a.test.evil.test", false},
        {"", "a.test", false},
        {"a.test", "", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[200];
        snprintf(name, sizeof(name), "%s and %s", rows[i].patterns, rows[i].host);
        is_number(sts_matches(rows[i].patterns, text_from(rows[i].host)), rows[i].want, name);
    }
    ok(sts_is_pattern(TEXT("*.a")));
    ok(!sts_is_pattern(TEXT("*")));
    ok(!sts_is_pattern(TEXT("*.")));
    ok(!sts_is_pattern(TEXT("*.*.a")));
    ok(!sts_is_pattern(TEXT("a.*.b")));
    ok(!sts_is_pattern(TEXT("m*.b")));
    ok(!sts_is_pattern(TEXT("m\xc3\xbc.b")));
    ok(sts_is_pattern(TEXT("xn--mller-kva.b")));
    enum sts_mode mode;
    ok(sts_mode_read(TEXT("testing"), &mode) && mode == STS_MODE_TESTING);
    ok(!sts_mode_read(TEXT("test"), &mode));
}

/* Lines that were written are read again, and nothing else. */
TEST(lines)
{
    static const char *const bad[] = {
        "", "1", "2 a.test 1 none 1 1", "1 *.a.test 1 none 1 1", "1 a..test 1 none 1 1", "1 a.test 1- none 1 1",
        "1 a.test 1 maybe 1 1", "1 a.test 1 none -1 1", "1 a.test 1 none 1 31557601", "1 a.test 1 none 1 1 mx.test",
        "1 a.test 1 enforce 1 1", "1 a.test 1 testing 1 1 a..b", "1 a.test 1 enforce 1",
        "1 a.test 123456789012345678901234567890123 none 1 1",
    };
    struct sts_line line;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_named(!sts_line_read(text_from(bad[i]), &line), bad[i]);
    FIXTURE(buffer, out, buffer_init, buffer_free, 1000);
    ok(sts_line_read(TEXT("1 a.test x9 enforce 1234567890123 31557600 *.a.test b.test"), &line));
    ok(sts_line_write(&out, &line));
    is_text(buffer_text(&out), TEXT("1 a.test x9 enforce 1234567890123 31557600 *.a.test b.test\n"), "there and back");
    sts_policy_free(&line.policy);
    buffer_clear(&out);
    ok(sts_line_read(TEXT("1 a.test 1 none 0 0"), &line));
    ok(sts_line_write(&out, &line));
    is_text(buffer_text(&out), TEXT("1 a.test 1 none 0 0\n"), "mode none has no pattern");
    sts_policy_free(&line.policy);
}
