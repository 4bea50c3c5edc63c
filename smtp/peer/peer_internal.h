/* Shared by the files of smtp/peer/ that have connections; no other file includes it.
 *
 * peer.c: secrets, calls. peer_accept.c: calls from others. peer_link.c: calls to
 * others. */
#ifndef SMTP_PEER_PEER_INTERNAL_H
#define SMTP_PEER_PEER_INTERNAL_H

#include "base/loop/loop.h"
#include "smtp/peer/peer.h"
#include "smtp/peer/peer_client.h"
#include "base/crypto/digest.h"
#include "smtp/peer/peer_server.h"

#include <uthash.h>

enum {
    PEER_KNOWN_MAX = 256, /* addresses of siblings that were here */
    PEER_ENTRIES_MAX = PEER_HOSTS_MAX * PEER_CONNECTIONS_MAX,
    PEER_COMPLAINTS_MAX = 10,   /* lines in a minute on callers of the same worth */
    PEER_WORTHS = 3,            /* peer_accept_worth() */
    PEER_ENTER_MS = 1000,       /* time enough to come in */
    PEER_IDLE_MS = 60 * 1000,   /* then QUIT */
    PEER_CONNECT_MS = 5 * 1000, /* for one address */
    PEER_ADDRESSES_MAX = 8,     /* of a name */
    PEER_RETRY_MS = 250,        /* doubled after each failure, up to: */
    PEER_RETRY_MAX_MS = 5 * 1000,
    PEER_QUIET_MS = 60 * 1000, /* between lines of the log about a host that fails */
    PEER_SECRET_MAX = 1024     /* bytes of a line */
};

struct peer_ip {
    enum net_family family;
    unsigned char ip[16];
};

struct peer_complaints {
    int64_t since_ms; /* a minute's begin, and lines in it */
    unsigned lines, unsaid;
};

/* A caller. */
struct peer_entry {
    struct peer_entry *prev, *next;
    struct peer *peer;
    struct net_connection *connection;
    struct peer_server machine;
    int64_t since_ms, heard_ms;
    struct loop_timer timer;
    struct loop_task task;
    bool is_entering; /* has not said XPEER */
    bool is_known;    /* from an address where siblings are */
    bool is_running;  /* the machine is */
};

/* A connection of its own for each, so that none waits for another kind. */
enum peer_link_kind {
    PEER_LINK_MAIL,
    PEER_LINK_LARGE,
    PEER_LINK_ASK,
    PEER_LINK_WORK, /* questions that may take longer than PEER_ASK_MS */
    PEER_LINKS
};
static_assert((int)PEER_LINKS <= (int)PEER_CONNECTIONS_MAX,
              "no host is beyond its limit");

enum peer_link_state { PEER_LINK_IDLE, PEER_LINK_LOOKUP, PEER_LINK_CALLING };

/* The wall clock may move by so much while the other host goes by what XPEER has said. */
enum { PEER_CLOCK_MS = 60 * 1000 };

struct peer_host;
struct peer_link {
    struct peer_host *host;
    enum peer_link_state state;
    struct peer_client machine;
    struct net_connection *connection;
    struct dns_query *query;
    struct net_address addresses[PEER_ADDRESSES_MAX];
    size_t address_count, address;
    uint16_t port; /* of a name that is being looked up */
    int64_t heard_ms, said_ms, used_ms, retry_ms;
    int64_t clock_ms; /* the wall clock against the monotonic one, at XPEER */
    unsigned failures;
    int64_t quiet_until_ms; /* the next failure before is no line of the log */
    struct loop_timer timer;
    struct loop_task task;
};

struct peer_host {
    UT_hash_handle hh;
    struct peer *peer;
    char name[GROUP_HOST_MAX + 1];
    struct peer_link links[PEER_LINKS];
};

struct peer {
    struct peer_setup setup;
    char group[GROUP_NAME_MAX + 1];
    int64_t content_max;
    struct tls_server *tls_server; /* NULL: there is no secret */
    struct tls_client *tls_client;
    unsigned char secrets[PEER_SECRETS_MAX][DIGEST_SIZE]; /* digests of them */
    size_t secret_count;

    struct net_listener *listeners[PEER_LISTENERS_MAX];
    size_t listener_count;
    struct peer_entry *entries; /* the first that came, or was named, first */
    size_t entry_count, entering;
    struct peer_ip known[PEER_KNOWN_MAX];
    size_t known_next;
    struct peer_complaints complaints[PEER_WORTHS];
    struct peer_counts counts;

    struct sibling_calls calls;
    struct peer_host *hosts; /* uthash */
};

/* peer_accept.c */
void peer_accept(void *context, struct net_connection *connection);
void peer_accept_note(struct peer *peer, const struct net_address *address);
/* Another size of messages. */
void peer_accept_reload(struct peer *peer);
/* All callers hear why, and go. */
void peer_accept_end_all(struct peer *peer, const char *why);

/* peer_link.c */
struct peer_link *peer_link_find(struct peer *peer, const char *host,
                                 enum peer_link_kind kind);
struct peer_link *peer_link_get(struct peer *peer, const char *host,
                                enum peer_link_kind kind);
/* Begins, or goes on: the link has requests. */
void peer_link_begin(struct peer_link *link);
void peer_link_ignore_all(struct peer *peer, const void *context);
/* Connections end; requests are lost, and are made again by a new connection if their
 * owners want that. */
void peer_link_end_all(struct peer *peer, const char *why);
/* Nobody is called back. */
void peer_link_free_all(struct peer *peer);

#endif
