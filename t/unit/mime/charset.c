/* mime/charset.c: UTF-8 of every kind, other charsets, characters cut anywhere. */
#include "mime/charset.h"

#include "t/support/tap.h"

#define FFFD "\xef\xbf\xbd"

/* In pieces of `step` bytes; *is_bad as told. */
static struct buffer
convert(const char *name, struct text bytes, size_t step, bool *is_bad)
{
    struct buffer out;
    struct charset *c = charset_open(text_from(name));
    buffer_init(&out, 1 << 20);
    ok_named(c != NULL, name);
    if (c == NULL)
        return out;
    bool good = true;
    for (; bytes.length > 0; bytes = text_after(bytes, step))
        good = good && charset_add(c, text_before(bytes, step), &out);
    ok(good && charset_end(c, &out, is_bad));
    charset_close(&c);
    ok(c == NULL);
    return out;
}

/* clang-format off */
static const struct sample {
    const char *name, *bytes, *utf8;
    bool is_bad;
} samples[] = {
    {"UTF-8", "", "", false},
    {"utf-8", "gr\xc3\xbcn \xe2\x82\xac \xf0\x9f\x90\xa6", "gr\xc3\xbcn \xe2\x82\xac \xf0\x9f\x90\xa6", false},
    {"utf8", "a\x80z", "a" FFFD "z", true},
    {"utf-8", "\xc0\xaf", FFFD FFFD, true},                 /* overlong */
    {"utf-8", "\xe0\x80\xaf", FFFD FFFD FFFD, true},
    {"utf-8", "\xf0\x8f\xbf\xbf", FFFD FFFD FFFD FFFD, true},
    {"utf-8", "\xed\xa0\x80", FFFD FFFD FFFD, true},        /* a surrogate */
    {"utf-8", "\xed\x9f\xbf\xee\x80\x80", "\xed\x9f\xbf\xee\x80\x80", false},
    {"utf-8", "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf", false},
    {"utf-8", "\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD, true}, /* beyond the last */
    {"utf-8", "\xf5\xff", FFFD FFFD, true},
    {"utf-8", "\xe2\x82z", FFFD "z", true},                 /* what began is one */
    {"utf-8", "\xe2\x82", FFFD, true},
    {"utf-8", "\xf0\x9f\x90", FFFD, true},
    {"utf-8", "\xe2\xe2\x82\xac", FFFD "\xe2\x82\xac", true},
    {"us-ascii", "plain ~", "plain ~", false},
    {"ASCII", "gr\xfcn", "gr" FFFD "n", true},
    {"iso-8859-1", "gr\xfcn", "gr\xc3\xbcn", false},
    {"ISO-8859-15", "\xa4", "\xe2\x82\xac", false},
    {"windows-1252", "\x80", "\xe2\x82\xac", false},
    {"windows-1252", "a\x81z", "a" FFFD "z", true},
    {"windows-1255", "\xf9\xd1", "\xef\xac\xaa", false}, /* it holds one back */
    {"windows-1258", "a", "a", false},
    {"koi8-r", "\xf0\xd2\xc9", "\xd0\x9f\xd1\x80\xd0\xb8", false},
    {"gb2312", "\xc4\xe3", "\xe4\xbd\xa0", false},
    {"gb2312", "\xc4", FFFD, true},
    {"gb2312", "\xc4\xe3\xc4", "\xe4\xbd\xa0" FFFD, true},
    {"big5", "\xa7\x41", "\xe4\xbd\xa0", false},
    {"Shift_JIS", "\x93\xfa", "\xe6\x97\xa5", false},
    {"euc-kr", "\xc7\xd1", "\xed\x95\x9c", false},
    {"ks_c_5601-1987", "\xc7\xd1", "\xed\x95\x9c", false},
    {"iso-2022-jp", "\x1b$BF|\x1b(Bx", "\xe6\x97\xa5x", false},
    {"iso-2022-jp", "\x1b$BF", FFFD, true},
    {"iso-8859-8-i", "\xf9", "\xd7\xa9", false},
    {"utf-7", "+IKw-", "\xe2\x82\xac", false},
};
/* clang-format on */

static void
test_samples(void)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        const struct sample *s = &samples[i];
        size_t length = strlen(s->bytes);
        for (size_t step = length + 1; step > 0; step--) {
            bool is_bad = false;
            struct buffer out =
                convert(s->name, text_of(s->bytes, length), step, &is_bad);
            is_text(buffer_text(&out), text_from(s->utf8), s->name);
            is_number(is_bad, s->is_bad, "bytes that are no characters");
            buffer_free(&out);
        }
    }
}

