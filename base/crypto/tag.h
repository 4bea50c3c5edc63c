/* Tags: are two texts the same? For one process alone.
 *
 * Poly1305 (RFC 8439 §2.5) by mbedTLS, under a key that the process makes at random and
 * tells nobody: at four times the speed of SHA-256. Two different texts of L bytes,
 * however they are chosen by those who do not know the key, have one tag with a chance
 * of L / 16 * 2^-103. That holds as long as key and tags never leave the process: who
 * sees tags learns the key, so never send, store or log one. */
#ifndef BASE_CRYPTO_TAG_H
#define BASE_CRYPTO_TAG_H

#include "base/text.h"

enum { TAG_SIZE = 16, TAG_KEY_SIZE = 32 };

/* All of it random, made anew by each process. */
struct tag_key {
    unsigned char bytes[TAG_KEY_SIZE];
};

struct tag;
struct tag *tag_new(const struct tag_key *key);
void tag_add(struct tag *t, struct text piece);
/* Frees it; out NULL: nobody wants to know. */
void tag_end(struct tag **t, unsigned char out[TAG_SIZE]);

#endif
