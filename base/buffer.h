/* A growing string of bytes, up to a limit that its owner sets. */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include "base/text.h"

#include <stdarg.h>

struct buffer {
    char *at;
    size_t length, capacity, limit;
};

/* limit in bytes, never exceeded. Nothing is allocated yet. */
void buffer_init(struct buffer *b, size_t limit);
void buffer_free(struct buffer *b); /* may be used again, with the same limit */
/* Overwrites a secret before its memory is freed. */
void buffer_forget(struct buffer *b);
struct text buffer_text(const struct buffer *b);

/* False, with the buffer unchanged, when the limit would be exceeded. */
bool buffer_add(struct buffer *b, struct text t) __attribute__((warn_unused_result));
bool buffer_add_byte(struct buffer *b, char c) __attribute__((warn_unused_result));
/* Decimal. */
bool buffer_add_number(struct buffer *b, int64_t number)
    __attribute__((warn_unused_result));
/* In double quotes; quotes and backslashes have a backslash before them. On false a part of
 * it may be there. */
bool buffer_add_quoted(struct buffer *b, struct text t)
    __attribute__((warn_unused_result));
bool buffer_format(struct buffer *b, const char *format, ...)
    __attribute__((warn_unused_result, format(printf, 2, 3)));
bool buffer_format_list(struct buffer *b, const char *format, va_list list)
    __attribute__((warn_unused_result, format(printf, 2, 0)));

/* Errors of settings: "KEY: 'VALUE': WHY" LF, the value cut at 300 bytes. A full buffer
 * has enough errors; b may be NULL. Always false. */
bool buffer_add_error(struct buffer *b, const char *key, struct text value,
                      const char *why);

/* Gives back unused space if it is much: for bytes that stay. */
void buffer_fit(struct buffer *b);
/* Room for at least size more bytes at b->at + b->length (then add to length by
 * hand); NULL when the limit would be exceeded. */
char *buffer_reserve(struct buffer *b, size_t size);

/* Drops the first size bytes. */
void buffer_take(struct buffer *b, size_t size);
/* Length 0; keeps a small allocation and frees a large one. */
void buffer_clear(struct buffer *b);

#endif
