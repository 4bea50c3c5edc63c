/* Bytes of peers on their way to standard output: as they are to a pipe or a file,
 * escaped to a terminal, where they could move the cursor, change its title or worse.
 */
#ifndef ADMIN_CONTROL_TERMINAL_H
#define ADMIN_CONTROL_TERMINAL_H

#include "base/buffer.h"

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

#endif
