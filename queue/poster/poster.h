/* Mail out by HTTPS: a message is posted to a web application, as it is written to a
 * mailbox (doc/web-target.md).
 *
 * A session connects first, and takes mail once TLS is there: an application that is down
 * holds no message. Each message goes in a POST of its own, over a connection of its own,
 * from the queue in pieces; a signed one is read twice. All recipients of the POST share
 * its result. A crash, or a connection that ends before the response, repeats the POST: its
 * webhook-id, the same for each attempt with the same recipients, lets the application see
 * that. */
#ifndef QUEUE_POSTER_POSTER_H
#define QUEUE_POSTER_POSTER_H

#include "queue/manager/manager.h"
#include "sched/route/secrets.h"

struct http_caller;
struct poster;

enum {
    POSTER_RECIPIENTS_MAX = 50,    /* of a POST; more go in another one */
    POSTER_CALLS_MAX = 500,        /* connections; sched_settings has the like */
    POSTER_CONNECT_MS = 30 * 1000, /* to look up, connect and shake hands */
    POSTER_STALL_MS = 60 * 1000,   /* nothing is sent, or the response does not come */
    POSTER_BYTES_MIN = 10 * 1024,  /* in a second, of the whole body */
    POSTER_ANSWER_MAX = 16 * 1024  /* of a response's body that is read */
};

struct poster_settings {
    struct loop *loop;
    struct manager *manager;
    struct http_caller *http; /* its own, for POSTER_CALLS_MAX calls to one host */
};
struct poster *poster_new(const struct poster_settings *settings);
/* For users and keys of targets; borrowed until the next call. */
void poster_use(struct poster *p, const struct secrets *secrets);
/* Ends sessions that have no mail. */
void poster_drain(struct poster *p);
/* Ends the rest as deferred. */
void poster_cut(struct poster *p);
/* Cuts, and frees; p may point to NULL. */
void poster_free(struct poster **p);
/* A manager_open() for TARGET_HTTP; context is the struct poster. */
void poster_open(void *context, struct sched_session *session,
                 const struct target *target, const char *domain);

#endif
