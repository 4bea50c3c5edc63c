/* The name servers that are asked: in which order, and whether they may be trusted when
 * they say that an answer is authentic (the AD bit, RFC 6840 §5.7). Pure.
 *
 * A server that does not answer is asked last for DNS_SERVER_DEAD_MS, so that a dead one
 * costs one query its time-out, and not each. When none answers, each is asked. */
#ifndef BASE_DNS_DNS_SERVERS_H
#define BASE_DNS_DNS_SERVERS_H

#include "base/net_address.h"

enum {
    DNS_SERVERS_MAX = 16,
    DNS_SERVER_PORT = 53,
    DNS_SERVER_DEAD_MS = 60 * 1000,
    DNS_SERVERS_TEXT_MAX = 1024 /* of their list */
};

struct dns_server {
    struct net_address address;
    bool dead;                          /* until it answers */
    int64_t last_until_ms, answered_ms; /* monotonic; 0: never */
};
struct dns_servers {
    struct dns_server at[DNS_SERVERS_MAX];
    size_t count;
    bool vouched;        /* each is on this host; or resolv.conf trusts them */
    unsigned generation; /* changes with the list */
};

void dns_servers_init(struct dns_servers *servers);
/* False: not an IP address with a port, or DNS_SERVERS_MAX are there. */
bool dns_servers_add(struct dns_servers *servers, const struct net_address *server);
/* A list of address[:port]. False, with one line in error. */
bool dns_servers_parse(struct dns_servers *servers, struct text list, char *error,
                       size_t error_size);
/* The content of a resolv.conf: its name servers, without those that cannot be used, and
 * "options trust-ad", which says that they validate, and that nobody can change their
 * answers on the way. Nothing else counts. */
void dns_servers_read(struct dns_servers *servers, struct text resolv_conf);
/* Takes the place of another list, when it differs; false: it does not. What is known of
 * a server that both have stays known. */
bool dns_servers_replace(struct dns_servers *servers, const struct dns_servers *fresh);

/* The place of the server to ask next. SIZE_MAX: all are in asked, a bit for each
 * place. */
size_t dns_servers_next(const struct dns_servers *servers, unsigned asked,
                        int64_t now_ms);
/* The server has sent an answer of any kind. True: it was dead before. */
bool dns_server_answered(struct dns_server *server, int64_t now_ms);
/* The server has not answered, or was not reached. True: it was not dead before. */
bool dns_server_failed(struct dns_server *server, int64_t now_ms);

/* "192.0.2.53"; with another port than 53 that, too. */
void dns_server_name(const struct net_address *server, char out[NET_ADDRESS_TEXT_MAX]);
/* "192.0.2.53, [::1]:54"; the dead ones alone, or all. Returns their number. */
size_t dns_servers_list(const struct dns_servers *servers, bool dead,
                        char out[DNS_SERVERS_TEXT_MAX]);

#endif
