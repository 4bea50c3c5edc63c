/* The one time, the one chance and the one record of a run under the roof.
 *
 * A run is a process of its own: what is static here belongs to one seed. Time is in ms
 * since the run began, and stands still while anything happens. */
#ifndef T_ROOF_ROOF_H
#define T_ROOF_ROOF_H

#include "base/buffer.h"
#include "base/heap.h"

#include <stdnoreturn.h>

enum { SECOND_MS = 1000, MINUTE_MS = 60 * SECOND_MS, HOUR_MS = 60 * MINUTE_MS };

void roof_begin(uint64_t seed, bool traced);
int64_t roof_now_ms(void);
/* For the driver alone. */
void roof_set_now(int64_t now_ms);

/* Embedded in its owner, zeroed before the first use. */
struct roof_timer {
    struct heap_node node;
    int64_t due_ms;
    uint64_t number; /* those of one ms run in the order in which they were started */
    void (*run)(void *context);
    void *context;
};
void roof_timer_start(struct roof_timer *t, int64_t delay_ms,
                      void (*run)(void *context), void *context);
void roof_timer_stop(struct roof_timer *t);
/* When the first one is due; INT64_MAX: there is none. */
int64_t roof_due_ms(void);
/* Runs those that are due. False: none was. */
bool roof_run_due(void);

/* SplitMix64. */
uint64_t roof_random(void);
/* A stream of its own, so that one more question here changes nothing there. */
uint64_t roof_random_of(uint64_t *state);
/* The same of such a stream as roof_below() and roof_between(). */
unsigned roof_below_of(uint64_t *state, unsigned limit);
int64_t roof_between_of(uint64_t *state, int64_t from, int64_t to);
/* The first state of a stream of the seed with this name. */
uint64_t roof_fork(const char *name);
/* Chance comes from this stream from now on; returns the one before. */
uint64_t roof_exchange_stream(uint64_t state);
unsigned roof_below(unsigned limit);
/* In a thousand. */
bool roof_chance(unsigned permille);
int64_t roof_between(int64_t from, int64_t to);

/* A line of the trace: what happens at this time. It is kept for the life of a message,
 * counts in the hash, and is printed when the run is traced. */
void roof_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Lines of a daemon's log. */
void roof_note_log(const char *who, struct text lines);
uint64_t roof_hash(void);
/* Lines of the trace so far, but for those of logs. */
uint64_t roof_events(void);
/* Prints the lines that have the word. */
void roof_print_life(const char *word);

/* A law is broken: the run ends. about: a word of the lines to be printed, or NULL. */
noreturn void roof_break(const char *law, const char *about, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Called before the end, with the law and the reason. */
void roof_on_break(void (*broken)(const char *law, const char *reason));
/* Tests of the laws: what they are about is to be broken on purpose in this run. */
void roof_set_broken(const char *law);
bool roof_breaks(const char *law);

#endif
