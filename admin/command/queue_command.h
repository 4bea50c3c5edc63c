/* `petrel queue hold|release|retry|bounce|rm`: by the daemon, or without one. */
#ifndef ADMIN_COMMAND_QUEUE_COMMAND_H
#define ADMIN_COMMAND_QUEUE_COMMAND_H

#include "admin/answer/filter.h"
#include "admin/settings/options.h"
#include "queue/manager/manager.h"

/* Prints a line for each message; complaints go to standard error. A sysexits code:
 * that of the first complaint. */
int queue_command_messages(enum manager_verb verb, const struct filter *filter,
                           const struct options *options);
/* Forgets what these sites have taught (sched_forget_limits()), by the daemon: there is
 * nothing to forget without one. EX_DATAERR: there is no such site. */
int queue_command_forget_limits(int count, char **sites, const struct options *options);

/* sendmail -q: mail that matches is due now; for all of the queue a daemon must run.
 * Silent unless verbose, but for complaints. A sysexits code. */
int queue_command_flush(const struct filter *filter, bool verbose,
                        const struct options *options);

/* `petrel queue adopt SLICE`: the daemon takes over the slice of a dead instance.
 * arguments: those after "adopt". A sysexits code: EX_TEMPFAIL when no daemon answers,
 * EX_UNAVAILABLE when it does not take the slice. */
int queue_command_adopt(int count, char **arguments, const struct options *options);

#endif
