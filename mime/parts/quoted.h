/* A streaming encoder of quoted-printable (RFC 2045 §6.7).
 *
 * CRLF stays a line end; a lone CR or LF is data and encoded. Lines have at most 76
 * bytes. For safe transport also these are encoded: white space at the end of a line,
 * a '.' at its start, the second dash of a line that starts with two (so that no line
 * is a delimiter), the space of a line that starts with "From ". The result does not
 * depend on how the input is split. */
#ifndef MIME_PARTS_QUOTED_H
#define MIME_PARTS_QUOTED_H

#include "base/text.h"

enum { QUOTED_LINE_MAX = 76, QUOTED_CHUNK = 4096 };

struct quoted {
    void (*write)(void *context, struct text bytes);
    void *context;
    char held; /* a CR, or white space that may end the line; 0 = none */
    size_t column, used, from;
    bool dash; /* the line so far is one dash */
    char chunk[QUOTED_CHUNK];
};

void quoted_start(struct quoted *q, void (*write)(void *context, struct text bytes),
                  void *context);
void quoted_add(struct quoted *q, struct text bytes);
/* Writes the rest; no line end is added. Returns the length of the last line; if not
 * 0, "=" CRLF ends it without adding data. */
size_t quoted_end(struct quoted *q);

/* An upper bound of the encoded size of `bytes` bytes with `lines` line ends; `special`
 * of them must be encoded ('=', and all but 33..126 and white space). */
uint64_t quoted_size_max(uint64_t bytes, uint64_t special, uint64_t lines);

#endif
