/* Streaming encoders of content: quoted-printable, and base64 in lines (RFC 2045). Pure. */
#ifndef MIME_PARTS_ENCODE_H
#define MIME_PARTS_ENCODE_H

#include "base/buffer.h"
#include "base/text.h"

/* --- Quoted-printable ------------------------------------------------------------- */

/* RFC 2045 §6.7. CRLF stays a line end; a lone CR or LF is data and encoded. Lines have at most 76
 * bytes. For safe transport also these are encoded: white space at the end of a line,
 * a '.' at its start, the second dash of a line that starts with two (so that no line
 * is a delimiter), the space of a line that starts with "From ". The result does not
 * depend on how the input is split. */
enum { ENCODE_QUOTED_LINE_MAX = 76, ENCODE_QUOTED_CHUNK = 4096 };

struct encode_quoted {
    void (*write)(void *context, struct text bytes);
    void *context;
    char held; /* a CR, or white space that may end the line; 0 = none */
    size_t column, used, from;
    bool dash; /* the line so far is one dash */
    char chunk[ENCODE_QUOTED_CHUNK];
};

void encode_quoted_start(struct encode_quoted *q,
                         void (*write)(void *context, struct text bytes),
                         void *context);
void encode_quoted_add(struct encode_quoted *q, struct text bytes);
/* Writes the rest; no line end is added. Returns the length of the last line; if not
 * 0, "=" CRLF ends it without adding data. */
size_t encode_quoted_end(struct encode_quoted *q);

/* An upper bound of the encoded size of `bytes` bytes with `lines` line ends; `special`
 * of them must be encoded ('=', and all but 33..126 and white space). */
uint64_t encode_quoted_size_max(uint64_t bytes, uint64_t special, uint64_t lines);

/* --- Base64 ----------------------------------------------------------------------- */

/* RFC 2045 §6.8: lines of 76 bytes. */
enum { ENCODE_BASE64_LINE_BYTES = 57, ENCODE_BASE64_CHUNK = 4096 };

struct encode_base64 {
    void (*write)(void *context, struct text bytes);
    void *context;
    bool begun; /* a line has been written, without its line end */
    size_t held_length;
    char held[ENCODE_BASE64_LINE_BYTES];
    struct buffer out;
};

void encode_base64_start(struct encode_base64 *b,
                         void (*write)(void *context, struct text bytes),
                         void *context);
void encode_base64_add(struct encode_base64 *b, struct text bytes);
/* Writes the rest, without a line end behind the last line, and frees. */
void encode_base64_end(struct encode_base64 *b);
/* Instead of the end: frees only. */
void encode_base64_free(struct encode_base64 *b);

/* The exact size of the result. */
uint64_t encode_base64_size(uint64_t bytes);

#endif
