/* Sockets: the one file that calls the system for connections, listeners, datagrams and
 * inherited descriptors. Tests link a network of their own in its place
 * (t/roof/network.c).
 *
 * Each function makes the calls that its name says, and keeps nothing. All descriptors
 * are non-blocking, closed at exec, and the caller's to close. An int that is negative
 * is -errno. */
#ifndef BASE_NET_SOCKET_H
#define BASE_NET_SOCKET_H

#include "base/net/net.h"

#include <sys/types.h>

/* --- Streams ---------------------------------------------------------------------- */

/* A socket for net_address of this family. TCP sends immediately: the caller collects
 * its output. */
int socket_open(enum net_family family) __attribute__((warn_unused_result));
/* Before socket_connect(): the source address; the system chooses the port. */
int socket_bind_source(int socket, const struct net_address *from)
    __attribute__((warn_unused_result));
/* 0: connected; -EINPROGRESS: the socket becomes writable, then ask socket_result(). */
int socket_connect(int socket, const struct net_address *to)
    __attribute__((warn_unused_result));
int socket_result(int socket) __attribute__((warn_unused_result));
/* The number of bytes; received: 0 at the end of the peer's half. */
ssize_t socket_receive(int socket, char *to, size_t size);
ssize_t socket_send(int socket, struct text bytes);
/* Ends our half. */
int socket_shut(int socket) __attribute__((warn_unused_result));
/* Any descriptor. */
void socket_close(int descriptor);
/* Whether the peer is gone in both directions, or the connection is broken. */
bool socket_is_gone(int socket);
/* False, with *out unchanged: unknown. */
bool socket_local(int socket, struct net_address *out);
bool socket_peer(int socket, struct net_address *out);
/* See net_peer_credentials(). */
bool socket_credentials(int socket, struct net_credentials *out);

/* --- Listeners ---------------------------------------------------------------------- */

/* A listening socket. is_shared: several processes listen there. The file of a Unix
 * socket has the mode unix_mode, whatever the umask; -EADDRINUSE: it is there already. */
int socket_listen(const struct net_address *address, unsigned unix_mode, bool is_shared)
    __attribute__((warn_unused_result));
/* Options that accepted sockets inherit, for one that another process has made. */
void socket_set_inherited(int socket);
int socket_accept(int socket, struct net_address *peer)
    __attribute__((warn_unused_result));
/* Connections that may wait to be accepted. */
int socket_backlog(void);
/* Whether IPv4 reaches this listener of an IPv6 address, too. */
bool socket_is_dual(int socket);
/* 0 for a listening stream socket, which then has the flags of ours. */
int socket_adopt_listening(int descriptor) __attribute__((warn_unused_result));

/* --- Addresses of this host ------------------------------------------------------ */

bool socket_can_bind(const struct net_address *address);
/* The source of packets to that address, without its port; nothing is sent. False: there
 * is no way to it. */
bool socket_source(const struct net_address *to, struct net_address *source);

/* --- Datagrams to a Unix socket -------------------------------------------------- */

/* Its path, or "@NAME" in the abstract namespace. */
enum { SOCKET_PATH_MAX = 108 };
int socket_datagram_open(void) __attribute__((warn_unused_result));
int socket_datagram_connect(int socket, struct text path)
    __attribute__((warn_unused_result));

/* --- Inherited descriptors, whose flags are never changed ------------------------- */

enum socket_kind {
    SOCKET_NONE,
    SOCKET_SOCKET,
    SOCKET_PIPE,
    SOCKET_TERMINAL,
    SOCKET_FILE
};
/* SOCKET_NONE: not open. */
enum socket_kind socket_kind(int descriptor);
bool socket_is_file(int descriptor, uint64_t device, uint64_t inode);
/* Opens a pipe or terminal again, with flags of its own, for writing. */
int socket_open_again(int descriptor) __attribute__((warn_unused_result));
/* Read and write, and may wait. An interrupted call is -EAGAIN. */
ssize_t socket_read(int descriptor, char *to, size_t size);
ssize_t socket_write(int descriptor, struct text bytes);
/* Wait until the descriptor may be read or written, or has failed. */
bool socket_wait_read(int descriptor, int timeout_ms);
bool socket_wait_write(int descriptor, int timeout_ms);
/* From now on a pipe without a reader is -EPIPE, not a signal. */
void socket_ignore_broken_pipes(void);

#endif
