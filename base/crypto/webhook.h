/* Signatures of requests to webhooks, as Standard Webhooks 1.0 has them: HMAC-SHA-256 of
 * id, time and body. Pure.
 *
 * A secret is "whsec_BASE64" or another text. Each of several signs, so that a receiver
 * may take the old one and the new one for some time. */
#ifndef BASE_CRYPTO_WEBHOOK_H
#define BASE_CRYPTO_WEBHOOK_H

#include "base/buffer.h"
#include "base/crypto/digest.h"

enum {
    WEBHOOK_SECRETS_MAX = 8,
    WEBHOOK_SECRET_MIN = 24, /* octets */
    WEBHOOK_SECRET_MAX = 512
};

/* Whether it can sign. */
bool webhook_is_secret(struct text secret);

struct webhook_key {
    char octets[WEBHOOK_SECRET_MAX];
    size_t length;
};
/* The keys of secrets that white space or commas separate; their number. */
size_t webhook_keys(struct text secrets, struct webhook_key keys[WEBHOOK_SECRETS_MAX]);

/* A request whose body comes in pieces. Plain data. */
struct webhook {
    struct digest_keyed macs[WEBHOOK_SECRETS_MAX];
    size_t count;
};
/* id: without a dot. count 0: it is not signed. */
void webhook_begin(struct webhook *w, const char *id, int64_t now_s,
                   const struct webhook_key *keys, size_t count);
void webhook_add(struct webhook *w, struct text piece);
/* Ends it: webhook-id, webhook-timestamp and, with a key, webhook-signature, each with
 * CRLF. id and time are those of the beginning. */
bool webhook_end(struct webhook *w, const char *id, int64_t now_s, struct buffer *out)
    __attribute__((warn_unused_result));
/* All of that for a body that is whole. */
bool webhook_fields(const char *id, int64_t now_s, struct text body,
                    const struct webhook_key *keys, size_t count, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
