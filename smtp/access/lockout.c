/* Counts failed logins of clients; locks clients out that have too many. */
#include "smtp/access/lockout.h"

#include "smtp/access/tables_internal.h"

#include "base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct client {
    struct lockout_key key;
    int failures, locks;
    int64_t first_ms; /* of the failures that count */
    int64_t last_ms, locked_until_ms;
    UT_hash_handle hh;
};

/* A client that has logged in. */
struct good {
    struct lockout_key key;
    int64_t at_ms; /* last */
    UT_hash_handle hh;
};

/* uthash keeps the order of insertion. An entry that is deleted and added again goes to
 * the end, so the first of a table is the one to forget when it is full. */
struct lockout {
    struct client *clients; /* in the order of their last failures */
    struct good *good;      /* in the order of their last logins */
    int limit;
};

/* An IPv6 client counts by its network of 64 bits, since it can take any address there.
 * Processes on a Unix socket count by user. */
struct lockout_key
lockout_key(const struct net_address *client, unsigned uid)
{
    struct lockout_key key = {{(unsigned char)client->family}};
    switch (client->family) {
    case NET_PASSED:
    case NET_NONE:
        break;
    case NET_UNIX:
        memcpy(key.bytes + 1, &uid, sizeof(uid));
        break;
    case NET_IPV4:
        memcpy(key.bytes + 1, client->ip, 4);
        break;
    case NET_IPV6:
        memcpy(key.bytes + 1, client->ip, 8);
        break;
    }
    return key;
}

void
lockout_key_format(const struct lockout_key *key, char out[LOCKOUT_TEXT_MAX])
{
    struct net_address a = {.family = (enum net_family)key->bytes[0]};
    unsigned uid;
    char ip[NET_ADDRESS_TEXT_MAX];
    memcpy(&uid, key->bytes + 1, sizeof(uid));
    memcpy(a.ip, key->bytes + 1, a.family == NET_IPV6 ? 8 : 4);
    if (a.family == NET_UNIX) {
        snprintf(out, LOCKOUT_TEXT_MAX, "uid %u", uid);
        return;
    }
    net_address_ip(&a, ip);
    snprintf(out, LOCKOUT_TEXT_MAX, "%s%s", ip, a.family == NET_IPV6 ? "/64" : "");
}

bool
lockout_key_parse(struct text t, struct lockout_key *key)
{
    struct net_address a = {.family = NET_UNIX};
    uint64_t uid = 0;
    bool is_network = text_ends_nocase(t, TEXT("/64"));
    if (text_starts(t, TEXT("uid "))) {
        if (!text_number(text_after(t, 4), UINT32_MAX, &uid))
            return false;
    } else if (!net_address_parse_ip(text_before(t, t.length - (is_network ? 3 : 0)),
                                     &a) ||
               (is_network && a.family != NET_IPV6)) {
        return false;
    }
    *key = lockout_key(&a, (unsigned)uid);
    return true;
}

struct lockout *
lockout_new(void)
{
    return memory_new(sizeof(struct lockout));
}

static void
remove_client(struct lockout *l, struct client *client)
{
    HASH_DEL(l->clients, client);
    free(client);
}

static void
remove_good(struct lockout *l, struct good *good)
{
    HASH_DEL(l->good, good);
    free(good);
}

void
lockout_free(struct lockout **lockout)
{
    struct lockout *l = *lockout;
    *lockout = NULL;
    if (l == NULL)
        return;
    while (l->clients != NULL)
        remove_client(l, l->clients);
    while (l->good != NULL)
        remove_good(l, l->good);
    free(l);
}

void
lockout_set_limit(struct lockout *lockout, int limit)
{
    assert(limit >= 0);
    lockout->limit = limit;
}

static struct client *
lockout_find(const struct lockout *l, const struct lockout_key *key)
{
    struct client *client;
    HASH_FIND(hh, l->clients, key, sizeof(*key), client);
    return client;
}

int64_t
lockout_left_ms(const struct lockout *l, const struct lockout_key *key, int64_t now_ms)
{
    const struct client *client = lockout_find(l, key);
    if (client == NULL || l->limit == 0 || client->locked_until_ms <= now_ms)
        return 0;
    return client->locked_until_ms - now_ms;
}

/* Finds or makes the client and moves it to the end of the order. The order of the
 * table is that of the last failures, so the client that makes space is the one that
 * has been quiet longest. */
