/* Shared by network.c and network_sockets.c. */
#ifndef T_ROOF_NETWORK_INTERNAL_H
#define T_ROOF_NETWORK_INTERNAL_H

#include "base/loop/loop.h"
#include "t/roof/network.h"
#include "t/roof/roof.h"

enum {
    PROCESSES = 64,
    ADDRESSES = 8,
    BACKLOG = 4096,
    BYTES_MAX = 16 << 20,
    ASK_AGAIN_MS = 3000,
    CUT_AGAIN_MS = 1000 /* as TCP does, more or less */
};

enum state { FRESH, CONNECTING, CONNECTED, BROKEN, LISTENING };

struct segment {
    int64_t at_ms;
    size_t size; /* 0: the end of the half */
    bool reset;
    struct segment *next, *prev;
};

struct network_end {
    int descriptor;
    unsigned process; /* 0: an actor's */
    enum state state;
    int error; /* that a call will return once */
    struct net_address local, peer_address;
    struct network_path path;
    struct network_end *peer; /* NULL: gone or vanished */
    /* Input: bytes that have arrived, then those under way. */
    struct buffer in;
    size_t taken; /* of it, read already: it is moved when that is most of it */
    size_t arrived;
    struct segment *segments;
    int64_t last_at_ms; /* no segment overtakes another */
    bool ended;         /* the peer's half, seen at its place */
    bool shut;          /* our half */
    bool vanished; /* the peer hears nothing more */
    bool wants_space;
    struct roof_timer timer; /* the next segment, or the connection */
    /* an actor's */
    network_happened *on_event;
    void *context;
    /* a listener's */
    struct network_end *waiting; /* accepted by nobody yet, oldest first */
    size_t waiting_count;
    struct network_service *service;
    bool listed;
    struct network_end *prev, *next; /* of a listener's waiting ones */
    struct network_end *all_prev, *all_next;
};

struct network_service {
    struct net_address at;
    enum network_answer answer;
    network_accepted *on_accept;
    void *context;
    struct network_service *next;
};

struct network {
    unsigned process;
    struct net_address addresses[PROCESSES][ADDRESSES];
    size_t address_count[PROCESSES];
    struct network_end **ends; /* by descriptor */
    size_t end_count;
    struct network_end *all;
    struct network_service *services;
    uint64_t calls;
    unsigned accepts_failing;
    unsigned ports;
    uint64_t shared; /* chance, of listeners at one address */
    void (*take)(unsigned process, struct text bytes);
    void (*draw)(const struct net_address *to, struct network_path *out);
    bool (*is_dead)(void);
    bool (*is_cut)(const struct net_address *a, const struct net_address *b);
};
extern struct network net;

/* Counts the call. True: the process that makes it has died. */
bool network_is_dead(void);
struct network_end *network_end_of(int descriptor);
struct network_end *network_end_new(unsigned process);
struct network_end *network_listener_at(const struct net_address *to);
void network_begin_connecting(struct network_end *e, const struct net_address *to);
/* On its way to e; no bytes: the end of the half, or a reset. */
void network_send_segment(struct network_end *e, struct text bytes, bool reset);
ssize_t network_write_end(struct network_end *e, struct text bytes);
/* That have arrived. */
struct text network_input(const struct network_end *e);
void network_taken(struct network_end *e, size_t size);
void network_close_end(struct network_end *e, bool reset);
void network_forget_waiting(struct network_end *listener);

#endif
