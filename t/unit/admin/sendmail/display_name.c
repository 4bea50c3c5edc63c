/* Display names: every byte, quoting, encoded words, limits. */
#include "admin/sendmail/display_name.h"

#include "t/support/tap.h"

static void
written(struct text name, const char *want)
{
    FIXTURE(buffer, out, buffer_init, buffer_free, DISPLAY_NAME_WRITTEN_MAX);
    ok(display_name_write(name, &out));
    is_text(buffer_text(&out), text_from(want), want);
}

TEST(forms)
{
    written(TEXT(""), "");
    written(TEXT("  \t "), "");
    written(TEXT("Ann Example"), "Ann Example");
    written(TEXT(" Ann  "), "Ann");
    written(TEXT("Doe, John"), "\"Doe, John\"");
    written(TEXT("J. Doe"), "\"J. Doe\"");
    written(TEXT("a\"b\\c"), "\"a\\\"b\\\\c\"");
    written(TEXT("x <evil@x>"), "\"x <evil@x>\"");
    written(TEXT("a\r\nBcc: b"), "\"aBcc: b\"");
    written(TEXT("a\0b\x7f"), "ab");
    written(TEXT("=?UTF-8?Q?x?="), "\"=?UTF-8?Q?x?=\"");
    written(TEXT("J\xc3\xbcrgen O'Neil"), "=?UTF-8?Q?J=C3=BCrgen_O=27Neil?=");
    written(TEXT("J\xfc" "rgen"), "J?rgen");
    written(TEXT("a\xc2\x85" "b"), "ab");
}

/* For any input the output holds no line end but folds, and no 8-bit byte. */
TEST(bytes)
{
    unsigned untamed = 0;
    for (int c = 0; c < 256; c++) {
        char name[3] = {'a', (char)c, 'b'};
        FIXTURE(buffer, out, buffer_init, buffer_free, DISPLAY_NAME_WRITTEN_MAX);
        bool good = display_name_write(text_of(name, 3), &out);
        struct text t = buffer_text(&out);
        if (!good || text_has_control(t) || !text_is_ascii(t))
            untamed++;
    }
    is_number(untamed, 0, "every byte is tamed");
}

TEST(limits)
{
    char name[400];
    struct buffer out;
    memset(name, '"', sizeof(name));
    buffer_init(&out, DISPLAY_NAME_WRITTEN_MAX);
    ok(display_name_write(text_of(name, sizeof(name)), &out));
    is_number(out.length, 2 + 2 * DISPLAY_NAME_SOURCE_MAX, "cut, and quoted");
    buffer_clear(&out);
    for (size_t i = 0; i + 1 < sizeof(name); i += 2)
        memcpy(name + i, "\xc3\xbc", 2);
    ok(display_name_write(text_of(name, sizeof(name)), &out));
    struct text rest = buffer_text(&out), line;
    size_t characters = 0, longest = 0;
    while (text_cut(&rest, '\n', &line)) {
        struct text word = text_trim(line);
        longest = word.length > longest ? word.length : longest;
        ok(text_starts(word, TEXT("=?UTF-8?Q?")) && text_ends_nocase(word, TEXT("?=")));
        characters += (word.length - 12) / 6;
        ok_named((word.length - 12) % 6 == 0, "no character is cut in two");
    }
    ok(longest <= 75);
    is_number(characters, DISPLAY_NAME_SOURCE_MAX / 2, "as many as fit");
    buffer_free(&out);
    FIXTURE(buffer, small, buffer_init, buffer_free, 10);
    ok(!display_name_write(TEXT("abcdefghijk"), &small));
    ok(!display_name_write(TEXT("abcdefg,i"), &small));
    ok(!display_name_write(TEXT("\xc3\xbc"), &small));
    is_number(small.length, 0, "nothing half");
}

static void
gecos(const char *field, const char *login, const char *want)
{
    FIXTURE(buffer, out, buffer_init, buffer_free, 100);
    ok(display_name_from_gecos(text_from(field), text_from(login), &out));
    is_text(buffer_text(&out), text_from(want), field);
}

TEST(gecos)
{
    gecos("Ann Example,Room 1,,", "ann", "Ann Example");
    gecos("", "ann", "");
    gecos(",,,", "ann", "");
    gecos("& Example", "ann", "Ann Example");
    gecos("& & X", "7ann", "7ann 7ann X");
    gecos("&", "", "");
    FIXTURE(buffer, out, buffer_init, buffer_free, 4);
    ok(!display_name_from_gecos(TEXT("&&"), TEXT("ann"), &out));
}
