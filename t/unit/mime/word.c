/* mime/word.c: RFC 2047's examples and rules, what people write, what breaks it. */
#include "mime/word.h"

#include "base/memory.h"
#include "t/support/tap.h"

#define FFFD "\xef\xbf\xbd"

enum {
    BROKEN = 1 << WORD_BROKEN,
    UNKNOWN = 1 << WORD_UNKNOWN,
    LONG = 1 << WORD_LONG,
    CARELESS = 1 << WORD_CARELESS,
    BYTES = 1 << WORD_BYTES,
    CONTROL = 1 << WORD_CONTROL,
    QUOTED = 1 << WORD_QUOTED,
    RAW = 1 << WORD_RAW
};

static void
is_read(const char *value, const char *wanted, unsigned problems)
{
    struct buffer out;
    unsigned got = 0;
    buffer_init(&out, 10000);
    ok(buffer_add(&out, TEXT(">")) && word_decode(text_from(value), &out, &got));
    is_text(text_after(buffer_text(&out), 1), text_from(wanted), value);
    is_number(got, problems, "problems");
    buffer_free(&out);
}

/* RFC 2047 §8. */
static void
test_rfc(void)
{
    is_read("=?US-ASCII?Q?Keith_Moore?= <moore@cs.utk.edu>", "Keith Moore <moore@cs.utk.edu>", 0);
    is_read("=?ISO-8859-1?Q?Keld_J=F8rn_Simonsen?= <keld@dkuug.dk>", "Keld J\xc3\xb8rn Simonsen <keld@dkuug.dk>", 0);
    is_read("=?ISO-8859-1?Q?Andr=E9?= Pirard", "Andr\xc3\xa9 Pirard", 0);
    is_read("=?ISO-8859-1?B?SWYgeW91IGNhbiByZWFkIHRoaXMgeW8=?=\r\n =?ISO-8859-2?B?dSB1bmRlcnN0YW5kIHRoZSBleGFtcGxlLg==?=",
            "If you can read this you understand the example.", 0);
    is_read("(=?ISO-8859-1?Q?a?=)", "(a)", 0);
    is_read("(=?ISO-8859-1?Q?a?= b)", "(a b)", 0);
    is_read("(=?ISO-8859-1?Q?a?= =?ISO-8859-1?Q?b?=)", "(ab)", 0);
    is_read("(=?ISO-8859-1?Q?a?=  =?ISO-8859-1?Q?b?=)", "(ab)", 0);
    is_read("(=?ISO-8859-1?Q?a?=\r\n    =?ISO-8859-1?Q?b?=)", "(ab)", 0);
    is_read("(=?ISO-8859-1?Q?a_b?=)", "(a b)", 0);
    is_read("(=?ISO-8859-1?Q?a?= =?ISO-8859-2?Q?_b?=)", "(a b)", 0);
}

static void
test_forms(void)
{
    is_read("", "", 0);
    is_read("plain", "plain", 0);
    is_read("folded\r\n once\n\tor twice", "folded once\tor twice", 0);
    is_read("=?utf-8?q?=c3=bc=C3=BC?=", "\xc3\xbc\xc3\xbc", 0);
    is_read("=?UTF-8?b?w7w=?=", "\xc3\xbc", 0);
    is_read("=?UTF-8*de?Q?gr=C3=BCn?= =?us-ascii*EN-us?Q?_bird?=", "gr\xc3\xbcn bird", 0);
    is_read("a =?utf-8?q?b?= c =?utf-8?q?d?= e", "a b c d e", 0);
    is_read("=?utf-8?q?b?=   c", "b   c", 0);
    is_read("  =?utf-8?q?b?=  ", "  b  ", 0);
    is_read("\"=?utf-8?q?b?=\"", "\"b\"", 0);
    is_read("=?iso-2022-jp?B?GyRCRnwbKEI=?= =?ISO-2022-JP?B?GyRCRnwbKEI=?=", "\xe6\x97\xa5\xe6\x97\xa5", 0);
    is_read("=?iso-2022-jp?B?GyRCRnw=?= =?ISO-2022-JP?Q?x?=", "\xe6\x97\xa5x", 0);
    is_read("=?windows-1252?Q?=80?= =?utf-8?Q?=E2=82=AC?=", "\xe2\x82\xac\xe2\x82\xac", 0);
    is_read("gr\xc3\xbcn =?utf-8?Q?=C3=BC?=", "gr\xc3\xbcn \xc3\xbc", 0);
    is_read("what=?  a=?b =?= ?= =?? =?a?= =?a b?c?d?=", "what=?  a=?b =?= ?= =?? =?a?= =?a b?c?d?=", 0);
}

