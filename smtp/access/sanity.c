/* Checks HELO, the sender and the number of a bounce's recipients. */
#include "smtp/access/sanity.h"

#include "mime/address.h"

/* "[192.0.2.1]", "[IPv6:2001:db8::1]" (RFC 5321 §4.1.3). */
static bool
read_literal(struct text t, struct net_address *address)
{
    static const struct text tag = {"IPv6:", 5};
    if (t.length < 2 || t.at[0] != '[' || t.at[t.length - 1] != ']')
        return false;
    t = text_after(text_before(t, t.length - 1), 1);
    bool ipv6 = text_starts_nocase(t, tag);
    return net_address_parse_ip(text_after(t, ipv6 ? tag.length : 0), address) &&
           ipv6 == (address->family == NET_IPV6);
}

static bool
is_full_domain(struct text t)
{
    return t.length > 0 && t.at[0] != '[' && text_find(t, '.') != TEXT_NONE &&
           address_is_domain(t);
}

/* A bare address is not a name, although it has dots. */
static bool
is_bare_address(struct text t)
{
    struct net_address address;
    return net_address_parse_ip(t, &address);
}

static bool
is_own_literal(struct text helo, const struct net_address *own)
{
    struct net_address said, plain = *own;
    if (!read_literal(helo, &said))
        return false;
    net_address_unmap(&said);
    net_address_unmap(&plain);
    said.port = plain.port;
    return net_address_equal(&said, &plain);
}

static bool
sanity_helo(struct text helo, const char *hostname, const struct net_address *own,
            struct outcome *refusal)
{
    struct net_address literal;
    bool is_literal = read_literal(helo, &literal);
    if (text_equal_nocase(helo, text_from(hostname)) || is_own_literal(helo, own))
        return outcome_refuse(refusal, 550, "5.7.1", "HELO names this host, not yours");
    if (!is_literal && (!is_full_domain(helo) || is_bare_address(helo)))
        return outcome_refuse(refusal, 550, "5.7.1",
                              "HELO is neither a full domain nor an address literal");
    return true;
}

bool
sanity_mail(const struct sanity_rules *rules, struct text helo, struct text sender,
            const char *hostname, const struct net_address *own,
            struct outcome *refusal)
{
    if (rules->helo && !sanity_helo(helo, hostname, own, refusal))
        return false;
    if (!rules->sender || sender.length == 0)
        return true;
    size_t at = text_find_last(sender, '@');
    struct text domain = at == TEXT_NONE ? TEXT("") : text_after(sender, at + 1);
    struct net_address literal;
    return is_full_domain(domain) || read_literal(domain, &literal) ||
           outcome_refuse(refusal, 550, "5.1.8",
                          "the sender's domain is not fully qualified");
}

bool
sanity_recipient(const struct sanity_rules *rules, struct text sender,
                 unsigned accepted, struct outcome *refusal)
{
    return !rules->sender || sender.length > 0 || accepted == 0 ||
           outcome_refuse(refusal, 452, "4.5.3",
                          "one recipient only for mail with the null sender");
}
