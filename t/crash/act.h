/* Single acts of a workload, with the shadow kept beside the queue. An act that is
 * impossible (no such message, or another is at it) is not done. */
#ifndef T_CRASH_ACT_H
#define T_CRASH_ACT_H

#include "t/crash/judge.h"

struct answer;
struct work {
    struct shadow shadow;
    struct setup setup;
    struct daemon daemons[SLICES_MAX];
    unsigned slices;                          /* 0: no daemon runs */
    struct envelope *envelopes[MESSAGES_MAX]; /* what is being delivered */
    struct answer *answers;                   /* that have not come */
    bool hung;                                /* one did not come at all */
    uint64_t random;
    int64_t clock_ms; /* processes begin where the last one ended */
};

/* In a new world. The seed chooses what is left to chance, and how long syncs take. */
void work_begin(struct work *w, const struct setup *setup, uint64_t seed);
void work_end(struct work *w);
/* A call of the disk has failed. */
bool act_had_trouble(struct work *w);

uint64_t act_chance(struct work *w, uint64_t below);
int act_any(struct work *w); /* a message */

void act_start(struct work *w, unsigned slices);
/* killed: at once, without a word; else in order. */
void act_stop(struct work *w, bool killed);
void act_turn(struct work *w);
/* Time passes, until all that was asked for is durable. */
void act_flush(struct work *w);

void act_accept(struct work *w, unsigned recipients, size_t size);
void act_await(struct work *w);
/* So many messages that become durable together. */
enum { INJECTED_MAX = 3 };
void act_inject(struct work *w, unsigned messages, unsigned recipients, size_t size);
/* One to an alias, whose members are found when it is loaded. */
void act_inject_alias(struct work *w, size_t size);
/* Files of its name, as any local user may put them there. */
void act_plant(struct work *w, int message);
void act_notice_injected(struct work *w);

void act_load(struct work *w, int message);
void act_load_all(struct work *w);
void act_settle(struct work *w, int message, unsigned recipient, bool failed);
void act_defer(struct work *w, int message, int64_t in_ms);
/* Defers it; its sender hears so, and that is marked when the notice is stored. */
void act_warn(struct work *w, int message, int64_t in_ms);
/* Defers it; failures that were not yet reported are, and that is noted when the notice
 * is stored. */
void act_report(struct work *w, int message, int64_t in_ms);
/* Delivers the rest; tells failures by a notice, and retires it when that is stored. */
void act_finish(struct work *w, int message);
void act_finish_all(struct work *w);
void act_hold(struct work *w, int message);
void act_remove(struct work *w, int message);

#endif
