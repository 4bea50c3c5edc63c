/* The calls of a loop, as letters in their order. */
#ifndef T_SUPPORT_LOOP_STORY_H
#define T_SUPPORT_LOOP_STORY_H

#include "base/loop/loop.h"

struct story {
    struct loop *loop;
    char told[64];
    struct loop_task task, other_task;
    struct loop_timer timer, other_timer, timers[4];
    struct loop_watch *watch, *other_watch;
    int events, count;
    int64_t seen_ms;
};

/* The letters are at most as many as `told` has space for. */
void story_add(struct story *s, char letter);

/* A story is the context of these callbacks. */
void say_a(void *story);

void say_b(void *story);

void say_c(void *story);

/* Adds a '.', and stops the loop. */
void story_stop(void *story);

/* Frees the loop: one assertion. */
void story_finish(struct story *s);

#endif
