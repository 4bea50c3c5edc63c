/* The calling side of the peer door: a machine without sockets and time.
 *
 * Messages and questions wait in one list, in the order in which they came; each is sent
 * as far as there is room, and answered in that order; a question goes when the one before
 * it has its answer. Content is read from its owner when it can be sent, so no message is in
 * memory as a whole. A question that nobody waits for any more ends the connection, so that
 * the other host does not go on with it. */
#ifndef SMTP_PEER_PEER_CLIENT_H
#define SMTP_PEER_PEER_CLIENT_H

#include "base/buffer.h"
#include "queue/group/siblings.h"
#include "smtp/reply.h"

enum {
    PEER_PIECE = 32 * 1024, /* bytes of content that are read at a time */
    PEER_ASKS_MAX = 64,     /* questions that wait for a connection */
    /* From the moment when a command was sent as a whole until its reply is whole, however
     * often a byte of that comes; then the connection is over. */
    PEER_REPLY_MS = 60 * 1000,
    PEER_WHY_MAX = 600
};

struct peer_request;

struct peer_client {
    /* Set by the owner. */
    const struct sibling_service *service; /* our name and description */
    char host[GROUP_HOST_MAX + 1];         /* the expected name */

    /* Private but to be read. */
    bool is_ready; /* the other one has named itself */
    bool is_over;  /* broken, or closed by the other one: why */
    bool is_left;  /* then: by us, for a question that nobody waits for; what was not
                    * sent yet stays for the next connection */
    char why[PEER_WHY_MAX];
    struct sibling_hello other; /* when it is ready */
    struct buffer out;

    /* Private. */
    struct peer_request *requests; /* a list */
    unsigned round;                /* of connections */
    size_t gifts, asks;
    uint64_t gift_bytes;
    struct reply reply; /* which is being read */
    struct buffer line; /* of an answer */
};

void peer_client_init(struct peer_client *c);
void peer_client_free(struct peer_client *c);
/* A new connection: XPEER is the first that is sent. Requests that wait are sent behind
 * it. */
void peer_client_start(struct peer_client *c);
/* Another connection in its place, on which nothing was said yet: to be started. */
void peer_client_restart(struct peer_client *c);
bool peer_client_has_room(const struct peer_client *c, uint64_t bytes);
bool peer_client_is_idle(const struct peer_client *c); /* no request waits */
/* Neither calls back. Where there is no room peer_client_expire() ends it. */
void peer_client_give(struct peer_client *c, const struct sibling_gift *gift);
void peer_client_ask(struct peer_client *c, struct text line, int64_t until_ms,
                     const struct sibling_listener *listener);
/* Asks for a sign of life, unless a NOOP is under way or the connection is over. */
void peer_client_noop(struct peer_client *c);
/* Says goodbye, if nothing waits. */
void peer_client_quit(struct peer_client *c);
/* Adds what is to be sent to out, up to size bytes and one line. */
void peer_client_fill(struct peer_client *c, size_t size, int64_t now_ms);
/* Takes replies off *input; calls back. */
void peer_client_read(struct peer_client *c, struct text *input);
/* Ends questions whose time is over, and requests without room; calls back. A reply whose
 * time is over breaks the connection. */
void peer_client_expire(struct peer_client *c, int64_t now_ms);
/* When the next one is over; INT64_MAX: there is none. */
int64_t peer_client_next_ms(const struct peer_client *c);
/* There is no connection: all requests end, or if it was left those that were begun. Calls
 * back. May be started again. */
void peer_client_lose(struct peer_client *c, const char *why);
/* False: the content of a message with that context is being sent, or a question with it is
 * being answered, so the connection must end. */
bool peer_client_ignore(struct peer_client *c, const void *context)
    __attribute__((warn_unused_result));

#endif
