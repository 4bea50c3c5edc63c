/* The name servers that are asked, and whether they may be trusted when they say that
 * an answer is authentic (the AD bit, RFC 6840 §5.7). Pure. */
#ifndef BASE_DNS_DNS_SERVERS_H
#define BASE_DNS_DNS_SERVERS_H

#include "base/buffer.h"
#include "base/net_address.h"

enum { DNS_SERVERS_MAX = 16, DNS_SERVER_PORT = 53 };

struct dns_servers {
    struct buffer spelt; /* "ADDRESS:PORT,...", as all versions of c-ares read it */
    size_t count;
    bool vouched; /* each is on this host; or resolv.conf trusts them */
};

void dns_servers_init(struct dns_servers *servers);
/* False: not an IP address with a port, or DNS_SERVERS_MAX are there. */
bool dns_servers_add(struct dns_servers *servers, const struct net_address *server);
/* A list of address[:port]. False, with one line in error. */
bool dns_servers_parse(struct dns_servers *servers, struct text list, char *error,
                       size_t error_size);
/* The content of the resolv.conf that names the servers: "options trust-ad" says that
 * they validate, and that nobody can change their answers on the way. */
void dns_servers_declare(struct dns_servers *servers, struct text resolv_conf);

#endif
