/* Paths, mailboxes, domains and xtext: what is an address, what is none, and its one
 * spelling. */
#include "mime/address.h"

#include "base/dns/idna.h"

#include "t/support/tap.h"

#define A10       "aaaaaaaaaa"
#define A54       A10 A10 A10 A10 A10 "aaaa"
#define A60       A10 A10 A10 A10 A10 A10
#define A63       A60 "aaa"
#define A64       A60 "aaaa"
#define LABELS189 A63 "." A63 "." A60 "a" /* 63 + 1 + 63 + 1 + 61 */

/* path: taken whole, nothing may be left. written: the normal form. */
/* clang-format off */
static const struct good {
    const char *path, *local, *domain, *written;
} good[] = {
    {"<>", "", "", ""},
    {"<a@b>", "a", "b", "a@b"},
    {"<John.Doe@Example.COM>", "John.Doe", "Example.COM", "John.Doe@example.com"},
    {"<postmaster>", "postmaster", "", "postmaster"},
    {"<PostMaster>", "PostMaster", "", "postmaster"},
    {"<Postmaster@x.y>", "Postmaster", "x.y", "Postmaster@x.y"},
    {"<!#$%&'*+-/=?^_`{|}~@x>", "!#$%&'*+-/=?^_`{|}~", "x", "!#$%&'*+-/=?^_`{|}~@x"},
    {"<a%ext@own>", "a%ext", "own", "a%ext@own"},
    {"<ext!user@own>", "ext!user", "own", "ext!user@own"},
    {"<user@123>", "user", "123", "user@123"},
    {"<user@a_b.c-d>", "user", "a_b.c-d", "user@a_b.c-d"},
    {"<user@_dmarc.x>", "user", "_dmarc.x", "user@_dmarc.x"},
    {"<\"a\"@b>", "\"a\"", "b", "a@b"},
    {"<\"a b\"@c>", "\"a b\"", "c", "\"a b\"@c"},
    {"<\"a@b\"@c>", "\"a@b\"", "c", "\"a@b\"@c"},
    {"<\"a\\@b\"@c>", "\"a\\@b\"", "c", "\"a@b\"@c"},
    {"<\"a\\\"b\"@c>", "\"a\\\"b\"", "c", "\"a\\\"b\"@c"},
    {"<\"a\\\\b\"@c>", "\"a\\\\b\"", "c", "\"a\\\\b\"@c"},
    {"<\"\\j\\o\"@c>", "\"\\j\\o\"", "c", "jo@c"},
    {"<\"a.b\"@c>", "\"a.b\"", "c", "a.b@c"},
    {"<\".a\"@c>", "\".a\"", "c", "\".a\"@c"},
    {"<\"a..b\"@c>", "\"a..b\"", "c", "\"a..b\"@c"},
    {"<a..b@c>", "a..b", "c", "\"a..b\"@c"},
    {"<.a@c>", ".a", "c", "\".a\"@c"},
    {"<a.@c>", "a.", "c", "\"a.\"@c"},
    {"<...a...@c>", "...a...", "c", "\"...a...\"@c"},
    {"<a@c.>", "a", "c", "a@c"},
    {"<a@Mail.Example.>", "a", "Mail.Example", "a@mail.example"},
    {"<\"a>b\"@c>", "\"a>b\"", "c", "\"a>b\"@c"},
    {"<\"<>\"@c>", "\"<>\"", "c", "\"<>\"@c"},
    {"<\" \"@c>", "\" \"", "c", "\" \"@c"},
    {"<\"(x)\"@c>", "\"(x)\"", "c", "\"(x)\"@c"},
    {"<\"postmaster\"@c>", "\"postmaster\"", "c", "postmaster@c"},
    {"<@a:b@c>", "b", "c", "b@c"},
    {"<@a,@b.d:b@c>", "b", "c", "b@c"},
    {"<@[1.2.3.4]:b@c>", "b", "c", "b@c"},
    {"<@[IPv6:::1],@x:b@c>", "b", "c", "b@c"},
    {"<@own:\"user@ext\"@c>", "\"user@ext\"", "c", "\"user@ext\"@c"},
    {"<u@[1.2.3.4]>", "u", "[1.2.3.4]", "u@[1.2.3.4]"},
    {"<u@[255.255.255.255]>", "u", "[255.255.255.255]", "u@[255.255.255.255]"},
    {"<u@[IPv6:::1]>", "u", "[IPv6:::1]", "u@[IPv6:::1]"},
    {"<u@[ipv6:2001:DB8::1]>", "u", "[ipv6:2001:DB8::1]", "u@[IPv6:2001:db8::1]"},
    {"<u@[IPv6:::ffff:1.2.3.4]>", "u", "[IPv6:::ffff:1.2.3.4]", "u@[IPv6:::ffff:1.2.3.4]"},
    {"<gr\xc3\xbc\xc3\x9f@b>", "gr\xc3\xbc\xc3\x9f", "b", "gr\xc3\xbc\xc3\x9f@b"},
    {"<a@b\xc3\xbc" "cher.Example>", "a", "b\xc3\xbc" "cher.Example", NULL},
    {"<\"\xe2\x82\xac x\"@b>", "\"\xe2\x82\xac x\"", "b", "\"\xe2\x82\xac x\"@b"},
    {"<\"\xe2\x82\xac\"@b>", "\"\xe2\x82\xac\"", "b", "\xe2\x82\xac@b"},
    {"<\xf0\x9f\x90\xa6@b>", "\xf0\x9f\x90\xa6", "b", "\xf0\x9f\x90\xa6@b"},
    /* Full-width @ is a letter of a local part, never a separator. */
    {"<a\xef\xbc\xa0" "c@b>", "a\xef\xbc\xa0" "c", "b", "a\xef\xbc\xa0" "c@b"},
    {"<" A64 "@b>", A64, "b", A64 "@b"},
    {"<" A64 "a@b>", A64 "a", "b", A64 "a@b"},
    {"<\"" A64 "\"@b>", "\"" A64 "\"", "b", A64 "@b"},
    {"<" A63 A63 A63 A63 "@b>", A63 A63 A63 A63, "b", A63 A63 A63 A63 "@b"}, /* 254 */
    {"<.aaaa@" A63 "." A63 "." A63 "." A54 ">", ".aaaa", A63 "." A63 "." A63 "." A54,
     "\".aaaa\"@" A63 "." A63 "." A63 "." A54}, /* 252, and 254 with quotes */
    {"<a@" A63 ".b>", "a", A63 ".b", "a@" A63 ".b"},
    {"<" A64 "@" LABELS189 ">", A64, LABELS189, A64 "@" LABELS189},
    /* 64+1+189 = 254 */
};
/* clang-format on */

