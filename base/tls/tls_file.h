/* The facts in a certificate file of ours: dates, names and chain, and the digest that a
 * TLSA record has. For people; connections do not need them. */
#ifndef BASE_TLS_TLS_FILE_H
#define BASE_TLS_TLS_FILE_H

#include "base/tls/tls.h"

#include <stdint.h>

enum { TLS_FILE_DIGEST_MAX = 65 };

struct tls_file {
    int64_t begins_ms, expires_ms; /* of the first one */
    char name[TLS_NAME_MAX + 1];   /* its first; may be empty */
    bool names_host;
    bool is_own_issuer; /* nobody else has signed it */
    bool is_whole; /* a chain to an anchor; false also where there are no anchors */
    char key_digest[TLS_FILE_DIGEST_MAX]; /* SHA-256 of its key, for TLSA 3 1 1 */
};

/* anchors may be NULL. False: one line in error. */
bool tls_file_read(const char *path, struct text host, const struct tls_client *anchors,
                   struct tls_file *out, char *error, size_t error_size)
    __attribute__((warn_unused_result));

#endif
