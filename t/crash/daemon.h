/* A process with a queue: its loop, its log, and what the queue has found for it. */
#ifndef T_CRASH_DAEMON_H
#define T_CRASH_DAEMON_H

#include "base/buffer.h"
#include "base/loop/loop.h"
#include "queue/queue.h"

extern const char crash_spool[];

/* How the queue is set up in a run; 0 = no journal. */
struct setup {
    int64_t journal_size, journal_message_max, journal_segment;
    unsigned slices_max;
};

struct daemon {
    struct loop *loop;
    struct log *log;
    struct buffer lines;
    struct queue *queue;
    struct queue_entry *found;
    size_t found_count, found_capacity;
    size_t listed; /* found at the start */
    bool disordered;
    struct envelope *const *envelopes; /* those in use, MESSAGES_MAX places; or NULL */
    char error[300];
};

/* The clock begins step_ms beside everybody else's. The exit code of queue_open. */
int daemon_open(struct daemon *d, const struct setup *setup, unsigned slices,
                unsigned slice, uint64_t seed, int64_t step_ms);
/* `petrel sendmail`: no loop of its own. */
int daemon_open_injector(struct daemon *d, const struct setup *setup, uint64_t seed);
/* In order, or where the disk is dead as by SIGKILL. */
void daemon_close(struct daemon *d);
void daemon_advance(struct daemon *d, int64_t ms);

#endif
