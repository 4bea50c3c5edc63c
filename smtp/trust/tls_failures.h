/* Hosts whose TLS failed not long ago, so that the failure is logged once for many
 * messages. TLS is tried again for each of them.
 *
 * Pure. Holds at most TLS_FAILURES_MAX addresses, then the oldest is forgotten. */
#ifndef SMTP_TRUST_TLS_FAILURES_H
#define SMTP_TRUST_TLS_FAILURES_H

#include "base/net_address.h"

enum { TLS_FAILURES_MAX = 2000 };
#define TLS_FAILURES_QUIET_MS ((int64_t)60 * 60 * 1000)

struct tls_failures;

struct tls_failures *tls_failures_new(void);
void tls_failures_free(struct tls_failures **l);
/* The handshake with address failed now (loop_monotonic_ms()). True: it is to be
 * logged, since none was within TLS_FAILURES_QUIET_MS. */
bool tls_failures_add(struct tls_failures *l, const struct net_address *address,
                      int64_t now_ms) __attribute__((warn_unused_result));

#endif
