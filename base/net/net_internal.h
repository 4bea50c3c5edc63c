/* Shared by the files of base/net/; no other file includes this header.
 *
 * net.c: opening and closing. net_stream.c: bytes and events. net_tls.c: the same
 * under TLS. net_listener.c: listeners. net_passed.c: sockets of
 * a service manager. Only socket.c calls the system, and converts addresses for it. */
#ifndef BASE_NET_NET_INTERNAL_H
#define BASE_NET_NET_INTERNAL_H

#include "base/buffer.h"
#include "base/loop/loop.h"
#include "base/net/net.h"
#include "base/tls/tls_session.h"

#include <sys/types.h>

/* Spare buffers for waiting bytes: idle connections hold none, and busy ones need not
 * allocate each time. */
enum { NET_SPARES = 32, NET_SPARE_MAX = 16 * 1024 };

/* A passed socket, until net_listen() takes it. */
struct net_passed {
    char name[NET_PATH_MAX];
    int fd; /* -1: taken */
};

struct net {
    struct loop *loop;
    char *scratch; /* NET_INPUT_MAX bytes, into which every connection reads */
    struct buffer spare[NET_SPARES]; /* empty, allocated: for the next use */
    size_t spare_count;
    struct net_listener *listeners;
    unsigned listener_last;    /* numbers of listeners, from 1 on */
    struct net_passed *passed; /* NULL: none */
    size_t passed_count;
    bool passed_missing;
    struct net_connection *connections;
    size_t connection_count;          /* with the lingering ones */
    struct net_connection *lingering; /* closing, oldest first */
    size_t lingering_count;
    struct net_connection *dirty; /* have output for this turn, in order */
    struct loop_task
        wake; /* posted while some are dirty, so that the next turn does not wait */
};

/* Input or output that waits: often taken from the front, seldom moved. */
struct net_waiting {
    struct buffer bytes;
    size_t taken; /* of bytes, from the front */
};

/* Events to emit in the next turn, in this order. */
enum {
    NOTIFY_CONNECTED = 1,
    NOTIFY_INPUT = 2,
    NOTIFY_DRAINED = 4,
    NOTIFY_FAILED = 8,
    NOTIFY_MORE = 16 /* not an event: TLS holds input that the socket does not show */
};

struct net_connection {
    struct net *net;
    struct net_connection *prev, *next;
    struct net_connection *dirty_prev, *dirty_next;
    struct net_connection *lingering_prev, *lingering_next;
    net_happened *on_event;
    void *context;

    int in, out;                             /* the same for a socket */
    struct loop_watch *watch_in, *watch_out; /* the same when in == out */
    struct net_waiting input, output;
    struct text view; /* during NET_INPUT: the input, in net->scratch */

    struct tls_session *tls;  /* NULL: in cleartext, or already ended */
    struct net_waiting early; /* records received before TLS began */
    /* records to write; they include output up to some point */
    struct net_waiting wire;
    size_t clear; /* first bytes of output, sent in cleartext before TLS */

    struct loop_timer timer;
    int64_t timeout_ms, active_ms; /* monotonic; the timer is rearmed when it fires */
    struct loop_task notifying;
    unsigned notify;

    size_t dropped; /* bytes that came while closing */
    char *error;    /* NULL until something has failed */
    int error_number;

    bool in_is_socket, out_is_socket;
    bool connecting;
    bool shaking; /* TLS: the handshake has begun */
    bool secured; /* and is over */
    bool blocked; /* the last write did not take everything */
    bool dirty;   /* in net->dirty */
    bool paused;  /* net_want_input(false) */
    bool ended;   /* the peer has closed its half */
    bool failed;
    size_t low_water;
    bool above;   /* low_water was exceeded */
    bool closing; /* net_close(): no more events */
    bool shut;    /* our half is closed */
    bool gone;    /* only its memory is left */

    unsigned listener; /* the number of that which accepted it; 0: none did */
    struct net_address peer, local;
};

/* A connection around an accepted, non-blocking socket; the peer's address is known. */
struct net_connection *net_connection_accepted(struct net *net, int socket,
                                               const struct net_address *peer);
/* The user has called net_attach(), or the connection is closed. */
bool net_connection_is_settled(const struct net_connection *c);

/* net_stream.c. These use and refill net's spare buffers. */
size_t net_waiting_length(const struct net_waiting *w);
struct text net_waiting_text(const struct net_waiting *w);
void net_waiting_clear(struct net *net, struct net_waiting *w);
/* False, with w unchanged, beyond the buffer's limit. */
bool net_waiting_add(struct net *net, struct net_waiting *w, struct text t);
void net_waiting_take(struct net *net, struct net_waiting *w, size_t size);

/* net_tls.c. Handshake and data, as net_stream_receive(). */
void net_tls_receive(struct net_connection *c);
/* Makes TLS records of output if none wait: first the handshake's, then data. */
void net_tls_seal(struct net_connection *c);
/* Before the end of the handshake: drops output that waits for it. */
void net_tls_drop_output(struct net_connection *c);
/* Sends close_notify behind the output and ends TLS. */
void net_tls_end(struct net_connection *c);
/* TLS holds input, and the user wants input. */
bool net_tls_has_more(const struct net_connection *c);

/* net_stream.c. A call that emits events may leave the connection closing or gone. */
void net_stream_emit(struct net_connection *c, enum net_event event);
/* Sets the watches that the connection's state needs. */
void net_stream_update(struct net_connection *c);
/* Marks it for writing at the end of this turn. */
void net_stream_mark(struct net_connection *c);
/* Emits the event of NOTIFY_... in the next turn. */
void net_stream_notify(struct net_connection *c, unsigned what);
void net_stream_receive(struct net_connection *c);
/* Reads bytes of the socket: their number, 0 at the end, or -errno. */
ssize_t net_stream_read(const struct net_connection *c, char *to, size_t size);
/* got bytes are in net->scratch, behind space for the held ones: emits NET_INPUT and
 * keeps the bytes that the user did not consume. */
void net_stream_deliver(struct net_connection *c, size_t held, size_t got);
void net_stream_drop_input(struct net_connection *c);
void net_stream_flush(struct net_connection *c);
void net_stream_flush_all(void *net); /* LOOP_SEND_NET */
/* Broken: NET_FAILED comes in the next turn. */
void net_stream_fail(struct net_connection *c, int error_number, const char *format,
                     ...) __attribute__((format(printf, 3, 4)));
/* When the output of a closing connection is written: closes our half, then, once the
 * peer has closed its half, the connection. */
void net_stream_settle(struct net_connection *c);
void net_stream_destroy(struct net_connection *c);

/* The next socket of that name, for the caller to close; -1: there is none. */
int net_passed_take(struct net *net, const char *name);
void net_passed_free(struct net *net);

#endif
