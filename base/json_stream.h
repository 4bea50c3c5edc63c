/* Reads one value of JSON (RFC 8259) as its bytes come, in any cuts, in constant memory.
 *
 * Pure. Names are whole, strings come in pieces, all decoded. Strict: UTF-8 must be well
 * formed, a surrogate has its other half, and NUL is refused, escaped, too; nothing but
 * white space may follow the value. Whether a name is there twice is the caller's to see. */
#ifndef BASE_JSON_STREAM_H
#define BASE_JSON_STREAM_H

#include "base/text.h"

enum {
    JSON_STREAM_DEPTH_MAX = 16,
    JSON_STREAM_NAME_MAX = 256, /* bytes of a name */
    JSON_STREAM_SCALAR_MAX = 64,
    JSON_STREAM_PIECE = 4096
};

enum json_event {
    JSON_EVENT_OBJECT,
    JSON_EVENT_OBJECT_END,
    JSON_EVENT_ARRAY,
    JSON_EVENT_ARRAY_END,
    JSON_EVENT_NAME,       /* its text */
    JSON_EVENT_STRING,     /* begins; `at` is the place of its quote */
    JSON_EVENT_PIECE,      /* some of its text: whole characters */
    JSON_EVENT_STRING_END, /* `at` is the place of its last quote */
    JSON_EVENT_SCALAR      /* a number, true, false or null, as it came */
};

struct json_stream {
    /* False: the reader stops, PROGRESS_BAD without an error of its own. */
    bool (*on)(void *context, enum json_event event, struct text text);
    void *context;
    uint64_t at;       /* bytes before the current one */
    const char *error; /* a sentence; NULL: none */
    unsigned depth;
    /* Private: */
    unsigned char state;
    bool in_object[JSON_STREAM_DEPTH_MAX];
    bool is_name;
    unsigned char need, low, high; /* of a UTF-8 character under way */
    unsigned char digits;          /* of an escape, that have come */
    unsigned code, surrogate;
    size_t length;
    char piece[JSON_STREAM_PIECE];
};

void json_stream_start(struct json_stream *s,
                       bool (*on)(void *context, enum json_event event,
                                  struct text text),
                       void *context);
/* PROGRESS_DONE: the value is complete as far as can be known: more white space may come. */
enum progress json_stream_add(struct json_stream *s, struct text bytes)
    __attribute__((warn_unused_result));
/* No more comes. DONE or BAD. */
enum progress json_stream_end(struct json_stream *s)
    __attribute__((warn_unused_result));

#endif
