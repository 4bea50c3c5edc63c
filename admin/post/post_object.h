/* A message of members (post_json.h) that is being posted: spooled, then composed into
 * the draft, some of it each turn. */
#ifndef ADMIN_POST_POST_OBJECT_H
#define ADMIN_POST_POST_OBJECT_H

#include "admin/post/post_json.h"
#include "admin/post/post_spool.h"
#include "admin/post/posting.h"
#include "mime/parts/encode.h"

enum {
    POST_HEADER_MAX = 512 * 1024,
    POST_TURN_BYTES = 128 * 1024, /* of contents, that are read in a turn */
    POST_READ = 4096
};

struct post_object {
    struct posting *posting;
    struct post_json json;
    struct post_spool spool;
    struct compose compose;
    size_t step;
    bool is_open; /* within the content of the step */
    uint64_t at;  /* in the spool */
    struct json_stream stream;
    struct encode_quoted quoted;
    struct encode_base64 base64;
    bool after_cr;
    size_t column; /* of base64 that came as such */
    struct loop_task task;
};

struct post_object *post_object_new(struct posting *posting);
void post_object_free(struct post_object **object);
/* False: the exchange has its answer. */
bool post_object_add(struct post_object *object, struct text bytes);
/* The body is whole: the exchange gets its answer, perhaps later. */
void post_object_end(struct post_object *object);

#endif
