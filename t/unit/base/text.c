/* Slices: every function at its limits, and UTF-8 against the tables of RFC 3629. */
#include "base/text.h"
#include "t/support/tap.h"

static const struct text none = {NULL, 0};

TEST(make)
{
    is_number(text_from("abc").length, 3, "text_from() counts");
    is_number(text_from(NULL).length, 0, "NULL is the empty text");
    ok(text_from(NULL).at != NULL);
    is_text(text_of("abc", 2), TEXT("ab"), "text_of() takes the length it is given");
    is_number(TEXT("a\0b").length, 3, "TEXT() counts a NUL inside");
}

TEST(equal)
{
    ok(text_equal(TEXT("abc"), TEXT("abc")));
    ok(!text_equal(TEXT("abc"), TEXT("abC")));
    ok(!text_equal(TEXT("abc"), TEXT("ab")));
    ok(!text_equal(TEXT("ab"), TEXT("abc")));
    ok(text_equal(none, TEXT("")));
    ok(!text_equal(TEXT("a\0b"), TEXT("a\0c")));
    ok(text_equal_nocase(TEXT("MaIl"), TEXT("mAiL")));
    ok(!text_equal_nocase(TEXT("mail"), TEXT("mai")));
    ok(!text_equal_nocase(TEXT("mail"), TEXT("maim")));
    ok(text_equal_nocase(none, none));
    /* The character 32 away from a bracket is not its other case, nor are umlauts. */
    ok(!text_equal_nocase(TEXT("["), TEXT("{")));
    ok(!text_equal_nocase(TEXT("@"), TEXT("`")));
    ok(!text_equal_nocase(TEXT("\xc3\x84"), TEXT("\xc3\xa4")));
}

TEST(ends)
{
    ok(text_starts(TEXT("MAIL FROM"), TEXT("MAIL")));
    ok(!text_starts(TEXT("mail FROM"), TEXT("MAIL")));
    ok(!text_starts(TEXT("MAI"), TEXT("MAIL")));
    ok(text_starts(TEXT("x"), none));
    ok(text_starts(none, none));
    ok(text_starts_nocase(TEXT("mail FROM"), TEXT("MAIL")));
    ok(!text_starts_nocase(TEXT("mai"), TEXT("MAIL")));
    ok(text_ends_nocase(TEXT("a.EXAMPLE"), TEXT(".example")));
    ok(text_ends_nocase(TEXT(".example"), TEXT(".example")));
    ok(!text_ends_nocase(TEXT("example"), TEXT(".example")));
    ok(text_ends_nocase(none, none));
}

TEST(digits)
{
    ok(text_digits(TEXT("")) == 0 && text_digits(TEXT("x1")) == 0);
    ok(text_digits(TEXT("250")) == 3 && text_digits(TEXT("5.1.1")) == 1);
}

TEST(find)
{
    is_number(text_find(TEXT("a@b@c"), '@'), 1, "the first one");
    is_number(text_find_last(TEXT("a@b@c"), '@'), 3, "the last one");
    ok(text_find(TEXT("abc"), '@') == TEXT_NONE);
    ok(text_find_last(TEXT("abc"), '@') == TEXT_NONE);
    ok(text_find(none, '@') == TEXT_NONE);
    ok(text_find_last(none, '@') == TEXT_NONE);
    ok(text_find(text_of("ab@", 2), '@') == TEXT_NONE);
    is_number(text_find(TEXT("a\0b"), '\0'), 1, "a NUL is a byte");
}

TEST(parts)
{
    is_text(text_after(TEXT("abc"), 0), TEXT("abc"), "after nothing");
    is_text(text_after(TEXT("abc"), 2), TEXT("c"), "after two");
    is_text(text_after(TEXT("abc"), 3), TEXT(""), "after all");
    is_text(text_after(TEXT("abc"), 4), TEXT(""), "after more than all");
    is_text(text_after(none, 4), none, "after what is not there");
    is_text(text_before(TEXT("abc"), 0), TEXT(""), "before nothing");
    is_text(text_before(TEXT("abc"), 2), TEXT("ab"), "the first two");
    is_text(text_before(TEXT("abc"), 4), TEXT("abc"), "more than all");
    is_text(text_trim(TEXT(" \t\r\n a b \r\n")), TEXT("a b"), "trimmed");
    is_text(text_trim(TEXT(" \t\r\n")), TEXT(""), "nothing but blanks");
    is_text(text_trim(none), none, "nothing to trim");
    is_text(text_trim(TEXT("\va\f")), TEXT("\va\f"), "these are no blanks");
}