static void
test_careless(void)
{
    is_read("x=?utf-8?q?b?=", "xb", CARELESS);
    is_read("=?utf-8?q?b?=x", "bx", CARELESS);
    is_read("=?utf-8?q?a?==?utf-8?q?b?=", "ab", CARELESS);
    is_read("=?utf-8?q?\?=", "", CARELESS);
    is_read("=?utf-8?b?\?= x", " x", CARELESS);
    is_read("=?utf-8?b?YWI?=", "ab", CARELESS);
    is_read("=?utf-8?b?YR==?=", "a", CARELESS);
    is_read("=?utf-8?q?=E2=82?= =?utf-8?q?=AC?=", "\xe2\x82\xac", CARELESS);
    is_read("=?utf-8?b?4g==?= =?UTF-8?q?=82?=\r\n =?utf-8?b?rA==?=", "\xe2\x82\xac", CARELESS);
    is_read("=?big5?b?pw==?= =?big5?q?A?=", "\xe4\xbd\xa0", CARELESS);
}

static void
test_bytes(void)
{
    is_read("=?utf-8?q?=E2=82?=", FFFD, BYTES);
    is_read("=?utf-8?q?=E2=82?= x =?utf-8?q?=AC?=", FFFD " x " FFFD, BYTES);
    is_read("=?utf-8?q?=E2=82?= =?iso-8859-1?q?=AC?=", FFFD "\xc2\xac", BYTES);
    is_read("=?us-ascii?q?=FC?=", FFFD, BYTES);
    is_read("=?utf-8?q?=C0=80?=", FFFD FFFD, BYTES);
    is_read("=?utf-8?q?a=0D=0ABcc:_x?=", "a\r\nBcc: x", CONTROL);
    is_read("=?utf-8?b?G1szMW0=?=", "\x1b[31m", CONTROL);
    is_read("gr\xfcn", "gr\xfcn", RAW);
    is_read("gr\xfcn =?utf-8?q?=C3=BC?=", "gr\xfcn \xc3\xbc", RAW);
}

static void
test_nul(void)
{
    struct buffer out;
    unsigned problems = 0;
    buffer_init(&out, 10);
    ok(word_decode(TEXT("a\0=?utf-8?q?=00?="), &out, &problems));
    is_text(buffer_text(&out), TEXT("a\0\0"), "NUL is a byte like others");
    is_number(problems, CONTROL | CARELESS, "but a problem");
    buffer_free(&out);
}

/* Byte for byte. */
static void
is_kept(const char *value, unsigned problems)
{
    is_read(value, value, problems);
}

static void
test_broken(void)
{
    is_kept("=?utf-8?x?abc?=", BROKEN);
    is_kept("=?utf-8?q?a b?=", BROKEN);
    is_kept("=?utf-8?q?a", BROKEN);
    is_kept("=?utf-8?q?a?", BROKEN);
    is_kept("=?utf-8?q?a?b?=", BROKEN);
    is_kept("=?utf-8?q?=?=", BROKEN);
    is_kept("=?utf-8?q?=4?=", BROKEN);
    is_kept("=?utf-8?q?=4g?=", BROKEN);
    is_kept("=?utf-8?q?\xc3\xbc?=", BROKEN);
    is_kept("=?utf-8?b?a?=", BROKEN);
    is_kept("=?utf-8?b?YWJjZ?=", BROKEN);
    is_kept("=?utf-8?b?YW*j?=", BROKEN);
    is_kept("=?utf-8?b?YQ==YQ==?=", BROKEN);
    is_kept("=?x-none?q?abc?=", UNKNOWN);
    is_kept("=?*en?q?abc?=", UNKNOWN);
    is_kept("=?utf-8//IGNORE?q?abc?=", UNKNOWN);
    is_read("=?utf-8?q?a?= =?x-none?q?b?= =?utf-8?q?c?=", "a =?x-none?q?b?= c", UNKNOWN);
    is_read("=?utf-8?q?a?= =?utf-8?q?=?= =?utf-8?q?c?=", "a =?utf-8?q?=?= c", BROKEN);
    is_read("=?utf-8?q?=E2?= =?x-none?q?b?=", FFFD " =?x-none?q?b?=", UNKNOWN | BYTES);
    is_read("=?utf-8?q?=?utf-8?q?a?=", "=?utf-8?q?" "a", BROKEN | CARELESS);
    is_read("=?=?utf-8?q?a?=", "=?a", CARELESS);
}

static void
test_long(void)
{
    char value[1000] = "=?utf-8?q?", wanted[1000] = "";
    memset(value + 10, 'x', 63);
    memset(wanted, 'x', 63);
    strcpy(value + 73, "?=");
    is_number(strlen(value), WORD_LENGTH_MAX, "75 bytes");
    is_read(value, wanted, 0);
    memset(value + 10, 'x', 900);
    memset(wanted, 'x', 900);
    strcpy(value + 910, "?=");
    is_read(value, wanted, LONG);
}

