/* Quoted-printable and base64 in lines: known answers, ways back, any cuts, sizes. */
#include "mime/parts/encode.h"

#include "mime/parts/mime_counts.h"

#include "t/support/tap.h"

#include "t/support/downgrade_kit.h"

#define TEN      "0123456789"
#define FIFTY    TEN TEN TEN TEN TEN
#define SEVENTY  FIFTY TEN TEN

/* clang-format off */
static const struct sample {
    const char *plain, *coded;
} samples[] = {
    {"", ""},
    {"plain text\r\n", "plain text\r\n"},
    {"a=b", "a=3Db"},
    {"gr\xc3\xbcn", "gr=C3=BCn"},
    {"\x01\x7f\x80\xff~!", "=01=7F=80=FF~!"},
    {"a \r\nb\t\r\n c\td", "a=20\r\nb=09\r\n c\td"},
    {" \r\n", "=20\r\n"},
    {"a  \r\n", "a =20\r\n"},
    {"end ", "end=20"},
    {"end\t", "end=09"},
    {"a\rb\nc\r\r\n\n", "a=0Db=0Ac=0D\r\n=0A"},
    {"a \rb", "a=20=0Db"},
    {"cr\r", "cr=0D"},
    {".\r\n..\r\n.a\r\na.b", "=2E\r\n=2E.\r\n=2Ea\r\na.b"},
    {"From x\r\nFrom: y\r\n From z\r\nFromage\r\nFro m\r\nFFrom a", "From=20x\r\nFrom: y\r\n From z\r\nFromage\r\nFro m\r\nFFrom a"},
    {"-- \r\n--b\r\n- -\r\na--\r\n---", "-=2D=20\r\n-=2Db\r\n- -\r\na--\r\n-=2D-"},
    {SEVENTY "12345", SEVENTY "12345"},
    {SEVENTY "123456", SEVENTY "12345=\r\n6"},
    {SEVENTY "123\xff" "4", SEVENTY "123=\r\n=FF4"},
    {SEVENTY "12\xff" "4", SEVENTY "12=FF=\r\n4"},
    {SEVENTY "12345.", SEVENTY "12345=\r\n=2E"},
    {SEVENTY "12345--b", SEVENTY "12345=\r\n-=2Db"},
    {SEVENTY "12345From me", SEVENTY "12345=\r\nFrom=20me"},
    {SEVENTY "12345 \r\n", SEVENTY "12345=\r\n=20\r\n"},
    {SEVENTY "1234 5", SEVENTY "1234 =\r\n5"},
};
/* clang-format on */

static struct buffer
quote(struct text plain, size_t piece, bool *ended)
{
    struct buffer out;
    struct encode_quoted q;
    buffer_init(&out, KIT_SIZE_MAX);
    encode_quoted_start(&q, kit_write, &out);
    for (; plain.length > 0; plain = text_after(plain, piece))
        encode_quoted_add(&q, text_before(plain, piece));
    *ended = encode_quoted_end(&q) == 0;
    return out;
}

/* Strictly decoded it is the same; it keeps to its size; cuts change nothing. */
static bool
is_sound(struct text plain, struct text coded, size_t step)
{
    struct mime_counts t = {0};
    struct buffer back;
    bool good, ended;
    buffer_init(&back, KIT_SIZE_MAX);
    kit_decode_quoted(coded, &back);
    good = text_equal(buffer_text(&back), plain);
    mime_counts_add(&t, plain);
    mime_counts_end(&t);
    good = good && coded.length <= encode_quoted_size_max(t.bytes, t.special, t.lines);
    for (size_t piece = 1; piece < plain.length; piece += step) {
        struct buffer cut = quote(plain, piece, &ended);
        good = good && text_equal(buffer_text(&cut), coded);
        buffer_free(&cut);
    }
    buffer_free(&back);
    return good;
}

TEST(quoted)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct text plain = text_from(samples[i].plain), coded = text_from(samples[i].coded);
        bool ended, should = coded.length == 0 || coded.at[coded.length - 1] == '\n';
        struct buffer out = quote(plain, SIZE_MAX, &ended);
        is_text(buffer_text(&out), coded, "encoded as it should be");
        ok_named(is_sound(plain, buffer_text(&out), 1), "and back, however it is cut");
        ok_named(ended == should, "whether a line is left open");
        buffer_free(&out);
    }
}

/* All pairs of bytes that matter, and long runs, at all columns. */
TEST(columns)
{
    static const char bytes[] = ".- =F\r\n\t\xffx";
    char plain[300];
    size_t wrong = 0;
    for (size_t column = 60; column < 80; column++)
        for (size_t a = 0; a < sizeof(bytes); a++)
            for (size_t b = 0; b < sizeof(bytes); b++) {
                bool ended;
                memset(plain, 'x', sizeof(plain));
                plain[column] = bytes[a];
                plain[column + 1] = bytes[b];
                plain[column + 2] = bytes[b];
                memcpy(plain + 150, "From me--\r\n", 11);
                struct buffer out = quote(text_of(plain, 200), SIZE_MAX, &ended);
                wrong += !is_sound(text_of(plain, 200), buffer_text(&out), 50);
                wrong += !kit_is_clean(buffer_text(&out), false);
                buffer_free(&out);
            }
    is_number(wrong, 0, "lines keep to 76 bytes whatever stands at their end");
}

