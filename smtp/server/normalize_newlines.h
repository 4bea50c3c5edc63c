/* The rules by which bytes that are no line end of mail are repaired. In all other cases
 * bare LF, bare CR and NUL are refused by the next layer (smtp/line.h, smtp/dot.h).
 *
 * 1. Content of a client that may relay by address or has logged in, and of old devices:
 *    a bare LF and a bare CR become CRLF, CRs before CRLF are dropped, and so is NUL. Only
 *    the five bytes CRLF . CRLF, with nothing repaired in or before them, end the content
 *    (Postfix: smtpd_forbid_bare_newline = normalize): all other dots alone in their line
 *    are a line with a dot. The size of a chunk (BDAT) counts the bytes as received.
 * 2. sendmail -bs: if the first line ends with LF, LF ends every line and LF . LF the
 *    content, as programs write to a pipe; CRs before LF are dropped. Otherwise rule 1.
 * 3. profile=legacy: LF ends lines and content like CRLF, for old devices, and so does
 *    CR CR LF, which programs in text mode make.
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
    NEWLINES_LF     /* a bare LF becomes CRLF; of several CRs one stays */
};
struct newlines_stream {
    enum newlines rule; /* set before the first bytes; the rest zero */
    bool after_cr;      /* NEWLINES_LF: it is held back */
};
/* Adds bytes to out, which must have space for twice as many. The result does not depend
 * on the boundaries of the reads. */
void normalize_stream(struct newlines_stream *n, struct text bytes, struct buffer *out);

/* --- Content: rule 1 -------------------------------------------------------------- */

struct newlines_content {
    bool repairs;         /* false: nothing is changed */
    bool had_cr, had_nul; /* was repaired: bare CR, NUL */
    bool held, several;   /* a CR is held back; it stands for several */
    bool tainted;         /* something was repaired at the last line end, or since */
    unsigned char line;   /* its state, private to normalize_newlines.c */
    size_t clean;         /* bytes of the input known to need no repair */
    struct text more;     /* output that the decoder has not taken yet */
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
/* At the end of the last chunk: the line end that a CR held back is; or empty. */
struct text normalize_chunk_end(struct newlines_content *n);

#endif
