/* A delivery between a fake manager, two hosts and a scripted DNS, for its tests. */
#ifndef T_SIM_DELIVERY_WORLD_H
#define T_SIM_DELIVERY_WORLD_H

#include "smtp/delivery/delivery.h"

#include "base/crc.h"
#include "smtp/connect/mx_lookup.h"
#include "smtp/delivery/client_connection.h"
#include "sched/route/bind_address.h"
#include "base/event/event.h"
#include "t/sim/clock.h"
#include "t/support/delivery_host.h"
#include "t/sim/sim_dns.h"

#include <unistd.h>

/* --- Stand-ins for the manager and the queue
 * -------------------------------------------- */

enum { ERRANDS = 8, CONTENT_MAX = 3 * 1024 * 1024 };

struct manager {
    struct envelope *envelopes[ERRANDS];
    unsigned indexes[ERRANDS][8];
    size_t count, taken;
    size_t hidden;  /* requests that come only later */
    size_t open[2]; /* recipients of the requests under way without a verdict */
    const unsigned *under_way[2];       /* their indexes, in order */
    const struct sched_session *holder; /* of those requests */
    size_t most;                        /* requests at a time */
    char places[8];                     /* whose addresses stand for sessions */
    unsigned opened;
    struct buffer verdicts;
    unsigned ended;
    char found[256]; /* the site of the session opened last */
    uint64_t demand; /* of its domain */
    unsigned asked_again;
    unsigned takes;   /* recipients in a transaction */
    int64_t valid_ms; /* of that; 0: for ever */
    bool no_space, backwards;
    manager_watch *watch;
    void *watch_context;
    struct buffer health;
    bool has_trouble;
    struct outcome trouble;
    bool timed;    /* the last verdict came with its times */
    char tls[160]; /* and with that of its connection */
};

/* The queue is the content of the one file that all messages have. */
struct queue {
    char *content;
    size_t length;
    int open, handle;
    int64_t fail_at; /* reading from there on fails; -1 = never */
    bool fail_to_open;
    struct id at_work; /* what a crash now would be put down to */
};
extern struct queue spool;

extern struct session_limits told_limits; /* of the host that greeted last */

/* --- The bed -------------------------------------------------------------------------
 */

struct bed {
    struct loop *loop;
    struct net *ours, *theirs;
    struct dns *dns;
    struct log *log;
    struct event_hub *events;
    struct buffer lines;
    struct manager manager;
    struct delivery *delivery;
    struct delivery_settings settings;
    struct host a, b; /* 127.0.0.2 and 127.0.0.3 on one port */
    struct target target;
    struct tls *tls;
};

void add_mail(struct bed *b, const char *rcpts);

/* The CA whose certificates the delivery accepts; NULL: none. */
extern const char *bed_anchors;

void bed_start(struct bed *b);

void bed_stop(struct bed *b);

struct sched_session *place(struct bed *b);

void turns(struct bed *b, int64_t ms);

/* Until the session is over, and a little longer: nothing may come after that. */
void run(struct bed *b, const char *domain);

void is_settled(struct bed *b, const char *want, const char *name);

void is_trouble(struct bed *b, enum verdict verdict, const char *enhanced,
                const char *text);

bool has(const struct buffer *b, const char *what);

#endif
