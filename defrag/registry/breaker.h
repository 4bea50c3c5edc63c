/* A circuit breaker: after some failures in a row it pauses, then allows one try. Plain
 * data, pure; times are monotonic ms. */
#ifndef DEFRAG_REGISTRY_BREAKER_H
#define DEFRAG_REGISTRY_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

/* The owner sets the first four; the rest is zeroed. */
struct breaker {
    unsigned failures_max; /* in a row: the last of them opens it */
    int64_t retry_ms;      /* pause behind a failure that does not open it */
    int64_t pause_ms;      /* while open... */
    int64_t pause_max_ms;  /* ...doubled up to this by each try that fails */
    unsigned failures;
    int64_t pause_now_ms;
};

/* It answered: closed. */
void breaker_good(struct breaker *b);
/* It failed. Returns the pause before the next try. */
int64_t breaker_failed(struct breaker *b);
/* Open: do not wait for it. */
bool breaker_is_open(const struct breaker *b);

#endif
