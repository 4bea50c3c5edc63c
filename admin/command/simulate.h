/* `petrel simulate`: a scenario (sched/simulate/scenario.h) against the scheduler. */
#ifndef ADMIN_COMMAND_SIMULATE_H
#define ADMIN_COMMAND_SIMULATE_H

#include "admin/settings/options.h"

/* `simulate SCENARIO [--trace]`: the settings hold where the scenario says nothing.
 * arguments behind "simulate". Returns a sysexits code: EX_NOINPUT when there is no
 * such file, EX_DATAERR when it has errors, EX_TEMPFAIL when mail was left. */
int command_simulate(int count, char **arguments, const struct options *options);

#endif
