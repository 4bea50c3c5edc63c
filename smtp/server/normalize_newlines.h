/* Newlines that are no CRLF: the three rules by which a bare LF is one, all of them
 * here. Everybody else, and every other command, bare CR and NUL, is refused behind
 * this (smtp/line.h, smtp/dot.h), which is as strict for all.
 *
 * 1. Content of a client that may relay by address, or that has logged in: a bare LF
 *    becomes CRLF. Only CRLF . CRLF ends it (Postfix: smtpd_forbid_bare_newline =
 *    normalize): LF . LF, LF . CRLF and CRLF . LF are a line with a dot. A chunk (BDAT)
 *    has as many bytes as it had before.
 * 2. sendmail -bs: where the first line ends with LF, LF ends every line, and LF . LF
 *    the content, as a program that writes to a pipe means it. Else rule 1.
 * 3. profile=legacy: LF ends lines and content like CRLF, for old devices.
 *
 * By 2 and 3 a client can say the same thing in two ways, which is what SMTP smuggling
 * needs in front of us: they are for who speaks for itself alone. */
#ifndef SMTP_SERVER_NORMALIZE_NEWLINES_H
#define SMTP_SERVER_NORMALIZE_NEWLINES_H

#include "base/buffer.h"
#include "smtp/dot.h"

/* --- All that a client says: rules 2 and 3 ------------------------------------- */

enum newlines {
    NEWLINES_CRLF,  /* nothing is changed */
    NEWLINES_FIRST, /* the first line decides: CRLF or LF from then on */
    NEWLINES_LF     /* a bare LF becomes CRLF */
};
struct newlines_stream {
    enum newlines rule; /* before the first bytes; the rest zero */
    bool after_cr;
};
/* Adds bytes to out, which must have space for twice as many. The result does not depend
 * on how the stream was cut. */
void normalize_stream(struct newlines_stream *n, struct text bytes, struct buffer *out);

/* --- Content: rule 1 -------------------------------------------------------------- */

struct newlines_content {
    bool repairs;            /* false: nothing is changed */
    bool after_cr, after_lf; /* the last byte was CR, a bare LF */
    bool held;               /* a dot behind a bare LF */
    unsigned char line;      /* what there is of it: normalize_newlines.c's */
    size_t clean;            /* bytes of the input in which there is no bare LF */
    struct text more;        /* said, not yet taken by the decoder */
};
void normalize_content_start(struct newlines_content *n, bool repairs);

/* dot_decode() of what DATA brings. */
enum progress normalize_data(struct newlines_content *n, struct dot_decoder *d,
                             struct text *input, struct text *content)
    __attribute__((warn_unused_result));
/* There is content without more input: call normalize_data() again. */
bool normalize_has_more(const struct newlines_content *n);

/* dot_check() of the next slice of a chunk, which is taken off *chunk. */
bool normalize_chunk(struct newlines_content *n, struct dot_checker *c,
                     struct text *chunk, struct text *content)
    __attribute__((warn_unused_result));

#endif
