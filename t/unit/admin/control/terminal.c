/* The output of `queue cat`: raw to a pipe, harmless on a terminal, for any cut. */
#include "admin/control/terminal.h"

#include "base/memory.h"
#include "t/support/tap.h"

/* In pieces of so many bytes. The caller frees. */
static char *
shown(bool escapes, struct text in, size_t piece, size_t *length)
{
    struct terminal t;
    char *out = NULL;
    FILE *file = open_memstream(&out, length);
    terminal_start(&t, file, escapes);
    for (; in.length > 0; in = text_after(in, piece < in.length ? piece : in.length))
        terminal_write(&t, text_before(in, piece));
    terminal_end(&t);
    fclose(file);
    return out;
}

static void
is_shown(bool escapes, struct text in, struct text want)
{
    for (size_t piece = 1; piece <= in.length; piece++) {
        size_t length;
        char *out = shown(escapes, in, piece, &length);
        is_text(text_of(out, length), want, "shown");
        free(out);
    }
}

int
main(void)
{
    static const struct text hostile =
        TEXT("Subject: \x1b]0;rm "
             "-rf\x07\r\n\tGr\xc3\xbc\xc3\x9f\x65\r\n\r\n\x9b\x33m\0\x7f\n"
             "\xe2\x80\xae"
             "end\rof it");
    is_shown(false, hostile, hostile);
    is_shown(true, hostile,
             TEXT("Subject: \\x1b]0;rm -rf\\x07\n\tGr\xc3\xbc\xc3\x9f\x65\n\n"
                  "\\x9b3m\\x00\\x7f\n\\xe2\\x80\\xae"
                  "end\\x0dof it"));
    is_shown(true, TEXT("\n\n"), TEXT("\n\n"));
    size_t length, size = 100000;
    char *lines = memory_new(size);
    memset(lines, '\x1b', size);
    char *out = shown(true, text_of(lines, size), 7000, &length);
    is_number(length, 4 * size, "a line without end is no loss");
    free(out);
    free(lines);
    return done();
}
