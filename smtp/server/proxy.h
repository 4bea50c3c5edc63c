/* The header of the PROXY protocol, versions 1 and 2: what a proxy says about the
 * client for whom it has connected. Pure.
 *
 * Who may say it is smtp/server/policy.h's business, how long that may take
 * smtp/server/pregreet.h's.
 */
#ifndef SMTP_SERVER_PROXY_H
#define SMTP_SERVER_PROXY_H

#include "base/net_address.h"

enum {
    PROXY_TEXT_MAX = 107,  /* version 1, with its CRLF */
    PROXY_HEADER_MAX = 536 /* version 2, with all that is attached: more is BAD */
};

enum proxy_kind {
    PROXY_CLIENT, /* a client, by TCP */
    PROXY_SELF,   /* LOCAL: the proxy itself, to see whether we live */
    PROXY_UNNAMED /* UNKNOWN, a Unix socket: a client whose address nobody tells */
};

struct proxy_header {
    enum proxy_kind kind;
    struct net_address client; /* PROXY_CLIENT; mapped IPv4 is IPv4 */
};

/* Takes the header off *input and nothing behind it. MORE: it has only begun, *input is
 * as it was; call again with more. BAD: not a header, or a wrong one (an attached
 * CRC32C counts); nothing of it may be used. */
enum progress proxy_parse(struct text *input, struct proxy_header *header)
    __attribute__((warn_unused_result));

#endif
