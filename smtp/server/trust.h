/* Who has sent a message, as its envelope keeps it for who puts fragments together
 * (envelope.trust). */
#ifndef SMTP_SERVER_TRUST_H
#define SMTP_SERVER_TRUST_H

#include "smtp/server/server.h"

/* Appends "auth:USER", "int" or "ext", then " net:" and the network of the client:
 * 192.0.2.0/24, 2001:db8:0:1::/64, or nothing when it came by none. False: it does not
 * fit. */
bool trust_write(const struct server *s, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
