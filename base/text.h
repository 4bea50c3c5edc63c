/* A borrowed slice of bytes, not NUL-terminated: the argument and result of parsers. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Borrowed until the call returns, unless a header says otherwise. */
struct text {
    const char *at;
    size_t length;
};

#define TEXT(literal) ((struct text){(literal), sizeof(literal) - 1})
/* For "%.*s". */
#define TEXT_ARGS(t) (int)(t).length, (t).at
#define TEXT_NONE    SIZE_MAX

/* White space within a line. */
static inline bool
text_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* White space, line ends included. */
static inline bool
text_is_space(char c)
{
    return text_is_blank(c) || c == '\r' || c == '\n';
}

static inline bool
text_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The number of decimal digits at its start. */
size_t text_digits(struct text t);

/* In lower case, two digits for each byte, and a NUL. */
void text_hex(const void *bytes, size_t size, char *out);
/* The size bytes of which hex has the digits, and no more. */
bool text_unhex(struct text hex, void *out, size_t size);
/* 0 to 15, or -1. */
static inline int
text_hex_digit(char c)
{
    if (text_is_digit(c))
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The result of an incremental parser. */
enum progress { PROGRESS_DONE, PROGRESS_MORE, PROGRESS_BAD };

struct text text_from(const char *string); /* NULL gives the empty text */

static inline struct text
text_of(const void *at, size_t length)
{
    assert(at != NULL || length == 0);
    return (struct text){at, length};
}

bool text_equal(struct text a, struct text b);
/* The order of their bytes: less, equal to or greater than 0. */
int text_compare(struct text a, struct text b);
bool text_equal_nocase(struct text a, struct text b); /* ASCII folding only */
bool text_starts(struct text t, struct text prefix);
bool text_starts_nocase(struct text t, struct text prefix);
bool text_ends_nocase(struct text t, struct text suffix);
/* Index of the first c, or TEXT_NONE. */
size_t text_find(struct text t, char c);
/* Index of the last c, or TEXT_NONE. */
size_t text_find_last(struct text t, char c);
/* Without its first count bytes; count may exceed the length. */
struct text text_after(struct text t, size_t count);
/* The first count bytes; count may exceed the length. */
struct text text_before(struct text t, size_t count);
/* Without leading and trailing space, tab, CR and LF. */
struct text text_trim(struct text t);

/* Without first and last around it, if it has both: "<a@b>" is a@b. */
struct text text_within(struct text t, char first, char last);

/* Cuts the next field up to separator off *rest. False when *rest is exhausted
 * (at == NULL): an empty field between two separators is a field. */
bool text_cut(struct text *rest, char separator, struct text *field);

/* Cuts the next run of bytes that are not in separators off *rest, skipping empty
 * runs: for lists. False at the end. */
bool text_word(struct text *rest, const char *separators, struct text *word);

/* Decimal digits only, the whole text, no sign, value <= max. */
bool text_number(struct text t, uint64_t max, uint64_t *value);

/* Copies and NUL-terminates, cutting at size - 1. True if nothing was cut.
 * size must not be 0. Embedded NULs are copied. */
bool text_copy(char *to, size_t size, struct text t);

/* ASCII lower case, in place. */
void text_lower(char *at, size_t length);

/* Without the CRLF or LF at its end. */
struct text text_without_line_end(struct text line);
/* A malloc'ed NUL-terminated copy. */
char *text_string(struct text t);

/* Adds t, with ASCII letters folded, to a hash (FNV-1a); begin with TEXT_HASH. Not for
 * keys that an attacker can choose. */
#define TEXT_HASH UINT64_C(0xcbf29ce484222325)
uint64_t text_hash_nocase(uint64_t hash, struct text t);
/* True if t holds any byte < 0x20 or 0x7f (CR, LF, NUL included). */
bool text_has_control(struct text t);
/* True if all bytes are < 0x80. */
bool text_is_ascii(struct text t);
/* True if t is well-formed UTF-8 (no overlongs, no surrogates). */
bool text_is_utf8(struct text t);
/* Length in bytes and code point of the well-formed UTF-8 character that t starts with;
 * 0 when there is none. */
size_t text_character(struct text t, uint32_t *code);
/* A code point in UTF-8; the number of bytes, 1 to 4. */
size_t text_write_character(uint32_t code, char out[4]);
/* The number of bytes, at least 1, at the start of t (not empty) that are a character
 * or the first part of one. *whole: the length of that character; 0 when no character
 * starts there. */
size_t text_character_start(struct text t, size_t *whole);

#endif
