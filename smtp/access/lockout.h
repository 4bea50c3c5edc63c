/* The failed and successful logins of clients, and their lockouts. Pure: no clock.
 *
 * A client is an IPv4 address, an IPv6 /64 (one customer), or a user id at a Unix
 * socket. A success does not reset the failures: otherwise the owner of one account could
 * guess the passwords of others. */
#ifndef SMTP_ACCESS_LOCKOUT_H
#define SMTP_ACCESS_LOCKOUT_H

#include "base/net_address.h"

enum {
    LOCKOUT_CLIENTS_MAX = 10000, /* then the one with the oldest failure is forgotten */
    LOCKOUT_WINDOW_MS = 10 * 60 * 1000,
    LOCKOUT_FIRST_MS = 5 * 60 * 1000, /* doubled at each lockout... */
    LOCKOUT_LONGEST_MS = 6 * 3600 * 1000,
    LOCKOUT_MEMORY_MS = 24 * 3600 * 1000, /* ...until this long without a failure */
    LOCKOUT_DELAY_MS = 1000, /* of the reply to the first failure; doubled at each */
    LOCKOUT_DELAY_MAX_MS = 10 * 1000,
    LOCKOUT_GOOD_MAX = 10000,           /* then the oldest login is forgotten */
    LOCKOUT_GOOD_MS = 12 * 3600 * 1000, /* then a login is forgotten */
    LOCKOUT_KEY_SIZE = 9
};

struct lockout;

struct lockout_key {
    unsigned char bytes[LOCKOUT_KEY_SIZE];
};
/* uid is used for a Unix socket only. */
struct lockout_key lockout_key(const struct net_address *client, unsigned uid);

struct lockout *lockout_new(void);
void lockout_free(struct lockout **lockout);
/* Sets the number of failures within LOCKOUT_WINDOW_MS that lock a client out; 0: no
 * lockout. */
void lockout_set_limit(struct lockout *lockout, int limit);

/* The rest of the client's lockout, or 0. now_ms must be monotonic. */
int64_t lockout_left_ms(const struct lockout *lockout, const struct lockout_key *key,
                        int64_t now_ms);

struct lockout_verdict {
    int failures;      /* within the window, this one included */
    int64_t delay_ms;  /* of the reply */
    int64_t locked_ms; /* 0, or the lockout that this failure begins */
};
struct lockout_verdict lockout_failed(struct lockout *lockout,
                                      const struct lockout_key *key, int64_t now_ms);

/* The client has logged in. */
void lockout_passed(struct lockout *lockout, const struct lockout_key *key,
                    int64_t now_ms);

/* "192.0.2.1", "2001:db8:1:2::/64", "uid 1000". */
enum { LOCKOUT_TEXT_MAX = NET_ADDRESS_TEXT_MAX + 8 };
void lockout_key_format(const struct lockout_key *key, char out[LOCKOUT_TEXT_MAX]);
/* The key of such a text, or of an IPv6 address. False: it is none. */
bool lockout_key_parse(struct text t, struct lockout_key *key)
    __attribute__((warn_unused_result));

/* A client that is locked out. */
struct lockout_entry {
    struct lockout_key key;
    int lockouts;    /* within LOCKOUT_MEMORY_MS of each other */
    int64_t left_ms; /* of this one */
};
/* Fills at most max entries, latest failure first, and returns the number of all. */
size_t lockout_list(const struct lockout *lockout, int64_t now_ms,
                    struct lockout_entry *entries, size_t max);
/* Forgets the failures of a client. True: it was locked out. */
bool lockout_forgive(struct lockout *lockout, const struct lockout_key *key,
                     int64_t now_ms);

/* The order in which waiting clients are served. */
enum lockout_standing {
    LOCKOUT_GOOD,    /* logged in within LOCKOUT_GOOD_MS, and has not failed since */
    LOCKOUT_UNKNOWN, /* neither, or both */
    LOCKOUT_SUSPECT  /* has failed within LOCKOUT_WINDOW_MS, or was locked out within
                        LOCKOUT_MEMORY_MS; and has not logged in */
};
enum lockout_standing lockout_standing(const struct lockout *lockout,
                                       const struct lockout_key *key, int64_t now_ms);

#endif
