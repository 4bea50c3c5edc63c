/* The setting `http`: where the daemon answers HTTP, and to whom.
 *
 * Pure: parses the list of ADDRESS:PORT[?OPTION&...] and unix:PATH[?...]. */
#ifndef ADMIN_HTTP_HTTP_PLACES_H
#define ADMIN_HTTP_HTTP_PLACES_H

#include "base/buffer.h"
#include "base/net_place.h"

enum { HTTP_PLACES_MAX = 16 };

/* The access of a client: each includes the one before it. */
enum http_may { HTTP_MAY_NOTHING, HTTP_MAY_READ, HTTP_MAY_OPERATE };

struct http_place {
    struct net_address address;
    bool tls, no_page, no_metrics;
    enum http_may access; /* of any client that can connect; NOTHING: a key is needed */
    struct net_users users;
};

struct http_places {
    struct http_place list[HTTP_PLACES_MAX];
    size_t count;
};

/* False: one line an error. */
bool http_places_read(struct text http, struct http_places *out, struct buffer *errors)
    __attribute__((warn_unused_result));
/* access= is only for clients on this host. */
bool http_place_is_safe(const struct http_place *place);
#define HTTP_PLACE_UNSAFE                                                              \
    "only allowed for unix:PATH and loopback: set http_token for other clients"
/* False: one line an error. names is the list of `http_names`, or "*". */
bool http_names_check(struct text names, struct buffer *errors)
    __attribute__((warn_unused_result));

#endif
