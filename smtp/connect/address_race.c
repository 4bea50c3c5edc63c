/* Orders the hosts of a session by health.
 *
 * order[] is a permutation of the hosts: those before `at` have been tried, and that at
 * `at` is the next one, or the one of the connection. Preferences are the groups of
 * sched_hosts_order(): only hosts that fail again and again come behind worse ones.
 */
#include "smtp/connect/address_race.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Health is that of an address and port. */
static struct text
key_of(const struct mx_lookup_host *host, char out[NET_ADDRESS_TEXT_MAX])
{
    net_address_format(&host->address, out);
    return text_from(out);
}

void
address_race_start(struct address_race *c, struct manager *manager,
                   const struct mx_lookup_host *hosts, size_t count)
{
    char keys[MX_LOOKUP_ADDRESS_MAX][NET_ADDRESS_TEXT_MAX];
    struct text addresses[MX_LOOKUP_ADDRESS_MAX];
    int groups[MX_LOOKUP_ADDRESS_MAX];
    assert(count <= MX_LOOKUP_ADDRESS_MAX);
    *c = (struct address_race){.manager = manager, .hosts = hosts, .count = count};
    for (size_t i = 0; i < count; i++) {
        addresses[i] = key_of(&hosts[i], keys[i]);
        groups[i] = (int)hosts[i].preference;
    }
    sched_hosts_order(manager_sched(manager), addresses, groups, count, c->order);
}

const struct mx_lookup_host *
address_race_next(const struct address_race *c)
{
    return c->at < c->count ? &c->hosts[c->order[c->at]] : NULL;
}

void
address_race_pass(struct address_race *c)
{
    assert(c->at < c->count);
    c->at++;
}

/* The others keep their order, so that a host overtaken by the winner of a race is
 * next. */
void
address_race_bring_forward(struct address_race *c, size_t which)
{
    size_t at = c->at;
    while (at < c->count && c->order[at] != which)
        at++;
    assert(at < c->count);
    memmove(&c->order[c->at + 1], &c->order[c->at], (at - c->at) * sizeof(c->order[0]));
    c->order[c->at] = which;
}

size_t
address_race_pair(const struct address_race *c, size_t race[2])
{
    const struct mx_lookup_host *first = address_race_next(c);
    assert(first != NULL);
    race[0] = c->order[c->at];
    for (size_t at = c->at + 1; at < c->count; at++) {
        const struct mx_lookup_host *host = &c->hosts[c->order[at]];
        race[1] = c->order[at];
        if (host->preference == first->preference &&
            host->address.family != first->address.family)
            return 2;
    }
    return 1;
}

bool
address_race_have(const struct address_race *c, enum net_family family)
{
    for (size_t at = 0; at < c->count; at++)
        if (c->hosts[c->order[at]].address.family == family)
            return true;
    return false;
}

void
address_race_drop(struct address_race *c, enum net_family family)
{
    size_t kept = 0;
    assert(c->at == 0);
    for (size_t at = 0; at < c->count; at++)
        if (c->hosts[c->order[at]].address.family != family)
            c->order[kept++] = c->order[at];
    c->count = kept;
}

void
address_race_good(struct address_race *c, size_t which, int64_t took_ms)
{
    char key[NET_ADDRESS_TEXT_MAX];
    sched_host_good(manager_sched(c->manager), key_of(&c->hosts[which], key), took_ms);
}

void
address_race_bad(struct address_race *c, size_t which)
{
    char key[NET_ADDRESS_TEXT_MAX];
    sched_host_bad(manager_sched(c->manager), key_of(&c->hosts[which], key));
}

void
address_race_name(const struct mx_lookup_host *host, struct reply_outcome_peer *peer)
{
    char ip[NET_ADDRESS_TEXT_MAX];
    if (host->address.family == NET_UNIX) {
        text_copy(peer->where, sizeof(peer->where), text_from(host->address.path));
        text_copy(peer->remote, sizeof(peer->remote), text_from(host->address.path));
        peer->port = 0;
        return;
    }
    net_address_ip(&host->address, ip);
    const char *name = host->name[0] == '[' ? ip : host->name;
    snprintf(peer->where, sizeof(peer->where), "%.255s[%.45s]", name, ip);
    snprintf(peer->remote, sizeof(peer->remote), "%.255s[%.45s]:%u", name, ip,
             host->address.port);
    peer->port = host->address.port;
}
