/* Decides which clients may relay and which recipients are accepted. */
#include "smtp/access/policy.h"

#include "base/dns/idna.h"
#include "base/memory.h"
#include "mime/address.h"
#include "queue/manager/maildir.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLUSHED_MAX = 1024, LOCAL_PART_MAX = 256, WHY_MAX = 120 };

static const char separators[] = ", \t\r\n";

bool
policy_read(struct policy *policy, struct text relay_from, bool allow_open_relay,
            struct buffer *errors)
{
    *policy = (struct policy){0};
    return networks_read(
        &policy->networks, "relay_from", relay_from,
        allow_open_relay
            ? NULL
            : "would make this host an open relay (allow_open_relay = yes permits it)",
        errors);
}

/* NULL, or the error. */
static const char *
read_flushed(struct policy *policy, struct text word)
{
    bool wide = text_starts(word, TEXT("."));
    if (text_equal_nocase(word, TEXT("relay"))) {
        policy->flushes_relayed = true;
        return NULL;
    }
    if (text_equal_nocase(word, TEXT("off")))
        return "must be the only value";
    if (policy->flushed_count == FLUSHED_MAX)
        return "too many domains";
    if (!address_is_domain(text_after(word, wide ? 1 : 0)))
        return "not a domain; use relay, off, domain or .domain (subdomains)";
    policy->flushed[policy->flushed_count++] = text_string(word);
    return NULL;
}

bool
policy_read_etrn(struct policy *policy, struct text etrn, struct buffer *errors)
{
    struct text word;
    bool good = true;
    assert(policy->flushed == NULL);
    if (text_equal_nocase(text_trim(etrn), TEXT("off")))
        return true;
    policy->flushed = memory_array(FLUSHED_MAX, sizeof(*policy->flushed));
    while (text_word(&etrn, separators, &word)) {
        const char *why = read_flushed(policy, word);
        if (why == NULL)
            continue;
        good = buffer_add_error(errors, "etrn", word, why);
    }
    size_t kept = policy->flushed_count > 0 ? policy->flushed_count : 1;
    policy->flushed = memory_resize(policy->flushed, kept * sizeof(*policy->flushed));
    return good;
}

bool
policy_read_priority(struct policy *policy, struct text mt_priority,
                     struct buffer *errors)
{
    struct text word = text_trim(mt_priority);
    policy->priority_of_all = text_equal_nocase(word, TEXT("all"));
    policy->priority =
        policy->priority_of_all || text_equal_nocase(word, TEXT("trusted"));
    if (policy->priority || text_equal_nocase(word, TEXT("off")))
        return true;
    return buffer_add_error(errors, "mt_priority", word, "say off, trusted or all");
}

void
policy_free(struct policy *policy)
{
    for (size_t i = 0; i < policy->flushed_count; i++)
        free(policy->flushed[i]);
    free(policy->flushed);
    networks_free(&policy->networks);
    *policy = (struct policy){0};
}

bool
policy_flushes(const struct policy *policy)
{
    return policy->flushes_relayed || policy->flushed_count > 0;
}

/* Every client may send to the domain, and a route sends its mail to another host. */
static bool
is_relayed(const struct route_table *routes, struct text domain)
{
    struct address any = {.local = TEXT(""), .domain = domain};
    if (!route_is_local_domain(routes, domain))
        return false;
    switch (route_find(routes, &any)->kind) {
    case TARGET_MX:
    case TARGET_SMTP:
    case TARGET_LMTP:
        return true;
    case TARGET_MAILDIR:
    case TARGET_HTTP:
    case TARGET_HOLD:
    case TARGET_DISCARD:
    case TARGET_ERROR:
    case TARGET_UNKNOWN:
        break;
    }
    return false;
}

/* With `relay` a client may start a delivery only to domains that everybody may send
 * to: ETRN for others would be a way to make us connect anywhere. */
bool
policy_may_flush(const struct policy *policy, const struct route_table *routes,
                 struct text domain)
{
    for (size_t i = 0; i < policy->flushed_count; i++) {
        struct text allowed = text_from(policy->flushed[i]);
        if (allowed.at[0] == '.' ? text_ends_nocase(domain, allowed)
                                 : text_equal_nocase(domain, allowed))
            return true;
    }
    return policy->flushes_relayed && is_relayed(routes, domain);
}