/* Refused as paths. */
static const char *const bad[] = {
    "",
    "<",
    ">",
    "a@b",
    "<a@b",
    "a@b>",
    " <a@b>",
    "<a>",
    "<postmaster1>",
    "<\"postmaster\">",
    "<@a:postmaster>",
    "<@>",
    "<@b>",
    "<a@>",
    "<a@b@c>",
    "<user@ext@own>",
    "<user@own@ext>",
    "<a\\@b@c>",
    "<\\a@c>",
    "<a b@c>",
    "<a @c>",
    "<a@ c>",
    "< a@c>",
    "<a@c >",
    "< >",
    "<<a@b>>",
    "<a@b<c>",
    "<a,b@c>",
    "<a@b,c@d>",
    "<a;b@c>",
    "<a@b;c>",
    "<a:b@c>",
    "<node::user@c>",
    "<(x)a@c>",
    "<((((@c>",
    "<a@((((>",
    "<[[[[@c>",
    "<a@[[[[>",
    "<Joe <a@b>",
    "<.@c>",
    "<a@.c>",
    "<a@c..>",
    "<a@c..d>",
    "<a@.>",
    "<a@-c>",
    "<a@c->",
    "<a@c.-d.e>",
    "<a@c!d>",
    "<a@c d>",
    "<a@c/d>",
    "<a@c#d>",
    "<a@#1234>",
    "<a@c:25>",
    "<\"a@c>",
    "<a\"@c>",
    "<\"a\"b@c>",
    "<a\"b\"@c>",
    "<\"a\".b@c>",
    "<\"\"@c>",
    "<\"a\\\"@c>",
    "<\"\\>",
    "<\">",
    "<@a b@c>",
    "<@a,b@c>",
    "<@a;@d:b@c>",
    "<@a,:b@c>",
    "<@:b@c>",
    "<@a:>",
    "<@a:b>",
    "<@a,@b>",
    "<@a..b:c@d>",
    "<@[1.2.3.4:b@c>",
    "<@[IPv6:::1]x:b@c>",
    "<a@1.2.3.4]>",
    "<a@[1.2.3.4>",
    "<a@[]>",
    "<a@[1.2.3]>",
    "<a@[1.2.3.256]>",
    "<a@[1.2.3.4.5]>",
    "<a@[1.2.3.4]x>",
    "<a@x[1.2.3.4]>",
    "<a@[ 1.2.3.4]>",
    "<a@[::1]>",
    "<a@[IPv6:]>",
    "<a@[IPv6:1.2.3.4]>",
    "<a@[IPv6:::1%lo]>",
    "<a@[IPv6:IPv6:::1]>",
    "<a@[IPv6:1:2:3:4:5:6:7:8:9]>",
    "<a@[IPv6::::]>",
    "<a@[IPv5:::1]>",
    "<a@[tag:text]>",
    "<a@[3232235777]>",
    "<a\tb@c>",
    "<a@b\t>",
    "<a\rb@c>",
    "<a\nb@c>",
    "<a@b\r\n>",
    "<\"a\r\nb\"@c>",
    "<\"a\tb\"@c>",
    "<\"a\\\tb\"@c>",
    "<a\x7f@c>",
    "<\"\x7f\"@c>",
    "<\x1b[m@c>",
    "<a@b\x01>",
    "<\xff@c>",
    "<a\xc3@c>",            /* cut */
    "<\xc0\xaf@c>",         /* overlong */
    "<\xed\xa0\x80@c>",     /* surrogate */
    "<\xf4\x90\x80\x80@c>", /* beyond Unicode */
    "<a@b\xfc>",            /* Latin-1 */
    "<\xc2\x85@c>",         /* NEL, a C1 control */
    "<\xe2\x80\xa8@c>",     /* line separator */
    "<\"\\\xc3\xbc\"@c>",   /* a quoted pair is ASCII */
    "<a@b\xe3\x80\x82"
    "c>", /* ideographic full stop */
    "<a@b\xef\xbc\x8e"
    "c>", /* full-width dot */
    "<a@b\xef\xbd\xa1"
    "c>", /* half-width ideographic full stop */
    "<a@b\xef\xbc\xa0"
    "c>", /* full-width @ */
    "<a\xef\xbc\xa0"
    "b>",
    "<a@b\xe2\x80\xae"
    "c>", /* right-to-left override */
    "<a@b\xc2\xa0"
    "c>", /* no-break space */
    "<a@b\xe2\x80\x8b"
    "c>", /* zero-width space */
    "<a@" A64 ".b>",
    "<" A64 "@" LABELS189 "a>",                 /* 255 */
    "<" A63 A63 A63 A63 "a@b>",                 /* 255 */
    "<.aaaaa@" A63 "." A63 "." A63 "." A54 ">", /* 255 with the quotes it needs */
    "<..@c>",
    "<a@c...>",
    "<a@" LABELS189 "." LABELS189 ">",
    "<@" LABELS189 ":" A60 "@bbb>", /* the route counts (RFC 5321 4.5.3.1.3) */
};

