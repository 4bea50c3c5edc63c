/* Shared by event_post.c, event_sign.c and event_file.c; no other file includes it. */
#ifndef BASE_EVENT_EVENT_POST_INTERNAL_H
#define BASE_EVENT_EVENT_POST_INTERNAL_H

#include "base/event/event_post.h"

/* --- event_sign.c: pure -------------------------------------------------------------- */

struct event_key {
    char octets[EVENT_SECRET_MAX];
    size_t length;
};
size_t event_sign_keys(struct text secrets, struct event_key keys[EVENT_SECRETS_MAX]);
/* The body of a batch. */
bool event_sign_body(const struct event_batch *batch, struct buffer *out)
    __attribute__((warn_unused_result));
/* webhook-id, webhook-timestamp and, with a key, webhook-signature, each with CRLF. */
bool event_sign_fields(const char *id, int64_t now_s, struct text body,
                       const struct event_key *keys, size_t count, struct buffer *out)
    __attribute__((warn_unused_result));
/* Retry-After (RFC 9110 §10.2.3) in ms, in seconds or as a date; -1: none. */
int64_t event_sign_retry_after(struct text value, int64_t now_ms);

/* --- event_file.c -------------------------------------------------------------------- */

/* A file that is appended to. */
struct event_file_target {
    struct disk *disk;
    char *path;
    int file; /* -1: not open */
    void (*done)(void *context, int result);
    void *context;
    bool busy;
    struct disk_sync sync;
};
/* Appends durably; done comes later or before it returns. */
void event_file_append(struct event_file_target *target, struct text lines);
/* Opened anew at the next append; waits for a sync under way. */
void event_file_close(struct event_file_target *target);

#endif
