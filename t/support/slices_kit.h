/* Daemons of slices on one simulated disk, and the mail of one that died. */
#ifndef T_SUPPORT_SLICES_KIT_H
#define T_SUPPORT_SLICES_KIT_H

#include "t/support/queue_kit.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

enum { MESSAGES = 6, SEGMENT = 65536, LARGE = 20000 };

/* Messages of the dead one: small ones; 1 is large, 2 has marks, 3 is held, 4 has
 * ended.
 */
struct dead {
    struct id ids[MESSAGES];
};

bool slices_start(struct kit *k, unsigned slices, unsigned slice, int64_t journal_size);

struct text dead_content(unsigned message);

/* On an empty disk: a daemon works, and is killed. */
void dead_make(struct dead *d, unsigned slices, unsigned slice);

/* How much is wrong: what is of this slice must have been reported, and be whole. */
unsigned dead_check(const struct dead *d, struct kit *k, unsigned slices, unsigned slice);

/* The answer of queue_adopt(). */
struct answer {
    unsigned count, messages;
    char error[200];
};

/* context: a struct answer. */
void on_adopted(void *context, const char *error, unsigned messages);

/* Slice 1 of 2 is dead, slice 0 runs. */
void slices_begin(struct kit *k, struct dead *d);

#endif
