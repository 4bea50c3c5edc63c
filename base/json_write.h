/* Writes JSON into a buffer, piece by piece, without a tree of it: each busy message has
 * events and log lines of some twenty members. */
#ifndef BASE_JSON_WRITE_H
#define BASE_JSON_WRITE_H

#include "base/buffer.h"

/* full stays set once a piece was beyond the buffer's limit. */
struct json_writer {
    struct buffer *out;
    bool full;
};

/* A piece of JSON, as it is. */
void json_put(struct json_writer *w, struct text piece);
void json_put_number(struct json_writer *w, struct text before, int64_t value);
/* The inside of a string: always UTF-8; NUL and what is none become U+FFFD. */
void json_put_escaped(struct json_writer *w, struct text value);
/* before: a piece of JSON, such as ",\"code\":". */
void json_put_string(struct json_writer *w, struct text before, struct text value);
/* "a,b" as an array of strings. */
void json_put_list(struct json_writer *w, struct text before, struct text list);

#endif
