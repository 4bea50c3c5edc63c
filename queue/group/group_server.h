/* The bank of a slice, for the other slices of this machine: they ask by a Unix socket.
 *
 * One line of JSON each way: {"ask": [WORD, ...]}, the words of the script
 * (group_answer.h), or none, to hear whether anybody answers; and {"answer": TEXT}, or
 * {"refused": WHY}. A client that says anything else is cut off. */
#ifndef QUEUE_GROUP_GROUP_SERVER_H
#define QUEUE_GROUP_GROUP_SERVER_H

#include "base/buffer.h"

struct loop;
struct net;
struct group_server;

enum {
    GROUP_LINE_MAX = 60 * 1024,    /* of a question; GROUP_ASK_MAX sites have 40 KB */
    GROUP_ANSWER_MAX = 16 * 1024,  /* of an answer; they have 9 KB */
    GROUP_UNREAD_MAX = 64 * 1024,  /* of answers that a client has not read */
    GROUP_SERVER_CLIENTS_MAX = 512 /* at a time, with those that are gone unnoticed */
};

/* Binds the socket, with mode 0600, and disconnects every client. NULL with one line in
 * error. */
struct group_server *group_server_new(struct loop *loop, struct net *net,
                                      const char *path, char *error, size_t size);
void group_server_free(struct group_server **server);
/* From now on it answers, from an empty bank. */
void group_server_open(struct group_server *server);
/* A question of this process. NULL: the answer is in out; else why there is none. */
const char *group_server_ask(struct group_server *server, const char *const *words,
                             size_t count, struct buffer *out);

#endif
