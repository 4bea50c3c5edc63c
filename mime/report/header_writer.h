/* Writes the text of reports: peers' bytes escaped, lines folded and never too long. */
#ifndef MIME_REPORT_HEADER_WRITER_H
#define MIME_REPORT_HEADER_WRITER_H

#include "base/text.h"

enum {
    HEADER_WRITER_FOLD = 76, /* lines are folded at the last space before this column */
    HEADER_WRITER_WORD_MAX =
        900, /* longer words are broken: RFC 5322 allows 998 bytes */
    HEADER_WRITER_CHUNK = 4096
};

struct header_writer {
    void (*write)(void *context, struct text bytes);
    void *context;
    bool utf8; /* well-formed UTF-8 is kept; otherwise it is escaped, too */
    size_t used, column;
    char chunk[HEADER_WRITER_CHUNK];
};

void header_writer_start(struct header_writer *e, bool utf8,
                         void (*write)(void *context, struct text bytes),
                         void *context);
/* Writes the rest. */
void header_writer_end(struct header_writer *e);

/* Adds our own text unchanged. */
void header_writer_put(struct header_writer *e, struct text own);
void header_writer_say(struct header_writer *e, const char *own);
/* Adds an address from a peer: escaped, neither folded nor its spaces changed; cut at
 * HEADER_WRITER_WORD_MAX. */
void header_writer_put_address(struct header_writer *e, struct text peer);
/* Adds a sentence, ours or a peer's: escaped, runs of spaces become one, folded. Each
 * new line begins with indent, which in a header field must begin with a space. */
void header_writer_put_words(struct header_writer *e, struct text peer,
                             const char *indent);
/* Adds "name: words" CRLF; nothing without words. */
void header_writer_field(struct header_writer *e, const char *name, const char *prefix,
                         struct text peer);

#endif
