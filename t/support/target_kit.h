/* Targets as settings have them. */
#ifndef T_SUPPORT_TARGET_KIT_H
#define T_SUPPORT_TARGET_KIT_H

#include "sched/route/target.h"

/* With the usual parameters, and port 25; problem is "" where it is good. */
bool target_kit_parse(const char *written, struct target *t,
                      char problem[TARGET_PROBLEM_MAX]);

#endif
