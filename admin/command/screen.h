/* A terminal taken for a picture that changes: the alternate screen, keys without Enter,
 * and the terminal as it was at any end but SIGKILL. */
#ifndef ADMIN_COMMAND_SCREEN_H
#define ADMIN_COMMAND_SCREEN_H

#include "base/text.h"

#include <signal.h>
#include <stdbool.h>
#include <termios.h>

enum screen_key {
    SCREEN_NONE, /* the time is over */
    SCREEN_QUIT, /* q, Ctrl-C, or a signal that ends processes */
    SCREEN_RESIZED,
    SCREEN_ORDER, /* s */
    SCREEN_PAUSE, /* p */
    SCREEN_UP,
    SCREEN_DOWN,
    SCREEN_PAGE_UP,
    SCREEN_PAGE_DOWN
};

enum { SCREEN_KEYS_MAX = 64 }; /* bytes typed ahead; the rest waits in the terminal */

/* Plain data. */
struct screen {
    struct termios before;
    sigset_t mask;
    int signals; /* a signalfd */
    char typed[SCREEN_KEYS_MAX];
    size_t count;
};

/* False: standard input or output is no terminal; nothing was changed. */
bool screen_begin(struct screen *s) __attribute__((warn_unused_result));
void screen_end(struct screen *s);
/* Lines on the screen now, at least 3. */
int screen_rows(void);
/* The first rows lines of the text; longer lines are cut at the edge. */
void screen_show(struct text lines, int rows);
/* Waits for a key or a signal. */
enum screen_key screen_wait(struct screen *s, int timeout_ms);
/* The key at the beginning of typed, and its bytes in used; SCREEN_NONE: not a key that
 * has a meaning. typed is not empty. */
enum screen_key screen_key_of(struct text typed, size_t *used);

#endif
