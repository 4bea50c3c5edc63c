/* Common parts of the tests of base/net*.c: a loop, a net, a listener and two sides
 * that write down their events. */
#ifndef T_SUPPORT_NET_WORLD_H
#define T_SUPPORT_NET_WORLD_H

#include "base/net/net.h"

#include "base/buffer.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "t/support/tap.h"
#include "t/support/until.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { GOT_MAX = 64 << 20, BLOCK = 65536 };

enum then { THEN_NOTHING, THEN_CLOSE, THEN_ABORT, THEN_FREE_NET };

/* One side of a connection, and what has happened to it. */
struct side {
    struct world *world;
    struct net_connection *connection;
    char told[64]; /* CIDETFS, the initials of the events; I repeated is one I */
    struct buffer got;
    bool keeps; /* leaves its input where it is */
    bool echoes;
    bool refuses; /* aborts instead of accepting */
    enum then then;
};

struct world {
    struct loop *loop;
    struct net *net;
    struct net_listener *listener;
    struct side server, client;
    int accepted;
    bool calling; /* into net: an event now would break the first law */
    bool nested;
};

void forget(struct side *s);

void on_event(void *context, enum net_event event);

void on_accept(void *context, struct net_connection *connection);

struct net_address address(const char *text);

struct world * start(const char *listen_on);

void net_finish(struct world *w);

const struct net_address * net_where(const struct world *w);

void connect_client(struct world *w);

/* A plain blocking socket: the peer that is not ours. */
int raw_connect(struct world *w);

int raw_client(struct world *w);

void raw_send(int fd, const char *string);

/* The input that is there now; "" for none, "(end)" or "(reset)". */
const char * raw_read(int fd, char *to, size_t size);

bool is_readable(int fd);

/* Counts bytes up to the end; -1 after a reset. Our side's turns go on meanwhile. */
int64_t raw_drain(struct world *w, int fd, struct buffer *copy);

int64_t net_now_ms(void);

char * pattern(size_t size);

#endif
