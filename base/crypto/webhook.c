/* Standard Webhooks 1.0, the part of the sender. */
#include "base/crypto/webhook.h"

#include "base/crypto/base64.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SECRET_PREFIX TEXT("whsec_")

/* The key of a secret: the octets that whsec_ holds, else its own. */
static bool
webhook_read_key(struct text secret, struct webhook_key *key)
{
    if (text_starts(secret, SECRET_PREFIX))
        return base64_decode(text_after(secret, SECRET_PREFIX.length), key->octets,
                             WEBHOOK_SECRET_MAX, &key->length) &&
               key->length >= WEBHOOK_SECRET_MIN;
    if (secret.length < WEBHOOK_SECRET_MIN || secret.length > WEBHOOK_SECRET_MAX)
        return false;
    memcpy(key->octets, secret.at, secret.length);
    key->length = secret.length;
    return true;
}

bool
webhook_is_secret(struct text secret)
{
    struct webhook_key key;
    bool good = webhook_read_key(secret, &key);
    digest_forget(&key, sizeof(key));
    return good;
}

size_t
webhook_keys(struct text secrets, struct webhook_key keys[WEBHOOK_SECRETS_MAX])
{
    struct text word;
    size_t count = 0;
    while (count < WEBHOOK_SECRETS_MAX && text_word(&secrets, ", \t\r\n", &word))
        if (webhook_read_key(word, &keys[count]))
            count++;
    return count;
}

void
webhook_begin(struct webhook *w, const char *id, int64_t now_s,
              const struct webhook_key *keys, size_t count)
{
    char time[32];
    int length = snprintf(time, sizeof(time), ".%" PRId64 ".", now_s);
    w->count = count;
    for (size_t i = 0; i < count; i++) {
        digest_keyed_begin(&w->macs[i], text_of(keys[i].octets, keys[i].length));
        digest_keyed_add(&w->macs[i], text_from(id));
        digest_keyed_add(&w->macs[i], text_of(time, (size_t)length));
    }
}

void
webhook_add(struct webhook *w, struct text piece)
{
    for (size_t i = 0; i < w->count; i++)
        digest_keyed_add(&w->macs[i], piece);
}

static bool
webhook_add_signature(struct digest_keyed *mac, struct buffer *out)
{
    unsigned char digest[DIGEST_SIZE];
    digest_keyed_end(mac, digest);
    return buffer_add(out, TEXT(" v1,")) &&
           base64_encode(text_of(digest, sizeof(digest)), out);
}

bool
webhook_end(struct webhook *w, const char *id, int64_t now_s, struct buffer *out)
{
    bool good = buffer_format(
        out, "webhook-id: %s\r\nwebhook-timestamp: %" PRId64 "\r\n", id, now_s);
    if (w->count == 0)
        return good;
    good = good && buffer_add(out, TEXT("webhook-signature:"));
    for (size_t i = 0; i < w->count; i++)
        good = webhook_add_signature(&w->macs[i], out) && good;
    return good && buffer_add(out, TEXT("\r\n"));
}

bool
webhook_fields(const char *id, int64_t now_s, struct text body,
               const struct webhook_key *keys, size_t count, struct buffer *out)
{
    struct webhook w;
    webhook_begin(&w, id, now_s, keys, count);
    webhook_add(&w, body);
    return webhook_end(&w, id, now_s, out);
}