static void
check_good(const struct good *g)
{
    struct text rest = text_from(g->path);
    struct address a;
    if (!ok_named(address_judge_path(&rest, &a) == NULL, g->path))
        return;
    is_number(rest.length, 0, "... is taken whole");
    is_text(a.local, text_from(g->local), "... its local part");
    is_text(a.domain, text_from(g->domain), "... its domain");
    ok(a.utf8 == !text_is_ascii(text_from(g->path)));
    FIXTURE(buffer, out, buffer_init, buffer_free, ADDRESS_MAX);
    const char *written = g->written;
    if (written == NULL)
        written = idna_version() != NULL ? "a@xn--bcher-kva.example"
                                         : "a@b\xc3\xbc"
                                           "cher.example";
    ok(address_write(&a, &out));
    is_text(buffer_text(&out), text_from(written), "... its normal form");

    FIXTURE(buffer, again, buffer_init, buffer_free, ADDRESS_MAX + 2);
    ok(buffer_format(&again, "<%.*s>", TEXT_ARGS(buffer_text(&out))));
    struct text second = buffer_text(&again);
    buffer_clear(&out);
    ok(address_judge_path(&second, &a) == NULL && address_write(&a, &out));
    is_text(buffer_text(&out), text_from(written), "... which is its own normal form");
}

