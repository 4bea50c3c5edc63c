/* A streaming decoder of base64 and quoted-printable (RFC 2045 §6.7, §6.8).
 *
 * It never fails: invalid input is skipped or passed through, and reported. The result
 * does not depend on how the input is split. */
#ifndef MIME_DECODE_H
#define MIME_DECODE_H

#include "mime/structure.h"

enum { DECODE_LINE_MAX = 76, DECODE_CHUNK = 4096, DECODE_BLANKS_MAX = 256 };

enum decode_problem {
    DECODE_FOREIGN, /* base64: a byte outside the alphabet: skipped */
    DECODE_PADDING, /* base64: an incomplete last byte, or wrong padding */
    DECODE_BEHIND,  /* base64: data behind the padding: skipped */
    DECODE_ESCAPE,  /* quoted-printable: '=' without an escape: passed through */
    DECODE_RAW,     /* quoted-printable: a byte that needs encoding: passed through */
    DECODE_LONG_LINE,
    DECODE_PROBLEMS
};

struct decode {
    void (*write)(void *context, struct text bytes);
    void *context;
    uint64_t size;     /* bytes decoded */
    unsigned problems; /* bits 1 << DECODE_x */
    /* Private to decode.c: */
    enum structure_encoding encoding;
    uint64_t column;
    uint32_t bits;                    /* base64: digits that do not make a byte yet */
    unsigned digits, padding, escape; /* padding: still to come; escape: state */
    bool ended;
    char first; /* digit of an escape */
    size_t blanks_length, used;
    char blanks[DECODE_BLANKS_MAX]; /* that may end a line */
    char chunk[DECODE_CHUNK];
};

/* Other encodings are passed through. write NULL: only size and problems are wanted. */
void decode_start(struct decode *d, enum structure_encoding encoding,
                  void (*write)(void *context, struct text bytes), void *context);
void decode_add(struct decode *d, struct text bytes);
/* Writes the rest. Once. */
void decode_end(struct decode *d);

/* A text for people: "base64 is not padded as it should be". */
const char *decode_problem_text(enum decode_problem problem);

#endif
