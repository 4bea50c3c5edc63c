/* Base64 and quoted-printable decoded: known answers, odd bytes, any cuts, ways back. */
#include "mime/decode.h"

#include "mime/base64_lines.h"
#include "mime/quoted.h"

#include "t/support/tap.h"

#include "t/support/downgrade_kit.h"

enum {
    FOREIGN = 1 << DECODE_FOREIGN,
    PADDING = 1 << DECODE_PADDING,
    BEHIND = 1 << DECODE_BEHIND,
    ESCAPE = 1 << DECODE_ESCAPE,
    RAW = 1 << DECODE_RAW,
    LONG = 1 << DECODE_LONG_LINE
};

#define TEN     "0123456789"
#define SEVENTY TEN TEN TEN TEN TEN TEN TEN

/* clang-format off */
static const struct sample {
    enum structure_encoding encoding;
    const char *coded, *plain;
    unsigned problems;
} samples[] = {
    {ENCODING_BASE64, "", "", 0},
    {ENCODING_BASE64, "YQ==", "a", 0},
    {ENCODING_BASE64, "YWI=\r\n", "ab", 0},
    {ENCODING_BASE64, "YWJj\r\nZGVm\r\n", "abcdef", 0},
    {ENCODING_BASE64, "YWJj\nZG Vm\tZ\nw=\r\n=\r\n", "abcdefg", 0},
    {ENCODING_BASE64, "+/+/", "\xfb\xff\xbf", 0},
    {ENCODING_BASE64, "YQ", "a", PADDING},
    {ENCODING_BASE64, "YQ=", "a", PADDING},
    {ENCODING_BASE64, "YWI", "ab", PADDING},
    {ENCODING_BASE64, "YWJjZ", "abc", PADDING},
    {ENCODING_BASE64, "YR==", "a", PADDING},
    {ENCODING_BASE64, "YWJ=", "ab", PADDING},
    {ENCODING_BASE64, "YWJj=", "abc", PADDING},
    {ENCODING_BASE64, "=YWJj", "abc", PADDING},
    {ENCODING_BASE64, "Y=WJj", "abc", PADDING},
    {ENCODING_BASE64, "YQ===", "a", PADDING},
    {ENCODING_BASE64, "YQ==YQ==", "a", BEHIND | PADDING},
    {ENCODING_BASE64, "YQ=X=", "a", BEHIND},
    {ENCODING_BASE64, "YQ==\r\n-- \r\nlist", "a", BEHIND},
    {ENCODING_BASE64, "Y*W\x80J!j", "abc", FOREIGN},
    {ENCODING_BASE64, "YW-_", "a", FOREIGN | PADDING},
    {ENCODING_BASE64, SEVENTY "012345\r\n" SEVENTY "012345\r\n012345A=", NULL, 0},
    {ENCODING_BASE64, SEVENTY "0123456\r\n789", NULL, LONG},
    {ENCODING_QUOTED, "", "", 0},
    {ENCODING_QUOTED, "plain text\r\nmore", "plain text\r\nmore", 0},
    {ENCODING_QUOTED, "gr=C3=BCn =3D=3d", "gr\xc3\xbcn ==", 0},
    {ENCODING_QUOTED, "a=\r\nb=\nc= \t\r\nd= \ne=", "abcde", 0},
    {ENCODING_QUOTED, "a=\r\n", "a", 0},
    {ENCODING_QUOTED, "a=\r", "a", 0},
    {ENCODING_QUOTED, "a= ", "a", 0},
    {ENCODING_QUOTED, "a \t\r\nb  \nc =20\r\n d\te ", "a\r\nb\nc  \r\n d\te", 0},
    {ENCODING_QUOTED, "\r\n\r\n\n", "\r\n\r\n\n", 0},
    {ENCODING_QUOTED, "a=zb", "a=zb", ESCAPE},
    {ENCODING_QUOTED, "a=4", "a=4", ESCAPE},
    {ENCODING_QUOTED, "a=4z", "a=4z", ESCAPE},
    {ENCODING_QUOTED, "a==3D", "a==", ESCAPE},
    {ENCODING_QUOTED, "a=3=3D", "a=3=", ESCAPE},
    {ENCODING_QUOTED, "a= \tb", "a= \tb", ESCAPE},
    {ENCODING_QUOTED, "a= =3D", "a= =", ESCAPE},
    {ENCODING_QUOTED, "a=\rb", "a=\rb", ESCAPE},
    {ENCODING_QUOTED, "a= \rb", "a= \rb", ESCAPE},
    {ENCODING_QUOTED, "a=\r\r\n", "a=\r\r\n", ESCAPE},
    {ENCODING_QUOTED, "a=4 \r\nb", "a=4\r\nb", ESCAPE},
    {ENCODING_QUOTED, "a\rb", "a\rb", RAW},
    {ENCODING_QUOTED, "a \rb", "a \rb", RAW},
    {ENCODING_QUOTED, "a \r\r\nb", "a \r\r\nb", RAW},
    {ENCODING_QUOTED, "a\r=3D", "a\r=", RAW},
    {ENCODING_QUOTED, "a\r", "a\r", RAW},
    {ENCODING_QUOTED, "\x01\x7f\x80\xff~!", "\x01\x7f\x80\xff~!", RAW},
    {ENCODING_QUOTED, SEVENTY "12345=\r\n6", SEVENTY "123456", 0},
    {ENCODING_QUOTED, SEVENTY "123456\r\n6", SEVENTY "123456\r\n6", 0},
    {ENCODING_QUOTED, SEVENTY "1234567\r\n6", SEVENTY "1234567\r\n6", LONG},
    {ENCODING_7BIT, "a=\x80  \r\nb\r", "a=\x80  \r\nb\r", 0},
    {ENCODING_OTHER, "begin 644 x\n", "begin 644 x\n", 0},
};
/* clang-format on */

