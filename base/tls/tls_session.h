/* One side of a TLS connection, over a transport of the caller: for base/net/.
 *
 * A failure and the end from the peer are final: nothing is read or written after
 * them. */
#ifndef BASE_TLS_TLS_SESSION_H
#define BASE_TLS_TLS_SESSION_H

#include "base/tls/tls.h"

#include <sys/types.h>

struct tls_session;

/* The transport of records. */
struct tls_pipe {
    /* Bytes received, 0 at the end, -EAGAIN or another negative errno. */
    ssize_t (*receive)(void *context, char *to, size_t size);
    /* Takes all records; false when that exceeds a limit. */
    bool (*send)(void *context, struct text records);
    void *context;
};

/* The session holds a reference to server or client. No byte is sent or received
 * yet. */
struct tls_session *tls_session_serve(struct tls_server *server,
                                      enum tls_protocol protocol,
                                      const struct tls_pipe *pipe);
struct tls_session *tls_session_call(struct tls_client *client,
                                     const struct tls_client_options *options,
                                     const struct tls_pipe *pipe);
void tls_session_free(struct tls_session **session);

/* A client's certificate by the table of server, which may be another one than that of the
 * session. out: the name of a KNOWN client; fingerprint and name of an UNKNOWN one. */
enum tls_client_standing tls_session_judge_client(const struct tls_session *s,
                                                  const struct tls_server *server,
                                                  char out[TLS_CLIENT_TEXT_MAX]);

/* Continues the handshake: DONE, MORE (needs input), BAD (see the error; an alert has
 * been sent to the peer). The client's first call needs no input. */
enum progress tls_session_shake(struct tls_session *s);
/* This and the calls below need DONE. Returns the number of bytes; 0 after
 * close_notify; -EAGAIN; or another negative errno (see the error): -ECONNRESET is an
 * end without close_notify. */
ssize_t tls_session_read(struct tls_session *s, char *to, size_t size);
/* False: broken, see the error. */
bool tls_session_write(struct tls_session *s, struct text bytes);
/* Sends close_notify, when that is possible. */
void tls_session_end(struct tls_session *s);
/* tls_session_read() has data or an end to return, even if no byte arrives. */
bool tls_session_has_more(const struct tls_session *s);

/* The error in one line; "" while nothing is wrong. */
const char *tls_session_error(const struct tls_session *s);
struct tls_facts tls_session_facts(const struct tls_session *s);

#endif