TEST(paths)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        check_good(&good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct text rest = text_from(bad[i]);
        struct address a;
        if (!ok_named(address_judge_path(&rest, &a) != NULL, "a bad path is refused"))
            printf("# %zu: %s\n", i, bad[i]);
    }
    struct address a;
    struct text nul = TEXT("<a\0b@c>");
    ok_named(address_judge_path(&nul, &a) != NULL, "NUL in the local part");
    nul = TEXT("<a@c\0>");
    ok_named(address_judge_path(&nul, &a) != NULL, "NUL in the domain");
    nul = TEXT("<\"\0\"@c>");
    ok_named(address_judge_path(&nul, &a) != NULL, "NUL in quotes");
}

TEST(rest)
{
    struct address a;
    struct text rest = TEXT("<a@b> SIZE=100");
    ok(address_judge_path(&rest, &a) == NULL);
    is_text(rest, TEXT(" SIZE=100"), "what follows the path is left");
    rest = TEXT("<>BODY");
    ok(address_judge_path(&rest, &a) == NULL);
    is_text(rest, TEXT("BODY"), "also glued to it");
    rest = TEXT("<a@b><c@d>");
    ok(address_judge_path(&rest, &a) == NULL);
    is_text(rest, TEXT("<c@d>"), "only the first of two paths");
    rest = TEXT("<\"x> y\"@b> z");
    ok(address_judge_path(&rest, &a) == NULL);
    is_text(rest, TEXT(" z"), "a > in quotes ends nothing");
}

/* One unit repeated between head and tail. */
static bool
parses_repeated(const char *head, const char *unit, size_t count, const char *tail)
{
    struct buffer b;
    buffer_init(&b, 1 << 20);
    bool fits = buffer_add(&b, text_from(head));
    for (size_t i = 0; i < count && fits; i++)
        fits = buffer_add(&b, text_from(unit));
    fits = fits && buffer_add(&b, text_from(tail));
    struct text rest = buffer_text(&b);
    struct address a;
    bool parsed = fits && address_judge_path(&rest, &a) == NULL;
    buffer_free(&b);
    return parsed;
}

TEST(limits)
{
    ok(parses_repeated("<", "a", 252, "@b>"));
    ok(!parses_repeated("<", "a", 253, "@b>"));
    ok(parses_repeated("<\"", "\\\\", 125, "\"@b>"));
    ok(!parses_repeated("<\"", "\\\\", 126, "\"@b>"));
    ok(parses_repeated("<a", ".", 249, "@b>"));
    ok_named(!parses_repeated("<a", ".", 250, "@b>"), "its quotes count, too");
    ok(!parses_repeated("<\"", "\\", 900, "\"@b>"));
    ok(!parses_repeated("<", ".", 900, "@b>"));
    ok(!parses_repeated("<a@", ".", 900, ">"));
    ok(!parses_repeated("<", "(", 900, ">"));
    ok(parses_repeated("<a@b", ".c", 125, ">")); /* 3 + 250 = 253 */
    ok(!parses_repeated("<a@b", ".c", 126, ">"));
    ok(parses_repeated("<@a", ",@a", 40, ":u@b>"));
    ok(!parses_repeated("<@a", ",@a", 100, ":u@b>"));
    ok(!parses_repeated("<", "a", 1000000, "@b>"));
    ok(!parses_repeated("<\"", "a", 1000000, "\"@b>"));
    ok_named(parses_repeated("<", "\xc3\xbc", 126, "@b>"), "octets, not characters");
    ok(!parses_repeated("<", "\xc3\xbc", 127, "@b>"));
    ok_named(parses_repeated("<a@", "\xc3\xbc", 60, ">"),
             "a U-label may be longer than 63 octets");
}

