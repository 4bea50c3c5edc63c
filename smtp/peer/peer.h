/* The peer door: how the hosts of a group speak with each other (doc/peer-door.md).
 *
 * TLS with a shared secret (PSK) from the first byte; the grammar of SMTP; verbs of its own
 * that the ports for mail do not know:
 *   XPEER 1 {JSON} our description; 250 {JSON of the other}
 *   XGIVE ID SECTIONS CONTENT CRC32C, CRLF, bytes     250 2.0.0 ID: durable there as ID
 *   XASK BYTES, CRLF, a line of JSON                  250-JSON ..., 250 end
 *   NOOP, QUIT Everything may be pipelined, and is answered in order. This room carries
 * messages and questions; queue/group/siblings.h chooses the hosts. */
#ifndef SMTP_PEER_PEER_H
#define SMTP_PEER_PEER_H

#include "base/buffer.h"
#include "base/net/net.h"
#include "queue/group/siblings.h"

struct dns;
struct log;
struct loop;

enum {
    PEER_PORT = 4650,
    PEER_SECRET_MIN = 32,     /* bytes of a line of cluster_secret */
    PEER_SECRETS_MAX = 8,     /* lines: the first calls, all are accepted */
    PEER_CONNECTIONS_MAX = 4, /* of one host; one of them for content beyond: */
    PEER_LARGE = 256 * 1024,
    PEER_ASK_MS = 60 * 1000, /* and one for questions that may take longer */
    PEER_HOSTS_MAX = GROUP_HOSTS_MAX,
    PEER_NOOP_MS = 5 * 1000,
    PEER_SILENCE_MS = 15 * 1000,
    PEER_HANDSHAKES_MAX = 64, /* connections that have not said XPEER yet */
    PEER_LISTENERS_MAX = 16
};

struct peer_settings {
    /* Entries of `listen` with ?peer; none: nobody can call us. */
    const struct net_address *listen;
    size_t listen_count;
    struct text secret; /* lines of cluster_secret */
    const char *group;  /* "": there is none */
    int64_t message_size_limit;
};

/* False with one line per error. */
bool peer_check(const struct peer_settings *settings, struct buffer *errors);

struct peer_setup {
    struct loop *loop;
    struct net *net;
    struct dns *dns;
    struct log *log;
    const struct sibling_service *service;
    /* Where the host is reached, HOST:PORT; NULL: not known. Borrowed during the call. */
    const char *(*address)(void *context, const char *host);
    /* Whether a sibling is known to be at that address, at any port; NULL: not known.
     * Its connections are not pushed out by a crowd of others. */
    bool (*is_sibling)(void *context, const struct net_address *address);
    void *context;
};
struct peer;
/* Listens, if anything is to be listened on. NULL with one line in error. */
struct peer *peer_new(const struct peer_setup *setup,
                      const struct peer_settings *settings, char *error, size_t size);
/* Other secrets. */
void peer_reload(struct peer *peer, const struct peer_settings *settings);
/* A socket on which siblings are listened to. False: index is behind the last. */
bool peer_door(const struct peer *peer, size_t index, struct net_address *address,
               struct net_listener_counts *counts);
/* Since startup. */
struct peer_counts {
    uint64_t accepted, named; /* connections, and those that have said XPEER */
    uint64_t pushed_out;      /* by others, before they had */
    uint64_t turned_away;
};
struct peer_counts peer_counts(const struct peer *peer);
/* The calls to other hosts. They live as long as the peer. */
const struct sibling_calls *peer_calls(struct peer *peer);
/* Says QUIT to all, as far as that takes no time. */
void peer_free(struct peer **peer);

#endif
