/* A picture on a terminal (a pair of pseudo-terminals): its first lines, over the one before. */
#include "admin/control/terminal.h"

#include "t/support/tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

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

int
main(void)
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
    return done();
}
