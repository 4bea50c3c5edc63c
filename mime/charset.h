/* Converts the charsets of mail to UTF-8.
 *
 * UTF-8 and US-ASCII are converted here, all others by the C library's iconv(3). A
 * charset that iconv does not have (as in a static binary without its tables) is
 * unknown. The output is always well-formed UTF-8: bytes that are not a character of
 * the charset become U+FFFD. */
#ifndef MIME_CHARSET_H
#define MIME_CHARSET_H

#include "base/buffer.h"

enum { CHARSET_NAME_MAX = 60 };

struct charset;

/* name as in a message, in any case. NULL: unknown. */
struct charset *charset_open(struct text name);
void charset_close(struct charset **c); /* may be NULL */
bool charset_is(const struct charset *c, struct text name);

/* Adds bytes, as UTF-8; an incomplete character waits for its other bytes. False at
 * out's limit: then only charset_close() may follow. */
bool charset_add(struct charset *c, struct text bytes, struct buffer *out)
    __attribute__((warn_unused_result));

/* Starts the next encoded-word: the shift state is reset, unless a character was split
 * between two words (*is_cut), which RFC 2047 §5 forbids but some senders do. */
bool charset_next(struct charset *c, struct buffer *out, bool *is_cut)
    __attribute__((warn_unused_result));

/* Adds the rest; c may then be used again. *is_bad: some bytes since the opening or
 * the last end were not characters. */
bool charset_end(struct charset *c, struct buffer *out, bool *is_bad)
    __attribute__((warn_unused_result));

#endif
