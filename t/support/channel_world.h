/* The defragment channel upon a queue manager, in virtual time: fragments are sent, and
 * what is delivered is kept. */
#ifndef T_SUPPORT_CHANNEL_WORLD_H
#define T_SUPPORT_CHANNEL_WORLD_H

#include "defrag/channel.h"
#include "queue/envelope/set_mark.h"
#include "t/support/manager_world.h"

enum {
    STAGE_DELIVERED_MAX = 200,
    STAGE_HALF_MS = 3600 * 1000,
    STAGE_SLOW_MS = 10 * 1000 /* of PEERS_SLOW */
};

struct delivered {
    struct id id;
    char to[64];
    struct buffer content;
    unsigned notify;
    int64_t birth_ms;
    int priority;
    bool ours;
    unsigned header_needs;
    char submitter[40];
    char trace[80]; /* the first line of its prefix */
    char peer[32], mark[SET_MARK_SIZE]; /* where it was sent to; else "" */
};

struct stage {
    struct world w; /* first: plugs get it */
    struct channel_settings settings;
    struct defragmenter *channel;
    struct delivered delivered[STAGE_DELIVERED_MAX];
    unsigned count;
    bool refuses;                           /* what is tried is deferred */
    struct text original;                   /* ORCPT of what is sent */
    const char *envelope_id, *trust, *mark; /* mark: a peer sends it */
    const char *submitter;                  /* NULL: it is not ours */
    enum envelope_tls tls;
    enum { PEERS_TAKE, PEERS_SLOW, PEERS_DEFER, PEERS_REFUSE } peers;
    unsigned asked; /* how often peers were */
};

struct carrier_of {
    struct stage *stage;
    struct sched_session *session;
    struct delivery_request request;
    char peer[32];
    struct loop_task task;
    struct loop_timer timer;
};

/* False: the disk does not tell its content. */
bool stage_read(struct queue *queue, const struct envelope *e, struct buffer *out);

void stage_begin(struct stage *s, const char *routes);

void stage_stop(struct stage *s);

void stage_restart(struct stage *s);

void stage_clear(struct stage *s);

void stage_end(struct stage *s);

/* Any message. */
void stage_send(struct stage *s, const char *sender, const char *recipients, struct text content);

/* A fragment. total 0: it does not say. */
void stage_put(struct stage *s, const char *sender, const char *recipients, const char *id, unsigned number, unsigned total, const char *body);

/* ... and what comes of it in half a second. */
void stage_part_to(struct stage *s, const char *sender, const char *recipients, const char *id, unsigned number, unsigned total, const char *body);

void stage_part(struct stage *s, const char *id, unsigned number, unsigned total, const char *body);

void stage_arrived(const struct stage *s, unsigned which, const char *to, const char *content, const char *name);

unsigned stage_wholes(const struct stage *s, const char *whole);

struct manager_fragments stage_figures(const struct stage *s);

/* The channel's reason why the message accepted last waits. */
const char * stage_why(const struct stage *s);

#endif
