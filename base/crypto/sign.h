/* Private keys and the signatures that they make: RSA (PKCS #1 v1.5, RFC 8017 §8.2) by
 * mbedTLS, Ed25519 (RFC 8032) by libsodium where Petrel is built with it. Both sign a
 * SHA-256 digest, as DKIM does (RFC 6376 §3.3, RFC 8463 §3).
 *
 * Pure but for random numbers, which blind each RSA operation, so that its time does
 * not tell the key. An RSA signature takes 2 ms with 2048 bits, 12 ms with 4096. */
#ifndef BASE_CRYPTO_SIGN_H
#define BASE_CRYPTO_SIGN_H

#include "base/buffer.h"
#include "base/crypto/digest.h"

enum {
    SIGN_SIZE_MAX = 512, /* of a signature in bytes: RSA-4096 */
    SIGN_BITS_MIN = 1024,
    SIGN_BITS_MAX = 4096,
    SIGN_FILE_MAX = 16 * 1024, /* of a file with a key */
    SIGN_PUBLIC_MAX = 1024     /* of a public key in base64 */
};
enum sign_kind { SIGN_RSA, SIGN_ED25519 };

/* Random numbers for all keys. NULL: the system has none. */
struct sign_random;
struct sign_random *sign_random_new(void);
void sign_random_free(struct sign_random **r);

/* Reads PEM: RSA in PKCS #1 or PKCS #8, Ed25519 in PKCS #8 (RFC 8410); or the 32 octets
 * of an Ed25519 seed in base64, as dkimpy keeps them. A NUL must stand behind the
 * content, which the caller overwrites. The parts of the key fit together; it
 * borrows r. NULL: *why is a constant, for "PATH WHY". */
struct sign_key;
struct sign_key *sign_key_read(struct sign_random *r, struct text content,
                               const char **why);
void sign_key_free(struct sign_key **key);

enum sign_kind sign_key_kind(const struct sign_key *key);
unsigned sign_key_bits(const struct sign_key *key); /* Ed25519: 256 */
/* The p= of a DKIM key record: SubjectPublicKeyInfo of RSA, the 32 octets of Ed25519,
 * in base64. False at out's limit. */
bool sign_key_public(const struct sign_key *key, struct buffer *out)
    __attribute__((warn_unused_result));

/* False: the library failed. */
bool sign_digest(struct sign_key *key, const unsigned char digest[DIGEST_SIZE],
                 unsigned char out[SIGN_SIZE_MAX], size_t *length)
    __attribute__((warn_unused_result));

/* Writes a fresh private key as PEM to out, whose limit is at least SIGN_FILE_MAX. bits:
 * of RSA. The caller overwrites it. False: *why as above. */
bool sign_key_make(struct sign_random *r, enum sign_kind kind, unsigned bits,
                   struct buffer *out, const char **why)
    __attribute__((warn_unused_result));

/* "libsodium 1.0.18"; "" where Petrel is built without Ed25519. */
const char *sign_ed25519_version(void);

#endif
