/* HMAC and PBKDF2 over mbedTLS's SHA-256.
 *
 * PBKDF2 takes milliseconds, and the loop must not wait for it: struct digest_stretch
 * holds a computation that continues in slices. Its cost is SHA-256 over the same key
 * again and again, so that both states after the key's block are computed once in a
 * slice (struct keyed). Memory that held a secret is overwritten. */
#include "base/crypto/digest.h"

#include "base/memory.h"

#include <assert.h>
#include <mbedtls/sha1.h>
#include <mbedtls/sha256.h>
#include <mbedtls/version.h>
#include <stdlib.h>
#include <string.h>

/* In mbedTLS 2.28 the functions that return an error have other names. */
#if MBEDTLS_VERSION_NUMBER < 0x03000000
#define SHA256_STARTS mbedtls_sha256_starts_ret
#define SHA256_UPDATE mbedtls_sha256_update_ret
#define SHA256_FINISH mbedtls_sha256_finish_ret
#define SHA1          mbedtls_sha1_ret
#else
#define SHA256_STARTS mbedtls_sha256_starts
#define SHA256_UPDATE mbedtls_sha256_update
#define SHA256_FINISH mbedtls_sha256_finish
#define SHA1          mbedtls_sha1
#endif

/* The two states of an HMAC after the block of the key: every use starts from them. */
struct keyed {
    mbedtls_sha256_context inner, outer;
};

static void
digest_start(mbedtls_sha256_context *c)
{
    mbedtls_sha256_init(c);
    int error = SHA256_STARTS(c, 0);
    assert(error == 0);
}

static void
digest_update(mbedtls_sha256_context *c, const void *at, size_t size)
{
    /* The address of an empty text may be NULL. */
    int error = size == 0 ? 0 : SHA256_UPDATE(c, at, size);
    assert(error == 0);
}

static void
digest_finish(mbedtls_sha256_context *c, unsigned char out[DIGEST_SIZE])
{
    int error = SHA256_FINISH(c, out);
    assert(error == 0);
    mbedtls_sha256_free(c); /* wipes */
}

/* The library's state is plain data, too: mbedtls_sha256_clone() copies its bytes, as
 * an assignment of struct digest does. */
static_assert(sizeof(mbedtls_sha256_context) <= DIGEST_STATE, "a state fits");

static mbedtls_sha256_context *
digest_state(struct digest *d)
{
    /* digest_begin() comes here with a state that it is about to set. */
    /* cppcheck-suppress ctuuninitvar */
    return (mbedtls_sha256_context *)(void *)d->state;
}

void
digest_begin(struct digest *d)
{
    digest_start(digest_state(d));
}

void
digest_add(struct digest *d, struct text piece)
{
    digest_update(digest_state(d), piece.at, piece.length);
}

void
digest_end(struct digest *d, unsigned char out[DIGEST_SIZE])
{
    digest_finish(digest_state(d), out);
}

static void
start_half(mbedtls_sha256_context *half, const unsigned char key[DIGEST_BLOCK],
           unsigned char pad)
{
    unsigned char block[DIGEST_BLOCK];
    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = key[i] ^ pad;
    digest_start(half);
    digest_update(half, block, sizeof(block));
    digest_forget(block, sizeof(block));
}

static void
keyed_start(struct keyed *k, const unsigned char key[DIGEST_BLOCK])
{
    start_half(&k->inner, key, 0x36);
    start_half(&k->outer, key, 0x5c);
}

static void
keyed_end(struct keyed *k)
{
    mbedtls_sha256_free(&k->inner);
    mbedtls_sha256_free(&k->outer);
}

/* Two compressions for a short text; the library's HMAC needs four. */
static void
keyed_digest(const struct keyed *k, struct text a, struct text b,
             unsigned char out[DIGEST_SIZE])
{
    mbedtls_sha256_context c;
    mbedtls_sha256_init(&c);
    mbedtls_sha256_clone(&c, &k->inner);
    digest_update(&c, a.at, a.length);
    digest_update(&c, b.at, b.length);
    int error = SHA256_FINISH(&c, out);
    assert(error == 0);
    mbedtls_sha256_clone(&c, &k->outer);
    digest_update(&c, out, DIGEST_SIZE);
    digest_finish(&c, out);
}

static void
key_block(struct text key, unsigned char block[DIGEST_BLOCK])
{
    memset(block, 0, DIGEST_BLOCK);
    if (key.length > DIGEST_BLOCK)
        digest_plain(key, block);
    else if (key.length > 0)
        memcpy(block, key.at, key.length);
}

void
digest_plain(struct text t, unsigned char out[DIGEST_SIZE])
{
    mbedtls_sha256_context c;
    digest_start(&c);
    digest_update(&c, t.at, t.length);
    digest_finish(&c, out);
}

void
digest_keyed(struct text key, struct text t, unsigned char out[DIGEST_SIZE])
{
    unsigned char block[DIGEST_BLOCK];
    struct keyed k;
    key_block(key, block);
    keyed_start(&k, block);
    keyed_digest(&k, t, TEXT(""), out);
    keyed_end(&k);
    digest_forget(block, sizeof(block));
}

void
digest_keyed_begin(struct digest_keyed *d, struct text key)
{
    unsigned char block[DIGEST_BLOCK];
    key_block(key, block);
    start_half(digest_state(&d->inner), block, 0x36);
    start_half(digest_state(&d->outer), block, 0x5c);
    digest_forget(block, sizeof(block));
}

void
digest_keyed_add(struct digest_keyed *d, struct text piece)
{
    digest_add(&d->inner, piece);
}

void
digest_keyed_end(struct digest_keyed *d, unsigned char out[DIGEST_SIZE])
{
    digest_end(&d->inner, out);
    digest_add(&d->outer, text_of(out, DIGEST_SIZE));
    digest_end(&d->outer, out);
}

/* RFC 8018 §5.2. One block is enough, since the key has the size of the digest. */
void
digest_stretch_start(struct digest_stretch *s, struct text password, struct text salt,
                     unsigned iterations)
{
    assert(iterations > 0 && salt.length <= DIGEST_BLOCK);
    struct keyed k;
    key_block(password, s->key);
    keyed_start(&k, s->key);
    keyed_digest(&k, salt, TEXT("\0\0\0\1"), s->last);
    keyed_end(&k);
    memcpy(s->out, s->last, DIGEST_SIZE);
    s->left = iterations - 1;
}

bool
digest_stretch_go(struct digest_stretch *s, unsigned count)
{
    struct keyed k;
    keyed_start(&k, s->key);
    for (; s->left > 0 && count > 0; s->left--, count--) {
        keyed_digest(&k, text_of(s->last, DIGEST_SIZE), TEXT(""), s->last);
        for (size_t i = 0; i < DIGEST_SIZE; i++)
            s->out[i] ^= s->last[i];
    }
    keyed_end(&k);
    return s->left == 0;
}

void
digest_sha1_hex(struct text t, char out[DIGEST_SHA1_HEX_SIZE])
{
    unsigned char sum[DIGEST_SHA1_HEX_SIZE / 2];
    int error = SHA1((const unsigned char *)t.at, t.length, sum);
    assert(error == 0);
    text_hex(sum, sizeof(sum), out);
}

/* No early end: the time must not tell how much of a guess is right. */
bool
digest_same(const void *a, const void *b, size_t size)
{
    const volatile unsigned char *x = a, *y = b;
    unsigned char difference = 0;
    for (size_t i = 0; i < size; i++)
        difference |= x[i] ^ y[i];
    return difference == 0;
}

void
digest_forget(void *at, size_t size)
{
    explicit_bzero(at, size);
}
