/* The body hash of DKIM, once more and slowly, from the words of RFC 6376 §3.4.4: for
 * the unit test and the fuzzer of mime/auth/dkim.h. */
#ifndef T_SUPPORT_DKIM_TWIN_H
#define T_SUPPORT_DKIM_TWIN_H

#include "base/crypto/digest.h"

void dkim_twin_body(struct text body, unsigned char out[DIGEST_SIZE]);

#endif
