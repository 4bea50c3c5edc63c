/* The lone dot: how the content of DATA is framed (RFC 5321 §4.5.2), strictly. */
#ifndef SMTP_DOT_H
#define SMTP_DOT_H

#include "base/buffer.h"

/* --- Receiving: states on bytes, no copy -------------------------------------- */

struct dot_decoder {
    unsigned char state;
};
void dot_decode_start(struct dot_decoder *d);

/* Takes the next slice off *input; *content (part of the input, may be empty) is what
 * it holds of the message, stuffing removed, CRLF line ends. MORE: call again while
 * *input is not empty, then with the next bytes. DONE: the lone dot; *input begins
 * behind its CRLF. BAD: a bare CR, a bare LF or a NUL. Neither content nor answer
 * depend on how the stream was cut. */
enum progress dot_decode(struct dot_decoder *d, struct text *input,
                         struct text *content) __attribute__((warn_unused_result));

/* The same strictness for content that comes in chunks (BDAT): no dots, no end. False:
 * a bare CR, a bare LF or a NUL. */
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
/* Appends content stuffed. What goes out has CRLF line ends only: a bare CR and a bare
 * LF become CRLF, NUL is left out (only foreign injectors can have written those). out
 * grows by at most twice the content; false at its limit, and then what was sent is
 * broken. */
bool dot_encode(struct dot_encoder *e, struct text content, struct buffer *out)
    __attribute__((warn_unused_result));
/* Ends the last line if it is open and appends the lone dot. */
bool dot_encode_end(struct dot_encoder *e, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
