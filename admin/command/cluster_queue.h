/* `petrel queue ls|show|why|hold|release|retry --cluster`: the queues of all hosts of the
 * group, by our daemon. */
#ifndef ADMIN_COMMAND_CLUSTER_QUEUE_H
#define ADMIN_COMMAND_CLUSTER_QUEUE_H

#include "admin/answer/filter.h"
#include "admin/settings/options.h"

#include <jansson.h>

/* verb is of `petrel queue`. A sysexits code: EX_TEMPFAIL if a host did not answer, EX_USAGE
 * for a verb that is for one host alone. */
int cluster_queue_command(const char *verb, const struct filter *filter,
                          const struct options *options);

#endif
