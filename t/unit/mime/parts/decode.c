/* Base64 and quoted-printable, in any pieces. */
#include "mime/parts/decode.h"

#include "base/buffer.h"
#include "t/support/tap.h"

static void
collect(void *context, struct text bytes)
{
    if (!buffer_add(context, bytes))
        abort();
}

static void
check(enum structure_encoding encoding, const char *in, const char *want)
{
    for (size_t piece = 1; piece < 8; piece += 3) {
        struct decode d;
        struct buffer out;
        struct text t = text_from(in);
        buffer_init(&out, 1 << 16);
        decode_start(&d, encoding, collect, &out);
        for (; t.length > 0; t = text_after(t, piece))
            decode_add(&d, text_before(t, piece));
        decode_end(&d);
        is_text(buffer_text(&out), text_from(want), in);
        buffer_free(&out);
    }
}

TEST(base64)
{
    check(ENCODING_BASE64, "aGVsbG8=", "hello");
    check(ENCODING_BASE64, "aGVs\r\n bG8", "hello");
    check(ENCODING_BASE64, "aGVsbG8=aGVs", "hello");
    check(ENCODING_BASE64, "!!", "");
}

TEST(quoted_printable)
{
    check(ENCODING_QUOTED, "a=3Db=\r\nc", "a=bc");
    check(ENCODING_QUOTED, "a=3db= \nc", "a=bc");
    check(ENCODING_QUOTED, "blanks \t \r\nend  ", "blanks\r\nend  ");
    check(ENCODING_QUOTED, "=Z1 =3", "=Z1 =3");
    check(ENCODING_QUOTED, "=", "=");
}

TEST(others)
{
    check(ENCODING_7BIT, "a=3D", "a=3D");
}
