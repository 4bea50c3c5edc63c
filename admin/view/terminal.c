/* Escapes line by line, so that no character is cut. */
#include "admin/view/terminal.h"

#include "base/log/log.h"

#include <sys/ioctl.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 16 * 1024 }; /* longer ones in parts */

void
terminal_start(struct terminal *t, FILE *out, bool escapes)
{
    *t = (struct terminal){.out = out, .escapes = escapes};
    buffer_init(&t->line, LINE_MAX_BYTES);
}

static void
print_escaped(struct terminal *t, struct text line)
{
    struct text word;
    struct buffer clean;
    buffer_init(&clean, 4 * LINE_MAX_BYTES);
    for (size_t words = 0; text_cut(&line, '\t', &word); words++) {
        buffer_clear(&clean);
        (void)!log_escape(word, &clean); /* four bytes for each: it fits */
        if (words > 0)
            putc('\t', t->out);
        fwrite(buffer_text(&clean).at, 1, clean.length, t->out);
    }
    buffer_free(&clean);
}

static void
terminal_print_line(struct terminal *t)
{
    struct text line = buffer_text(&t->line);
    if (line.length > 0 && line.at[line.length - 1] == '\r')
        line.length--;
    print_escaped(t, line);
    putc('\n', t->out);
    buffer_clear(&t->line);
}

static void
terminal_add(struct terminal *t, struct text bytes)
{
    while (bytes.length > 0) {
        struct text part = text_before(bytes, LINE_MAX_BYTES - t->line.length);
        (void)!buffer_add(&t->line, part); /* it has that space */
        bytes = text_after(bytes, part.length);
        if (t->line.length < LINE_MAX_BYTES)
            continue;
        print_escaped(t, buffer_text(&t->line));
        buffer_clear(&t->line);
    }
}

void
terminal_write(struct terminal *t, struct text bytes)
{
    if (!t->escapes) {
        fwrite(bytes.at, 1, bytes.length, t->out);
        return;
    }
    for (size_t end; (end = text_find(bytes, '\n')) != TEXT_NONE;) {
        terminal_add(t, text_before(bytes, end));
        terminal_print_line(t);
        bytes = text_after(bytes, end + 1);
    }
    terminal_add(t, bytes);
}

void
terminal_end(struct terminal *t)
{
    print_escaped(t, buffer_text(&t->line));
    buffer_free(&t->line);
}

enum { LINES_AT_LEAST = 3, LINES_UNKNOWN = 24 };

static int
terminal_lines(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0)
        return LINES_UNKNOWN;
    return size.ws_row > LINES_AT_LEAST ? size.ws_row : LINES_AT_LEAST;
}

bool
terminal_begin_screen(struct terminal_screen *s)
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
    for (int lines = terminal_lines() - 1; lines > 0 && (c = getc(text)) != EOF;
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
terminal_end_screen(struct terminal_screen *s)
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
