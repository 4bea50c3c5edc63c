/* Messages of SCRAM (RFC 5802 §5.1, §7) for client and server.
 *
 * Channel binding ("p=") is refused. No I/O; the caller encodes and decodes Base64. */
#ifndef SMTP_SCRAM_H
#define SMTP_SCRAM_H

#include "base/crypto/digest.h"
#include "smtp/sasl.h"

/* client-first-message: slices of the message read. */
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

/* scram_read_...: false when the message is malformed or exceeds a limit. Optional
 * extensions are ignored where they are allowed, mandatory ones ("m=") are refused. */
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

/* proof ^= HMAC(stored_key, auth): makes a proof of the client's key, and the key of a
 * proof. */
void scram_mix(unsigned char proof[DIGEST_SIZE],
               const unsigned char stored_key[DIGEST_SIZE], struct text auth);
/* True: the proof was made with the password of stored_key. */
bool scram_is_proven(const unsigned char proof[DIGEST_SIZE],
                     const unsigned char stored_key[DIGEST_SIZE], struct text auth);

#endif
