/* A growing string of bytes, up to the limit that its owner has set. */
#include "base/buffer.h"

#include "base/memory.h"
#include "base/number.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 512, KEPT_CAPACITY = 4096, ERROR_VALUE_MAX = 300 };

static bool
is_inside(const struct buffer *b, struct text t)
{
    uintptr_t start = (uintptr_t)b->at, at = (uintptr_t)t.at;
    return b->at != NULL && t.length > 0 && at >= start && at < start + b->capacity;
}

void
buffer_init(struct buffer *b, size_t limit)
{
    assert(limit < SIZE_MAX);
    *b = (struct buffer){.limit = limit};
}

void
buffer_free(struct buffer *b)
{
    free(b->at);
    buffer_init(b, b->limit);
}

void
buffer_forget(struct buffer *b)
{
    if (b->at != NULL)
        explicit_bzero(b->at, b->capacity);
    buffer_free(b);
}

struct text
buffer_text(const struct buffer *b)
{
    return b->at == NULL ? TEXT("") : text_of(b->at, b->length);
}

char *
buffer_reserve(struct buffer *b, size_t size)
{
    assert(b->length <= b->limit);
    if (size > b->limit - b->length)
        return NULL;
    size_t need = b->length + size;
    if (need > b->capacity || b->at == NULL) {
        size_t capacity = b->capacity < b->limit / 2 ? b->capacity * 2 : b->limit;
        if (capacity < FIRST_CAPACITY)
            capacity = FIRST_CAPACITY < b->limit ? FIRST_CAPACITY : b->limit;
        b->capacity = capacity > need ? capacity : need;
        /* One more byte for the NUL that vsnprintf() writes. */
        b->at = memory_resize(b->at, b->capacity + 1);
    }
    return b->at + b->length;
}

bool
buffer_add(struct buffer *b, struct text t)
{
    assert(!is_inside(b, t)); /* growing would move the source */
    char *end = buffer_reserve(b, t.length);
    if (end == NULL)
        return false;
    if (t.length > 0)
        memcpy(end, t.at, t.length);
    b->length += t.length;
    return true;
}

bool
buffer_add_byte(struct buffer *b, char c)
{
    char *end = buffer_reserve(b, 1);
    if (end == NULL)
        return false;
    *end = c;
    b->length++;
    return true;
}

bool
buffer_add_number(struct buffer *b, int64_t number)
{
    char made[NUMBER_SIZE];
    return buffer_add(b, text_of(made, number_write(number, made)));
}

bool
buffer_add_quoted(struct buffer *b, struct text t)
{
    bool fits = buffer_add_byte(b, '"');
    for (size_t i = 0; i < t.length && fits; i++)
        fits = ((t.at[i] != '"' && t.at[i] != '\\') || buffer_add_byte(b, '\\')) &&
               buffer_add_byte(b, t.at[i]);
    return fits && buffer_add_byte(b, '"');
}

bool
buffer_format_list(struct buffer *b, const char *format, va_list list)
{
    va_list again;
    va_copy(again, list);
    /* First into the free space, which is usually enough. */
    char *end = buffer_reserve(b, 0);
    size_t space = b->capacity - b->length;
    int length = vsnprintf(end, space + 1, format, list);
    assert(length >= 0);
    if ((size_t)length > space) {
        end = buffer_reserve(b, (size_t)length);
        if (end != NULL)
            vsnprintf(end, (size_t)length + 1, format, again);
    }
    va_end(again);
    bool fits = end != NULL && (size_t)length <= b->limit - b->length;
    if (fits)
        b->length += (size_t)length;
    return fits;
}

bool
buffer_format(struct buffer *b, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    bool added = buffer_format_list(b, format, list);
    va_end(list);
    return added;
}

bool
buffer_add_error(struct buffer *b, const char *key, struct text value, const char *why)
{
    if (b != NULL)
        (void)!buffer_format(b, "%s: '%.*s': %s\n", key,
                             TEXT_ARGS(text_before(value, ERROR_VALUE_MAX)), why);
    return false;
}

void
buffer_take(struct buffer *b, size_t size)
{
    assert(size <= b->length);
    b->length -= size;
    if (size > 0 && b->length > 0)
        memmove(b->at, b->at + size, b->length);
}

/* A buffer that has been large does not keep its memory. */
void
buffer_clear(struct buffer *b)
{
    b->length = 0;
    if (b->capacity > KEPT_CAPACITY)
        buffer_free(b);
}

void
buffer_fit(struct buffer *b)
{
    if (b->at == NULL || b->capacity - b->length < FIRST_CAPACITY / 4)
        return;
    b->capacity = b->length;
    b->at = memory_resize(b->at, b->capacity + 1);
}
