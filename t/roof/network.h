/* A network in virtual time: the stand-in for base/net/socket.c (link t/roof/network.c).
 *
 * Streams have latency, bandwidth and a window; reads and writes are cut at random where
 * the path is choppy. A peer may end its half, reset, or vanish without a word; an
 * address may refuse, or not answer. Daemons use descriptors through base/net/, actors
 * the functions below. */
#ifndef T_ROOF_NETWORK_H
#define T_ROOF_NETWORK_H

#include "base/net/socket.h"

enum { NETWORK_FIRST = 100000 }; /* descriptors of the network begin here */

/* How a connection is: drawn for each. */
struct network_path {
    int64_t latency_ms; /* one way */
    int64_t bytes_a_ms; /* 0: no limit */
    size_t window;      /* bytes that the receiver has not read, and those under way */
    bool choppy;        /* reads and writes take less than they could */
};

/* The process whose calls come now: it owns what they make. 0: the actors. */
void network_enter(unsigned process);
/* The addresses of a process, for socket_can_bind(). "10.0.0.1" */
void network_add_address(unsigned process, const char *ip);
/* It is dead. with_word: the kernel lives on and ends its connections; else the power
 * was cut, and its peers hear nothing until they ask. */
void network_end_process(unsigned process, bool with_word);
/* Sockets of it that are open. */
size_t network_open(unsigned process);
/* Those that do not listen. */
size_t network_streams(unsigned process);
/* The next accepts find no descriptor left. */
void network_fail_accepts(unsigned count);
/* Ends that wait for a peer that has vanished hear that it is gone. */
void network_end_silence(void);
/* For sim_loop_on_ask(). */
int network_ask(int descriptor);
/* All calls so far: to see whether a turn did anything. */
uint64_t network_calls(void);
/* Lines for descriptor 2 of a process. */
void network_on_output(void (*take)(unsigned process, struct text bytes));
/* How new connections are; called for each. */
void network_on_path(void (*draw)(const struct net_address *to,
                                  struct network_path *out));
/* Whether nothing passes between two addresses now; NULL: all does. Bytes that are sent meanwhile
 * come afterwards, if both sides are still there. */
void network_on_cut(bool (*is_cut)(const struct net_address *a,
                                   const struct net_address *b));
/* When a call of the process must not have an effect any more. */
void network_on_dead(bool (*is_dead)(void));

/* --- Actors --- */

struct network_end;
enum network_event {
    NETWORK_CONNECTED,
    NETWORK_REFUSED,
    NETWORK_INPUT,  /* network_read() has something */
    NETWORK_ENDED,  /* the peer has ended its half */
    NETWORK_BROKEN, /* reset */
    NETWORK_SPACE   /* after network_write() took less than it got */
};
typedef void network_happened(void *context, enum network_event event);

/* Never NULL; events come later. */
struct network_end *network_connect(const struct net_address *from,
                                    const struct net_address *to,
                                    network_happened *on_event, void *context);
enum network_answer { NETWORK_ACCEPTS, NETWORK_REFUSES, NETWORK_SILENT };
/* on_accept may return NETWORK_REFUSES or NETWORK_SILENT; then end is NULL later. */
typedef void network_accepted(void *context, struct network_end *end);
struct network_service;
struct network_service *network_serve(const struct net_address *at,
                                      network_accepted *on_accept, void *context);
void network_service_set(struct network_service *s, enum network_answer answer);
/* How long an answer to bytes sent now takes at least, with some to spare. */
int64_t network_round_ms(const struct network_end *e);
/* The other side's address, and whether it is still there. */
const struct net_address *network_from(const struct network_end *e);
bool network_has_peer(const struct network_end *e);
/* The other side has closed it, or has gone: what comes was said before. */
bool network_is_left(const struct network_end *e);
void network_attach(struct network_end *e, network_happened *on_event, void *context);
struct text network_read(struct network_end *e); /* borrowed until consumed */
void network_consume(struct network_end *e, size_t size);
/* The bytes taken. */
size_t network_write(struct network_end *e, struct text bytes);
void network_shut(struct network_end *e);    /* FIN of our half */
void network_close(struct network_end **e);  /* FIN of ours; input is dropped */
void network_reset(struct network_end **e);  /* RST */
void network_vanish(struct network_end **e); /* without a word */

#endif
