/* Connections: the only user of sockets.
 *
 * A connection is a stream of bytes in, a stream of bytes out and seven events. Its
 * transport (TCP, Unix socket, a pair of descriptors, TLS over any of these) is hidden
 * from the users of this header. Output is collected and written at the end of the
 * turn (LOOP_SEND_NET). A peer that does not read stalls only its own connection:
 * the caller watches net_unsent().
 *
 * base/net/ never resolves names, knows no SMTP and never blocks. */
#ifndef BASE_NET_NET_H
#define BASE_NET_NET_H

#include "base/net_address.h"
#include "base/tls/tls.h"

struct loop;
struct net;
struct net_listener;
struct net_connection;

struct net *net_new(struct loop *loop);
/* Aborts all connections. First the output of closing ones (net_close()) is tried once
 * more, without waiting. */
void net_free(struct net **net);
size_t net_connections(const struct net *net);
/* Whether an address of this host, which a connection may have as its source. */
bool net_can_bind(const struct net_address *address);
/* True when address is this host's own and one of our listeners answers there: a mail
 * loop (RFC 5321 §5.1). */
bool net_is_own(struct net *net, const struct net_address *address);

/* Takes the sockets that a service manager has passed to this process: LISTEN_PID,
 * LISTEN_FDS, LISTEN_FDNAMES (sd_listen_fds(3)), which are removed from the environment.
 * Before other descriptors are closed or opened. False, with one line in error: one of
 * them cannot be used. */
bool net_take_passed(struct net *net, char *error, size_t error_size)
    __attribute__((warn_unused_result));
/* How many of that name nobody listens on yet. */
size_t net_passed_left(const struct net *net, const char *name);
/* Closes those; names lists them: "a, b". Their number. */
size_t net_drop_passed(struct net *net, char *names, size_t size);
/* Whether net_listen() has failed because nothing with that name was passed. */
bool net_passed_is_missing(const struct net *net);

/* on_accept must call net_attach() or net_abort() before it returns. NULL, with one
 * line in error, when the address cannot be bound. Port 0 lets the system choose: see
 * net_listener_address(). A Unix socket gets the mode unix_mode (0: 0666, its directory
 * guards it); a stale one is replaced. NET_PASSED takes one socket of that name, and
 * its file stays. When descriptors run out the listener pauses for a moment instead of
 * spinning. */
typedef void net_accepted(void *context, struct net_connection *connection);
struct net_listener *net_listen(struct net *net, const struct net_address *address,
                                unsigned unix_mode, net_accepted *on_accept,
                                void *context, char *error, size_t error_size);
/* As net_listen(), of an IP address and a port that several processes of one user listen
 * on, each by this call. The kernel divides the connections among them. */
struct net_listener *net_listen_shared(struct net *net,
                                       const struct net_address *address,
                                       net_accepted *on_accept, void *context,
                                       char *error, size_t error_size);
/* Before the end of a listener: accepts the connections that wait, which would be reset.
 * Not those of a passed socket: they wait for the next process. */
void net_listener_accept_rest(struct net_listener *l);
const struct net_address *net_listener_address(const struct net_listener *l);
/* The connections that a listener has accepted, and the number of open ones. */
struct net_listener_counts {
    uint64_t accepted;
    size_t open;
};
struct net_listener_counts net_listener_counts(const struct net_listener *l);
/* How often clients had to wait because descriptors or memory were used up. */
uint64_t net_listener_pauses(const struct net_listener *l);
void net_listener_free(struct net_listener **l);

enum net_event {
    NET_CONNECTED, /* of net_connect(): may send now (sending earlier is allowed) */
    NET_INPUT,     /* net_input() has grown */
    NET_DRAINED,   /* net_unsent() fell below NET_LOW_WATER after it was not */
    NET_ENDED,     /* the peer has closed its half; no more input comes */
    NET_TIMED_OUT, /* nothing received or sent within the time-out; not rearmed */
    NET_FAILED,    /* broken; net_error() says why. Only closing is left to do. */
    NET_SECURED    /* of net_start_tls(): from now on all bytes are under TLS */
};
enum {
    NET_LOW_WATER = 32 * 1024,
    NET_HIGH_WATER = 128 * 1024,      /* producers pause here */
    NET_UNSENT_MAX = 4 * 1024 * 1024, /* net_send() beyond it breaks the connection */
    NET_INPUT_MAX = 64 * 1024, /* unconsumed input; then the socket is not read */
    NET_LINGERING_MAX = 256    /* closed here, but not by the peer yet */
};
typedef void net_happened(void *context, enum net_event event);

