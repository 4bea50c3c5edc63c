/* Password verifiers: SCRAM-SHA-256 keys (RFC 5803, 7677) or a SHA-512 crypt(3). The
 * password itself is not stored.
 *
 * A check must not block the loop for more than 5 ms. SCRAM keys are computed in
 * slices. SHA-512 crypt cannot be, so its rounds are limited: about 4 ms on a 2023
 * server. bcrypt, yescrypt and Argon2 are designed to take longer, and are refused. */
#ifndef BASE_CRYPTO_VERIFIER_H
#define BASE_CRYPTO_VERIFIER_H

#include "base/buffer.h"
#include "base/crypto/digest.h"

enum {
    /* For new verifiers: 26 ms on a 2023 server. Clients with Cyrus SASL (Postfix)
     * refuse more than 65,536. */
    VERIFIER_ITERATIONS = 65000,
    VERIFIER_ITERATIONS_MIN = 4096, /* RFC 7677 §4 */
    VERIFIER_ITERATIONS_MAX = 1000000,
    VERIFIER_SLICE = 5000,      /* iterations: 2 ms */
    VERIFIER_ROUNDS_MAX = 5000, /* of SHA-512 crypt: its default */
    VERIFIER_SALT = 16,         /* when made here */
    VERIFIER_SALT_MIN = 8,
    VERIFIER_SALT_MAX = 32,
    VERIFIER_CRYPT_MAX = 128,
    VERIFIER_PASSWORD_MAX = 128, /* bytes: crypt(3) costs more for longer ones */
    VERIFIER_WRITTEN_MAX = 256
};

enum verifier_kind { VERIFIER_SCRAM, VERIFIER_CRYPT };

struct verifier {
    enum verifier_kind kind;
    unsigned iterations; /* this and the rest: SCRAM */
    unsigned char salt[VERIFIER_SALT_MAX];
    size_t salt_length;
    unsigned char stored_key[DIGEST_SIZE], server_key[DIGEST_SIZE];
    char crypt[VERIFIER_CRYPT_MAX]; /* CRYPT: "$6$..." */
};

/* NULL, or the reason why this is not a valid password: empty, too long, control
 * characters, not UTF-8. This is all that is done of SASLprep (RFC 4013): bytes are
 * neither mapped nor normalised. */
const char *verifier_password_error(struct text password);

/* SCRAM keys from the result of PBKDF2 for the password (RFC 5802 §3). */
void verifier_keys(const unsigned char salted[DIGEST_SIZE],
                   unsigned char client_key[DIGEST_SIZE],
                   unsigned char stored_key[DIGEST_SIZE],
                   unsigned char server_key[DIGEST_SIZE]);

/* SCRAM keys for a valid password; salt and iterations within the limits. */
void verifier_make(struct verifier *v, struct text password, struct text salt,
                   unsigned iterations);

/* Reads SCRAM-SHA-256$i:salt$stored:server (RFC 5803, PostgreSQL),
 * {SCRAM-SHA-256}i,salt,stored,server (Dovecot), or $6$... with or without
 * {SHA512-CRYPT} or {CRYPT}. NULL, or the error, for "user 'x': ...": a constant, no
 * part of t. */
const char *verifier_parse(struct verifier *v, struct text t);

/* Writes SCRAM keys in the form of RFC 5803. False at out's limit;
 * VERIFIER_WRITTEN_MAX is enough. */
bool verifier_write(const struct verifier *v, struct buffer *out)
    __attribute__((warn_unused_result));

/* A check in slices of up to 5 ms. An invalid password is wrong immediately. Plain
 * data with secrets: overwrite it at the end (digest_forget()). */
struct verifier_check {
    struct verifier verifier;
    struct digest_stretch stretch;
};
enum verifier_finding { VERIFIER_WRONG, VERIFIER_RIGHT, VERIFIER_UNFINISHED };
/* The first slice. */
enum verifier_finding verifier_check_start(struct verifier_check *c,
                                           const struct verifier *v,
                                           struct text password)
    __attribute__((warn_unused_result));
/* After UNFINISHED: the next slice. */
enum verifier_finding verifier_check_go(struct verifier_check *c)
    __attribute__((warn_unused_result));

#endif
