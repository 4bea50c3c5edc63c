/* Escapes line by line, so that no character is cut. */
#include "admin/control/terminal.h"

#include "base/log/log.h"

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
