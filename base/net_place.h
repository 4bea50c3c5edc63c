/* The options that `listen` and `http` have alike: places of sockets, and the users of a
 * Unix socket. */
#ifndef BASE_NET_PLACE_H
#define BASE_NET_PLACE_H

#include "base/net_address.h"

#include <stddef.h>

enum { NET_USERS_MAX = 16 };

struct net_users {
    unsigned mode; /* of a Unix socket; 0: not given */
    unsigned uids[NET_USERS_MAX];
    size_t uid_count; /* 0: all users */
};

/* mode=0660, or uid=NUMBER, once for each user: for a place at that address. NULL, or the
 * error of the option. */
const char *net_users_read(struct net_users *users, const struct net_address *address,
                           struct text option);
bool net_users_have(const struct net_users *users, unsigned uid);

/* One of `options`, which are separated by "&", has the name of one before it: a second one
 * would be ambiguous. option lies in options; uid= may come again. */
bool net_option_is_repeated(struct text options, struct text option);
/* Both cannot be listened at: port 0 is a new port each time. */
bool net_address_is_taken(const struct net_address *a, const struct net_address *b);

#endif
