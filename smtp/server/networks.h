/* Lists of networks in settings. */
#ifndef SMTP_SERVER_NETWORKS_H
#define SMTP_SERVER_NETWORKS_H

#include "base/buffer.h"
#include "base/net_address.h"

enum { NETWORKS_MAX = 1024 };

struct networks { /* zeroed: empty */
    struct net_network *list;
    size_t count;
};

/* Reads a list of ADDRESS or ADDRESS/BITS. Adds one line per error, with key, to errors;
 * false then. all_is_wrong: the error for a network of all addresses; NULL: no error.
 * The caller frees networks in any case. */
bool networks_read(struct networks *networks, const char *key, struct text list,
                   const char *all_is_wrong, struct buffer *errors)
    __attribute__((warn_unused_result));
void networks_free(struct networks *networks);

/* False for a Unix socket. */
bool networks_have(const struct networks *networks, const struct net_address *address);

#endif
