/* The origin of a message, kept in its envelope (envelope.trust): only fragments of one
 * origin are reassembled. */
#ifndef SMTP_SERVER_TRUST_H
#define SMTP_SERVER_TRUST_H

#include "smtp/server/server.h"

/* Appends "auth:USER", "int" or "ext", then " net:" and the network of the client:
 * 192.0.2.0/24, 2001:db8:0:1::/64, or nothing without an address. False: out is too
 * small. */
bool trust_write(const struct server *s, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
