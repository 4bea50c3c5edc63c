/* Collects name servers, and judges them. */
#include "base/dns/dns_servers.h"

#include <stdio.h>
#include <string.h>

/* Docker's forwarder at 127.0.0.11 passes on the replies of any server. */
static bool
dns_server_is_local(const struct net_address *server)
{
    static const unsigned char docker[4] = {127, 0, 0, 11};
    struct net_address plain = *server;
    net_address_unmap(&plain);
    return net_address_is_loopback(&plain) &&
           (plain.family != NET_IPV4 || memcmp(plain.ip, docker, sizeof(docker)) != 0);
}

void
dns_servers_init(struct dns_servers *servers)
{
    *servers = (struct dns_servers){.vouched = true};
    buffer_init(&servers->spelt, (size_t)DNS_SERVERS_MAX * NET_ADDRESS_TEXT_MAX);
}

bool
dns_servers_add(struct dns_servers *servers, const struct net_address *server)
{
    char spelt[NET_ADDRESS_TEXT_MAX];
    if (server->family == NET_UNIX || server->port == 0 ||
        servers->count == DNS_SERVERS_MAX)
        return false;
    net_address_format(server, spelt);
    servers->vouched = servers->vouched && dns_server_is_local(server);
    return buffer_format(&servers->spelt, "%s%s", servers->count++ > 0 ? "," : "",
                         spelt);
}

static bool
dns_servers_take(struct dns_servers *servers, struct text word)
{
    struct net_address address;
    if (net_address_parse_ip(word, &address))
        address.port = DNS_SERVER_PORT;
    else if (!net_address_parse(word, DNS_SERVER_PORT, &address))
        return false;
    return dns_servers_add(servers, &address);
}

bool
dns_servers_parse(struct dns_servers *servers, struct text list, char *error,
                  size_t error_size)
{
    struct text word;
    while (text_word(&list, ", \t\r\n", &word)) {
        if (servers->count == DNS_SERVERS_MAX) {
            snprintf(error, error_size, "more than %d name servers", DNS_SERVERS_MAX);
            return false;
        }
        if (!dns_servers_take(servers, word)) {
            snprintf(error, error_size,
                     "'%.*s' is not an IP address of a name server: write 192.0.2.53, "
                     "192.0.2.53:5353 or [2001:db8::53]:53",
                     TEXT_ARGS(text_before(word, 100)));
            return false;
        }
    }
    return true;
}

void
dns_servers_declare(struct dns_servers *servers, struct text resolv_conf)
{
    struct text line, word;
    while (text_cut(&resolv_conf, '\n', &line)) {
        if (!text_word(&line, " \t\r", &word) || !text_equal(word, TEXT("options")))
            continue;
        while (text_word(&line, " \t\r", &word))
            if (text_equal(word, TEXT("trust-ad")))
                servers->vouched = true;
    }
}
