/* The source addresses of outgoing connections (smtp_bind, ?bind=): at most one a
 * family. Without padding or pointers, so that a target that has one can be compared
 * as bytes. */
#ifndef SCHED_ROUTE_BIND_ADDRESS_H
#define SCHED_ROUTE_BIND_ADDRESS_H

#include "base/buffer.h"
#include "base/net_address.h"

struct peers;

enum { BIND_ADDRESS_TEXT_MAX = 64 };

struct bind_address {
    bool has_v4, has_v6;
    unsigned char v4[4], v6[16];
};

/* list: IP addresses without ports, separated by commas or blanks. NULL, or the word
 * that is wrong is in *word and the return value says why. */
const char *bind_address_parse(struct bind_address *sources, struct text list,
                               struct text *word);
/* The same for smtp_bind: false with one line per error; `errors` may be NULL. */
bool bind_address_read(struct bind_address *sources, struct text list,
                       struct buffer *errors);
/* "192.0.2.1,2001:db8::1"; empty: none. */
void bind_address_format(const struct bind_address *sources,
                         char out[BIND_ADDRESS_TEXT_MAX]);
/* Copies others. The address by which our own hosts know this one, if any, replaces
 * that of its family; peers may be NULL. */
void bind_address_for_peers(struct bind_address *sources,
                            const struct bind_address *others,
                            const struct peers *peers);
/* Where sources has no address of a family, it gets that of others. */
void bind_address_complete(struct bind_address *sources,
                           const struct bind_address *others);
/* False: the system chooses. */
bool bind_address_for(const struct bind_address *sources, enum net_family family,
                      struct net_address *out);

#endif
