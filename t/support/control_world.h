/* A manager with its control socket on the real disk, and mail in its queue. */
#ifndef T_SUPPORT_CONTROL_WORLD_H
#define T_SUPPORT_CONTROL_WORLD_H

#include "admin/control/control_server.h"
#include "base/loop/loop.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>
#include "base/event/event.h"

struct world {
    struct loop *loop;
    struct log *log;
    struct event_hub *events;
    struct buffer lines;
    struct net *net;
    struct manager *manager;
    struct route_table *routes;
    struct control_server *control;
    char path[100]; /* of the socket */
    struct id id;   /* sent last */
    unsigned accepted;
    /* A test's channel: */
    struct sched_session *session; /* open, and waiting to be told */
    struct loop_task task;
    bool stalled;
};

void control_turns(struct world *w, unsigned count);

/* Without a turn: channels may be plugged in. */
void control_world_begin(struct world *w, const char *folder, struct text lines);

/* Slice 0 of these. */
void control_world_begin_of(struct world *w, const char *folder, struct text lines,
                            unsigned slices);

/* Sessions must have ended. */
void control_world_end(struct world *w);

void on_stored(void *context, struct envelope *e, const struct outcome *refusal);

/* user0 to userN at the domain; it is taken in a later turn. */
void post_mail(struct world *w, unsigned recipients, const char *domain);

/* Stores a message with these recipients, in a later turn. */
void control_store(struct world *w, struct envelope *e);

/* A recipient; its failure is not reported. */
void control_address(struct envelope *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
