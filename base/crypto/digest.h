/* SHA-256, HMAC and PBKDF2, and functions for secrets. base/crypto/ has digests,
 * Base64, password verifiers and tags: pure functions, without time and without I/O. */
#ifndef BASE_CRYPTO_DIGEST_H
#define BASE_CRYPTO_DIGEST_H

#include "base/text.h"

enum { DIGEST_SIZE = 32, DIGEST_BLOCK = 64, DIGEST_STATE = 128 };

/* SHA-256. */
void digest_plain(struct text t, unsigned char out[DIGEST_SIZE]);

/* SHA-256 of a text that comes in pieces. Plain data: a copy is a state that can be
 * continued by itself. Nothing to free. */
struct digest {
    _Alignas(8) unsigned char state[DIGEST_STATE];
};
void digest_begin(struct digest *d);
void digest_add(struct digest *d, struct text piece);
/* d may only be begun again. */
void digest_end(struct digest *d, unsigned char out[DIGEST_SIZE]);

/* HMAC-SHA-256 (RFC 2104). */
void digest_keyed(struct text key, struct text t, unsigned char out[DIGEST_SIZE]);

/* The same of a text that comes in pieces. Plain data, which holds the key until
 * digest_keyed_end(). */
struct digest_keyed {
    struct digest inner, outer;
};
void digest_keyed_begin(struct digest_keyed *d, struct text key);
void digest_keyed_add(struct digest_keyed *d, struct text piece);
void digest_keyed_end(struct digest_keyed *d, unsigned char out[DIGEST_SIZE]);

/* PBKDF2-HMAC-SHA-256 (RFC 8018 §5.2) of 32 bytes, computed in slices over several
 * turns: 4096 iterations take 1.6 ms on a 2023 server. Plain data. */
struct digest_stretch {
    unsigned char key[DIGEST_BLOCK]; /* of the password */
    unsigned char last[DIGEST_SIZE], out[DIGEST_SIZE];
    unsigned left; /* iterations */
};
/* iterations > 0; salt has at most DIGEST_BLOCK bytes. Computes the first iteration. */
void digest_stretch_start(struct digest_stretch *s, struct text password,
                          struct text salt, unsigned iterations);
/* Computes at most count more iterations. True when all are done: out is the result. */
bool digest_stretch_go(struct digest_stretch *s, unsigned count);

/* SHA-1, in hex: as a name alone, for it protects nothing. */
enum { DIGEST_SHA1_HEX_SIZE = 2 * 20 + 1 };
void digest_sha1_hex(struct text t, char out[DIGEST_SHA1_HEX_SIZE]);

/* Compares in a time that does not depend on the content. */
bool digest_same(const void *a, const void *b, size_t size);

/* Overwrites a secret; the compiler cannot optimise this away. */
void digest_forget(void *at, size_t size);

#endif
