/* An actor's side of a connection: lines in, and bytes out as fast as its path takes
 * them, or as slowly as the actor wants. */
#ifndef T_ROOF_PEER_H
#define T_ROOF_PEER_H

#include "base/tls/tls_session.h"
#include "t/roof/network.h"
#include "t/roof/roof.h"

enum peer_end { PEER_FIN, PEER_RESET, PEER_SILENCE, PEER_ENDS };

struct peer {
    struct network_end *end; /* NULL: over */
    struct buffer out;
    size_t out_taken; /* of it: it is moved when that is most of it */
    size_t sent;      /* all bytes so far */
    size_t cut_at;    /* after so many it ends; 0: never */
    enum peer_end cut_how;
    size_t piece;     /* at most so many bytes at a time; 0: all */
    int64_t pause_ms; /* between them */
    struct roof_timer timer;
    bool waits;  /* out, for space or for the end of a pause */
    bool closes; /* when all is sent */
    bool hears;  /* line() or raw() is at work */
    void (*connected)(void *context);
    /* A line without its end; false: the rest is for later (peer_go_on()). */
    bool (*line)(void *context, struct text line);
    /* The next bytes that are no line go to raw(). */
    size_t raw_left;
    void (*raw)(void *context, struct text bytes);
    /* Under TLS: what was decrypted, and the end of the handshake. */
    struct tls_session *tls;
    struct buffer plain;
    size_t plain_taken;
    bool secured;
    void (*on_secured)(void *context); /* may be NULL */
    /* Once, when it is over for any reason. The peer is unused from then on. */
    void (*over)(void *context);
    void *context;
};

/* The end is the peer's from now on; functions and context are set by the caller. */
void peer_take(struct peer *p, struct network_end *end);
void peer_connect(struct peer *p, const struct net_address *from,
                  const struct net_address *to);
void peer_say(struct peer *p, struct text bytes);
/* The same in two steps: all bytes so far are peer_last() when they have been sent. */
void peer_add(struct peer *p, struct text bytes);
size_t peer_last(const struct peer *p);
void peer_send(struct peer *p);
/* One of them is NULL. Lines that follow are under TLS: the handshake begins with
 * peer_go_on(), which each line is followed by. */
void peer_start_tls(struct peer *p, struct tls_server *server,
                    struct tls_client *client);
void peer_go_on(struct peer *p);
/* After all that was said: with a reset, when it has not read all, or without, by chance. */
void peer_close(struct peer *p);
/* Now; over() is called. */
void peer_cut(struct peer *p, enum peer_end how);

#endif
