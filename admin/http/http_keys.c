/* Makes and compares keys, sessions and tokens. */
#include "admin/http/http_keys.h"

#include "base/crypto/base64.h"
#include "base/crypto/digest.h"
#include "base/loop/loop.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { RANDOM_SIZE = 16 };

/* Only the digest of a secret is kept. */
struct http_secret {
    enum http_may may; /* NOTHING: free */
    unsigned char digest[DIGEST_SIZE];
    int64_t since_ms; /* monotonic: made, or used last */
};

struct http_keys {
    struct loop *loop;
    struct http_secret keys[HTTP_KEYS_MAX], sessions[HTTP_SESSIONS_MAX];
    struct http_secret operate, read;
};

struct http_keys *
http_keys_new(struct loop *loop)
{
    struct http_keys *k = memory_new(sizeof(*k));
    k->loop = loop;
    return k;
}

void
http_keys_free(struct http_keys **keys)
{
    free(*keys);
    *keys = NULL;
}

static void
http_secret_write(struct loop *loop, char out[HTTP_SECRET_SIZE])
{
    uint64_t random[2] = {loop_random(loop), loop_random(loop)};
    base64_write_url(random, RANDOM_SIZE, out);
}

/* In the free place, or in that of the oldest. */
static void
http_secret_keep(struct http_secret *list, size_t count, enum http_may may,
                 struct text secret, int64_t now_ms)
{
    struct http_secret *place = &list[0];
    for (size_t i = 0; i < count && place->may != HTTP_MAY_NOTHING; i++)
        if (list[i].may == HTTP_MAY_NOTHING || list[i].since_ms < place->since_ms)
            place = &list[i];
    place->may = may;
    place->since_ms = now_ms;
    digest_plain(secret, place->digest);
}

static struct http_secret *
http_secret_find(struct http_secret *list, size_t count, struct text secret,
                 int64_t older_ms)
{
    unsigned char digest[DIGEST_SIZE];
    struct http_secret *found = NULL;
    digest_plain(secret, digest);
    for (size_t i = 0; i < count; i++) {
        if (list[i].since_ms <= older_ms)
            list[i].may = HTTP_MAY_NOTHING;
        if (list[i].may != HTTP_MAY_NOTHING &&
            digest_same(list[i].digest, digest, DIGEST_SIZE))
            found = &list[i];
    }
    return found;
}

void
http_keys_make(struct http_keys *k, enum http_may may, char out[HTTP_SECRET_SIZE])
{
    http_secret_write(k->loop, out);
    http_secret_keep(k->keys, HTTP_KEYS_MAX, may, text_from(out),
                     loop_monotonic_ms(k->loop));
}

enum http_may
http_keys_open(struct http_keys *k, struct text key, char cookie[HTTP_SECRET_SIZE])
{
    int64_t now_ms = loop_monotonic_ms(k->loop);
    struct http_secret *found =
        http_secret_find(k->keys, HTTP_KEYS_MAX, key, now_ms - HTTP_KEY_MS);
    enum http_may may = found != NULL ? found->may : HTTP_MAY_NOTHING;
    if (may == HTTP_MAY_NOTHING)
        return may;
    found->may = HTTP_MAY_NOTHING;
    http_secret_write(k->loop, cookie);
    http_secret_keep(k->sessions, HTTP_SESSIONS_MAX, may, text_from(cookie), now_ms);
    return may;
}

static struct http_secret *
http_session_find(struct http_keys *k, struct text cookie)
{
    return http_secret_find(k->sessions, HTTP_SESSIONS_MAX, cookie,
                            loop_monotonic_ms(k->loop) - HTTP_SESSION_IDLE_MS);
}

enum http_may
http_keys_session(struct http_keys *k, struct text cookie)
{
    struct http_secret *found = http_session_find(k, cookie);
    if (found == NULL)
        return HTTP_MAY_NOTHING;
    found->since_ms = loop_monotonic_ms(k->loop);
    return found->may;
}

void
http_keys_close(struct http_keys *k, struct text cookie)
{
    struct http_secret *found = http_session_find(k, cookie);
    if (found != NULL)
        found->may = HTTP_MAY_NOTHING;
}

static void
http_token_set(struct http_secret *token, enum http_may may, struct text value)
{
    token->may = value.length > 0 ? may : HTTP_MAY_NOTHING;
    digest_plain(value, token->digest);
}

void
http_keys_set_tokens(struct http_keys *k, struct text operate, struct text read)
{
    http_token_set(&k->operate, HTTP_MAY_OPERATE, operate);
    http_token_set(&k->read, HTTP_MAY_READ, read);
}

enum http_may
http_keys_token(const struct http_keys *k, struct text token)
{
    unsigned char digest[DIGEST_SIZE];
    digest_plain(token, digest);
    bool operates = digest_same(k->operate.digest, digest, DIGEST_SIZE),
         reads = digest_same(k->read.digest, digest, DIGEST_SIZE);
    return operates && k->operate.may != HTTP_MAY_NOTHING ? k->operate.may
           : reads                                        ? k->read.may
                                                          : HTTP_MAY_NOTHING;
}
