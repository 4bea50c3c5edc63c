/* Shared by the files of give.h; no other file includes it. */
#ifndef QUEUE_GROUP_GIVE_INTERNAL_H
#define QUEUE_GROUP_GIVE_INTERNAL_H

#include "base/arena.h"
#include "base/heap.h"
#include "base/loop/loop.h"
#include "queue/group/give.h"
#include "queue/queue_barrier.h"
#include "queue/spool/id_set.h"

struct give_row {
    struct heap_node node;
    struct id id;
    int64_t due_ms;
};

struct give_host {
    char name[GROUP_HOST_MAX + 1];
    bool is_there;     /* it takes mail, as far as the group knows */
    bool is_silent;    /* it owes answers: no more goes there before one */
    int64_t paused_ms; /* until then; monotonic */
    size_t sent;
};

enum gift_state { GIFT_READY, GIFT_SENT, GIFT_LOST };

struct gift {
    struct give *give;
    struct id id;
    const struct envelope *envelope; /* the manager's */
    uint64_t set;                    /* of fragments; 0: none */
    enum gift_state state;
    struct give_host *host; /* SENT, LOST: to whom */
    int64_t lost_ms;        /* since then it may be there; 0: it is not */
    int64_t again_ms;       /* LOST: the next question */
    int content;            /* handle; -1: none */
    /* Hosts, by their place, that cannot read its form; is_unread: any of them. */
    uint64_t unread[GROUP_HOSTS_MAX / 64];
    bool is_unread;
    struct gift *prev, *next;
};

struct give {
    struct give_setup setup;
    struct text *to; /* names; empty: all */
    size_t to_count;
    char *to_text;
    void (*over)(void *context);
    void *over_context;
    struct give_host *hosts[GROUP_HOSTS_MAX];
    size_t host_count, turn;
    struct queue_walk *walk; /* NULL: rows has what it found */
    bool walk_has_names;
    bool was_busy, was_sent; /* since the last walk began */
    int64_t again_ms;        /* no walk before: what was put off is tried again then */
    struct arena arena;      /* of the rows */
    struct heap rows;        /* soonest due first */
    struct id_set stay;
    struct gift *gifts;
    size_t gift_count, ready, unended; /* ready: gifts in that state */
    struct queue_barrier barrier;
    bool has_barrier, is_over, rests;
    size_t ending; /* of unended, those of the barrier */
    struct loop_task task;
    struct loop_timer timer;
    struct give_progress progress;
    char why[GIVE_WHY_MAX];
};

static inline int64_t
give_now_ms(const struct give *g)
{
    return loop_monotonic_ms(g->setup.loop);
}

static inline bool
give_is_open(const struct give *g, const struct give_host *h)
{
    return h->is_there && h->paused_ms <= give_now_ms(g);
}

/* --- give_unread.c: messages whose form some host cannot read ----------------------- */

/* By the host in that place of hosts[]. */
bool give_unread_by(const struct gift *x, size_t host);
/* x->host cannot. */
void give_unread_note(struct gift *x);

/* Whether a host that is there may read it; SOON: and takes mail now, or when it has
 * answered. */
enum give_unread { GIVE_UNREAD_BY_ALL, GIVE_UNREAD_LATER, GIVE_UNREAD_SOON };
enum give_unread give_unread_hope(const struct gift *x);

#endif
