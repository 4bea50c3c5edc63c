/* Ed25519 by libsodium: the only file that knows it. */
#include "base/crypto/sign_internal.h"

#include <assert.h>
#include <sodium.h>

static_assert(crypto_sign_SEEDBYTES == ED25519_SEED, "a seed");
static_assert(crypto_sign_BYTES == ED25519_SIZE, "a signature");
static_assert(crypto_sign_SECRETKEYBYTES == ED25519_SIZE, "a private key");

const char *
sign_ed25519_version(void)
{
    return "libsodium " SODIUM_VERSION_STRING;
}

const char *
sign_ed25519_start(struct sign_ed25519 *key, const unsigned char seed[ED25519_SEED])
{
    if (sodium_init() < 0 ||
        crypto_sign_seed_keypair(key->public, key->secret, seed) != 0)
        return "cannot be used: libsodium does not start";
    return NULL;
}

bool
sign_ed25519_digest(const struct sign_ed25519 *key,
                    const unsigned char digest[DIGEST_SIZE],
                    unsigned char out[ED25519_SIZE])
{
    return crypto_sign_detached(out, NULL, digest, DIGEST_SIZE, key->secret) == 0;
}

bool
sign_ed25519_verify(const struct sign_ed25519 *key,
                    const unsigned char digest[DIGEST_SIZE],
                    const unsigned char signature[ED25519_SIZE])
{
    return crypto_sign_verify_detached(signature, digest, DIGEST_SIZE, key->public) ==
           0;
}
