/* A provider of tokens (OAuth2), by which the host logs in at the hop of one domain: it
 * refuses, is slow, says nonsense, gives short lives, and takes tokens back. No login has
 * a token that it has not given, or that is over; and nobody asks it more often than
 * petrel.conf(5) says (the law "bounds"). */
#ifndef T_ROOF_TOKEN_H
#define T_ROOF_TOKEN_H

#include "base/dns/dns.h"

#define TOKEN_PROVIDER "tokens.test"
#define TOKEN_SETTINGS                                                                 \
    "oauth = 10.0.1.0 t0 custom grant=client client=of-roof secret=of-t0 "             \
    "token=https://" TOKEN_PROVIDER ":8444/token\n"

/* has_times: clocks are not set, paths are not narrow, no operator asks for trouble to be
 * tried again, and one daemon asks, so that the times of questions prove something. */
void token_begin(bool has_times);
void token_fill_dns(struct dns *dns);
/* Other answers, another mood, or all tokens are taken back. */
void token_act(void);
void token_become_good(void);
/* So long may mail have to wait then; 0: there is no provider. */
int64_t token_wait_ms(void);
/* Said at a hop: "AUTH XOAUTH2 ..." without these words, on a connection of then. False: it
 * is refused. */
bool token_is_good(struct text word, int64_t began_ms);
/* The hop refuses one that is good. */
void token_refused(void);

#endif