static struct client *
touch(struct lockout *l, const struct lockout_key *key, int64_t now_ms)
{
    struct client *client = lockout_find(l, key);
    if (client != NULL) {
        HASH_DEL(l->clients, client);
    } else {
        if (HASH_COUNT(l->clients) >= LOCKOUT_CLIENTS_MAX)
            remove_client(l, l->clients);
        client = memory_new(sizeof(*client));
        client->key = *key;
        client->first_ms = now_ms;
    }
    HASH_ADD(hh, l->clients, key, sizeof(*key), client);
    return client;
}

/* 1, 2, 4, ... times first, at most longest. */
static int64_t
lockout_grow(int64_t first, int times, int64_t longest)
{
    while (times-- > 0 && first < longest)
        first *= 2;
    return first < longest ? first : longest;
}

/* Two memories. Failures within a window lock a client out. The number of locks
 * outlives them, so that an attacker who waits for the end of a lock is locked out for
 * twice as long next time. */
struct lockout_verdict
lockout_failed(struct lockout *l, const struct lockout_key *key, int64_t now_ms)
{
    struct client *client = touch(l, key, now_ms);
    struct lockout_verdict verdict = {0};
    if (now_ms - client->first_ms > LOCKOUT_WINDOW_MS) {
        client->first_ms = now_ms;
        client->failures = 0;
    }
    if (client->last_ms > 0 && now_ms - client->last_ms > LOCKOUT_MEMORY_MS)
        client->locks = 0;
    client->last_ms = now_ms;
    verdict.failures = ++client->failures;
    verdict.delay_ms =
        lockout_grow(LOCKOUT_DELAY_MS, client->failures - 1, LOCKOUT_DELAY_MAX_MS);
    if (l->limit > 0 && client->failures >= l->limit) {
        verdict.locked_ms =
            lockout_grow(LOCKOUT_FIRST_MS, client->locks++, LOCKOUT_LONGEST_MS);
        client->locked_until_ms = now_ms + verdict.locked_ms;
        client->failures = 0;
        client->first_ms = now_ms;
    }
    return verdict;
}

size_t
lockout_list(const struct lockout *l, int64_t now_ms, struct lockout_entry *entries,
             size_t max)
{
    size_t count = 0;
    if (l->clients == NULL || l->limit == 0)
        return 0;
    for (const struct client *c =
             ELMT_FROM_HH(l->clients->hh.tbl, l->clients->hh.tbl->tail);
         c != NULL; c = c->hh.prev) {
        if (c->locked_until_ms <= now_ms)
            continue;
        if (count < max)
            entries[count] =
                (struct lockout_entry){c->key, c->locks, c->locked_until_ms - now_ms};
        count++;
    }
    return count;
}

bool
lockout_forgive(struct lockout *l, const struct lockout_key *key, int64_t now_ms)
{
    struct client *client = lockout_find(l, key);
    bool locked = lockout_left_ms(l, key, now_ms) > 0;
    if (client != NULL)
        remove_client(l, client);
    return locked;
}

static struct good *
find_good(const struct lockout *l, const struct lockout_key *key)
{
    struct good *good;
    HASH_FIND(hh, l->good, key, sizeof(*key), good);
    return good;
}

/* A client that has logged in before is let in when many unknown ones wait for a check
 * (smtp/session/auth_gate.c). */
void
lockout_passed(struct lockout *l, const struct lockout_key *key, int64_t now_ms)
{
    struct good *good = find_good(l, key);
    if (good != NULL) {
        HASH_DEL(l->good, good);
    } else {
        if (HASH_COUNT(l->good) >= LOCKOUT_GOOD_MAX)
            remove_good(l, l->good);
        good = memory_new(sizeof(*good));
        good->key = *key;
    }
    good->at_ms = now_ms;
    HASH_ADD(hh, l->good, key, sizeof(*key), good);
}

static bool
has_failed_lately(const struct client *client, int64_t now_ms)
{
    int64_t ago_ms = now_ms - client->last_ms;
    return ago_ms <= (client->locks > 0 ? LOCKOUT_MEMORY_MS : LOCKOUT_WINDOW_MS);
}

/* A failure after the last login makes a good client unknown, not suspect: people
 * mistype. */
enum lockout_standing
lockout_standing(const struct lockout *l, const struct lockout_key *key, int64_t now_ms)
{
    const struct good *good = find_good(l, key);
    const struct client *client = lockout_find(l, key);
    bool passed = good != NULL && now_ms - good->at_ms <= LOCKOUT_GOOD_MS;
    bool failed = client != NULL && has_failed_lately(client, now_ms);
    if (passed && (!failed || client->last_ms < good->at_ms))
        return LOCKOUT_GOOD;
    return failed && !passed ? LOCKOUT_SUSPECT : LOCKOUT_UNKNOWN;
}

size_t
lockout_clients(const struct lockout *lockout)
{
    return HASH_COUNT(lockout->clients);
}
