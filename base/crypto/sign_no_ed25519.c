/* In the place of sign_ed25519.c where there is no libsodium: its keys are refused. */
#include "base/crypto/sign_internal.h"

const char *
sign_ed25519_version(void)
{
    return "";
}

const char *
sign_ed25519_start(struct sign_ed25519 *key, const unsigned char seed[ED25519_SEED])
{
    (void)key;
    (void)seed;
    return "has an Ed25519 key, and this petrel was built without libsodium";
}

bool
sign_ed25519_digest(const struct sign_ed25519 *key,
                    const unsigned char digest[DIGEST_SIZE],
                    unsigned char out[ED25519_SIZE])
{
    (void)key;
    (void)digest;
    (void)out;
    return false;
}

bool
sign_ed25519_verify(const struct sign_ed25519 *key,
                    const unsigned char digest[DIGEST_SIZE],
                    const unsigned char signature[ED25519_SIZE])
{
    (void)key;
    (void)digest;
    (void)signature;
    return false;
}