TEST(random)
{
    static const char alphabet[] = "ab  .-=F\r\n\r\n\txyz\xe9\x01From --";
    char plain[3000];
    uint32_t random = 1;
    size_t wrong = 0;
    for (int round = 0; round < 50; round++) {
        bool ended;
        for (size_t i = 0; i < sizeof(plain); i++) {
            random = random * 1664525 + 1013904223;
            plain[i] = alphabet[(random >> 16) % (sizeof(alphabet) - 1)];
        }
        struct buffer out = quote(text_of(plain, sizeof(plain)), SIZE_MAX, &ended);
        wrong += !is_sound(text_of(plain, sizeof(plain)), buffer_text(&out), 701);
        buffer_free(&out);
    }
    is_number(wrong, 0, "random text comes back");
}

/* Every byte as often as can be, where it costs most. */
TEST(sizes)
{
    static const char *const units[] = {"\xff", "=", "\r\n", " \r\n", ".\r\n", "\r", "a", " ",
                                        "--\r\n", "\t", "From \r\n", ".", "-", "a\xff"};
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        for (size_t count = 0; count < 400; count += 7) {
            struct buffer plain;
            bool ended;
            buffer_init(&plain, KIT_SIZE_MAX);
            for (size_t n = 0; n < count; n++)
                kit_put(&plain, text_from(units[i]));
            struct buffer out = quote(buffer_text(&plain), SIZE_MAX, &ended);
            wrong += !is_sound(buffer_text(&plain), buffer_text(&out), 1000);
            buffer_free(&plain);
            buffer_free(&out);
        }
    is_number(wrong, 0, "the size is never more than was said");
}

static struct buffer
base64(struct text plain, size_t piece)
{
    struct buffer out;
    struct encode_base64 b;
    buffer_init(&out, KIT_SIZE_MAX);
    encode_base64_start(&b, kit_write, &out);
    for (; plain.length > 0; plain = text_after(plain, piece))
        encode_base64_add(&b, text_before(plain, piece));
    encode_base64_end(&b);
    return out;
}

TEST(base64)
{
    char plain[400];
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof(plain); i++)
        plain[i] = (char)(i * 37);
    for (size_t length = 0; length <= sizeof(plain); length++) {
        struct buffer back, whole = base64(text_of(plain, length), SIZE_MAX);
        buffer_init(&back, KIT_SIZE_MAX);
        kit_decode_base64(buffer_text(&whole), &back);
        wrong += !text_equal(buffer_text(&back), text_of(plain, length));
        wrong += whole.length != encode_base64_size(length);
        for (size_t at = 76; at < whole.length; at += 78)
            wrong += memcmp(whole.at + at, "\r\n", 2) != 0;
        for (size_t piece = 1; piece < 120; piece += 7) {
            struct buffer cut = base64(text_of(plain, length), piece);
            wrong += !text_equal(buffer_text(&cut), buffer_text(&whole));
            buffer_free(&cut);
        }
        buffer_free(&back);
        buffer_free(&whole);
    }
    is_number(wrong, 0, "base64 comes back, in lines of 76, of the size that was said");
    struct buffer large = base64(text_of(plain, 57), SIZE_MAX);
    is_number(large.length, 76, "no line end behind the last line");
    buffer_free(&large);
}

/* Each row: counted as a whole and in every cut. */
TEST(tally)
{
    static const struct {
        const char *text;
        struct mime_counts want;
    } rows[] = {
        {"", {0}},
        {"ab\r\ncde", {.bytes = 7, .lines = 1, .special = 2, .longest = 3}},
        {"a\nb\rc\r\r\n", {.bytes = 8, .lines = 2, .special = 5, .longest = 4, .lone_cr = 2, .lone_lf = 1}},
        {"\r", {.bytes = 1, .special = 1, .lone_cr = 1, .longest = 1}},
        {"\n\n", {.bytes = 2, .special = 2, .lines = 2, .lone_lf = 2}},
        {"\xff=\x7f\x80 \t", {.bytes = 6, .high = 2, .special = 5, .longest = 6}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct mime_counts *w = &rows[i].want;
        struct text text = text_from(rows[i].text);
        size_t wrong = 0;
        for (size_t piece = 1; piece <= text.length + 1; piece++) {
            struct mime_counts t = {0};
            for (struct text rest = text; rest.length > 0; rest = text_after(rest, piece))
                mime_counts_add(&t, text_before(rest, piece));
            mime_counts_end(&t);
            wrong += t.bytes != w->bytes || t.high != w->high || t.nul != w->nul ||
                     t.lone_cr != w->lone_cr || t.lone_lf != w->lone_lf ||
                     t.lines != w->lines || t.special != w->special ||
                     t.longest != w->longest;
        }
        is_number(wrong, 0, "counted in any cut");
    }
}

/* Against a count byte by byte, at lengths around those of the fast path. */
TEST(tally_large)
{
    static char text[20000];
    size_t wrong = 0, high = 0, nul = 0;
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = (char)(i % 251 * 7);
        struct mime_counts t = {0};
        high += text[i] < 0;
        nul += text[i] == '\0';
        if (i % 13 != 0)
            continue;
        mime_counts_add(&t, text_of(text, i + 1));
        wrong += t.high != high || t.nul != nul || t.bytes != i + 1;
    }
    is_number(wrong, 0, "large texts are counted right");
}
