/* The signature of a batch, for its test. Pure. */
#ifndef BASE_EVENT_EVENT_POST_INTERNAL_H
#define BASE_EVENT_EVENT_POST_INTERNAL_H

#include "base/event/event_post.h"

struct event_key {
    char octets[EVENT_SECRET_MAX];
    size_t length;
};
size_t event_sign_keys(struct text secrets, struct event_key keys[EVENT_SECRETS_MAX]);
/* webhook-id, webhook-timestamp and, with a key, webhook-signature, each with CRLF. */
bool event_sign_fields(const char *id, int64_t now_s, struct text body,
                       const struct event_key *keys, size_t count, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
