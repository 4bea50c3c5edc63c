/* A circuit breaker: after some failures in a row it pauses, then allows one try. Plain
 * data; times are ms. The user sets the first four, the rest is zeroed. */
#ifndef BASE_BREAKER_H
#define BASE_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

struct breaker {
    unsigned failures_max; /* in a row: the last of them opens it */
    int64_t retry_ms;      /* pause behind a failure that does not open it */
    int64_t pause_ms;      /* while open... */
    int64_t pause_max_ms;  /* ...doubled up to this by each try that fails */
    unsigned failures;
    int64_t pause_now_ms;
};

/* A success: the breaker closes. */
void breaker_good(struct breaker *b);
/* A failure. Returns the pause before the next try. */
int64_t breaker_failed(struct breaker *b);
/* Open: do not wait for an answer. */
bool breaker_is_open(const struct breaker *b);

#endif
