/* Connections: the only door to sockets.
 *
 * A connection is bytes in, bytes out and seven events; what it is made of (TCP, Unix
 * socket, a pair of descriptors, TLS on these) is nobody else's business. Output is
 * collected and written at the end of the turn (LOOP_STAGE_SEND). Peers that do not
 * read stall only themselves: watch net_unsent(). */
#ifndef BASE_NET_H
#define BASE_NET_H

#include "base/net_address.h"
#include "base/tls/tls.h"

struct loop;
struct net;
struct net_listener;
struct net_connection;

struct net *net_new(struct loop *loop);
/* Aborts what is left; what net_close() was told to send is tried once, without
 * waiting. */
void net_free(struct net **net);
size_t net_connections(const struct net *net);
/* True when address is this host's own and one of our listeners answers there: a mail
 * loop (RFC 5321 §5.1). */
bool net_is_own(struct net *net, const struct net_address *address);

/* on_accept gets the connection; it must net_attach() or net_abort() it before it
 * returns. NULL with one clear line in error when the address cannot be bound. Port 0
 * lets the system choose: see net_listener_address(). A Unix socket is made with mode
 * 0666 (its directory guards it); a stale one is replaced. A listener on descriptor
 * exhaustion pauses for a moment instead of spinning. */
typedef void net_accepted(void *context, struct net_connection *connection);
struct net_listener *net_listen(struct net *net, const struct net_address *address,
                                unsigned unix_mode, net_accepted *on_accept,
                                void *context, char *error, size_t error_size);
const struct net_address *net_listener_address(const struct net_listener *l);
void net_listener_free(struct net_listener **l);

enum net_event {
    NET_CONNECTED, /* of net_connect(): may send now (sending earlier is allowed) */
    NET_INPUT,     /* net_input() has grown */
    NET_DRAINED,   /* net_unsent() fell below NET_LOW_WATER after having been above */
    NET_ENDED,     /* the peer has closed its half; no more input comes */
    NET_TIMED_OUT, /* nothing was received or sent for the time-out; it is not rearmed
                    */
    NET_FAILED,    /* broken; net_error() says why. Only closing is left to do. */
    NET_SECURED    /* of net_start_tls(): from now on everything is by TLS */
};
enum {
    NET_LOW_WATER = 32 * 1024,
    NET_HIGH_WATER = 128 * 1024,      /* producers pause here */
    NET_UNSENT_MAX = 4 * 1024 * 1024, /* net_send() beyond it breaks the connection */
    NET_INPUT_MAX = 64 * 1024, /* unconsumed input; then the socket is not read */
    NET_LINGERING_MAX = 256    /* closed here, not yet by the peer */
};
typedef void net_happened(void *context, enum net_event event);

/* bind_to may be NULL. Events come later, never before it returns. Not NULL. */
struct net_connection *net_connect(struct net *net, const struct net_address *to,
                                   const struct net_address *bind_to,
                                   net_happened *on_event, void *context);
/* Adopts two descriptors (0 and 1 for sendmail -bs); they may be files or pipes. */
struct net_connection *net_adopt(struct net *net, int in, int out,
                                 net_happened *on_event, void *context);
void net_attach(struct net_connection *c, net_happened *on_event, void *context);

/* Borrowed until net_consume() or the end of the event. */
struct text net_input(const struct net_connection *c);
void net_consume(struct net_connection *c, size_t size);
/* false: no NET_INPUT, the socket is not read. What is buffered stays. true again gives
 * NET_INPUT in the next turn when something is buffered. */
void net_want_input(struct net_connection *c, bool want);
void net_send(struct net_connection *c, struct text bytes);
/* Nobody is there any more to read or to send, says the kernel now, whatever came
 * before and was not read yet. False: unknown, or it may have closed its half only. */
bool net_peer_is_gone(const struct net_connection *c);
size_t net_unsent(const struct net_connection *c);
/* Inactivity; 0 = none. Rearms. */
void net_set_timeout(struct net_connection *c, int64_t timeout_ms);
/* NET_DRAINED comes at this mark instead of NET_LOW_WATER; before anything is sent. */
void net_set_low_water(struct net_connection *c, size_t bytes);
const char *net_error(const struct net_connection *c);
int net_errno(const struct net_connection *c);
const struct net_address *net_peer(const struct net_connection *c);
/* Who is at the other end of a Unix socket, says the kernel (SO_PEERCRED): as it was
 * when it connected. False for all other connections. */
struct net_credentials {
    unsigned pid, uid, gid;
};
bool net_peer_credentials(const struct net_connection *c, struct net_credentials *out);
const struct net_address *net_local(const struct net_connection *c);
/* From now on net_peer() is this: a proxy said for whom it speaks. */
void net_set_peer(struct net_connection *c, const struct net_address *peer);

/* --- TLS ------------------------------------------------------------------------- */

/* Exactly one of server and client is set: it says which side we are. */
struct net_tls {
    struct tls_server *server;
    struct tls_client *client;
    struct tls_client_options options; /* client */
    /* server: input that is there is no clear text but TLS already, which came in one
     * piece with what was consumed before it (a proxy's header). It is kept. */
    bool begun;
};
/* Once at most for a connection, in any event or before the first one, also while it
 * connects (then NET_CONNECTED comes first, as ever). What was sent before goes in
 * clear; nothing sent later does. Input that is there and was not consumed is dropped:
 * nothing received in clear can be taken for a secured command or reply (RFC 3207 §4.2,
 * STARTTLS injection); a caller who wants to refuse such a peer looks at net_input()
 * first, and forgets what he holds himself. Then NET_SECURED or NET_FAILED, or
 * NET_TIMED_OUT when the handshake as a whole takes longer than the time-out (bytes do
 * not rearm it); it goes on while input is not wanted. What is sent meanwhile waits for
 * NET_SECURED, and is never sent if that does not come.
 *
 * The peer's close_notify is NET_ENDED, an end without one NET_FAILED (net_errno() is
 * ECONNRESET): what came before may be a part of what was said. After either not a byte
 * is read; net_close() sends ours and what was unsent. Failures begin with "TLS: ". */
void net_start_tls(struct net_connection *c, const struct net_tls *tls);
bool net_is_secured(const struct net_connection *c); /* NET_SECURED has come */
/* For log and trace, valid from NET_SECURED on until closing; before, and in clear, "".
 */
const char *net_tls_version(const struct net_connection *c); /* "TLSv1.3" */
const char *
net_tls_cipher(const struct net_connection *c); /* "TLS_AES_256_GCM_SHA384" */
/* We are the client: the name in the certificate that matched, or its first. At most
 * TLS_NAME_MAX bytes of printable ASCII. */
const char *net_tls_peer_name(const struct net_connection *c);
/* We are the client: chain, dates and name are right, at any level. */
bool net_tls_verified(const struct net_connection *c);
bool net_tls_resumed(const struct net_connection *c); /* we are the client */

/* No event comes after these. close sends what is unsent first (30 s at most); of more
 * than NET_LINGERING_MAX that do so the oldest is cut off, so that clients who hear a
 * last reply and stay cannot use up the descriptors. */
void net_close(struct net_connection **c);
void net_abort(struct net_connection **c);
/* As net_abort(), and a TCP peer is always told by RST, never by an orderly end; what
 * it has not read yet may be lost to it. */
void net_reset(struct net_connection **c);

#endif
