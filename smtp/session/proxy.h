/* The header of the PROXY protocol, versions 1 and 2: a proxy declares the address of its
 * client. Pure.
 *
 * smtp/session/listener.h decides which proxies are trusted, smtp/session/pregreet.h limits
 * the time. */
#ifndef SMTP_SESSION_PROXY_H
#define SMTP_SESSION_PROXY_H

#include "base/net_address.h"

enum {
    PROXY_TEXT_MAX = 107,  /* version 1, with its CRLF */
    PROXY_HEADER_MAX = 536 /* version 2, with TLVs; more is BAD */
};

enum proxy_kind {
    PROXY_CLIENT, /* a client, by TCP */
    PROXY_SELF,   /* LOCAL: the proxy itself, a health check */
    PROXY_UNNAMED /* UNKNOWN or a Unix socket: a client without an address */
};

struct proxy_header {
    enum proxy_kind kind;
    struct net_address client; /* PROXY_CLIENT; mapped IPv4 is IPv4 */
};

/* Takes the header off *input and nothing after it. MORE: the header is incomplete and
 * *input unchanged; call again with more. BAD: not a header, or an invalid one (its
 * CRC32C is checked); *header must not be used. */
enum progress proxy_parse(struct text *input, struct proxy_header *header)
    __attribute__((warn_unused_result));

#endif
