/* Hosts whose TLS failed not long ago: a route that may go without TLS does not try it
 * again at once.
 *
 * Pure. Holds at most LAPSES_MAX addresses, then the oldest is forgotten. */
#ifndef SMTP_LAPSES_H
#define SMTP_LAPSES_H

#include "base/net.h"

enum { LAPSES_MAX = 2000 };
#define LAPSE_MS ((int64_t)60 * 60 * 1000)

struct lapses;

struct lapses *lapses_new(void);
void lapses_free(struct lapses **l);
/* The handshake with it failed now; times as loop_monotonic_ms(). */
void lapses_add(struct lapses *l, const struct net_address *address, int64_t now_ms);
/* Whether it did within LAPSE_MS. */
bool lapses_has(struct lapses *l, const struct net_address *address, int64_t now_ms);

#endif
