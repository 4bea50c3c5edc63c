/* Lists of networks in settings. */
#ifndef SMTP_ACCESS_NETWORKS_H
#define SMTP_ACCESS_NETWORKS_H

#include "base/buffer.h"
#include "base/net_address.h"

enum {
    NETWORKS_MAX = 1024,
    /* More than this part of the public addresses of a family is no network of a user:
     * whoever lets it relay has an open relay. */
    NETWORKS_OPEN_PART = 8
};

struct networks { /* zeroed: empty */
    struct net_network *list;
    size_t count;
};

/* Reads a list of ADDRESS or ADDRESS/BITS. Adds one line per error, with key, to errors;
 * false then. all_is_wrong: the error for networks_open(); NULL: no error.
 * The caller frees networks in any case. */
bool networks_read(struct networks *networks, const char *key, struct text list,
                   const char *all_is_wrong, struct buffer *errors)
    __attribute__((warn_unused_result));
void networks_free(struct networks *networks);

/* NULL, or the largest of networks that together have more than a NETWORKS_OPEN_PART-th
 * of the public addresses of IPv4 or of IPv6, in whatever way they are written. Private
 * networks never count. */
const struct net_network *networks_open(const struct networks *networks);

/* False for a Unix socket. */
bool networks_have(const struct networks *networks, const struct net_address *address);

#endif
