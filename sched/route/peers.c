/* Reads the list of hosts that share sets of fragments, and finds them.
 *
 * All hosts can have the same list, with their own entry in it: that entry becomes no
 * peer, but it gives the own address. Names and addresses are unique, so that fragments
 * for one host never reach another and split a set. The list has at most PEERS_MAX
 * hosts, so addresses are searched one by one. */
#include "sched/route/peers.h"

#include "base/memory.h"
#include "mime/address.h"
#include "sched/route/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { SHOWN_MAX = 100 };

struct peer {
    UT_hash_handle hh;
    char name[PEERS_NAME_MAX + 1];
    struct net_address address;
    struct target target;
};

struct peers {
    struct peer *by_name;
    char own_name[PEERS_NAME_MAX + 1];
    struct net_address own_address;
    bool has_own_address;
    struct net_address listed_address; /* of our own entry in the list */
    uint16_t listed_port;              /* 0: no entry */
};

struct peers_reading {
    struct peers *peers;
    const struct peers_settings *settings;
    struct buffer *errors;
    bool bad;
};

static void
peers_complain(struct peers_reading *r, const char *key, struct text entry,
               const char *what)
{
    r->bad = true;
    (void)!buffer_format(r->errors, "%s: '%.*s': %s\n", key,
                         (int)(entry.length < SHOWN_MAX ? entry.length : SHOWN_MAX),
                         entry.at, what);
}

/* In lower case. */
static bool
name_read(struct text name, char out[PEERS_NAME_MAX + 1])
{
    if (name.length > PEERS_NAME_MAX || !text_is_ascii(name) ||
        !address_is_domain(name) || name.at[0] == '[')
        return false;
    bool fits = text_copy(out, PEERS_NAME_MAX + 1, name);
    text_lower(out, name.length);
    return fits;
}

/* An address, not a name: neither the destination of fragments nor the trust in a peer
 * may depend on DNS. A path is unused in a target of one host without a user, so it
 * holds the name. */
static bool
target_read(struct peers_reading *r, struct text t, struct peer *peer,
            char problem[TARGET_PROBLEM_MAX])
{
    struct target *target = &peer->target;
    if (!target_parse(t, r->settings->smtp_port, r->settings->base, target, problem))
        return false;
    if (target->kind != TARGET_SMTP || target->more_count > 0 ||
        target_has_user(target) || target->look_up_mx ||
        !net_address_parse_ip(text_from(target->host), &peer->address)) {
        snprintf(problem, TARGET_PROBLEM_MAX,
                 "a peer needs one IP address: write NAME=ADDRESS:PORT, or "
                 "NAME=smtp://ADDRESS:PORT?OPTIONS");
        return false;
    }
    target->peer = 1;
    return text_copy(target->path + 1, sizeof(target->path) - 1, text_from(peer->name));
}

static bool
peers_entry_read(struct peers_reading *r, const char *key, struct text entry,
                 struct peer *peer)
{
    char problem[TARGET_PROBLEM_MAX];
    size_t equals = text_find(entry, '=');
    if (!name_read(text_before(entry, equals), peer->name)) {
        peers_complain(r, key, entry,
                       equals == TEXT_NONE
                           ? "a host name has only letters, digits, '-', '_' and '.'"
                           : "a host name must precede '='");
        return false;
    }
    if (equals == TEXT_NONE)
        return true;
    if (target_read(r, text_after(entry, equals + 1), peer, problem))
        return true;
    peers_complain(
        r, key, entry,
        strcmp(key, "defrag_host") != 0
            ? problem
            : "'=' must be followed by the local IP address of connections to the "
              "others");
    return false;
}

/* Two names for one host: mail for one would reach the other. Our own entry counts,
 * too: a peer with our address would be ourselves. */
static bool
peers_is_taken(const struct peers *peers, const struct peer *peer)
{
    if (peers->listed_port == peer->target.port &&
        net_address_equal(&peers->listed_address, &peer->address))
        return true;
    for (const struct peer *p = peers->by_name; p; p = p->hh.next)
        if (p->target.port == peer->target.port &&
            net_address_equal(&p->address, &peer->address))
            return true;
    return false;
}