/* Never NULL; events come after it has returned. bind_to may be NULL. */
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
/* False: the socket is not read, no NET_INPUT comes, buffered input stays. True again
 * gives NET_INPUT in the next turn if input is buffered. */
void net_want_input(struct net_connection *c, bool want);
void net_send(struct net_connection *c, struct text bytes);
/* The kernel knows that the peer is gone in both directions, even if input from before
 * is still unread. False: unknown, or the peer may have closed its half only. */
bool net_peer_is_gone(const struct net_connection *c);
size_t net_unsent(const struct net_connection *c);
/* The limit of inactivity; 0 = none. Restarts it. */
void net_set_timeout(struct net_connection *c, int64_t timeout_ms);
/* NET_DRAINED comes at this mark instead of NET_LOW_WATER. Call it before any
 * net_send(). */
void net_set_low_water(struct net_connection *c, size_t bytes);
const char *net_error(const struct net_connection *c);
int net_errno(const struct net_connection *c);
const struct net_address *net_peer(const struct net_connection *c);
/* The process at the other end of a Unix socket, as it was when it connected
 * (SO_PEERCRED). False for all other connections. */
struct net_credentials {
    unsigned pid, uid, gid;
};
bool net_peer_credentials(const struct net_connection *c, struct net_credentials *out);
const struct net_address *net_local(const struct net_connection *c);
/* Replaces net_peer() by the client's address that a proxy has sent. */
void net_set_peer(struct net_connection *c, const struct net_address *peer);

/* --- TLS ------------------------------------------------------------------------- */

/* Exactly one of server and client is set: our role. */
struct net_tls {
    struct tls_server *server;
    enum tls_protocol protocol; /* server */
    struct tls_client *client;
    struct tls_client_options options; /* client */
    /* server: buffered input is TLS already and is kept, because it arrived in one
     * piece with bytes consumed before it (a proxy's header). */
    bool begun;
};
/* At most once for a connection: in any event, before the first one, or during connect
 * (NET_CONNECTED then still comes first). Bytes sent before go in cleartext; later
 * bytes wait for NET_SECURED and are never sent without it. Unconsumed input is
 * dropped, so that no cleartext is taken for a secured command or reply (RFC 3207
 * §4.2, STARTTLS injection). A caller that refuses such a peer checks net_input()
 * first, and discards its own copies.
 *
 * Then NET_SECURED comes, or NET_FAILED, or NET_TIMED_OUT if the whole handshake takes
 * longer than the time-out (bytes do not rearm it). The handshake continues while
 * input is not wanted.
 *
 * The peer's close_notify is NET_ENDED. An end without it is NET_FAILED with
 * ECONNRESET: the input may be truncated. Nothing is read after either; net_close()
 * sends unsent output and our close_notify. Errors begin with "TLS: ". */
void net_start_tls(struct net_connection *c, const struct net_tls *tls);
bool net_is_secured(const struct net_connection *c); /* NET_SECURED has come */
/* From NET_SECURED until closing; else nothing, and "". */
struct tls_facts net_tls_facts(const struct net_connection *c);
/* See tls_session_judge_client(); ANONYMOUS without TLS. */
enum tls_client_standing net_tls_judge_client(const struct net_connection *c,
                                              const struct tls_server *server,
                                              char out[TLS_CLIENT_TEXT_MAX]);

/* No event comes after these. net_close() sends unsent output first, for at most 30 s.
 * Beyond NET_LINGERING_MAX connections in that state the oldest is aborted, so that
 * clients that stay after the last reply cannot use up the descriptors. */
void net_close(struct net_connection **c);
void net_abort(struct net_connection **c);

#endif
