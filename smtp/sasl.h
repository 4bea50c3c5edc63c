/* Mechanisms of AUTH (RFC 4954, 4422) and the helpers that client and server share. */
#ifndef SMTP_SASL_H
#define SMTP_SASL_H

#include "base/buffer.h"
#include "base/crypto/digest.h"

enum sasl_mechanism {
    SASL_NONE,
    SASL_PLAIN,         /* RFC 4616 */
    SASL_LOGIN,         /* not standardised; two challenges */
    SASL_SCRAM_SHA_256, /* RFC 5802, 7677 */
    SASL_XOAUTH2,       /* Google's and Microsoft's */
    SASL_OAUTHBEARER,   /* RFC 7628; server only */
    SASL_EXTERNAL       /* a certificate; not by AUTH */
};

enum {
    SASL_LINE_MAX = 12288,   /* Base64 in one line; RFC 4954 §4 */
    SASL_MESSAGE_MAX = 1024, /* decoded, of PLAIN, LOGIN and SCRAM */
    SASL_NAME_MAX = 128,     /* bytes of a user name */
    SASL_NONCE_MAX = 64,     /* of our own nonce */
    SASL_NONCE_SIZE = 33
};

/* "SCRAM-SHA-256"; "" for NONE. */
const char *sasl_name(enum sasl_mechanism mechanism);
/* In any case of letters; NONE when unknown. */
enum sasl_mechanism sasl_find(struct text name);

/* A nonce from 192 random bits: 32 characters and a NUL. */
void sasl_nonce(const uint64_t random[3], char nonce[SASL_NONCE_SIZE]);

/* A user name: 1 to SASL_NAME_MAX bytes of UTF-8 without control characters. SASLprep
 * (RFC 4013) is not applied: names are compared byte by byte. */
bool sasl_is_name(struct text name);

/* --- SCRAM ------------------------------------------------------------------------ */

/* Messages of SCRAM (RFC 5802 §5.1, §7) for client and server.
 *
 * Channel binding ("p=") is refused. No I/O; the caller encodes and decodes Base64. */

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

/* sasl_scram_read_...: false when the message is malformed or exceeds a limit. Optional
 * extensions are ignored where they are allowed, mandatory ones ("m=") are refused. */
bool sasl_scram_read_first(struct text t, struct scram_first *first)
    __attribute__((warn_unused_result));
bool sasl_scram_read_challenge(struct text t, struct scram_challenge *challenge)
    __attribute__((warn_unused_result));
bool sasl_scram_read_final(struct text t, struct scram_final *final)
    __attribute__((warn_unused_result));
/* "v=..."; false also for "e=...". */
bool sasl_scram_read_verdict(struct text t, unsigned char signature[DIGEST_SIZE])
    __attribute__((warn_unused_result));

/* Adds name with "," and "=" escaped; false at out's limit. */
bool sasl_scram_write_name(struct text name, struct buffer *out)
    __attribute__((warn_unused_result));

/* proof ^= HMAC(stored_key, auth): makes a proof of the client's key, and the key of a
 * proof. */
void sasl_scram_mix(unsigned char proof[DIGEST_SIZE],
                    const unsigned char stored_key[DIGEST_SIZE], struct text auth);
/* True: the proof was made with the password of stored_key. */
bool sasl_scram_is_proven(const unsigned char proof[DIGEST_SIZE],
                          const unsigned char stored_key[DIGEST_SIZE],
                          struct text auth);

#endif