/* The permissions of a socket's file decide which users may connect. */
bool
policy_may_relay(const struct policy *policy, const struct net_address *client)
{
    return client->family == NET_UNIX || networks_have(&policy->networks, client);
}

/* The full-width forms of @ % ! : and the small @, which a next hop may convert. */
static bool
has_wide_sign(struct text t)
{
    static const char *const signs[] = {"\xef\xbc\xa0", "\xef\xbc\x85", "\xef\xbc\x81",
                                        "\xef\xbc\x9a", "\xef\xb9\xab"};
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
        if (t.length > 0 && memmem(t.at, t.length, signs[i], strlen(signs[i])) != NULL)
            return true;
    return false;
}

/* user%other@local, other!user@local, "user@other"@local, "other::user"@local: local
 * mailboxes for us, but source routes for a next hop that still obeys them. */
static bool
is_routed(const struct address *a)
{
    struct buffer local;
    buffer_init(&local, LOCAL_PART_MAX);
    bool routed = !address_write_local(a, &local);
    struct text t = buffer_text(&local);
    routed = routed || text_find(t, '@') != TEXT_NONE ||
             text_find(t, '%') != TEXT_NONE || text_find(t, '!') != TEXT_NONE ||
             text_find(t, ':') != TEXT_NONE || (t.length > 0 && t.at[0] == '|') ||
             (t.length > 0 && t.at[0] == '/') || has_wide_sign(t);
    buffer_free(&local);
    return routed;
}

/* The operator's text is given to the client as it is: the route was written for it. */
static bool
refuse_error(struct outcome *refusal, const struct target *target)
{
    bool temporary = target->enhanced[0] == '4';
    const char *enhanced = target->enhanced[0] == '\0' ? "5.7.1" : target->enhanced;
    return outcome_refuse(refusal, temporary ? 450 : 550, enhanced,
                          target->path[0] == '\0' ? "not accepted here" : target->path);
}

/* The domain has no A-label form and cannot be looked up: the delivery would fail. */
static bool
policy_refuse_domain(struct outcome *refusal)
{
    return idna_version() == NULL
               ? outcome_refuse(refusal, 553, "5.6.7",
                                "non-ASCII domains need libidn2, which is not built in")
               : outcome_refuse(refusal, 553, "5.1.2",
                                "not a valid domain name under IDNA");
}

/* A client that may relay may also send to a source route: it gains nothing. */
bool
policy_reaches(const struct route_table *routes, bool may_relay,
               const struct address *recipient, struct outcome *refusal)
{
    /* No domain: <postmaster>, which every server must accept (RFC 5321 §4.5.1). */
    bool local = recipient->domain.length == 0 ||
                 route_is_local_domain(routes, recipient->domain);
    return may_relay || (local && !is_routed(recipient)) ||
           outcome_refuse(refusal, 554, "5.7.1", "relay access denied");
}

/* Whether the client may relay is decided first, so that an untrusted one cannot learn
 * routes from the replies. Local recipients are looked up here, and not when the mail
 * is delivered: a refusal in the dialog leaves the bounce to the client, and no forged
 * sender gets it. */
bool
policy_recipient(const struct route_table *routes, bool may_relay, struct text sender,
                 enum target_asks asks, const struct address *recipient,
                 struct outcome *refusal)
{
    if (!policy_reaches(routes, may_relay, recipient, refusal))
        return false;
    const struct target *target =
        route_asked(routes, route_find_from(routes, sender, recipient, false), asks);
    switch (target->kind) {
    case TARGET_MX:
        return text_is_ascii(recipient->domain) || policy_refuse_domain(refusal);
    case TARGET_SMTP:
    case TARGET_LMTP:
    case TARGET_HTTP:
    case TARGET_HOLD:
    case TARGET_DISCARD:
        return true;
    case TARGET_MAILDIR:
        return maildir_exists(target, recipient) ||
               outcome_refuse(refusal, 550, "5.1.1", "no such user here");
    case TARGET_ERROR:
        return refuse_error(refusal, target);
    case TARGET_UNKNOWN:
        return outcome_refuse(refusal, 550, "5.1.1", "no such user here");
    }
    return false;
}