/* Linear, and nothing is added at the limit. */
static void
test_limits(void)
{
    struct buffer out;
    unsigned problems = 0;
    static const char value[] = "a =?utf-8?q?=C3=BC?= =?utf-8?q?b?= c";
    for (size_t limit = 0; limit <= 8; limit++) {
        buffer_init(&out, limit);
        ok(limit == 0 || buffer_add(&out, TEXT("<")));
        bool good = word_decode(TEXT(value), &out, &problems);
        is_number(good, limit == 8, "the limit");
        ok_named(good || out.length == (limit > 0), "nothing is added");
        buffer_free(&out);
    }
    static const char *const units[] = {"=?", "=?a?q?", "=?utf-8?q?=E2?= ", "=?x?b?YQ?= ", " \r\n"};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t unit = strlen(units[i]), count = 200000 / unit;
        char *many = memory_new(count * unit);
        for (size_t k = 0; k < count; k++)
            memcpy(many + k * unit, units[i], unit);
        buffer_init(&out, 1 << 20);
        ok_named(word_decode(text_of(many, count * unit), &out, &problems), units[i]);
        buffer_free(&out);
        free(many);
    }
}

/* --- Parameters */

static void
is_parameter(const char *field, const char *wanted, unsigned problems)
{
    struct parameters p = {.broken = false};
    struct buffer out;
    unsigned got = 0;
    buffer_init(&out, 1000);
    parameters_read(&p, text_from(field));
    const struct parameter *name = parameters_find(&p, "filename");
    ok(name != NULL && word_decode_parameter(name, &out, &got));
    is_text(buffer_text(&out), text_from(wanted), field);
    is_number(got, problems, "problems");
    buffer_free(&out);
    parameters_free(&p);
}

static void
test_parameters(void)
{
    is_parameter("a; filename=x.txt", "x.txt", 0);
    is_parameter("a; filename*=utf-8''%e2%82%ac%20rates", "\xe2\x82\xac rates", 0);
    is_parameter("a; filename*=iso-8859-1'de'gr%fcn", "gr\xc3\xbcn", 0);
    is_parameter("a; filename*0*=koi8-r''%f0%d2; filename*1=\"x%41\"; filename*2*=%c9",
                 "\xd0\x9f\xd1\x80x%41\xd0\xb8", 0);
    is_parameter("a; filename*0*=utf-8''%e2%82; filename*1*=%ac", "\xe2\x82\xac", 0);
    is_parameter("a; filename*0=a; filename*1=b", "ab", 0);
    is_parameter("a; filename=plain; filename*=utf-8''%c3%bc", "\xc3\xbc", 0);
    is_parameter("a; filename*0*=utf-8''%c3%bc; filename*1=.txt; filename=plain", "\xc3\xbc.txt", 0);
    is_parameter("a; filename=plain; filename*=utf-8''%c", "plain", 0);
    is_parameter("a; filename*=x-none''%fc", "\xfc", UNKNOWN | RAW);
    is_parameter("a; filename*=''%fc", "\xfc", RAW);
    is_parameter("a; filename*=utf-8''%fc", FFFD, BYTES);
    is_parameter("a; filename*=utf-8''a%0Ab", "a\nb", CONTROL);
    is_parameter("a; filename=\"=?utf-8?Q?gr=C3=BCn?=\"", "gr\xc3\xbcn", QUOTED);
    is_parameter("a; filename=\"=?utf-8?Q?gr=C3?=\r\n =?utf-8?Q?=BCn?=.txt\"", "gr\xc3\xbcn.txt", QUOTED | CARELESS);
    is_parameter("a; filename==?utf-8?B?w7w=?=", "\xc3\xbc", QUOTED);
    is_parameter("a; filename=\"=?utf-8?Q?a b?=\"", "=?utf-8?Q?a b?=", QUOTED | BROKEN);
    is_parameter("a; filename*=''=?utf-8?Q?a?=", "a", QUOTED);
    is_parameter("a; filename=\"gr\xfcn\"", "gr\xfcn", RAW);
    is_parameter("a; filename=\"what=?\"", "what=?", 0);
}

static void
test_parameter_limit(void)
{
    static const char *const fields[] = {
        "a; filename=abc", "a; filename*=utf-8''ab%e9", "a; filename=\"=?utf-8?q?abc?=\""};
    for (size_t i = 0; i < 3; i++) {
        struct parameters p = {.broken = false};
        struct buffer out;
        unsigned problems = 0;
        buffer_init(&out, 2);
        parameters_read(&p, text_from(fields[i]));
        ok(!word_decode_parameter(parameters_find(&p, "filename"), &out, &problems));
        is_number(out.length, 0, fields[i]);
        buffer_free(&out);
        parameters_free(&p);
    }
}

int
main(void)
{
    test_rfc();
    test_forms();
    test_careless();
    test_bytes();
    test_nul();
    test_broken();
    test_long();
    test_limits();
    test_parameters();
    test_parameter_limit();
    for (unsigned i = 0; i < WORD_PROBLEMS; i++)
        ok(strlen(word_problem_text((enum word_problem)i)) > 0);
    return done();
}
