/* Mail of sendmail(1) for a queue manager, aliases, and operators without a daemon. */
#ifndef T_SUPPORT_INJECTED_H
#define T_SUPPORT_INJECTED_H

#include "sched/route/aliases.h"
#include "t/support/manager_world.h"

/* The text of a file of aliases, by the world's routes. */
struct aliases *injected_aliases(const struct world *w, const char *file);
/* As sendmail(1) does, while no daemon runs, so that it is found at the next start.
 * recipients: separated by spaces. */
void injected_add(struct world *w, const char *sender, const char *recipients);
void injected_add_large(struct world *w, const char *sender, const char *recipients, size_t size);
/* By a queue manager of an operator, without a daemon; it has no aliases. */
void injected_operate(struct world *w, enum manager_verb verb);
/* Stops the manager, adds the message and holds it before a daemon has seen it. */
void injected_held(struct world *w, const char *sender, const char *recipients);

#endif
