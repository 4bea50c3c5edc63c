/* Base64 (RFC 4648 §4), strict: each text has exactly one encoding. */
#ifndef BASE_CRYPTO_BASE64_H
#define BASE_CRYPTO_BASE64_H

#include "base/buffer.h"

/* Characters for size bytes, padding included. */
#define BASE64_LENGTH(size) (((size) + 2) / 3 * 4)

/* False, with out unchanged, at its limit. */
bool base64_encode(struct text t, struct buffer *out)
    __attribute__((warn_unused_result));

enum { BASE64_URL_MAX = 64 };
/* At most BASE64_URL_MAX bytes for a URL: "-" and "_" in place of "+" and "/", no padding
 * (RFC 4648 §5), and a NUL. Leaves no copy. */
void base64_write_url(const void *bytes, size_t size, char *out);

/* Decodes the whole of t: *length bytes at `to`, which has space for size. False when t
 * differs from the output of base64_encode() (a foreign character, a space, missing or
 * misplaced padding, unused bits that are not 0), or does not fit. */
bool base64_decode(struct text t, void *to, size_t size, size_t *length)
    __attribute__((warn_unused_result));

#endif
