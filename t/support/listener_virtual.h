/* Real sockets in virtual time: the stand-in of the loop, told by poll() what is ready.
 *
 * The test links t/sim/loop.c. Nothing waits for the clock: settle() lets everything
 * happen that can happen now, pass() lets time go by. */
#ifndef T_SUPPORT_LISTENER_VIRTUAL_H
#define T_SUPPORT_LISTENER_VIRTUAL_H

#include "t/support/listener_world.h"
#include "t/sim/sim.h"

#include <poll.h>

enum { DESCRIPTORS = 256, QUIET_ROUNDS = 5, STEPS = 50 };

/* Tells the loop what is ready; how many are. */
int tell_ready(struct loop *loop, int wait_ms);

/* Until nothing happens any more; no time goes by. */
void settle(struct world *w);

/* So much time goes by, in steps that let timers and sockets act. */
void pass(struct world *w, int64_t ms);

void tell(struct visitor *v, const char *bytes);

/* All input since the last time. */
struct text heard(struct visitor *v);

/* The last line that has come begins with it. */
bool answers(struct visitor *v, const char *command, const char *want);

/* The same where the disk has a part, which is real. */
bool answers_late(struct visitor *v, const char *command, const char *want);

bool is_gone(struct visitor *v);

bool logged(const struct world *w, const char *what);

/* The listener begins again with w->settings; options as "?proxy". */
void listen_again(struct world *w, const char *options);

#endif
