/* A picture that is drawn again and again on a terminal: what is printed meanwhile. */
#ifndef ADMIN_CONTROL_SCREEN_H
#define ADMIN_CONTROL_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

enum { SCREEN_STREAMS = 2 };

/* Plain data. */
struct screen {
    FILE *text;
    int streams[SCREEN_STREAMS]; /* standard output and standard error, as they were */
};

/* Until screen_end(), what goes to standard output, and to a standard error that is the
 * terminal, is collected. False: standard output is no terminal, or there is no space; nothing
 * is collected. */
bool screen_begin(struct screen *s) __attribute__((warn_unused_result));
/* Draws the first lines that fit over the picture before. */
void screen_end(struct screen *s);

#endif
