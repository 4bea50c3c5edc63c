/* Counts the sessions of clients and enforces their rates. */
#include "smtp/access/client_usage.h"

#include "smtp/access/tables_internal.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

enum { KEY_SIZE = 9, NETWORK_BYTES = 8, WIDE_BYTES = 6, WIDE = 0x80 };
enum { OWED_MAX_MS = 24 * 60 * 60 * 1000 };

/* A client, or with WIDE in its key the /48 of several: sessions of both are counted,
 * while only a client takes tokens. */
struct client {
    UT_hash_handle hh;
    unsigned char key[KEY_SIZE];
    int sessions;
    size_t tls; /* sessions with TLS */
    struct bucket buckets[CLIENT_USAGE_KINDS];
    int64_t
        paid_ms; /* when the rate has made up for recipients without a token; or 0 */
    struct client *prev,
        *next; /* in the list of idle clients: those without a session */
};

struct client_usage {
    struct client *table;
    struct client *idle; /* in order of their last sessions' ends */
    size_t idle_count, sessions;
    bool stressed;
    struct bucket buckets[CLIENT_USAGE_KINDS];
};

static const char *const kinds[CLIENT_USAGE_KINDS] = {
    [CLIENT_USAGE_SESSION] = "connections",
    [CLIENT_USAGE_MESSAGE] = "messages",
    [CLIENT_USAGE_RECIPIENT] = "recipients",
};

/* --- Settings --------------------------------------------------------------------- */

static bool
client_usage_read_rate(struct text value, const char *key, struct rate *rate,
                       struct buffer *errors)
{
    *rate = (struct rate){.burst = 1, .period_ms = 1000};
    if (text_trim(value).length == 0)
        return true;
    if (bucket_rate_parse(value, rate)) {
        /* A client with 100 messages an hour may send them in its first minute. */
        if (rate->amount > 0 && text_find(value, ',') == TEXT_NONE)
            rate->burst = rate->amount;
        return true;
    }
    return buffer_add_error(errors, key, value,
                            "is none of N/s, N/m, N/h, N/d, with ,burst=B behind it if "
                            "wanted, or none");
}

uint32_t
client_usage_most(const struct client_usage_rules *rules,
                  const struct net_address *address, enum client_usage_kind kind)
{
    const struct rate *each = &rules->each[kind], *all = &rules->all[kind];
    uint32_t most = each->amount > 0 ? each->burst : UINT32_MAX;
    if (networks_have(&rules->exempt, address))
        return UINT32_MAX;
    return all->amount > 0 && all->burst < most ? all->burst : most;
}

bool
client_usage_read(struct client_usage_rules *rules,
                  const struct client_usage_settings *settings, struct buffer *errors)
{
    static const char *const each[CLIENT_USAGE_KINDS] = {
        "client_session_rate", "client_message_rate", "client_recipient_rate"};
    static const char *const all[CLIENT_USAGE_KINDS] = {
        "server_session_rate", "server_message_rate", "server_recipient_rate"};
    bool good = true;
    for (int i = 0; i < CLIENT_USAGE_KINDS; i++) {
        good = client_usage_read_rate(settings->each[i], each[i], &rules->each[i],
                                      errors) &&
               good;
        good =
            client_usage_read_rate(settings->all[i], all[i], &rules->all[i], errors) &&
            good;
    }
    rules->sessions = settings->sessions;
    rules->sessions_per_client = settings->sessions_per_client;
    return networks_read(&rules->exempt, "rate_exempt", settings->exempt, NULL,
                         errors) &&
           good;
}

void
client_usage_rules_free(struct client_usage_rules *rules)
{
    networks_free(&rules->exempt);
}

/* --- The table -------------------------------------------------------------------- */

