/* Writes the text of reports: peers' bytes escaped, lines folded and never too long. */
#ifndef MIME_EMITTER_H
#define MIME_EMITTER_H

#include "base/text.h"

enum {
    EMITTER_FOLD = 76,      /* lines are folded at the last space before this column */
    EMITTER_WORD_MAX = 900, /* longer words are broken: RFC 5322 allows 998 bytes */
    EMITTER_CHUNK = 4096
};

struct emitter {
    void (*write)(void *context, struct text bytes);
    void *context;
    bool utf8; /* well-formed UTF-8 may stand as it is; otherwise it is escaped too */
    size_t used, column;
    char chunk[EMITTER_CHUNK];
};

void emitter_start(struct emitter *e, bool utf8,
                   void (*write)(void *context, struct text bytes), void *context);
/* Passes on what is left. */
void emitter_end(struct emitter *e);

/* Our own words, as they are. */
void emitter_put(struct emitter *e, struct text own);
void emitter_say(struct emitter *e, const char *own);
/* A peer's address: escaped, neither folded nor its spaces touched; cut at
 * EMITTER_WORD_MAX. */
void emitter_put_address(struct emitter *e, struct text peer);
/* A peer's or our sentence: escaped, runs of spaces become one, folded; each new line
 * begins with indent, which for a header field must begin with a space. */
void emitter_put_words(struct emitter *e, struct text peer, const char *indent);
/* "name: words" CRLF; nothing when there are no words. */
void emitter_field(struct emitter *e, const char *name, const char *prefix,
                   struct text peer);

#endif
