/* Bytes of peers on their way to standard output: as they are to a pipe or a file,
 * escaped to a terminal, where they could move the cursor, change its title or worse.
 */
#ifndef ADMIN_VIEW_TERMINAL_H
#define ADMIN_VIEW_TERMINAL_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stdio.h>

/* Plain data: end it with terminal_end(). */
struct terminal {
    FILE *out;
    bool escapes;
    struct buffer line; /* its bytes so far */
};
void terminal_start(struct terminal *t, FILE *out, bool escapes);
/* Lines end with LF or CR LF; a tab passes. */
void terminal_write(struct terminal *t, struct text bytes);
void terminal_end(struct terminal *t);

/* A picture that is drawn again and again on a terminal: what is printed meanwhile. */
enum { SCREEN_STREAMS = 2 };

/* Plain data. */
struct terminal_screen {
    FILE *text;
    int streams[SCREEN_STREAMS]; /* standard output and standard error, as they were */
};

/* Until terminal_end_screen(), what goes to standard output, and to a standard error that is the
 * terminal, is collected. False: standard output is no terminal, or there is no space; nothing
 * is collected. */
bool terminal_begin_screen(struct terminal_screen *s)
    __attribute__((warn_unused_result));
/* Draws the first lines that fit over the picture before. */
void terminal_end_screen(struct terminal_screen *s);

#endif
