/* Destination queues: who waits for which next hop, and what it allows. Internal to
 * sched/.
 *
 * A destination holds the waiting entries (recipients of one message) in the order of
 * sched/job.h, its window, and its state: alive, dead until a time, paused by a rate
 * delay.
 * Those that want one more session stand in the ready list and are served in turn;
 * times stand in a heap; nothing is scanned. */
#ifndef SCHED_DESTINATION_H
#define SCHED_DESTINATION_H

#include "base/heap.h"
#include "sched/job.h"
#include "sched/reason.h"
#include "sched/route.h"
#include "sched/window.h"

#include <uthash.h>

struct sched_message;
struct destination;

enum {
    DESTINATION_KEEP_MS = 300000,    /* an empty living one keeps its window so long */
    DESTINATION_EMPTY_MAX = 2000,    /* so many; beyond it the one empty longest goes */
    DESTINATION_OPEN_PAUSE_MS = 1000 /* after a session that never greeted */
};

struct entry {
    struct entry *prev,
        *next; /* in the destination's queue, or among those to be settled */
    struct sched_message *message;
    struct destination *destination;
    struct job job;
    unsigned first, count; /* slots of the message */
    unsigned given;        /* of them, from the front: taken or settled */
    struct reason *reason; /* to be settled: why */
};

struct shared_target { /* routes are few, destinations many */
    UT_hash_handle hh;
    size_t holders;
    struct target target;
};

struct destination {
    UT_hash_handle hh;
    struct destination *prev, *next;             /* ready */
    struct destination *empty_prev, *empty_next; /* empty */
    struct heap_node timer;
    int64_t wake_ms;
    char *key, *domain; /* domain "" unless TARGET_MX */
    struct shared_target *shared;
    struct window window;
    struct entry *waiting; /* the first is the current job, before those it passed */
    struct jobs jobs;      /* the waiting */
    size_t works;          /* transactions that the waiting entries make */
    size_t recipients;     /* waiting */
    size_t entries;        /* of loaded messages, in any state */
    int sessions;          /* opened and not ended, of which: */
    int greeted, idle, carrying;
    bool dead, forget, is_ready, is_empty;
    int64_t dead_until_ms, pause_until_ms, open_after_ms, free_at_ms;
    struct reason *reasons;            /* all those in use */
    struct reason *reason, *suspended; /* of death; for later mail */
    struct entry *filling;             /* while a message is sorted by destination */
};

struct destinations {
    struct destination *by_key, *ready, *empty;
    struct shared_target *targets;
    struct heap timers;
    size_t empty_count, dead_count;
    int64_t shift_ms; /* of the clock, so far */
};

void destinations_init(struct destinations *set);
void destinations_free(struct destinations *set); /* no entry must wait */

/* The one for that next hop, made when missing. A target with other settings replaces
 * the old one only while nothing uses the destination. */
struct destination *destination_get(struct destinations *set,
                                    const struct target *target, struct text domain);
const struct transport *destination_transport(const struct destination *d);

/* The time by which jobs are told apart: it goes on when the clock is set back. */
uint32_t destinations_job_s(const struct destinations *set, int64_t now_ms);
/* Queues a new entry of the destination, whose job.since_s is set. */
void destination_append(struct destination *d, struct entry *e);
/* Something waits: puts first what is to be served now, by sched/job.h. */
void destination_choose(struct destination *d, uint32_t job_s);
/* Cuts the next transaction off the first entry: its first slot and count. */
struct entry *destination_cut(struct destination *d, unsigned *first, unsigned *count);

/* Takes all waiting entries off, in order, each with a share of reason, to the end of
 * *list. */
void destination_give_up(struct destination *d, struct reason *reason,
                         struct entry **list);

/* Dead from now for the minimal backoff time. */
void destination_die(struct destinations *set, struct destination *d, int64_t now_ms,
                     const struct outcome *outcome);
/* Alive, on probation: one session first. Nothing when it lives. */
void destination_revive(struct destinations *set, struct destination *d);

/* To be called after anything about d has changed: keeps ready list and timers true. It
 * frees a destination that is empty and to be forgotten: d is not used after it. */
void destination_update(struct destinations *set, struct destination *d,
                        int64_t now_ms);

/* Does what is due by now: revivals, ends of pauses, forgetting. */
void destinations_tick(struct destinations *set, int64_t now_ms);
int64_t destinations_wake_ms(const struct destinations *set); /* INT64_MAX = never */
/* All times come delta_ms later. */
void destinations_shift(struct destinations *set, int64_t delta_ms);

#endif