bool
policy_joins(const struct route_table *routes, struct text sender,
             const struct address *recipient)
{
    return route_find_from(routes, sender, recipient, false)->defragment;
}

static const char *
policy_read_auth(struct endpoint *endpoint, struct text value)
{
    if (text_equal(value, TEXT("no")))
        endpoint->auth = ENDPOINT_AUTH_NO;
    else if (text_equal(value, TEXT("offered")))
        endpoint->auth = ENDPOINT_AUTH_OFFERED;
    else if (text_equal(value, TEXT("required")))
        endpoint->auth = ENDPOINT_AUTH_REQUIRED;
    else
        return "say auth=required, auth=offered or auth=no";
    return NULL;
}

/* The unit of a passed socket decides this (ReusePort=). */
static const char *
policy_read_share(struct endpoint *endpoint)
{
    const struct net_address *a = &endpoint->address;
    if (a->family != NET_IPV4 && a->family != NET_IPV6)
        return "only allowed for ADDRESS:PORT";
    if (a->port == 0)
        return "needs the number of a port, the same for all that share it";
    endpoint->shared = true;
    return NULL;
}

/* NULL, or the error of the option. */
static const char *
read_option(struct endpoint *endpoint, struct text option)
{
    if (text_starts(option, TEXT("auth=")))
        return policy_read_auth(endpoint, text_after(option, 5));
    if (text_starts(option, TEXT("mode=")) || text_starts(option, TEXT("uid=")))
        return net_users_read(&endpoint->users, &endpoint->address, option);
    if (text_equal(option, TEXT("share")))
        return policy_read_share(endpoint);
    if (text_equal(option, TEXT("lmtp")))
        endpoint->lmtp = true;
    else if (text_equal(option, TEXT("tls")))
        endpoint->tls = true;
    else if (text_equal(option, TEXT("proxy")))
        endpoint->proxy = true;
    else if (text_equal(option, TEXT("peer")))
        endpoint->peer = true;
    else if (text_equal(option, TEXT("starttls=no")))
        endpoint->no_starttls = true;
    else if (text_equal(option, TEXT("profile=legacy")))
        endpoint->legacy = true;
    else if (!text_equal(option, TEXT("starttls=yes")))
        return "unknown option; write lmtp, tls, starttls=no, proxy, peer, share, "
               "auth=required, auth=no, profile=legacy, mode=0660 or uid=NUMBER";
    return NULL;
}

/* For "25", ":25", "*:25" and "localhost:25" the error suggests an address.
 * It is not guessed: the operator decides whether the port is open for all. */
static const char *
why_no_address(struct text word, char space[WHY_MAX])
{
    size_t colon = text_find_last(word, ':');
    struct text host = colon == TEXT_NONE ? TEXT("") : text_before(word, colon);
    struct text port = colon == TEXT_NONE ? word : text_after(word, colon + 1);
    uint64_t number;
    bool all = host.length == 0 || text_equal(host, TEXT("*"));
    bool local = text_equal_nocase(host, TEXT("localhost"));
    if (!(all || local) || !text_number(port, 65535, &number) || number == 0)
        return "not an address (1.2.3.4:25, [::1]:25 or unix:/path)";
    snprintf(space, WHY_MAX, "not an address: write %s:%u, %s:%u",
             all ? "0.0.0.0" : "127.0.0.1", (unsigned)number, all ? "[::]" : "[::1]",
             (unsigned)number);
    return space;
}

/* Hosts of a group are recognized by their secret, so no option is of use there. */
static const char *
why_no_peer(const struct endpoint *endpoint, struct text options)
{
    if (endpoint->address.family == NET_UNIX)
        return "peer is for addresses that other hosts reach";
    return text_equal(options, TEXT("peer"))
               ? NULL
               : "peer has TLS of its own, and no other option beside it";
}

