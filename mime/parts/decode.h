/* A streaming decoder of base64 and quoted-printable (RFC 2045 §6.7, §6.8).
 *
 * It never fails: what is malformed is skipped (base64) or passed on (quoted-printable).
 * The result does not depend on how the input is split. */
#ifndef MIME_PARTS_DECODE_H
#define MIME_PARTS_DECODE_H

#include "mime/parts/structure.h"

enum { DECODE_CHUNK = 1024, DECODE_BLANKS_MAX = 256 };

struct decode {
    void (*write)(void *context, struct text bytes);
    void *context;
    /* Private to decode.c: */
    enum structure_encoding encoding;
    uint32_t bits;   /* base64: digits that do not make a byte yet */
    unsigned digits; /* their number */
    bool ended;      /* base64: padding has come */
    unsigned char escape;
    char first; /* digit of an escape */
    size_t blanks_length, used;
    char blanks[DECODE_BLANKS_MAX]; /* that may end a line */
    char chunk[DECODE_CHUNK];
};

/* Other encodings are passed on as they are. */
void decode_start(struct decode *d, enum structure_encoding encoding,
                  void (*write)(void *context, struct text bytes), void *context);
void decode_add(struct decode *d, struct text bytes);
/* Writes the rest. Once. */
void decode_end(struct decode *d);

/* 0 to 63, or -1. */
int decode_base64_digit(char c);

#endif