static struct buffer
decode(enum structure_encoding encoding, struct text coded, size_t piece,
       struct decode *d)
{
    struct buffer out;
    buffer_init(&out, KIT_SIZE_MAX);
    decode_start(d, encoding, kit_write, &out);
    for (; coded.length > 0; coded = text_after(coded, piece))
        decode_add(d, text_before(coded, piece));
    decode_end(d);
    return out;
}

static void
test_samples(void)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        const struct sample *s = &samples[i];
        struct text coded = text_from(s->coded);
        struct decode d;
        size_t wrong = 0;
        struct buffer whole = decode(s->encoding, coded, coded.length + 1, &d);
        if (s->plain != NULL)
            is_text(buffer_text(&whole), text_from(s->plain), s->coded);
        is_number(d.problems, s->problems, "problems");
        is_number(d.size, whole.length, "size");
        for (size_t piece = 1; piece < coded.length; piece++) {
            struct buffer cut = decode(s->encoding, coded, piece, &d);
            wrong += !text_equal(buffer_text(&cut), buffer_text(&whole)) ||
                     d.problems != s->problems;
            buffer_free(&cut);
        }
        is_number(wrong, 0, "the same however it is cut");
        buffer_free(&whole);
    }
}

/* Blanks without end are text at last; what follows is read as ever. */
static void
test_blanks(void)
{
    static const char *const heads[] = {"a", "a="};
    for (size_t count = DECODE_BLANKS_MAX - 1; count <= DECODE_BLANKS_MAX + 1; count++)
        for (size_t h = 0; h < 2; h++) {
            char coded[DECODE_BLANKS_MAX + 20];
            size_t length = strlen(heads[h]);
            struct decode d;
            memcpy(coded, heads[h], length);
            memset(coded + length, ' ', count);
            memcpy(coded + length + count, "\r\nz", 3);
            bool fits = count <= DECODE_BLANKS_MAX;
            struct buffer out =
                decode(ENCODING_QUOTED, text_of(coded, length + count + 3), 7, &d);
            ok(out.length > 0 && out.at[out.length - 1] == 'z');
            if (fits)
                is_number(out.length, h == 0 ? 4 : 2, "at most so many are kept");
            else
                ok_named(out.length > count, "more are text");
            is_number((d.problems & ESCAPE) != 0, !fits && h == 1, "no escape then");
            buffer_free(&out);
        }
}

/* Our encoded text is decoded to its source, without a problem. */
static void
test_back(void)
{
    unsigned seed = 1;
    for (size_t size = 0; size < 9000; size = size * 3 / 2 + 1) {
        static char plain[9000];
        struct buffer quoted, lines;
        struct quoted q;
        struct base64_lines b;
        struct decode d;
        for (size_t i = 0; i < size; i++)
            plain[i] = (char)((seed = seed * 1103515245 + 12345) >> 16);
        buffer_init(&quoted, KIT_SIZE_MAX);
        buffer_init(&lines, KIT_SIZE_MAX);
        quoted_start(&q, kit_write, &quoted);
        quoted_add(&q, text_of(plain, size));
        quoted_end(&q);
        base64_lines_start(&b, kit_write, &lines);
        base64_lines_add(&b, text_of(plain, size));
        base64_lines_end(&b);
        struct buffer back = decode(ENCODING_QUOTED, buffer_text(&quoted), 100, &d);
        ok(text_equal(buffer_text(&back), text_of(plain, size)) && d.problems == 0);
        buffer_free(&back);
        back = decode(ENCODING_BASE64, buffer_text(&lines), 100, &d);
        ok(text_equal(buffer_text(&back), text_of(plain, size)) && d.problems == 0);
        buffer_free(&back);
        buffer_free(&quoted);
        buffer_free(&lines);
    }
}

/* Only counted. */
static void
test_no_write(void)
{
    struct decode d;
    decode_start(&d, ENCODING_BASE64, NULL, NULL);
    for (int i = 0; i < 10000; i++)
        decode_add(&d, TEXT("YWJj\n"));
    decode_end(&d);
    is_number(d.size, 30000, "size");
    decode_start(&d, ENCODING_8BIT, NULL, NULL);
    decode_add(&d, TEXT("abc"));
    decode_end(&d);
    is_number(d.size, 3, "size");
}

int
main(void)
{
    test_samples();
    test_blanks();
    test_back();
    test_no_write();
    ok(text_hex_digit('0') == 0 && text_hex_digit('F') == 15 && text_hex_digit('a') == 10);
    ok(text_hex_digit('g') == -1 && text_hex_digit('\0') == -1 && text_hex_digit('/') == -1);
    for (unsigned i = 0; i < DECODE_PROBLEMS; i++)
        ok(strlen(decode_problem_text((enum decode_problem)i)) > 0);
    return done();
}
