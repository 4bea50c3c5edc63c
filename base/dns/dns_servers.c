/* Collects name servers, judges them, and remembers which of them are dead. */
#include "base/dns/dns_servers.h"

#include <stdio.h>
#include <string.h>

static_assert(DNS_SERVERS_MAX <= 8 * sizeof(unsigned), "a bit each");

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
}

bool
dns_servers_add(struct dns_servers *servers, const struct net_address *server)
{
    if (server->family == NET_UNIX || server->port == 0 ||
        servers->count == DNS_SERVERS_MAX)
        return false;
    servers->vouched = servers->vouched && dns_server_is_local(server);
    servers->at[servers->count++] = (struct dns_server){.address = *server};
    return true;
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
dns_servers_read(struct dns_servers *servers, struct text resolv_conf)
{
    static const char blank[] = " \t\r";
    struct text line, word, rest = resolv_conf;
    while (text_cut(&rest, '\n', &line))
        if (text_word(&line, blank, &word) && text_equal(word, TEXT("nameserver")) &&
            text_word(&line, blank, &word))
            (void)dns_servers_take(servers, word);
    for (rest = resolv_conf; text_cut(&rest, '\n', &line);) {
        if (!text_word(&line, blank, &word) || !text_equal(word, TEXT("options")))
            continue;
        while (text_word(&line, blank, &word))
            if (text_equal(word, TEXT("trust-ad")))
                servers->vouched = true;
    }
}

static bool
is_same_list(const struct dns_servers *a, const struct dns_servers *b)
{
    bool same = a->count == b->count && a->vouched == b->vouched;
    for (size_t i = 0; same && i < a->count; i++)
        same = net_address_equal(&a->at[i].address, &b->at[i].address);
    return same;
}

bool
dns_servers_replace(struct dns_servers *servers, const struct dns_servers *fresh)
{
    struct dns_servers old = *servers;
    if (is_same_list(servers, fresh))
        return false;
    *servers = *fresh;
    servers->generation = old.generation + 1;
    for (size_t i = 0; i < servers->count; i++)
        for (size_t j = 0; j < old.count; j++)
            if (net_address_equal(&servers->at[i].address, &old.at[j].address))
                servers->at[i] = old.at[j];
    return true;
}

size_t
dns_servers_next(const struct dns_servers *servers, unsigned asked, int64_t now_ms)
{
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < servers->count; i++) {
        if ((asked & 1u << i) != 0)
            continue;
        if (servers->at[i].last_until_ms <= now_ms)
            return i;
        last = last == SIZE_MAX ? i : last;
    }
    return last;
}

bool
dns_server_answered(struct dns_server *server, int64_t now_ms)
{
    bool was_dead = server->dead;
    server->dead = false;
    server->last_until_ms = 0;
    server->answered_ms = now_ms;
    return was_dead;
}

bool
dns_server_failed(struct dns_server *server, int64_t now_ms)
{
    bool was_dead = server->dead;
    server->dead = true;
    server->last_until_ms = now_ms + DNS_SERVER_DEAD_MS;
    return !was_dead;
}

void
dns_server_name(const struct net_address *server, char out[NET_ADDRESS_TEXT_MAX])
{
    if (server->port == DNS_SERVER_PORT)
        net_address_ip(server, out);
    else
        net_address_format(server, out);
}

size_t
dns_servers_list(const struct dns_servers *servers, bool dead,
                 char out[DNS_SERVERS_TEXT_MAX])
{
    static_assert(DNS_SERVERS_TEXT_MAX > DNS_SERVERS_MAX * 56, "16 of [IPv6]:65535, ");
    size_t count = 0, length = 0;
    out[0] = '\0';
    for (size_t i = 0; i < servers->count; i++) {
        char name[NET_ADDRESS_TEXT_MAX];
        if (dead && !servers->at[i].dead)
            continue;
        dns_server_name(&servers->at[i].address, name);
        length += (size_t)snprintf(out + length, DNS_SERVERS_TEXT_MAX - length, "%s%s",
                                   count++ > 0 ? ", " : "", name);
    }
    return count;
}
