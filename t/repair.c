/* smtp/repair: bare LF becomes CRLF, whatever the cut; and what the machine makes of it. */
#include "smtp/repair.h"

#include "smtp/dot.h"
#include "t/tap.h"

static struct text
repaired(struct buffer *out, struct text bytes, size_t piece)
{
    struct repair r = {.after_cr = false};
    buffer_clear(out);
    for (; bytes.length > 0; bytes = text_after(bytes, piece))
        repair_lines(&r, text_before(bytes, piece), out);
    return buffer_text(out);
}

static const struct {
    struct text in, out;
} cases[] = {
    {TEXT(""),                 TEXT("")                  },
    {TEXT("a\r\n"),            TEXT("a\r\n")             },
    {TEXT("a\n"),              TEXT("a\r\n")             },
    {TEXT("\n"),               TEXT("\r\n")              },
    {TEXT("\n\n"),             TEXT("\r\n\r\n")          },
    {TEXT("\r\n\n"),           TEXT("\r\n\r\n")          },
    {TEXT("\r\r\n"),           TEXT("\r\r\n")            },
    {TEXT("a\rb\n"),           TEXT("a\rb\r\n")          },
    {TEXT("a\n.\nb\n"),        TEXT("a\r\n.\r\nb\r\n")   },
    {TEXT("a\r\n.\nb\r\n"),    TEXT("a\r\n.\r\nb\r\n")   },
    {TEXT("a\n\rb"),           TEXT("a\r\n\rb")          },
    {TEXT("a\0\nb\xff\n\r\n"), TEXT("a\0\r\nb\xff\r\n\r\n")},
    {TEXT("no end"),           TEXT("no end")            },
};

/* In the content of DATA: the number of bytes behind the lone dot, SIZE_MAX when it is
 * refused, SIZE_MAX - 1 when there is none. */
static size_t
behind(struct buffer *out, struct text bytes)
{
    struct dot_decoder d;
    struct text rest = repaired(out, bytes, 3), content;
    dot_decode_start(&d);
    while (rest.length > 0)
        switch (dot_decode(&d, &rest, &content)) {
        case PROGRESS_DONE:
            return rest.length;
        case PROGRESS_BAD:
            return SIZE_MAX;
        case PROGRESS_MORE:
            if (text_find(content, '\n') != TEXT_NONE &&
                text_find(content, '\r') == TEXT_NONE)
                return 0; /* a bare LF got through: never */
            break;
        }
    return SIZE_MAX - 1;
}

int
main(void)
{
    struct buffer out;
    buffer_init(&out, 4096);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t piece = 1; piece < 8; piece++)
            is_text(repaired(&out, cases[i].in, piece), cases[i].out, "repaired");
    is_number(behind(&out, TEXT("x\n.\nQUIT\n")), 6, "LF . LF ends a message");
    is_number(behind(&out, TEXT("x\n.\r\nQUIT\n")), 6, "LF . CRLF, too");
    is_number(behind(&out, TEXT("x\r\n.\nQUIT\n")), 6, "CRLF . LF, too");
    is_number(behind(&out, TEXT("x\n..\ny\n.\n")), 0, "stuffing is as ever");
    is_number(behind(&out, TEXT("x\r.\r\n")), SIZE_MAX, "a bare CR is refused");
    is_number(behind(&out, TEXT("x\n.\r\r\n")), SIZE_MAX, "here, too");
    is_number(behind(&out, TEXT("x\0\n.\n")), SIZE_MAX, "NUL is refused");
    is_number(behind(&out, TEXT("x\n.x\n")), SIZE_MAX - 1, "no end");
    buffer_free(&out);
    return done();
}