/* An IPv4 address that comes mapped into IPv6 is the same client. */
static bool
client_usage_make_key(const struct net_address *address, unsigned char key[KEY_SIZE])
{
    struct net_address plain = *address;
    net_address_unmap(&plain);
    if (plain.family != NET_IPV4 && plain.family != NET_IPV6)
        return false;
    key[0] = (unsigned char)plain.family;
    memcpy(key + 1, plain.ip, NETWORK_BYTES); /* zeros follow an IPv4 address */
    return true;
}

/* The key of the /48 network; IPv6 only. An attacker may own a /48, with
 * 65,536 networks of 64 bits. */
static bool
make_wide_key(const struct net_address *address, unsigned char key[KEY_SIZE])
{
    if (!client_usage_make_key(address, key) || key[0] != NET_IPV6)
        return false;
    key[0] |= WIDE;
    memset(key + 1 + WIDE_BYTES, 0, NETWORK_BYTES - WIDE_BYTES);
    return true;
}

static struct client *
find_key(const struct client_usage *clients, const unsigned char key[KEY_SIZE])
{
    struct client *client;
    HASH_FIND(hh, clients->table, key, KEY_SIZE, client);
    return client;
}

static struct client *
client_usage_find(const struct client_usage *clients, const struct net_address *address)
{
    unsigned char key[KEY_SIZE];
    return client_usage_make_key(address, key) ? find_key(clients, key) : NULL;
}

static void
client_usage_forget(struct client_usage *clients, struct client *client)
{
    assert(client->sessions == 0 && client->tls == 0);
    DL_DELETE(clients->idle, client);
    clients->idle_count--;
    HASH_DEL(clients->table, client);
    free(client);
}

/* All buckets are full: forgetting the client changes nothing. */
static bool
is_rested(const struct client *client, int64_t now_ms)
{
    for (int i = 0; i < CLIENT_USAGE_KINDS; i++)
        if (client->buckets[i].full_at_us > now_ms * 1000)
            return false;
    return true;
}

/* Clients that left first have mostly refilled their buckets first. A client is
 * remembered while forgetting it would give it new tokens, or until too many others
 * came after it. */
static void
forget_some(struct client_usage *clients, int64_t now_ms)
{
    while (clients->idle != NULL && (clients->idle_count > CLIENT_USAGE_IDLE_MAX ||
                                     is_rested(clients->idle, now_ms)))
        client_usage_forget(clients, clients->idle);
}

static struct client *
client_usage_enter(struct client_usage *clients, const unsigned char key[KEY_SIZE])
{
    struct client *client = find_key(clients, key);
    if (client != NULL && client->sessions == 0) {
        DL_DELETE(clients->idle, client);
        clients->idle_count--;
    } else if (client == NULL) {
        client = memory_new(sizeof(*client));
        memcpy(client->key, key, KEY_SIZE);
        HASH_ADD(hh, clients->table, key, KEY_SIZE, client);
    }
    client->sessions++;
    return client;
}

static void
client_usage_leave(struct client_usage *clients, const unsigned char key[KEY_SIZE])
{
    struct client *client = find_key(clients, key);
    assert(client != NULL && client->sessions > 0);
    if (--client->sessions == 0) {
        DL_APPEND(clients->idle, client);
        clients->idle_count++;
    }
}

struct client_usage *
client_usage_new(void)
{
    return memory_new(sizeof(struct client_usage));
}

void
client_usage_free(struct client_usage **clients)
{
    struct client_usage *c = *clients;
    struct client *client, *next;
    *clients = NULL;
    if (c == NULL)
        return;
    HASH_ITER (hh, c->table, client, next) {
        HASH_DEL(c->table, client);
        free(client);
    }
    free(c);
}

/* --- Limits ----------------------------------------------------------------------- */

/* At least 1: a retry after 0 s would be refused again. */
static long long
seconds_until(int64_t ready_ms, int64_t now_ms)
{
    assert(ready_ms > now_ms);
    return (long long)((ready_ms - now_ms + 999) / 1000);
}