TEST(cut)
{
    struct text rest = TEXT("a,,b,"), field;
    ok(text_cut(&rest, ',', &field));
    is_text(field, TEXT("a"), "the first field");
    ok(text_cut(&rest, ',', &field));
    is_text(field, TEXT(""), "an empty field is a field");
    ok(text_cut(&rest, ',', &field));
    is_text(field, TEXT("b"), "the third");
    ok(text_cut(&rest, ',', &field));
    is_text(field, TEXT(""), "behind the last separator is one more");
    ok(!text_cut(&rest, ',', &field));
    ok(rest.at == NULL);
    ok(!text_cut(&rest, ',', &field));

    rest = TEXT("");
    ok(text_cut(&rest, ',', &field));
    is_text(field, TEXT(""), "the empty text is one empty field");
    ok(!text_cut(&rest, ',', &field));
}

TEST(word)
{
    struct text rest = TEXT(", a,b \n, c"), word;
    ok(text_word(&rest, ", \n", &word));
    is_text(word, TEXT("a"), "leading separators are skipped");
    ok(text_word(&rest, ", \n", &word));
    is_text(word, TEXT("b"), "one separator");
    ok(text_word(&rest, ", \n", &word));
    is_text(word, TEXT("c"), "a run of separators");
    ok(!text_word(&rest, ", \n", &word));
    rest = TEXT(" ,");
    ok(!text_word(&rest, ", ", &word));
    rest = none;
    ok(!text_word(&rest, ", ", &word));
    rest = TEXT("a\0b c");
    ok(text_word(&rest, " ", &word));
    is_text(word, TEXT("a\0b"), "the end of the list of separators is none of them");
}

