/* Messages of SCRAM (RFC 5802 §5.1, §7): what both sides write, read and prove.
 *
 * Without channel binding: that would need "p=", which is refused. No I/O; the base64
 * around the messages is the caller's. */
#ifndef SMTP_SCRAM_H
#define SMTP_SCRAM_H

#include "base/crypto/digest.h"
#include "smtp/sasl.h"

/* client-first-message: slices of what was read. */
struct scram_first {
    struct text header;                                       /* "n,," or "y,a=...," */
    struct text bare;                                         /* the rest */
    struct text nonce;                                        /* the client's */
    char name[SASL_NAME_MAX + 1], authzid[SASL_NAME_MAX + 1]; /* "=2C" undone */
};
/* server-first-message */
struct scram_challenge {
    struct text nonce; /* both */
    unsigned char salt[DIGEST_BLOCK];
    size_t salt_length;
    unsigned iterations;
};
/* client-final-message */
struct scram_final {
    struct text nonce;
    struct text header;   /* Base64, as sent */
    struct text unproven; /* all before ",p=" */
    unsigned char proof[DIGEST_SIZE];
};

/* All of them: false when it is not of that form or exceeds a limit. Optional
 * extensions are ignored where they are allowed, mandatory ones ("m=") refused. */
bool scram_read_first(struct text t, struct scram_first *first)
    __attribute__((warn_unused_result));
bool scram_read_challenge(struct text t, struct scram_challenge *challenge)
    __attribute__((warn_unused_result));
bool scram_read_final(struct text t, struct scram_final *final)
    __attribute__((warn_unused_result));
/* "v=..."; false also for "e=...". */
bool scram_read_verdict(struct text t, unsigned char signature[DIGEST_SIZE])
    __attribute__((warn_unused_result));

/* Adds name with "," and "=" escaped; false at out's limit. */
bool scram_write_name(struct text name, struct buffer *out)
    __attribute__((warn_unused_result));

/* proof or key ^= HMAC(stored_key, auth): a proof from the client's key, and back. */
void scram_mix(unsigned char proof[DIGEST_SIZE],
               const unsigned char stored_key[DIGEST_SIZE], struct text auth);
/* Whether the proof is of the password behind stored_key. */
bool scram_is_proven(const unsigned char proof[DIGEST_SIZE],
                     const unsigned char stored_key[DIGEST_SIZE], struct text auth);

#endif