static bool
client_usage_refuse(struct outcome *refusal, enum client_usage_kind kind, bool each,
                    int64_t ready_ms, int64_t now_ms)
{
    bool session = kind == CLIENT_USAGE_SESSION;
    *refusal = outcome_make(
        VERDICT_DEFERRED, BLAME_MESSAGE, session ? 421 : 450,
        session ? "4.7.0" : "4.7.1", "too many %s%s, try again in %lld s", kinds[kind],
        each ? " from your address" : "", seconds_until(ready_ms, now_ms));
    return false;
}

/* Takes at most this number from the bucket; returns how many are missing. */
static unsigned
client_usage_drain(struct bucket *b, const struct rate *r, int64_t at_ms, unsigned most)
{
    while (most > 0 && bucket_ready_ms(b, r, at_ms) <= at_ms) {
        bucket_take(b, r, at_ms);
        most--;
    }
    return most;
}

/* When the next recipient conforms. The tokens of the time until paid_ms are spent. */
static int64_t
client_usage_recipient_ms(struct client *client, const struct rate *r, int64_t now_ms)
{
    struct bucket *b = &client->buckets[CLIENT_USAGE_RECIPIENT];
    if (r->amount > 0 && client->paid_ms > now_ms)
        return client->paid_ms;
    if (r->amount > 0 && client->paid_ms > 0)
        (void)client_usage_drain(b, r, client->paid_ms, r->burst);
    client->paid_ms = 0;
    return bucket_ready_ms(b, r, now_ms);
}

/* Takes a token from both buckets or from neither. */
static bool
client_usage_take_token(struct client_usage *clients,
                        const struct client_usage_rules *rules, struct client *client,
                        enum client_usage_kind kind, int64_t now_ms,
                        struct outcome *refusal)
{
    const struct rate *each = &rules->each[kind], *all = &rules->all[kind];
    int64_t client_ms = kind == CLIENT_USAGE_RECIPIENT
                            ? client_usage_recipient_ms(client, each, now_ms)
                            : bucket_ready_ms(&client->buckets[kind], each, now_ms);
    int64_t all_ms = bucket_ready_ms(&clients->buckets[kind], all, now_ms);
    if (client_ms > now_ms)
        return client_usage_refuse(refusal, kind, true, client_ms, now_ms);
    if (all_ms > now_ms)
        return client_usage_refuse(refusal, kind, false, all_ms, now_ms);
    /* Both are ready: a refusal by one must not cost a token of the other. */
    bucket_take(&client->buckets[kind], each, now_ms);
    bucket_take(&clients->buckets[kind], all, now_ms);
    return true;
}

static bool
refuse_crowd(struct outcome *refusal, const char *text)
{
    *refusal = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 421, "4.7.0", "%s", text);
    return false;
}

/* The session counts even when it is refused: the caller ends it, and
 * client_usage_left() takes it back. So a refused session, too, is one of its client
 * while its reply is being sent. */
bool
client_usage_entered(struct client_usage *clients,
                     const struct client_usage_rules *rules,
                     const struct net_address *address, int64_t now_ms,
                     struct outcome *refusal)
{
    unsigned char key[KEY_SIZE], wide_key[KEY_SIZE];
    struct client *client =
        client_usage_make_key(address, key) ? client_usage_enter(clients, key) : NULL;
    struct client *wide =
        make_wide_key(address, wide_key) ? client_usage_enter(clients, wide_key) : NULL;
    /* After both have entered: a client with a session is not idle, so it is kept. */
    forget_some(clients, now_ms);
    /* Sessions of a Unix socket count here, and for no client. */
    clients->sessions++;
    if (clients->sessions > (size_t)rules->sessions)
        return refuse_crowd(refusal, "too many connections, try again later");
    if (client == NULL)
        return true;
    if (client->sessions > rules->sessions_per_client)
        return refuse_crowd(refusal, "too many connections from your address");
    /* Only where sessions are scarce: a /48 may have many customers. */
    if (clients->stressed && wide != NULL &&
        wide->sessions > rules->sessions_per_client)
        return refuse_crowd(refusal,
                            "too many connections from your network, try again later");
    /* rate_exempt is for rates; the limits of sessions are for all clients. */
    return networks_have(&rules->exempt, address) ||
           client_usage_take_token(clients, rules, client, CLIENT_USAGE_SESSION, now_ms,
                                   refusal);
}

