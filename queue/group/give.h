/* Gives the queue of this host to siblings: the state `giving` of a drain.
 *
 * A message is lent by the manager (no session has it), sent, and ended here only after a
 * sibling has said that it is durable there. The one due soonest goes first, held mail last;
 * siblings in turn. Before it, a sibling that did not answer is asked again for 60 s
 * (it knows what it has taken); then another one. What nobody takes stays, and so does what
 * one refuses for ever (5yz); but a form that it cannot read (5.5.4) goes to the next.
 *
 * A drain that is cancelled does not change that: until then what a sibling may have is
 * neither delivered here nor given to another one. */
#ifndef QUEUE_GROUP_GIVE_H
#define QUEUE_GROUP_GIVE_H

#include "queue/group/siblings.h"

struct event_hub;
struct give;
struct loop;
struct manager;

enum {
    GIVE_MOVES_MAX = 5, /* `given` of an envelope: one moved more often stays, 5.4.6 */
    GIVE_HURRY = 64,    /* ends not durable yet: then the journal is hurried */
    GIVE_WHY_MAX = 256
};

struct give_setup {
    struct loop *loop;
    struct event_hub *events;
    struct manager *manager;
    const struct sibling_calls *calls;
    const char *host; /* ours */
    /* The siblings that are known, anew at each call; each: until it returns false. */
    void (*siblings)(void *context,
                     bool (*each)(void *context, const struct sibling *s),
                     void *each_context);
    void *context;
};

struct give_progress {
    uint64_t given;
    size_t sent;                /* without an answer now */
    size_t left;                /* that can be given, as far as is known */
    size_t refused;             /* 5yz, or moved too often: they stay */
    char refusal[GIVE_WHY_MAX]; /* the last 5yz: who, and why; "" */
    size_t local;               /* of Maildirs and Unix sockets: they stay */
    size_t quarantined;         /* they stay */
    char why[GIVE_WHY_MAX];     /* nobody takes mail now; "" */
};

/* Begins. to: names, separated by commas or spaces, to which it gives; empty: all.
 * over is called once, in a later turn, when nothing is left that could be given. */
struct give *give_new(const struct give_setup *setup, struct text to,
                      void (*over)(void *context), void *over_context);
/* given: since give_new(); the rest: since it began last. */
struct give_progress give_progress(const struct give *give);
/* The time is over, or the drain is cancelled: over is not called any more, and nothing
 * more is lent. What a sibling may have comes back to the manager when it has said no, or
 * 60 s after its answer was lost. */
void give_rest(struct give *give);
/* Begins anew, after give_rest(). */
void give_again(struct give *give, struct text to);
/* The daemon stops: what is not answered comes back to the manager, and may be delivered
 * twice. */
void give_free(struct give **give);

#endif