/* defrag_host is read first, so that its address wins over that of the own entry. */
static void
take_own_address(struct peers *peers, const struct peer *own)
{
    if (peers->has_own_address || own->target.peer == 0)
        return;
    peers->own_address = own->address;
    peers->own_address.port = 0;
    peers->has_own_address = true;
}

static void
take_own_entry(struct peers *peers, const struct peer *own)
{
    peers->listed_address = own->address;
    peers->listed_port = own->target.port;
    take_own_address(peers, own);
}

/* The name is needed before the list: it tells which entry is our own. */
static void
own_read(struct peers_reading *r)
{
    struct peer own = {0};
    if (!peers_entry_read(r, "defrag_host", r->settings->host, &own))
        return;
    memcpy(r->peers->own_name, own.name, sizeof(own.name));
    take_own_address(r->peers, &own);
}

static void
list_read(struct peers_reading *r)
{
    struct text rest = r->settings->list, entry;
    while (text_word(&rest, " \t\r\n,", &entry)) {
        struct peer *peer = memory_new(sizeof(*peer)), *twin = NULL;
        bool keep = peers_entry_read(r, "defrag_peers", entry, peer);
        HASH_FIND_STR(r->peers->by_name, peer->name, twin);
        if (keep && peer->target.peer == 0)
            peers_complain(r, "defrag_peers", entry, "write NAME=ADDRESS:PORT");
        else if (keep && twin != NULL)
            peers_complain(r, "defrag_peers", entry, "duplicate name");
        else if (keep && peers_is_taken(r->peers, peer))
            peers_complain(r, "defrag_peers", entry,
                           "another host has the same address and port");
        else if (keep && HASH_COUNT(r->peers->by_name) == PEERS_MAX)
            peers_complain(r, "defrag_peers", entry, "too many hosts (at most 256)");
        else if (keep && strcmp(peer->name, r->peers->own_name) == 0)
            take_own_entry(r->peers, peer);
        else if (keep) {
            HASH_ADD_STR(r->peers->by_name, name, peer);
            continue;
        }
        free(peer);
    }
}

/* Both settings are read in spite of errors, so that all errors are reported
 * together. */
struct peers *
peers_new(const struct peers_settings *settings, struct buffer *errors)
{
    struct peers *peers = memory_new(sizeof(*peers));
    struct peers_reading r = {.peers = peers, .settings = settings, .errors = errors};
    own_read(&r);
    list_read(&r);
    if (r.bad)
        peers_free(&peers);
    return peers;
}

void
peers_free(struct peers **peers)
{
    struct peer *peer, *next;
    if (*peers == NULL)
        return;
    HASH_ITER (hh, (*peers)->by_name, peer, next) {
        HASH_DEL((*peers)->by_name, peer);
        free(peer);
    }
    free(*peers);
    *peers = NULL;
}

const char *
peers_own_name(const struct peers *peers)
{
    return peers->own_name;
}

const struct net_address *
peers_own_address(const struct peers *peers)
{
    return peers->has_own_address ? &peers->own_address : NULL;
}

const struct target *
peers_find(const struct peers *peers, struct text name)
{
    char lower[PEERS_NAME_MAX + 1];
    struct peer *peer = NULL;
    if (name_read(name, lower))
        HASH_FIND_STR(peers->by_name, lower, peer);
    return peer ? &peer->target : NULL;
}

/* A client's port is arbitrary: the address alone identifies a peer. */
bool
peers_have(const struct peers *peers, const struct net_address *client)
{
    for (const struct peer *p = peers->by_name; p; p = p->hh.next) {
        struct net_address address = p->address;
        address.port = client->port;
        if (net_address_equal(&address, client))
            return true;
    }
    return false;
}

void
peers_each_target(const struct peers *peers,
                  void (*each)(void *context, const struct target *target),
                  void *context)
{
    for (const struct peer *p = peers->by_name; p; p = p->hh.next)
        each(context, &p->target);
}