TEST(mailbox)
{
    struct address a;
    ok(address_parse(TEXT("a@b"), &a) && text_equal(a.local, TEXT("a")));
    ok(address_parse(TEXT("\"a b\"@[1.2.3.4]"), &a));
    ok(address_parse(TEXT("\xc3\xbc@b"), &a) && a.utf8);
    ok(address_parse(TEXT("u@b"), &a) && !a.utf8);
    ok(!address_parse(TEXT(""), &a));
    ok(!address_parse(TEXT("@"), &a));
    ok(!address_parse(TEXT("a"), &a));
    ok(!address_parse(TEXT("a@"), &a));
    ok(!address_parse(TEXT("@b"), &a));
    ok(!address_parse(TEXT("postmaster"), &a));
    ok(!address_parse(TEXT("<a@b>"), &a));
    ok(!address_parse(TEXT("a@b "), &a));
    ok(!address_parse(TEXT("@r:a@b"), &a));
    ok(!address_parse(TEXT("a@b\n"), &a));
    ok(address_is_local(TEXT("a.b")) && address_is_local(TEXT("\"a b\"")));
    ok(!address_is_local(TEXT("")) && !address_is_local(TEXT("\"\"")) &&
       !address_is_local(TEXT("a b")) && !address_is_local(TEXT("\"a\"b")) &&
       !address_is_local(TEXT("a@b")));
    ok(address_is_local(TEXT(A63 A63 A63 A63 "aa")) &&
       !address_is_local(TEXT(A63 A63 A63 A63 "aaa")));
    ok(address_is_local(TEXT("a..b")) && !address_is_local(TEXT("..")));
}

/* The words that a client reads in the reply. */
TEST(rules)
{
    static const char *const rules[][2] = {
        {"",                    "no local part"                                          },
        {"@c",                  "no local part"                                          },
        {"\"\"@c",              "no local part"                                          },
        {"root",                "no domain"                                              },
        {"a@",                  "no domain"                                              },
        {"..@c",                "only dots before the @"                                 },
        {"a b@c",               "a blank outside quotes"                                 },
        {"(x)a@c",              "a character that must be in quotes"                     },
        {"\"a@c",               "a quoted string without an end, or with text after it"},
        {"\xff@c",              "the local part is not UTF-8"                            },
        {"\xc3\xbc\xc3@c",      "the local part is not UTF-8"                            },
        {"a@c..d",              "two dots in the domain, or one in front"                },
        {"a@.c",                "two dots in the domain, or one in front"                },
        {"a@b@c",               "two @"                                                  },
        {"a@-c",                "a hyphen at the end of a label of the domain"           },
        {"a@c!d",               "a character that no domain has"                         },
        {"a@b\xfc",             "the domain is not UTF-8"                                },
        {"a@[1.2.3]",           "a malformed address literal"                            },
        {"a@" A64 ".b",         "a label of the domain is longer than 63 octets"         },
        {A63 A63 A63 A63 "a@b", "longer than 254 octets"                                 },
    };
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        struct address a;
        const char *rule = address_judge(text_from(rules[i][0]), &a);
        is_text(text_from(rule), text_from(rules[i][1]), rules[i][0]);
    }
    struct address a;
    struct text path = TEXT("<a@b");
    is_text(text_from(address_judge_path(&path, &a)), TEXT("no > behind the address"),
            "a bracket is missing");
    ok(address_judge(TEXT("a@b"), &a) == NULL);
}

TEST(domain)
{
    ok(address_is_domain(TEXT("a")));
    ok(address_is_domain(TEXT("mx-1.Example.ORG")));
    ok(address_is_domain(TEXT("1.2.3.4")));
    ok(address_is_domain(TEXT("[1.2.3.4]")));
    ok(address_is_domain(TEXT("[IPv6:fe80::1]")));
    ok(address_is_domain(TEXT("xn--bcher-kva.example")));
    ok(address_is_domain(TEXT("b\xc3\xbc"
                              "cher.example")));
    ok(address_is_domain(TEXT(A63 "." A63 "." A63 "." A63)));          /* 255 */
    ok(!address_is_domain(TEXT(A63 "." A63 "." A63 "." A60 ".bb.c"))); /* 257 */
    ok(!address_is_domain(TEXT(A63 "." A63 "." A63 "." A60 "a.b.")));  /* 256 */
    ok(!address_is_domain(TEXT(A64)));
    ok(!address_is_domain(TEXT("")));
    ok(!address_is_domain(TEXT(".")));
    ok(!address_is_domain(TEXT("a.")));
    ok(!address_is_domain(TEXT(".a")));
    ok(!address_is_domain(TEXT("a..b")));
    ok(!address_is_domain(TEXT("a b")));
    ok(!address_is_domain(TEXT("a\0b")));
    ok(!address_is_domain(TEXT("a\r\n")));
    ok(!address_is_domain(TEXT("a@b")));
    ok(!address_is_domain(TEXT("*.a")));
    ok(!address_is_domain(TEXT("[")));
    ok(!address_is_domain(TEXT("[]")));
    ok(!address_is_domain(TEXT("[1.2.3.4")));
    ok(!address_is_domain(TEXT("[1.2.3.4\0]")));
    ok(!address_is_domain(TEXT("a\xff")));
}

