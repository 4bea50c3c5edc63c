/* Bytes in the charsets of mail to UTF-8.
 *
 * UTF-8 and US-ASCII are read here, all others by the C library's iconv(3): where that
 * does not know a name (a static binary without its tables), the charset is unknown.
 * What comes out is well-formed UTF-8, whatever goes in: what is no character of the
 * charset becomes U+FFFD. */
#ifndef MIME_CHARSET_H
#define MIME_CHARSET_H

#include "base/buffer.h"

enum { CHARSET_NAME_MAX = 60 };

struct charset;

/* name as in a message, in any case. NULL: unknown. */
struct charset *charset_open(struct text name);
void charset_close(struct charset **c); /* may be NULL */
bool charset_is(const struct charset *c, struct text name);

/* Adds bytes, as UTF-8; the first part of a character waits for the rest of it. False
 * at out's limit: then only charset_close() helps. */
bool charset_add(struct charset *c, struct text bytes, struct buffer *out)
    __attribute__((warn_unused_result));

/* What comes next was encoded apart from what came: shifts start anew, unless a
 * character was cut in two, which RFC 2047 §5 forbids and some do. True in *is_cut. */
bool charset_next(struct charset *c, struct buffer *out, bool *is_cut)
    __attribute__((warn_unused_result));

/* Adds what is left; the charset can be used anew then. *is_bad: since it was opened or
 * ended, some bytes were no characters. */
bool charset_end(struct charset *c, struct buffer *out, bool *is_bad)
    __attribute__((warn_unused_result));

#endif
