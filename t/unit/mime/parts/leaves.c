/* The roles of leaves, and the charsets and encoded words that are decoded. */
#include "mime/parts/leaves.h"

#include "t/support/tap.h"

static const struct {
    const char *from, *to;
} words[] = {
    {"", ""},
    {"plain text", "plain text"},
    {"=?utf-8?q?a=20b_c?=", "a b c"},
    {"=?UTF-8*en?Q?a?= =?utf-8?B?Yg==?= c", "ab c"},
    {"x =?iso-8859-1?q?=E9?=\t=?windows-1252?q?=80?=y", "x \xc3\xa9\xe2\x82\xac" "y"},
    {"=?utf-8?q?=C3?= =?utf-8?q?=A4?=", "\xc3\xa4"},
    {"=?koi8-r?q?a?= =?utf-8?q?b?=", "=?koi8-r?q?a?= b"},
    {"=?utf-8?x?a?=", "=?utf-8?x?a?="},
    {"=?utf-8?q?a", "=?utf-8?q?a"},
    {"=?utf-8?q?a b?=", "=?utf-8?q?a b?="},
    {"=?", "=?"},
};

TEST(encoded_words)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct buffer out;
        buffer_init(&out, 100);
        leaves_decode_words(text_from(words[i].from), &out);
        is_text(buffer_text(&out), text_from(words[i].to), words[i].from);
        buffer_free(&out);
    }
}

TEST(latin)
{
    char out[4];
    ok(leaves_from_latin('a', out) == 1 && out[0] == 'a');
    is_text(text_of(out, leaves_from_latin(0x99, out)), TEXT("\xe2\x84\xa2"), "windows-1252");
    is_text(text_of(out, leaves_from_latin(0xff, out)), TEXT("\xc3\xbf"), "the last");
    is_text(text_of(out, leaves_from_latin(0x81, out)), TEXT("\xef\xbf\xbd"), "none");
    ok(leaves_charset(TEXT("UTF8")) == LEAF_UTF8 && leaves_charset(TEXT("utf-16")) == LEAF_OTHER);
}

TEST(roles)
{
    struct leaves l;
    leaves_begin(&l);
    leaves_add(&l, TEXT("Content-Type: multipart/mixed; boundary=m\n\n--m\nContent-Disposition: attachment\n\nfile\n--m\n\ntext\n--m\n\nfooter\n"
                        "--m\nContent-Type: message/rfc822\n\nContent-Type: text/html\n\n<p>\n--m\nContent-Type: text/html\n\n<b>\n--m--\n"));
    leaves_end(&l);
    static const enum leaf_role roles[] = {LEAF_FILE, LEAF_TEXT, LEAF_FILE, LEAF_FILE, LEAF_PAGE};
    ok(l.count == 5);
    for (size_t i = 0; i < 5; i++)
        ok(l.list[i].role == roles[i]);
    is_text(leaves_text(&l, l.list[3].type), TEXT("message/rfc822"), "a message is one leaf");
    ok(!l.list[0].is_inline && l.list[1].is_inline && l.list[1].to - l.list[1].from == 4);
    leaves_free(&l);
}
