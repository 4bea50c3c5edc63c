/* The three rules by which a bare LF is accepted as a line end. In all other cases bare
 * LF, bare CR and NUL are refused by the next layer (smtp/line.h, smtp/dot.h).
 *
 * 1. Content of a client that may relay by address or has logged in: a bare LF becomes
 *    CRLF. Only CRLF . CRLF ends the content (Postfix: smtpd_forbid_bare_newline =
 *    normalize): LF . LF, LF . CRLF and CRLF . LF are a line with a dot. The size of a
 *    chunk (BDAT) counts the bytes as received.
 * 2. sendmail -bs: if the first line ends with LF, LF ends every line and LF . LF the
 *    content, as programs write to a pipe. Otherwise rule 1.
 * 3. profile=legacy: LF ends lines and content like CRLF, for old devices.
 *
 * Rules 2 and 3 accept two encodings of one command, which SMTP smuggling through a
 * relay in front of us would use: they are only for clients that send their own mail. */
#ifndef SMTP_SERVER_NORMALIZE_NEWLINES_H
#define SMTP_SERVER_NORMALIZE_NEWLINES_H

#include "base/buffer.h"
#include "smtp/dot.h"

/* --- The whole stream: rules 2 and 3 -------------------------------------------- */

enum newlines {
    NEWLINES_CRLF,  /* nothing is changed */
    NEWLINES_FIRST, /* the first line decides: CRLF or LF from then on */
    NEWLINES_LF     /* a bare LF becomes CRLF */
};
struct newlines_stream {
    enum newlines rule; /* set before the first bytes; the rest zero */
    bool after_cr;
};
/* Adds bytes to out, which must have space for twice as many. The result does not depend
 * on the boundaries of the reads. */
void normalize_stream(struct newlines_stream *n, struct text bytes, struct buffer *out);

/* --- Content: rule 1 -------------------------------------------------------------- */

struct newlines_content {
    bool repairs;            /* false: nothing is changed */
    bool after_cr, after_lf; /* the last byte was CR, a bare LF */
    bool held;               /* a dot behind a bare LF */
    unsigned char line;      /* its state, private to normalize_newlines.c */
    size_t clean;            /* bytes of the input known to have no bare LF */
    struct text more;        /* output that the decoder has not taken yet */
};
void normalize_content_start(struct newlines_content *n, bool repairs);

/* Normalizes content of DATA and calls dot_decode(). */
enum progress normalize_data(struct newlines_content *n, struct dot_decoder *d,
                             struct text *input, struct text *content)
    __attribute__((warn_unused_result));
/* True: call normalize_data() again, even without more input. */
bool normalize_has_more(const struct newlines_content *n);

/* Normalizes the next slice, taken off *chunk, and calls dot_check(). */
bool normalize_chunk(struct newlines_content *n, struct dot_checker *c,
                     struct text *chunk, struct text *content)
    __attribute__((warn_unused_result));

#endif
