/* Lines: every kind of line end, dots, NULs; the same for any pieces. */
#include "admin/sendmail/crlf_lines.h"

#include "base/buffer.h"
#include "t/support/tap.h"

struct sink {
    struct crlf_lines lines;
    struct buffer out;
    size_t header_lines; /* of the header: so many */
};

static void
put(void *context, struct text bytes)
{
    struct sink *s = context;
    bool whole_end = text_equal(bytes, TEXT("\r\n"));
    if (!buffer_add(&s->out, bytes) || bytes.length == 0 ||
        (!whole_end && text_find(bytes, '\n') != TEXT_NONE) ||
        text_find(bytes, '\0') != TEXT_NONE)
        ok_named(false, "a piece that is not as promised");
    if (whole_end && s->header_lines > 0 && --s->header_lines == 0)
        s->lines.in_header = false;
}

/* In pieces of that size. */
static struct text
run(struct sink *s, struct text in, size_t piece, bool dot_ends, size_t header_lines)
{
    buffer_init(&s->out, 4096);
    s->header_lines = header_lines;
    crlf_lines_start(&s->lines, dot_ends, put, s);
    ok(s->lines.in_header);
    s->lines.in_header = header_lines > 0;
    for (; in.length > 0; in = text_after(in, piece))
        crlf_lines_add(&s->lines, text_before(in, piece));
    crlf_lines_end(&s->lines);
    return buffer_text(&s->out);
}

static void
become(struct text in, bool dot_ends, size_t header_lines, struct text want,
       const char *name)
{
    for (size_t piece = 1; piece <= in.length || piece == 1; piece++) {
        struct sink s;
        is_text(run(&s, in, piece, dot_ends, header_lines), want, name);
        buffer_free(&s.out);
    }
}

TEST(line_ends)
{
    become(TEXT(""), true, 0, TEXT(""), "nothing is no line");
    become(TEXT("\n"), true, 0, TEXT("\r\n"), "an empty line");
    become(TEXT("a\nb\r\nc"), true, 0, TEXT("a\r\nb\r\nc\r\n"), "LF, CRLF, none");
    become(TEXT("a\r\r\nb\r"), true, 0, TEXT("a\r\nb\r\n"), "CRs before LF; one at the end");
    become(TEXT("10%\r20%\r30%\n"), true, 0, TEXT("10%\r\n20%\r\n30%\r\n"), "progress");
    become(TEXT("\n\r\n\n"), true, 0, TEXT("\r\n\r\n\r\n"), "empty lines");
    become(TEXT("a\n\rb"), true, 0, TEXT("a\r\n\r\nb\r\n"), "LF CR is two");
    become(TEXT("\r"), true, 0, TEXT("\r\n"), "a CR alone");
    become(TEXT("a\0b\r\0\nc\0"), true, 0, TEXT("ab\r\nc\r\n"), "NULs vanish");
    become(TEXT("\xff\x80\x01\t\n"), true, 0, TEXT("\xff\x80\x01\t\r\n"), "others stay");
}

TEST(header)
{
    become(TEXT("Subject: a\rBcc: b\nTo: c\n\nx\ry\n"), true, 3,
           TEXT("Subject: a Bcc: b\r\nTo: c\r\n\r\nx\r\ny\r\n"),
           "a CR makes no field, and a line in the body");
    become(TEXT("\rA: b\n"), true, 1, TEXT(" A: b\r\n"), "nor at the start");
    become(TEXT("A: b\r"), true, 9, TEXT("A: b\r\n"), "nor at the end");
    become(TEXT(".\rb\n"), true, 9, TEXT(". b\r\n"), "a dot before it");
}

TEST(dots)
{
    become(TEXT("a\n.\nb\n"), true, 0, TEXT("a\r\n"), "a dot ends");
    become(TEXT("a\n.\r\nb\n"), true, 0, TEXT("a\r\n"), "with CRLF");
    become(TEXT("."), true, 0, TEXT(""), "without line end");
    become(TEXT("a\n."), false, 0, TEXT("a\r\n.\r\n"), "but not with -i");
    become(TEXT("a\n.\nb\n"), false, 0, TEXT("a\r\n.\r\nb\r\n"), "not at all");
    become(TEXT("..\n.a\na.\n...\n"), true, 0, TEXT("..\r\n.a\r\na.\r\n...\r\n"),
           "other dots stay");
    become(TEXT(".\rb\n.\n"), true, 0, TEXT(".\r\nb\r\n"), "a CR does not end the mail");
    become(TEXT(".\0\nb"), true, 0, TEXT(""), "a NUL does not hide the dot");
}
