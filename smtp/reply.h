/* SMTP replies: composed by the server, parsed by the client (RFC 5321 §4.2, RFC 2034).
 *
 * Pure. The length and number of lines and the text kept are limited: a peer cannot make
 * memory grow. */
#ifndef SMTP_REPLY_H
#define SMTP_REPLY_H

#include "base/outcome.h"

#include "base/buffer.h"

/* --- Parsing ------------------------------------------------------------------ */

enum {
    REPLY_LINE_MAX = 4096, /* bytes of a line without its line end; more is BAD */
    REPLY_LINES_MAX = 128, /* more is BAD */
    REPLY_TEXT_MAX = 4096, /* kept; the rest is dropped */
    REPLY_ENHANCED_MAX = 12
};

struct reply {
    int code;                          /* 200..599 */
    char enhanced[REPLY_ENHANCED_MAX]; /* "5.1.1" when its class fits code, or "" */
    char text[REPLY_TEXT_MAX +
              1];     /* lines joined by a space, without their enhanced codes;
                      NUL-terminated, control bytes turned into '?' */
    size_t length;    /* of text */
    bool is_too_long; /* why it was BAD: a limit */
    /* Private to reply.c: */
    unsigned lines;
    uint16_t starts[REPLY_LINES_MAX + 1]; /* of each line in text */
};

/* Call it before the first byte of each reply. */
void reply_start(struct reply *reply);

/* Takes whole lines off *input. DONE: the reply is complete, *input begins behind it.
 * MORE: keep the rest of *input and call again with the same reply when *input has
 * grown. BAD: not an SMTP reply (a line without code, different codes, or beyond a
 * limit): the connection must be closed. A bare LF ends a line, too. */
enum progress reply_parse(struct text *input, struct reply *reply)
    __attribute__((warn_unused_result));

struct text reply_text(const struct reply *reply);

/* The lines one by one: *at starts at 0. False at the end. */
bool reply_next_line(const struct reply *reply, unsigned *at, struct text *line);

/* For an EHLO or LHLO reply: finds keyword (any case) at the start of a line after the
 * first. parameters gets the rest of that line, trimmed; it may be NULL. */
bool reply_keyword(const struct reply *reply, struct text keyword,
                   struct text *parameters);

/* --- Composing ---------------------------------------------------------------- */

/* A fixed reply. */
struct refusal {
    int code;
    const char *enhanced, *text;
};

/* Appends "code enhanced text CRLF". enhanced NULL or "": none (greeting, EHLO, 354).
 * Bytes outside printable ASCII become '?', the line is cut at 510 bytes. out must have
 * space for the line. */
void reply_write(struct buffer *out, int code, const char *enhanced, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));
/* Writes a line with a hyphen after the code: more lines follow. */
void reply_write_more(struct buffer *out, int code, const char *enhanced,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
