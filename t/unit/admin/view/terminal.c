/* The output of `queue cat`: raw to a pipe, harmless on a terminal, for any cut. */
#include "admin/view/terminal.h"

#include "base/memory.h"
#include "t/support/tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

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

enum { PICTURE_MAX = 2000 };

/* picture gets what a terminal of so many rows gets of the text. Standard output and
 * error are the terminal until then; TAP waits for that. */
static void
draw(unsigned short rows, const char *text, const char *error, char picture[PICTURE_MAX])
{
    int output = dup(STDOUT_FILENO), errors = dup(STDERR_FILENO);
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        abort();
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    struct winsize size = {.ws_row = rows, .ws_col = 80};
    struct terminal_screen terminal_screen;
    fflush(stdout);
    if (slave < 0 || ioctl(slave, TIOCSWINSZ, &size) != 0 ||
        dup2(slave, STDOUT_FILENO) < 0 || dup2(slave, STDERR_FILENO) < 0)
        abort();
    close(slave);
    bool begun = terminal_begin_screen(&terminal_screen);
    fputs(text, stdout);
    fflush(stdout);
    fputs(error, stderr);
    if (begun)
        terminal_end_screen(&terminal_screen);
    ssize_t got = read(master, picture, PICTURE_MAX - 1);
    picture[got > 0 ? got : 0] = '\0';
    dup2(output, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    close(output);
    close(errors);
    close(master);
    ok(begun);
}

#define LINE(text) "\x1b[?7l" text "\x1b[K\x1b[?7h\r\n"

static void
test_screen(void)
{
    char picture[PICTURE_MAX];
    draw(24, "a\n\nb\n", "", picture);
    is_string(picture, "\x1b[H" LINE("a") LINE("") LINE("b") "\x1b[J", "a picture");
    draw(4, "a\nb\nc\nd\n", "", picture);
    is_string(picture, "\x1b[H" LINE("a") LINE("b") LINE("c") "\x1b[J", "as much as fits");
    draw(1, "a\nb\nc", "", picture);
    is_string(picture, "\x1b[H" LINE("a") LINE("b") "\x1b[J", "two lines at least");
    draw(24, "a\n", "petrel: trouble\n", picture);
    is_string(picture, "\x1b[H" LINE("a") LINE("petrel: trouble") "\x1b[J", "with errors");

    struct terminal_screen terminal_screen;
    int output = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY);
    fflush(stdout);
    dup2(null, STDOUT_FILENO);
    bool begun = terminal_begin_screen(&terminal_screen);
    dup2(output, STDOUT_FILENO);
    ok_named(!begun, "no terminal, no picture");
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
    test_screen();
    return done();
}
