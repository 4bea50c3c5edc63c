/* Mechanisms of AUTH (RFC 4954, 4422) and the helpers that client and server share. */
#ifndef SMTP_SASL_H
#define SMTP_SASL_H

#include "base/buffer.h"

enum sasl_mechanism {
    SASL_NONE,
    SASL_PLAIN,         /* RFC 4616 */
    SASL_LOGIN,         /* not standardised; two challenges */
    SASL_SCRAM_SHA_256, /* RFC 5802, 7677 */
    SASL_XOAUTH2        /* Google's and Microsoft's; client only */
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

#endif
