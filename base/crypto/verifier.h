/* What a password is checked against: SCRAM-SHA-256 keys (RFC 5803, 7677) or a SHA-512
 * crypt(3). The password itself is nowhere.
 *
 * A check must not cost the loop more than 5 ms at a time. SCRAM keys are computed in
 * slices; SHA-512 crypt cannot be, so the work that it may ask for has a limit: about
 * 4 ms on a 2023 server. bcrypt, yescrypt and Argon2 are made to cost more, and are
 * refused. */
#ifndef BASE_CRYPTO_VERIFIER_H
#define BASE_CRYPTO_VERIFIER_H

#include "base/buffer.h"
#include "base/crypto/digest.h"

enum {
    /* When made here: 26 ms on a 2023 server. Clients with Cyrus SASL (Postfix) refuse
     * more than 65,536. */
    VERIFIER_ITERATIONS = 65000,
    VERIFIER_ITERATIONS_MIN = 4096, /* RFC 7677 §4 */
    VERIFIER_ITERATIONS_MAX = 1000000,
    VERIFIER_SLICE = 5000,      /* iterations: 2 ms */
    VERIFIER_ROUNDS_MAX = 5000, /* of SHA-512 crypt, the number that it has unsaid */
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

/* NULL, or why this can be no password: empty, too long, control characters, not UTF-8.
 * Of SASLprep (RFC 4013) this is what is done: there is no mapping and no
 * normalisation, the bytes are taken as they come. */
const char *verifier_password_error(struct text password);

/* Keys of SCRAM from what PBKDF2 has made of the password (RFC 5802 §3). */
void verifier_keys(const unsigned char salted[DIGEST_SIZE],
                   unsigned char client_key[DIGEST_SIZE],
                   unsigned char stored_key[DIGEST_SIZE],
                   unsigned char server_key[DIGEST_SIZE]);

/* SCRAM keys for a valid password; salt and iterations within the limits. */
void verifier_make(struct verifier *v, struct text password, struct text salt,
                   unsigned iterations);

/* Reads SCRAM-SHA-256$i:salt$stored:server (RFC 5803, PostgreSQL),
 * {SCRAM-SHA-256}i,salt,stored,server (Dovecot), or $6$... with or without
 * {SHA512-CRYPT} or {CRYPT}. NULL, or what is wrong, for "user 'x': ...": a constant,
 * no part of t. */
const char *verifier_parse(struct verifier *v, struct text t);

/* In the form of RFC 5803; for SCRAM. False at out's limit, which VERIFIER_WRITTEN_MAX
 * is not. */
bool verifier_write(const struct verifier *v, struct buffer *out)
    __attribute__((warn_unused_result));

/* A check, slice by slice, each up to 5 ms. What is no password at all is wrong at
 * once. Plain data with secrets: overwrite it at the end (digest_forget). */
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
/* After UNFINISHED: one more. */
enum verifier_finding verifier_check_go(struct verifier_check *c)
    __attribute__((warn_unused_result));

#endif