static bool
read_endpoint(struct endpoint *endpoint, struct text word, struct buffer *errors)
{
    struct text options = word, address, option;
    bool good = true;
    bool cut = text_cut(&options, '?', &address);
    assert(cut);
    const struct text all = options;
    if (!net_address_parse_listening(address, &endpoint->address)) {
        char space[WHY_MAX];
        good = buffer_add_error(errors, "listen", word, why_no_address(address, space));
    }
    while (text_word(&options, "&", &option)) {
        const char *why = net_option_is_repeated(all, option)
                              ? "given twice"
                              : read_option(endpoint, option);
        if (why == NULL)
            continue;
        good = buffer_add_error(errors, "listen", option, why);
    }
    const char *why = endpoint->peer ? why_no_peer(endpoint, all) : NULL;
    if (why != NULL)
        good = buffer_add_error(errors, "listen", word, why);
    return good;
}

bool
policy_endpoints_read(struct text listen, struct endpoint **endpoints, size_t *count,
                      struct buffer *errors)
{
    struct text word;
    bool good = true;
    /* The caller frees them after an error, too. */
    *endpoints = memory_array(ENDPOINTS_MAX, sizeof(**endpoints));
    *count = 0;
    while (text_word(&listen, separators, &word)) {
        if (*count == ENDPOINTS_MAX)
            return buffer_add_error(errors, "listen", word, "too many addresses");
        struct endpoint *endpoint = &(*endpoints)[(*count)++];
        good = read_endpoint(endpoint, word, errors) && good;
        for (size_t i = 0; good && i + 1 < *count; i++) {
            good = !net_address_is_taken(&(*endpoints)[i].address, &endpoint->address);
            if (!good)
                buffer_add_error(errors, "listen", word, "given twice");
        }
    }
    return good;
}

void
policy_endpoints_keep(struct endpoint *endpoints, size_t *count, bool peer)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++)
        if (endpoints[i].peer == peer)
            endpoints[kept++] = endpoints[i];
    *count = kept;
}

/* For warnings alone: a private address permits nothing. */
bool
policy_endpoint_is_public(const struct endpoint *endpoint)
{
    static const char *const private[] = {
        "10.0.0.0/8",    "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16",
        "100.64.0.0/10", "fc00::/7",      "fe80::/10"};
    const struct net_address *a = &endpoint->address;
    struct net_network network;
    if (a->family == NET_UNIX || net_address_is_loopback(a))
        return false;
    for (size_t i = 0; i < sizeof(private) / sizeof(private[0]); i++)
        if (net_network_parse(text_from(private[i]), &network) &&
            net_network_has(&network, a))
            return false;
    return true;
}

/* --- HELO, sender, and recipients of bounces -------------------------------------- */

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
    if (!address_read_literal(helo, &said))
        return false;
    net_address_unmap(&said);
    net_address_unmap(&plain);
    said.port = plain.port;
    return net_address_equal(&said, &plain);
}

static bool
policy_check_helo(struct text helo, const char *hostname, const struct net_address *own,
                  struct outcome *refusal)
{
    struct net_address literal;
    bool is_literal = address_read_literal(helo, &literal);
    if (text_equal_nocase(helo, text_from(hostname)) || is_own_literal(helo, own))
        return outcome_refuse(refusal, 550, "5.7.1", "HELO names this host, not yours");
    if (!is_literal && (!is_full_domain(helo) || is_bare_address(helo)))
        return outcome_refuse(refusal, 550, "5.7.1",
                              "HELO is neither a full domain nor an address literal");
    return true;
}

bool
policy_check_mail(const struct policy_checks *rules, struct text helo,
                  struct text sender, const char *hostname,
                  const struct net_address *own, struct outcome *refusal)
{
    if (rules->helo && !policy_check_helo(helo, hostname, own, refusal))
        return false;
    if (!rules->sender || sender.length == 0)
        return true;
    size_t at = text_find_last(sender, '@');
    struct text domain = at == TEXT_NONE ? TEXT("") : text_after(sender, at + 1);
    struct net_address literal;
    return is_full_domain(domain) || address_read_literal(domain, &literal) ||
           outcome_refuse(refusal, 550, "5.1.8",
                          "the sender's domain is not fully qualified");
}

bool
policy_check_recipient(const struct policy_checks *rules, struct text sender,
                       unsigned accepted, struct outcome *refusal)
{
    return !rules->sender || sender.length > 0 || accepted == 0 ||
           outcome_refuse(refusal, 452, "4.5.3",
                          "one recipient only for mail with the null sender");
}