static void
test_names(void)
{
    static const char *const unknown[] = {
        "", "x-none", "utf-8//TRANSLIT", "../utf-8", "utf 8", "\xc3\xbc", "a\nb",
        "iso-8859-1/", "utf-8,utf-7"};
    char name[CHARSET_NAME_MAX + 2];
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        struct charset *c = charset_open(text_from(unknown[i]));
        ok_named(c == NULL, unknown[i]);
        charset_close(&c);
    }
    memset(name, 'x', sizeof(name));
    struct charset *c = charset_open(text_of(name, sizeof(name)));
    ok_named(c == NULL, "too long a name");
    c = charset_open(text_of("utf-8\0", 6));
    ok_named(c == NULL, "a NUL in it");
    c = charset_open(TEXT("Windows-1252"));
    ok(c != NULL && charset_is(c, TEXT("WINDOWS-1252")));
    ok(c != NULL && !charset_is(c, TEXT("windows-1251")));
    charset_close(&c);
}

/* Words: shifts start anew, characters that were cut go on. */
static void
test_next(void)
{
    struct buffer out;
    bool is_cut, is_bad;
    struct charset *c = charset_open(TEXT("iso-2022-jp"));
    buffer_init(&out, 100);
    ok(charset_next(c, &out, &is_cut) && !is_cut);
    ok(charset_add(c, TEXT("\x1b$BF|"), &out));
    ok(charset_next(c, &out, &is_cut) && !is_cut);
    ok(charset_add(c, TEXT("F|"), &out));
    ok(charset_end(c, &out, &is_bad) && !is_bad);
    is_text(buffer_text(&out), TEXT("\xe6\x97\xa5" "F|"), "a shift ends with its word");
    charset_close(&c);
    buffer_clear(&out);
    c = charset_open(TEXT("utf-8"));
    ok(charset_add(c, TEXT("\xe2\x82"), &out));
    ok(charset_next(c, &out, &is_cut) && is_cut);
    ok(charset_add(c, TEXT("\xac"), &out));
    ok(charset_end(c, &out, &is_bad) && !is_bad);
    is_text(buffer_text(&out), TEXT("\xe2\x82\xac"), "half a character goes on");
    ok(charset_add(c, TEXT("\xff"), &out));
    ok(charset_end(c, &out, &is_bad) && is_bad);
    ok_named(charset_end(c, &out, &is_bad) && !is_bad, "told once");
    charset_close(&c);
    buffer_free(&out);
}

static void
test_limit(void)
{
    static const struct {
        const char *name, *bytes;
        size_t length;
    } rows[] = {
        {"utf-8", "ab\xc3\xbc", 4},
        {"us-ascii", "ab\xc3", 5},
        {"iso-8859-1", "ab\xfc", 4},
        {"windows-1255", "a\xf9", 3},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t limit = 0; limit <= rows[i].length; limit++) {
            struct buffer out;
            bool is_bad;
            buffer_init(&out, limit);
            struct charset *c = charset_open(text_from(rows[i].name));
            bool good = charset_add(c, text_from(rows[i].bytes), &out) &&
                        charset_end(c, &out, &is_bad);
            is_number(good, limit == rows[i].length, rows[i].name);
            ok(out.length <= limit);
            charset_close(&c);
            buffer_free(&out);
        }
}

/* Every byte alone and in pairs, in charsets of every family: always UTF-8. */
static void
test_all_bytes(void)
{
    static const char *const names[] = {
        "utf-8", "us-ascii", "big5-hkscs", "tcvn5712-1", "tscii", "euc-jisx0213",
        "utf-16", "utf-32", "utf-7", "ucs-4", "internal", "iso-2022-kr", "iso-2022-cn"};
    for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
        struct buffer out;
        bool is_bad, good = true;
        struct charset *c = charset_open(text_from(names[n]));
        buffer_init(&out, 1 << 20);
        for (unsigned i = 0; c != NULL && i < 65536; i += i < 4096 ? 1 : 37) {
            char pair[3] = {(char)(i >> 8), (char)i, 'A'};
            buffer_clear(&out);
            good = good && charset_add(c, text_of(pair, i % 3 + 1), &out) &&
                   charset_end(c, &out, &is_bad) && text_is_utf8(buffer_text(&out));
        }
        ok_named(good, names[n]);
        charset_close(&c);
        buffer_free(&out);
    }
}

int
main(void)
{
    test_samples();
    test_names();
    test_next();
    test_limit();
    test_all_bytes();
    return done();
}