TEST(write_limits)
{
    struct address a;
    struct text mailboxes[] = {TEXT("joe@example.com"),
                               TEXT("\"a \\\"b\"@Example.com")};
    const char *written[] = {"joe@example.com", "\"a \\\"b\"@example.com"};
    for (size_t i = 0; i < 2; i++) {
        ok(address_parse(mailboxes[i], &a));
        size_t full = strlen(written[i]);
        unsigned refused = 0;
        for (size_t limit = 0; limit < full + 2; limit++) {
            FIXTURE(buffer, out, buffer_init, buffer_free, limit + 1);
            ok(buffer_add_byte(&out, '>'));
            bool fits = address_write(&a, &out);
            refused += !fits;
            if (fits ? limit < full : out.length != 1)
                refused = 1000;
        }
        is_number(refused, full, "too small a buffer is refused and left alone");
    }
}

TEST(write_local)
{
    static const char *const pairs[][2] = {
        {"joe@b",            "joe"     },
        {"\"joe\"@b",        "joe"     },
        {"\"a b\"@b",        "a b"     },
        {"\"a\\\"\\\\b\"@b", "a\"\\b"  },
        {"\"../x\"@b",       "../x"    },
        {"\xc3\xbc@b",       "\xc3\xbc"}
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct address a;
        struct buffer out;
        buffer_init(&out, ADDRESS_MAX);
        ok(address_parse(text_from(pairs[i][0]), &a) && address_write_local(&a, &out));
        is_text(buffer_text(&out), text_from(pairs[i][1]), "the local part unquoted");
        buffer_free(&out);
        buffer_init(&out, 2);
        ok(!address_write_local(&a, &out) || strlen(pairs[i][1]) <= 2);
        buffer_free(&out);
    }
}

TEST(xtext)
{
    static const char *const pairs[][2] = {
        {"",                                       ""            },
        {"rfc822;a@b",                             "rfc822;a@b"  },
        {"rfc822;a+2Bb@c",                         "rfc822;a+b@c"},
        {"+20+2B+3D",                              " +="         },
        {"+C3+BC",                                 "\xc3\xbc"    },
        {"!\"#$%&'()*,-./09:;<>?@AZ[\\]^_`az{|}~",
         "!\"#$%&'()*,-./09:;<>?@AZ[\\]^_`az{|}~"                }
    };
    struct buffer out;
    buffer_init(&out, 100);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        buffer_clear(&out);
        ok(xtext_read(text_from(pairs[i][0]), &out));
        is_text(buffer_text(&out), text_from(pairs[i][1]), "xtext read");
        buffer_clear(&out);
        ok(xtext_write(text_from(pairs[i][1]), &out));
        is_text(buffer_text(&out), text_from(pairs[i][0]), "xtext written");
    }
    buffer_clear(&out);
    ok(xtext_read(TEXT("+2b+c3"), &out)); /* small letters are understood */
    is_text(buffer_text(&out), TEXT("+\xc3"), "as capital ones");

    static const char *const wrong[] = {
        "+",    "+2",   "+2G",      "+G2",      "a+",   "a=b", "a b", "a\tb",
        "a\rb", "a\nb", "+0A",      "+0a",      "+0D",  "+00", "+7F", "+1B",
        "+09",  "\x7f", "\xc3\xbc", "x+0D+0Ay", "++20", "+-1", "+ 1"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        buffer_clear(&out);
        ok(buffer_add(&out, TEXT("kept")));
        ok_named(!xtext_read(text_from(wrong[i]), &out), "bad xtext is refused");
        is_text(buffer_text(&out), TEXT("kept"), "... and leaves nothing");
    }
    buffer_clear(&out);
    ok(!xtext_read(TEXT("a\0b"), &out));
    buffer_free(&out);
    buffer_init(&out, 3);
    ok(xtext_read(TEXT("+41BC"), &out));
    buffer_clear(&out);
    ok(!xtext_read(TEXT("abcd"), &out));
    is_number(out.length, 0, "nothing at the limit");
    ok(!xtext_write(TEXT("a=b"), &out));
    is_number(out.length, 0, "nothing at the limit");
    ok(xtext_write(TEXT("="), &out));
    buffer_free(&out);
}

