/* The lone dot: how the content of DATA is framed (RFC 5321 §4.5.2), strictly. */
#ifndef SMTP_DOT_H
#define SMTP_DOT_H

#include "base/buffer.h"

/* --- Receiving: states on bytes, no copy -------------------------------------- */

struct dot_decoder {
    unsigned char state;
};
void dot_decode_start(struct dot_decoder *d);

/* Takes the next slice off *input; *content (a part of the input, may be empty) is its
 * content with the stuffing removed and CRLF line ends. MORE: call again while *input is
 * not empty, then with the next bytes. DONE: the lone dot; *input begins behind its
 * CRLF. BAD: a bare CR, a bare LF or a NUL. Content and result do not depend on the
 * boundaries of the slices. */
enum progress dot_decode(struct dot_decoder *d, struct text *input,
                         struct text *content) __attribute__((warn_unused_result));

/* Checks content in chunks (BDAT), which has no dot-stuffing. False: a bare CR, a bare LF
 * or a NUL. */
struct dot_checker {
    bool after_cr;
};
bool dot_check(struct dot_checker *c, struct text chunk)
    __attribute__((warn_unused_result));
/* False: the last byte was a CR. */
bool dot_check_end(const struct dot_checker *c) __attribute__((warn_unused_result));

/* --- Sending ------------------------------------------------------------------ */

struct dot_encoder {
    bool in_line, after_cr;
};
void dot_encode_start(struct dot_encoder *e);
/* Appends content with dot-stuffing. The output has CRLF line ends only: a bare CR and a
 * bare LF become CRLF, NUL is dropped (only foreign injectors write them). out grows by
 * at most twice the content. False: out is at its limit and holds incomplete content. */
bool dot_encode(struct dot_encoder *e, struct text content, struct buffer *out)
    __attribute__((warn_unused_result));
/* Ends the last line if it is open and appends the lone dot. */
bool dot_encode_end(struct dot_encoder *e, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
