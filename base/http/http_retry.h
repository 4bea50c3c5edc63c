/* The Retry-After of a response (RFC 9110 §10.2.3). Pure. */
#ifndef BASE_HTTP_HTTP_RETRY_H
#define BASE_HTTP_HTTP_RETRY_H

#include "base/text.h"

/* The delay in ms, at most most_ms, that seconds or an IMF-fixdate ask for; 0: a date
 * that is over. -1: it is neither. */
int64_t http_retry_after_ms(struct text value, int64_t now_ms, int64_t most_ms);

#endif