TEST(number)
{
    uint64_t n = 7;
    ok(text_number(TEXT("0"), 0, &n) && n == 0);
    ok(text_number(TEXT("007"), 9, &n) && n == 7);
    ok(text_number(TEXT("25"), 65535, &n) && n == 25);
    ok(text_number(TEXT("65535"), 65535, &n) && n == 65535);
    ok(text_number(TEXT("18446744073709551615"), UINT64_MAX, &n) && n == UINT64_MAX);
    ok(!text_number(TEXT("18446744073709551616"), UINT64_MAX, &n));
    ok(!text_number(TEXT("99999999999999999999"), UINT64_MAX, &n));
    ok(!text_number(TEXT("65536"), 65535, &n));
    ok(!text_number(TEXT("1"), 0, &n));
    ok(!text_number(TEXT("8"), 7, &n));
    ok(!text_number(TEXT("10"), 9, &n));
    ok(!text_number(TEXT(""), 9, &n));
    ok(!text_number(none, 9, &n));
    const char *const bad[] = {"-1", "+1", " 1", "1 ", "0x1", "1a", "1.0"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_named(!text_number(text_from(bad[i]), 99, &n), bad[i]);
}

TEST(copy)
{
    char to[4] = "zzz";
    ok(text_copy(to, sizeof(to), TEXT("abc")));
    is_string(to, "abc", "exactly fits");
    ok(!text_copy(to, sizeof(to), TEXT("abcd")));
    is_string(to, "abc", "is cut and ended");
    ok(text_copy(to, sizeof(to), none));
    is_string(to, "", "nothing is copied");
    ok(!text_copy(to, 1, TEXT("a")));
    is_string(to, "", "room for the end alone");
    ok(text_copy(to, sizeof(to), TEXT("a\0b")));
    ok(memcmp(to, "a\0b", 4) == 0);

    char *copy = text_string(TEXT("copy"));
    is_string(copy, "copy", "text_string() copies");
    free(copy);
    copy = text_string(none);
    is_string(copy, "", "text_string() of nothing");
    free(copy);

    char mixed[] = "AZaz@[\xc3\x84";
    text_lower(mixed, strlen(mixed));
    is_string(mixed, "azaz@[\xc3\x84", "only ASCII letters are lowered");
}

TEST(control)
{
    size_t wrong = 0;
    for (int c = 0; c < 256; c++) {
        char bytes[] = {'a', (char)c, 'b'};
        wrong += text_has_control(text_of(bytes, 3)) != (c < 0x20 || c == 0x7f);
        wrong += text_is_ascii(text_of(bytes, 3)) != (c < 0x80);
    }
    is_number(wrong, 0, "control and ASCII are right for every byte");
    wrong = 0;
    for (size_t length = 0; length <= 40; length++)
        for (size_t at = 0; at <= length; at++) {
            char bytes[41];
            memset(bytes, 0x7f, sizeof(bytes));
            bytes[at] = '\x80';
            wrong += text_is_ascii(text_of(bytes, length)) != (at == length);
        }
    is_number(wrong, 0, "wherever the byte stands");
    ok(!text_has_control(none));
    ok(text_is_ascii(none));
}

TEST(utf8)
{
    size_t wrong = 0;
    for (uint32_t code = 0; code < 0x200000; code++) {
        char bytes[4];
        size_t length = text_write_character(code, bytes);
        uint32_t read = 0;
        bool legal = code < 0x110000 && (code < 0xd800 || code > 0xdfff);
        size_t got = text_character(text_of(bytes, length), &read);
        wrong += got != (legal ? length : 0) || (legal && read != code);
        wrong += text_is_utf8(text_of(bytes, length)) != legal;
        /* Without its last byte it is never one. */
        wrong += text_character(text_of(bytes, length - 1), &read) != 0;
    }
    is_number(wrong, 0, "every code point, whole and torn");

    ok(text_is_utf8(none));
    ok(text_is_utf8(TEXT("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xa6z")));
    const char *const bad[] = {
        "\x80",             /* a continuation alone */
        "a\xc3",            /* torn */
        "\xc0\xaf",         /* overlong of two */
        "\xc1\xbf",         /* overlong of two, the last */
        "\xe0\x9f\xbf",     /* overlong of three */
        "\xf0\x8f\xbf\xbf", /* overlong of four */
        "\xed\xa0\x80",     /* a surrogate */
        "\xf4\x90\x80\x80", /* beyond Unicode */
        "\xf5\x80\x80\x80", /* no lead byte */
        "\xff",             /* no lead byte */
        "\xc3\x28",         /* no continuation */
        "\xe2\x82\x28",     /* no second continuation */
        "\xf0\x9f\x90\x28", /* no third continuation */
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_named(!text_is_utf8(text_from(bad[i])), "ill-formed UTF-8 is refused");
    static const struct {
        struct text t;
        size_t length, whole;
    } starts[] = {
        {TEXT("ab"),           1, 1},
        {TEXT("\xe2\x82\xac"
              "x"),
         3,                       3},
        {TEXT("\xe2\x82"),     2, 3},
        {TEXT("\xe2"),         1, 3},
        {TEXT("\xe2\x82x"),    2, 3},
        {TEXT("\xe0\x82\x80"), 1, 3},
        {TEXT("\xed\xa0\x80"), 1, 3},
        {TEXT("\x80x"),        1, 0},
        {TEXT("\xc0\x80"),     1, 0}
    };
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        size_t whole;
        is_number(text_character_start(starts[i].t, &whole), starts[i].length,
                  "so much of a character");
        is_number(whole, starts[i].whole, "of so much");
    }
}

TEST(hash)
{
    ok_named(text_hash_nocase(TEXT_HASH, TEXT("")) == TEXT_HASH, "nothing added");
    ok_named(text_hash_nocase(TEXT_HASH, TEXT("foobar")) ==
                 UINT64_C(0x85944171f73967e8),
             "FNV-1a's published value");
    ok(text_hash_nocase(TEXT_HASH, TEXT("FooBar")) ==
       text_hash_nocase(TEXT_HASH, TEXT("foobar")));
    ok_named(text_hash_nocase(text_hash_nocase(TEXT_HASH, TEXT("foo")), TEXT("bar")) ==
                 text_hash_nocase(TEXT_HASH, TEXT("foobar")),
             "piece by piece");
}

TEST(line_end)
{
    static const struct {
        struct text line, without;
    } all[] = {
        {TEXT("a\r\n"),   TEXT("a")  },
        {TEXT("a\n"),     TEXT("a")  },
        {TEXT("a\r"),     TEXT("a")  },
        {TEXT("a"),       TEXT("a")  },
        {TEXT("a\n\r\n"), TEXT("a\n")},
        {TEXT("\r\n"),    TEXT("")   },
        {TEXT(""),        TEXT("")   },
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        is_text(text_without_line_end(all[i].line), all[i].without,
                "one line end goes");
}

TEST(digits_become_bytes)
{
    unsigned char out[2] = {0, 0};
    ok(text_unhex(TEXT("0aFf"), out, 2) && out[0] == 10 && out[1] == 255);
    ok(!text_unhex(TEXT("0aF"), out, 2) && !text_unhex(TEXT("0aFf0"), out, 2) && !text_unhex(TEXT(""), out, 2));
    ok(!text_unhex(TEXT("0aFg"), out, 2) && !text_unhex(TEXT("x0Ff"), out, 2) && text_unhex(TEXT(""), out, 0));
}

TEST(within)
{
    is_text(text_within(TEXT("<a@b>"), '<', '>'), TEXT("a@b"), "both");
    is_text(text_within(TEXT("<a@b"), '<', '>'), TEXT("<a@b"), "the first alone");
    is_text(text_within(TEXT("\""), '"', '"'), TEXT("\""), "one is not two");
    is_text(text_within(TEXT("<>"), '<', '>'), TEXT(""), "nothing within");
}
