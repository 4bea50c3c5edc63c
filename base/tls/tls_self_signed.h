/* Certificates that sign themselves: for tests, and for old devices that want TLS and verify
 * nothing. */
#ifndef BASE_TLS_TLS_SELF_SIGNED_H
#define BASE_TLS_TLS_SELF_SIGNED_H

#include "base/buffer.h"
#include "base/tls/tls.h"

enum {
    TLS_SELF_SIGNED_NAMES_MAX = 20,
    TLS_SELF_SIGNED_NAME_MAX = 253,
    TLS_SELF_SIGNED_MAX = 16 * 1024 /* of each of the two files */
};

/* RSA with 2048 bits takes a fraction of a second, and every device knows it. */
enum tls_key_kind { TLS_KEY_RSA, TLS_KEY_ECDSA };

/* A fresh key (RSA-2048 or P-256) and its certificate, as PEM, valid from a day before now_ms until
 * until_ms. names: host names in ASCII, "*.example.org", or addresses; they become
 * subjectAltName, the first one the subject, too. The limits of both buffers are
 * TLS_SELF_SIGNED_MAX; the caller overwrites the key. False: the library failed. */
bool tls_self_signed_make(struct tls *tls, enum tls_key_kind kind,
                          const struct text *names, size_t count, int64_t now_ms,
                          int64_t until_ms, struct buffer *certificate,
                          struct buffer *key) __attribute__((warn_unused_result));

#endif
