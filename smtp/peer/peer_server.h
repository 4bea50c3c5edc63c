/* The called side of the peer door: a machine without sockets and time.
 *
 * Bytes of the caller go in, bytes for it come out; its requests go to a
 * sibling_service. Replies come in the order of the commands: each command that waits
 * for something has a slot in a ring, and a reply is sent when all before it were. A
 * message goes to the service in the pieces in which it comes. While a question is
 * answered no command is read. */
#ifndef SMTP_PEER_PEER_SERVER_H
#define SMTP_PEER_PEER_SERVER_H

#include "base/buffer.h"
#include "queue/group/siblings.h"

enum {
    PEER_LINE_MAX = 1024,     /* bytes of a command */
    PEER_SLOTS = 128,         /* replies that wait for one before them */
    PEER_ERRORS_MAX = 10,     /* wrong commands, then 421 */
    PEER_OUTPUT_MAX = 1 << 20 /* bytes that were not taken yet */
};

struct peer_server;

/* A command and its reply. */
struct peer_slot {
    struct peer_server *server;
    char *reply;    /* NULL: it waits for the service */
    uint64_t bytes; /* of the message */
    bool is_message;
};

enum peer_stage {
    PEER_NEW = 1,     /* the caller has not named itself */
    PEER_READY = 2,   /* commands */
    PEER_TAKING = 4,  /* the bytes of a message */
    PEER_LINE = 8,    /* the bytes of a question */
    PEER_ASKING = 16, /* it waits for its turn, or is answered */
    PEER_QUIT = 32,   /* replies are left */
    PEER_OVER = 64    /* nothing more is read or said */
};

struct peer_server {
    /* Set by the owner. */
    const struct sibling_service *service;
    int64_t content_max; /* bytes of a message's content */
    /* Output has come in a callback of the service, or the machine can go on: peer_
     * server_go() is to be called, in a later turn. */
    void (*wake)(void *context);
    void *context;
    bool is_crowded; /* the caller does not read */

    /* Private but to be read. */
    enum peer_stage stage;
    struct sibling_hello caller; /* from PEER_READY on */
    struct buffer out;
    uint64_t taken, refused, asked; /* messages, questions */

    /* Private. */
    struct peer_slot slots[PEER_SLOTS];
    unsigned first, count; /* a ring */
    unsigned messages;     /* unanswered, and their bytes */
    uint64_t message_bytes;
    unsigned errors;
    struct taking *taking; /* PEER_TAKING; NULL: the bytes are dropped */
    struct peer_slot *slot;
    uint64_t left;      /* bytes that belong to the command */
    struct buffer line; /* PEER_LINE, PEER_ASKING */
    struct asking *asking;
    size_t answered; /* bytes of the answer */
    bool has_asked, has_ended, has_paused, is_long;
};

void peer_server_start(struct peer_server *s);
/* Takes bytes off *input, which may be empty. */
void peer_server_go(struct peer_server *s, struct text *input);
/* Whether more input is of use now. */
bool peer_server_wants(const struct peer_server *s);
/* The last reply is 421 and says why; unanswered commands are left. */
void peer_server_close(struct peer_server *s, const char *enhanced, const char *why);
/* The connection is over: nothing of the service calls back any more. */
void peer_server_stop(struct peer_server *s);

#endif
