/* Display names: every byte, and the limit. */
#include "admin/sendmail/display_name.h"

#include "t/support/tap.h"

enum { LIMIT = 250 };

static void
clean(struct text name, const char *want)
{
    FIXTURE(buffer, out, buffer_init, buffer_free, LIMIT);
    is_text(display_name_clean(name, &out), text_from(want), want);
}

TEST(forms)
{
    clean(TEXT(""), "");
    clean(TEXT("  \t "), "");
    clean(TEXT(" Ann  Example "), "Ann  Example");
    clean(TEXT("a\r\nBcc: b"), "aBcc: b");
    clean(TEXT("a\0b\x7f"), "ab");
    clean(TEXT("J\xc3\xbcrgen"), "J\xc3\xbcrgen");
    clean(TEXT("J\xfc" "rgen"), "J?rgen");
    clean(TEXT("a\xc2\x85" "b"), "ab");
}

TEST(bytes)
{
    unsigned untamed = 0;
    for (int c = 0; c < 256; c++) {
        char name[3] = {'a', (char)c, 'b'};
        FIXTURE(buffer, out, buffer_init, buffer_free, LIMIT);
        struct text t = display_name_clean(text_of(name, 3), &out);
        if (text_has_control(t) || !text_is_utf8(t))
            untamed++;
    }
    is_number(untamed, 0, "every byte is tamed");
}

TEST(limits)
{
    char name[401] = "a";
    FIXTURE(buffer, out, buffer_init, buffer_free, LIMIT);
    for (size_t i = 1; i + 1 < sizeof(name); i += 2)
        memcpy(name + i, "\xc3\xbc", 2);
    struct text t = display_name_clean(text_of(name, sizeof(name)), &out);
    ok(t.length == LIMIT - 1 && text_is_utf8(t));
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
