/* Who has failed to log in, how often, and how long it is locked out; and who has
 * logged in. Pure: no clock.
 *
 * Clients are addresses: of IPv6 the /64, which is one customer; at a Unix socket the
 * user id. A success forgets nothing: else one account would buy guesses at others. */
#ifndef SMTP_SERVER_LOCKOUT_H
#define SMTP_SERVER_LOCKOUT_H

#include "base/net_address.h"

enum {
    LOCKOUT_CLIENTS_MAX = 10000, /* then the one whose failure is the oldest goes */
    LOCKOUT_WINDOW_MS = 10 * 60 * 1000,
    LOCKOUT_FIRST_MS = 5 * 60 * 1000, /* doubled each time... */
    LOCKOUT_LONGEST_MS = 6 * 3600 * 1000,
    LOCKOUT_MEMORY_MS = 24 * 3600 * 1000, /* ...until this long without a failure */
    LOCKOUT_DELAY_MS = 1000, /* of the first failure's answer, doubled... */
    LOCKOUT_DELAY_MAX_MS = 10 * 1000,
    LOCKOUT_GOOD_MAX = 10000, /* who logged in; then the one that did long ago goes */
    LOCKOUT_GOOD_MS = 12 * 3600 * 1000, /* how long a good login is remembered */
    LOCKOUT_KEY_SIZE = 9
};

struct lockout;

struct lockout_key {
    unsigned char bytes[LOCKOUT_KEY_SIZE];
};
/* uid counts for a Unix socket alone. */
struct lockout_key lockout_key(const struct net_address *client, unsigned uid);

struct lockout *lockout_new(void);
void lockout_free(struct lockout **lockout);
/* How many failures within LOCKOUT_WINDOW_MS lock out; 0: none do. */
void lockout_set_limit(struct lockout *lockout, int limit);

/* 0, or how long the client is still locked out. Clocks that never go back. */
int64_t lockout_left_ms(const struct lockout *lockout, const struct lockout_key *key,
                        int64_t now_ms);

struct lockout_verdict {
    int failures;      /* within the window, this one included */
    int64_t delay_ms;  /* of the answer */
    int64_t locked_ms; /* 0, or that was one too many */
};
struct lockout_verdict lockout_failed(struct lockout *lockout,
                                      const struct lockout_key *key, int64_t now_ms);

/* It has logged in. */
void lockout_passed(struct lockout *lockout, const struct lockout_key *key,
                    int64_t now_ms);

/* In what order they are served when not all can be. */
enum lockout_standing {
    LOCKOUT_GOOD,    /* logged in within LOCKOUT_GOOD_MS, and has not failed since */
    LOCKOUT_UNKNOWN, /* neither, or both */
    LOCKOUT_SUSPECT  /* has failed within LOCKOUT_WINDOW_MS, or was locked out within
                        LOCKOUT_MEMORY_MS; and has not logged in */
};
enum lockout_standing lockout_standing(const struct lockout *lockout,
                                       const struct lockout_key *key, int64_t now_ms);

size_t lockout_clients(const struct lockout *lockout);

#endif
