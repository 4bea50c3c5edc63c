/* Collects what is printed in a file, and writes what fits. */
#include "admin/control/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

enum { LINES_AT_LEAST = 3, LINES_UNKNOWN = 24 };

static int
screen_lines(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0)
        return LINES_UNKNOWN;
    return size.ws_row > LINES_AT_LEAST ? size.ws_row : LINES_AT_LEAST;
}

bool
screen_begin(struct screen *s)
{
    fflush(stdout);
    if (!isatty(STDOUT_FILENO) || (s->text = tmpfile()) == NULL)
        return false;
    for (int i = 0; i < SCREEN_STREAMS; i++) {
        int stream = STDOUT_FILENO + i;
        s->streams[i] = isatty(stream) ? dup(stream) : -1;
        if (s->streams[i] >= 0)
            (void)!dup2(fileno(s->text), stream);
    }
    return true;
}

/* The terminal cuts what is longer than a line of it, as it does not wrap meanwhile; it wraps
 * again at the end of each, since a signal may be the end. The last line stays free: a line
 * end there would scroll. */
static void
screen_draw(FILE *text)
{
    int c = '\n';
    fputs("\x1b[H", stdout);
    for (int lines = screen_lines() - 1; lines > 0 && (c = getc(text)) != EOF;
         lines--) {
        fputs("\x1b[?7l", stdout);
        for (; c != '\n' && c != EOF; c = getc(text))
            putchar(c);
        fputs("\x1b[K\x1b[?7h\n", stdout);
    }
    fputs("\x1b[J", stdout);
    fflush(stdout);
}

void
screen_end(struct screen *s)
{
    fflush(stdout);
    for (int i = 0; i < SCREEN_STREAMS; i++)
        if (s->streams[i] >= 0) {
            (void)!dup2(s->streams[i], STDOUT_FILENO + i);
            close(s->streams[i]);
        }
    rewind(s->text);
    screen_draw(s->text);
    fclose(s->text);
}