void
client_usage_left(struct client_usage *clients, const struct net_address *address,
                  int64_t now_ms)
{
    unsigned char key[KEY_SIZE];
    assert(clients->sessions > 0);
    clients->sessions--;
    if (client_usage_make_key(address, key))
        client_usage_leave(clients, key);
    if (make_wide_key(address, key))
        client_usage_leave(clients, key);
    forget_some(clients, now_ms);
}

/* Two limits, so that stress does not begin and end with each session. */
bool
client_usage_stressed(struct client_usage *clients,
                      const struct client_usage_rules *rules)
{
    size_t limit = (size_t)rules->sessions;
    size_t percent =
        clients->stressed ? CLIENT_USAGE_CALM_PERCENT : CLIENT_USAGE_STRESS_PERCENT;
    size_t over = clients->sessions * 100;
    clients->stressed =
        limit >= CLIENT_USAGE_STRESS_MIN &&
        (clients->stressed ? over >= limit * percent : over > limit * percent);
    return clients->stressed;
}

/* For the choice of the session that gives way: a client must not gain by the many
 * addresses of its network. */
size_t
client_usage_weight(const struct client_usage *clients,
                    const struct net_address *address)
{
    unsigned char key[KEY_SIZE];
    const struct client *client = make_wide_key(address, key)
                                      ? find_key(clients, key)
                                      : client_usage_find(clients, address);
    return client != NULL ? (size_t)client->sessions : 0;
}

bool
client_usage_take(struct client_usage *clients, const struct client_usage_rules *rules,
                  const struct net_address *address, enum client_usage_kind kind,
                  int64_t now_ms, struct outcome *refusal)
{
    struct client *client = client_usage_find(clients, address);
    return client == NULL || networks_have(&rules->exempt, address) ||
           client_usage_take_token(clients, rules, client, kind, now_ms, refusal);
}

void
client_usage_owe(struct client_usage *clients, const struct client_usage_rules *rules,
                 const struct net_address *address, unsigned recipients, int64_t now_ms)
{
    const struct rate *r = &rules->each[CLIENT_USAGE_RECIPIENT];
    struct client *client = client_usage_find(clients, address);
    if (client == NULL || r->amount == 0 || networks_have(&rules->exempt, address))
        return;
    int64_t from_ms = client_usage_recipient_ms(client, r, now_ms);
    if (from_ms <= now_ms)
        recipients = client_usage_drain(&client->buckets[CLIENT_USAGE_RECIPIENT], r,
                                        now_ms, recipients);
    if (recipients == 0)
        return;
    if (client->paid_ms < now_ms)
        client->paid_ms = now_ms;
    client->paid_ms += recipients * r->period_ms / r->amount;
    if (client->paid_ms > now_ms + OWED_MAX_MS)
        client->paid_ms = now_ms + OWED_MAX_MS;
}

void
client_usage_secured(struct client_usage *clients, const struct net_address *address,
                     bool begins)
{
    struct client *client = client_usage_find(clients, address);
    if (client == NULL)
        return;
    assert(begins || client->tls > 0);
    client->tls += begins ? 1 : (size_t)-1;
}

size_t
client_usage_tls(const struct client_usage *clients, const struct net_address *address)
{
    const struct client *client = client_usage_find(clients, address);
    return client != NULL ? client->tls : 0;
}

size_t
client_usage_sessions(const struct client_usage *clients)
{
    return clients->sessions;
}

size_t
client_usage_known(const struct client_usage *clients)
{
    return HASH_COUNT(clients->table);
}
