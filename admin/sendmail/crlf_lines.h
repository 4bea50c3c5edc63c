/* Lines as programs write them, made lines of mail: CRLF behind each, nothing odd
 * within.
 *
 * LF and CRLF end lines, with any number of CRs; the last line needs no end; NULs
 * vanish. A CR by itself ends a line of the body (programs print progress bars); in the
 * header it is a space, since one field of a program must not become two. */
#ifndef ADMIN_SENDMAIL_CRLF_LINES_H
#define ADMIN_SENDMAIL_CRLF_LINES_H

#include "base/text.h"

struct crlf_lines {
    void (*put)(void *context, struct text bytes); /* a CRLF always comes by itself */
    void *context;
    bool dot_ends;  /* a line of one dot is the end */
    bool in_header; /* put may change it, for the next lines */
    bool over;      /* nothing more counts; put may set it */
    /* crlf_lines.c's: */
    bool after_cr;
    bool has_byte; /* the current line is not empty */
    bool lone_dot; /* ... and is a dot so far, not yet put */
};

void crlf_lines_start(struct crlf_lines *l, bool dot_ends,
                      void (*put)(void *context, struct text bytes), void *context);
void crlf_lines_add(struct crlf_lines *l, struct text bytes);
/* Completes the last line. */
void crlf_lines_end(struct crlf_lines *l);

#endif
