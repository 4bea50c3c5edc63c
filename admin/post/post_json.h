/* A message as an object of JSON: its members, in any order. Small ones are kept, contents
 * are checked as they come, and their places in the body noted. */
#ifndef ADMIN_POST_POST_JSON_H
#define ADMIN_POST_POST_JSON_H

#include "base/arena.h"
#include "base/json_stream.h"
#include "mime/parts/compose.h"

enum {
    POST_MEMBERS_MAX = 128 * 1024, /* bytes of all small members */
    POST_MAILBOXES_MAX = 1000,     /* of to, cc, bcc and reply_to together */
    POST_FIELDS_MAX = 100,
    POST_TAG_MAX = 128,
    POST_FIELD_NAME_MAX = 64 /* of a member, in an error */
};

enum post_list { POST_TO, POST_CC, POST_BCC, POST_REPLY_TO, POST_LISTS };

/* A part's string in the body, from quote to quote. */
struct post_content {
    uint64_t from, to;
    uint64_t bytes, beyond; /* of text; of them beyond ASCII */
};

struct post_json {
    /* The result. */
    struct compose_mailbox from;
    struct compose_mailbox mailboxes[POST_MAILBOXES_MAX];
    unsigned char lists[POST_MAILBOXES_MAX]; /* enum post_list of each */
    size_t mailbox_count;
    struct text subject, tag;
    int64_t send_at_ms; /* 0: now */
    struct text field_names[POST_FIELDS_MAX], field_values[POST_FIELDS_MAX];
    size_t field_count;
    struct compose_part parts[COMPOSE_PARTS_MAX];
    struct post_content contents[COMPOSE_PARTS_MAX];
    size_t part_count;
    /* The error; rule "json": the body is none. */
    char field[POST_FIELD_NAME_MAX];
    const char *rule, *why;
    /* Private: */
    struct json_stream stream;
    struct arena arena;
    struct buffer value;
    unsigned seen, seen_inner; /* members, of the object and of an attachment */
    int member, inner;         /* under way; -1: none */
    struct text name;          /* of a field of headers */
    unsigned quad, padding;    /* of base64 */
};

/* A time as the member send_at has it, in whole seconds. NULL, or why it is none. */
const char *post_json_read_time(struct text value, int64_t *ms)
    __attribute__((warn_unused_result));

void post_json_start(struct post_json *j);
void post_json_free(struct post_json *j);
/* False: there is an error. */
bool post_json_add(struct post_json *j, struct text bytes)
    __attribute__((warn_unused_result));
/* The body is whole: what is needed is there. */
bool post_json_end(struct post_json *j) __attribute__((warn_unused_result));

#endif
