/* A message as JSON, written in pieces: envelope, header, text, page and files
 * (doc/web-target.md). It reads the message at first for its leaves, and then each of them
 * where it is wanted; no more than a piece is in memory. */
#ifndef QUEUE_POSTER_POSTER_JSON_H
#define QUEUE_POSTER_POSTER_JSON_H

#include "base/json_write.h"
#include "mime/parts/decode.h"
#include "mime/parts/leaves.h"

enum {
    POSTER_JSON_READ = 4096,           /* octets of the message in a step */
    POSTER_JSON_STEPS = 16,            /* before the next turn, if they give nothing */
    POSTER_JSON_FIELD_MAX = 64 * 1024, /* of a value; the rest is cut off */
    POSTER_JSON_MADE_MAX = 1024 * 1024 /* of a step: a field, all escaped */
};

struct poster_json {
    /* Adds octets of the message from there on, as many as out has room for. */
    bool (*read)(void *context, int64_t at, struct buffer *out);
    void *context;
    int64_t size;         /* of the message */
    struct text envelope; /* members, each with a comma behind it; borrowed */
    struct text header;   /* of the message; borrowed */
    /* Private: */
    struct leaves leaves;
    struct decode decode;
    struct buffer made;
    size_t taken;
    enum poster_json_step {
        POSTER_JSON_SCAN,
        POSTER_JSON_BEGIN,
        POSTER_JSON_FIELDS,
        POSTER_JSON_TEXT,
        POSTER_JSON_PAGE,
        POSTER_JSON_FILES,
        POSTER_JSON_OVER
    } step;
    bool in_leaf, is_first;
    size_t leaf;
    int64_t at;
    struct text fields; /* that are left */
    char held[4];       /* of a character, or for Base64 */
    size_t held_length;
};

/* read, context, size, envelope and header are set. */
void poster_json_begin(struct poster_json *j);
/* From the start of the text again. */
void poster_json_rewind(struct poster_json *j);
/* Adds the next octets to out, as many as it has room for; fewer, perhaps none, where it
 * had to read much for them. False: the message cannot be read. */
bool poster_json_next(struct poster_json *j, struct buffer *out)
    __attribute__((warn_unused_result));
bool poster_json_is_over(const struct poster_json *j);
void poster_json_free(struct poster_json *j);

#endif
