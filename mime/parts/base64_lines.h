/* A streaming encoder of base64 in lines of 76 bytes (RFC 2045 §6.8). */
#ifndef MIME_PARTS_BASE64_LINES_H
#define MIME_PARTS_BASE64_LINES_H

#include "base/buffer.h"

enum { BASE64_LINE_BYTES = 57, BASE64_CHUNK = 4096 };

struct base64_lines {
    void (*write)(void *context, struct text bytes);
    void *context;
    bool begun; /* a line has been written, without its line end */
    size_t held_length;
    char held[BASE64_LINE_BYTES];
    struct buffer out;
};

void base64_lines_start(struct base64_lines *b,
                        void (*write)(void *context, struct text bytes), void *context);
void base64_lines_add(struct base64_lines *b, struct text bytes);
/* Writes the rest, without a line end behind the last line, and frees. */
void base64_lines_end(struct base64_lines *b);
/* Instead of the end: frees only. */
void base64_lines_free(struct base64_lines *b);

/* The exact size of the result. */
uint64_t base64_lines_size(uint64_t bytes);

#endif
