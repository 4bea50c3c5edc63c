/* Ed25519 for sign.c: by libsodium in sign_ed25519.c, by nothing in
 * sign_no_ed25519.c. No other file includes this header. */
#ifndef BASE_CRYPTO_SIGN_INTERNAL_H
#define BASE_CRYPTO_SIGN_INTERNAL_H

#include "base/crypto/sign.h"

enum { ED25519_SEED = 32, ED25519_SIZE = 64 };

struct sign_ed25519 {
    unsigned char secret[ED25519_SIZE], public[ED25519_SEED];
};

/* NULL, or why there is none: a constant. */
const char *sign_ed25519_start(struct sign_ed25519 *key,
                               const unsigned char seed[ED25519_SEED]);
bool sign_ed25519_digest(const struct sign_ed25519 *key,
                         const unsigned char digest[DIGEST_SIZE],
                         unsigned char out[ED25519_SIZE])
    __attribute__((warn_unused_result));
bool sign_ed25519_verify(const struct sign_ed25519 *key,
                         const unsigned char digest[DIGEST_SIZE],
                         const unsigned char signature[ED25519_SIZE])
    __attribute__((warn_unused_result));

#endif
