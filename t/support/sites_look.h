/* All sites of a scheduler, as sched_look() shows each. */
#ifndef T_SUPPORT_SITES_LOOK_H
#define T_SUPPORT_SITES_LOOK_H

#include "sched/sched.h"

/* In no order. */
void sites_look(const struct sched *sched, void (*each)(void *context, const struct sched_site *site),
                void *context);

#endif
