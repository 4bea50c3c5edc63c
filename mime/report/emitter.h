/* Writes the text of reports: peers' bytes escaped, lines folded and never too long. */
#ifndef MIME_REPORT_EMITTER_H
#define MIME_REPORT_EMITTER_H

#include "base/text.h"

enum {
    EMITTER_FOLD = 76,      /* lines are folded at the last space before this column */
    EMITTER_WORD_MAX = 900, /* longer words are broken: RFC 5322 allows 998 bytes */
    EMITTER_CHUNK = 4096
};

struct emitter {
    void (*write)(void *context, struct text bytes);
    void *context;
    bool utf8; /* well-formed UTF-8 is kept; otherwise it is escaped, too */
    size_t used, column;
    char chunk[EMITTER_CHUNK];
};

void emitter_start(struct emitter *e, bool utf8,
                   void (*write)(void *context, struct text bytes), void *context);
/* Writes the rest. */
void emitter_end(struct emitter *e);

/* Adds our own text unchanged. */
void emitter_put(struct emitter *e, struct text own);
void emitter_say(struct emitter *e, const char *own);
/* Adds an address from a peer: escaped, neither folded nor its spaces changed; cut at
 * EMITTER_WORD_MAX. */
void emitter_put_address(struct emitter *e, struct text peer);
/* Adds a sentence, ours or a peer's: escaped, runs of spaces become one, folded. Each
 * new line begins with indent, which in a header field must begin with a space. */
void emitter_put_words(struct emitter *e, struct text peer, const char *indent);
/* Adds "name: words" CRLF; nothing without words. */
void emitter_field(struct emitter *e, const char *name, const char *prefix,
                   struct text peer);

#endif
