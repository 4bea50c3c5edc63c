/* Writes the origin of a message. */
#include "smtp/server/trust.h"

#include "base/net_address.h"

/* Reads "[192.0.2.1]" and "[IPv6:2001:db8::1]"; false for others, such as "unix". */
static bool
trust_read_client(const char *client, struct net_address *address)
{
    static const struct text tag = TEXT("IPv6:");
    struct text t = text_from(client);
    if (!text_starts(t, TEXT("[")) || t.length < 2)
        return false;
    t = text_of(t.at + 1, t.length - 2);
    if (text_starts(t, tag))
        t = text_after(t, tag.length);
    return net_address_parse_ip(t, address);
}

/* The network of one customer, or a little more. */
static bool
write_network(const struct net_address *a, struct buffer *out)
{
    const unsigned char *ip = a->ip;
    switch (a->family) {
    case NET_PASSED:
    case NET_NONE:
    case NET_UNIX:
        break;
    case NET_IPV4:
        return buffer_format(out, "%u.%u.%u.0/24", ip[0], ip[1], ip[2]);
    case NET_IPV6:
        return buffer_format(out, "%x:%x:%x:%x::/64", ip[0] << 8 | ip[1],
                             ip[2] << 8 | ip[3], ip[4] << 8 | ip[5],
                             ip[6] << 8 | ip[7]);
    }
    return true;
}

bool
trust_write(const struct server *s, struct buffer *out)
{
    struct net_address client = {.family = NET_NONE};
    const char *trust = server_may_relay(s) ? "int" : "ext";
    bool known = trust_read_client(s->client, &client);
    net_address_unmap(&client);
    return (s->user == NULL ? buffer_format(out, "%s net:", trust)
                            : buffer_format(out, "auth:%s net:", s->user)) &&
           (!known || write_network(&client, out));
}
