/* The paragraphs of petrel.conf(5), in the program: `petrel help SETTING`.
 *
 * man/help_text.pl makes them: 256 pairs of bytes, of which "\0\0" is none, and then a
 * text in which a byte with a pair stands for it. Each paragraph begins with \1, the key
 * and LF. */
#ifndef ADMIN_COMMAND_HELP_TEXT_H
#define ADMIN_COMMAND_HELP_TEXT_H

#include "base/buffer.h"

/* The paragraph of a setting, added to out. False: there is none. */
bool help_text_find(struct text key, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
