/* Hosts whose TLS failed not long ago, to say so once for many messages. That decides
 * nothing: TLS is tried again for each.
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
/* The handshake with it failed now; times as loop_monotonic_ms(). True when none of it
 * had within LAPSE_MS since one that was told: this is to be told. */
bool lapses_add(struct lapses *l, const struct net_address *address, int64_t now_ms)
    __attribute__((warn_unused_result));

#endif
