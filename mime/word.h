/* Decodes header fields for people: encoded-words (RFC 2047) and parameters (RFC 2231)
 * of any charset become UTF-8.
 *
 * Pure and lenient: an invalid encoded-word is passed through byte for byte, and
 * reported. So the result is UTF-8 only if the bytes passed through are, and it may
 * hold control characters that encoded-words hid. */
#ifndef MIME_WORD_H
#define MIME_WORD_H

#include "base/buffer.h"
#include "mime/parameter.h"

enum { WORD_LENGTH_MAX = 75 };

enum word_problem {
    WORD_BROKEN,   /* looks like an encoded-word, but cannot be read: passed through */
    WORD_UNKNOWN,  /* its charset is unknown: passed through */
    WORD_LONG,     /* longer than WORD_LENGTH_MAX bytes */
    WORD_CARELESS, /* invalid but unambiguous: it touches other text, is empty, is not
                      padded, or holds only part of a character */
    WORD_BYTES,    /* some bytes are not characters of its charset: U+FFFD */
    WORD_CONTROL,  /* hides a control character (RFC 2047 §4.2 (3) has none) */
    WORD_QUOTED,   /* in a parameter, where RFC 2047 §5 forbids it */
    WORD_RAW,      /* bytes above 127 that are not UTF-8: passed through */
    WORD_PROBLEMS
};

/* Adds the value of an unstructured field, folded or not, to out: unfolded, with its
 * encoded-words decoded, and without the white space between two of them. *problems
 * gets the bits 1 << WORD_x. False, with out unchanged, at out's limit; four bytes for
 * one are enough but for odd charsets. */
bool word_decode(struct text value, struct buffer *out, unsigned *problems)
    __attribute__((warn_unused_result));

/* The same for a parameter: its RFC 2231 form, if present, by its charset; in the
 * plain form encoded-words, which many senders write. */
bool word_decode_parameter(const struct parameter *p, struct buffer *out,
                           unsigned *problems) __attribute__((warn_unused_result));

/* A text for people: "an encoded-word is malformed". */
const char *word_problem_text(enum word_problem problem);

#endif
