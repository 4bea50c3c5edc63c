/* The only room that knows mbedTLS. Today: the digest that names messages. */
#ifndef BASE_TLS_H
#define BASE_TLS_H

#include "base/text.h"

enum { TLS_DIGEST_SIZE = 32 };

/* SHA-256. */
void tls_digest(struct text t, unsigned char out[TLS_DIGEST_SIZE]);

/* "mbedTLS 2.28.3" of the library that runs. */
const char *tls_version(void);

#endif
