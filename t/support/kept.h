/* Kept events on a simulated disk, for tests of base/event/event_spool.h. Link t/sim/disk*.c and t/sim/loop.c. */
#ifndef T_SUPPORT_KEPT_H
#define T_SUPPORT_KEPT_H

#include "base/event/event_spool.h"

#include "base/log/log_internal.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"

struct kept {
    struct loop *loop;
    struct log *log;
    struct event_hub *hub;
    struct gate *gate;
    struct disk *disk;
    struct event_spool *spool;
    struct buffer said;
    struct event_spool_settings settings;
    unsigned more;
};

/* The process begins; what the disk has stays. */
void kept_begin(struct kept *k, int64_t bytes_max);
/* kill: without the end of a process. */
void kept_leave(struct kept *k, bool killed);
bool kept_has_said(const struct kept *k, const char *words);
/* The number-th message was delivered. */
void kept_tell(struct kept *k, unsigned number);
void kept_tell_deferred(struct kept *k, uint64_t message, unsigned recipient);
void kept_turn(struct kept *k);
/* Takes everything, a batch at a time; the numbers of the recipients must go up by one
 * from `next` on, but for repetitions. Returns the next number. */
unsigned kept_take_all(struct kept *k, unsigned next, unsigned batch_max, unsigned *repeated);
/* A file of events, without the zeros that are written ahead. */
struct text kept_lines(const char *path);
void kept_on_more(void *context); /* counts in `more` */

#endif
