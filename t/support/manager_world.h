/* A queue manager in a temporary spool and in virtual time, with a channel that does
 * what addresses say: good@, bad@, later@ and site@ are delivered, failed, deferred,
 * and deferred by the site. */
#ifndef T_SUPPORT_MANAGER_WORLD_H
#define T_SUPPORT_MANAGER_WORLD_H

#include "base/loop/loop.h"
#include "base/memory.h"
#include "queue/manager/manager.h"
#include "t/support/folder.h"
#include "t/sim/sim.h"
#include "t/support/tap.h"

#include <dirent.h>
#include <unistd.h>
#include <utlist.h>
#include "base/event/event.h"

struct fake {
    struct fake *prev, *next;
    struct world *world;
    struct sched_session *session;
    struct loop_task task;
};

struct world {
    char folder[40];
    struct loop *loop;
    struct log *log;
    struct event_hub *events;
    struct buffer lines; /* of the log */
    struct route_settings routes_text;
    struct route_table *routes;
    struct manager_settings settings;
    struct manager *manager;
    struct fake *fakes;
    bool stalled;       /* sessions take nothing */
    bool all_good;      /* for any addresses */
    bool background;    /* the disk syncs so; with t/sim/disk.c, from the next start */
    struct buffer seen; /* "SENDER>RECIPIENT " of each attempt */
    unsigned attempts, opened, drained;
    void (*plug)(struct world *w); /* more channels, at each start */
    void *channel;                 /* its */
    struct id id;                  /* accepted last */
    int priority;                  /* of what is sent */
    enum envelope_tls tls;         /* likewise */
    unsigned notify;               /* of its recipients */
    bool notifies;                 /* the peer does, of its successes */
    bool accepted;
};

struct outcome fake_outcome(const struct world *w, struct text address);

void manager_fake_end(struct fake *f);

void fake_settle(struct fake *f, const struct delivery_request *request);

void fake_open(void *context, struct sched_session *session, const struct target *target, const char *domain);

/* Stalled sessions go on. */
void world_unstall(struct world *w);

void world_turns(struct world *w);

struct route_table * world_routes(struct world *w);

void manager_world_start(struct world *w);

void manager_world_begin(struct world *w, const char *routes);

void world_stop(struct world *w);

void manager_world_end(struct world *w);

void world_restart(struct world *w);

void world_stored(void *context, struct envelope *e, const struct outcome *refusal);

/* recipients: separated by spaces. */
void world_send(struct world *w, const char *sender, const char *recipients);

/* ... and what comes of it at once. */
void world_deliver(struct world *w, const char *sender, const char *recipients);

/* Files in a directory of the spool. */
unsigned world_files(const struct world *w, const char *dir);

bool world_is_empty(const struct world *w);

bool world_logged(const struct world *w, const char *words);

/* The attempts since the last call, "SENDER>RECIPIENT " each. */
void world_saw(struct world *w, const char *want, const char *name);

/* An operator's command about the message that was accepted last. */
enum manager_result world_operate(const struct world *w, enum manager_verb verb);

enum sched_place world_place(const struct world *w);

/* For manager_drain(): counts in the drained of its world. */
void world_drained(void *w);

/* A channel that refuses all in these words, or takes it. */
struct world_refusal {
    const char *reply; /* NULL: mail is taken */
    char host[300];
    enum blame blame;
};
extern struct world_refusal world_refusal;

void world_open_refusing(void *w, struct sched_session *session,
                         const struct target *target, const char *domain);

/* How often the log has these words. */
unsigned world_log_count(const struct world *w, const char *words);

#endif