/* An accepted address stays within its limits and has a normal form. */
TEST(noise)
{
    static const char alphabet[] = "<>@.a\"\\[]:,1 \t\r\n\xc3\xbc(-%!;";
    uint64_t seed = 42;
    unsigned accepted = 0, wrong = 0;
    for (unsigned round = 0; round < 300000; round++) {
        char path[16] = "<";
        size_t length = 1 + round % 12;
        for (size_t i = 1; i < length; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            path[i] = alphabet[(seed >> 33) % (sizeof(alphabet) - 1)];
        }
        path[length++] = '>';
        struct text rest = text_of(path, length);
        struct address a;
        if (address_judge_path(&rest, &a) != NULL)
            continue;
        accepted++;
        char space[ADDRESS_MAX];
        FIXTURE(buffer, out, buffer_init, buffer_free, sizeof(space));
        if (!address_write(&a, &out) || text_has_control(buffer_text(&out)) ||
            !text_is_utf8(buffer_text(&out)))
            wrong++;
        struct address b;
        if (a.domain.length > 0 && !address_parse(buffer_text(&out), &b))
            wrong++;
    }
    ok(accepted > 100);
    is_number(wrong, 0, "what noise gets through has a clean normal form");
}

/* RFC 6533 §3. */
TEST(utf8_xtext)
{
    FIXTURE(buffer, out, buffer_init, buffer_free, 60);
    ok(xtext_write_unitext(TEXT("b\xc3\xb8+a=b\\ \xf0\x9f\x98\x80@x"), &out));
    is_text(buffer_text(&out),
            TEXT("b\xc3\xb8\\x{2B}a\\x{3D}b\\x{5C}\\x{20}\xf0\x9f\x98\x80@x"),
            "unitext");
    buffer_clear(&out);
    ok(xtext_write_utf8(TEXT("utf-8;b\xc3\xb8\\x{2B}\xe2\x82\xac\xf0\x9f\x98\x80@x"),
                        &out));
    is_text(buffer_text(&out), TEXT("utf-8;b\\x{F8}\\x{2B}\\x{20AC}\\x{1F600}@x"),
            "the same in ASCII");
    size_t length = out.length;
    ok_named(!xtext_write_utf8(TEXT("a\xff"), &out) &&
                 !xtext_write_unitext(TEXT("\xc3"), &out),
             "what is no UTF-8 has no such form");
    ok(!xtext_write_utf8(TEXT("\xc3\xb8\xc3\xb8\xc3\xb8\xc3\xb8\xc3\xb8"), &out));
    is_number(out.length, length, "nothing at the limit");
}

/* A-labels would make it longer than a mailbox may be. */
TEST(long_labels)
{
    char mailbox[ADDRESS_MAX + 1] = "a@";
    struct address a, again;
    struct buffer once, twice;
    buffer_init(&once, ADDRESS_MAX);
    buffer_init(&twice, ADDRESS_MAX);
    while (strlen(mailbox) + 11 + 7 <= ADDRESS_MAX) /* eleven bytes, with A-labels 16 */
        strcat(mailbox, "b\xc3\xbc\xc3\xb6\xc3\xa4\xc3\xa9x.");
    strcat(mailbox, "EXAMPLE");
    ok(address_parse(text_from(mailbox), &a) && a.utf8);
    ok_named(address_write(&a, &once) && once.length == strlen(mailbox),
             "it stays as it is");
    ok_named(address_parse(buffer_text(&once), &again) && again.utf8 &&
                 address_write(&again, &twice),
             "and can be read");
    is_text(buffer_text(&twice), buffer_text(&once), "its form is normal");
    ok_named(text_ends_nocase(buffer_text(&once), TEXT(".example")) &&
                 memmem(once.at, once.length, ".example", 8) != NULL,
             "in lower case");
    buffer_free(&once);
    buffer_free(&twice);
}
