/* Targets for mail whose sender asks something of TLS (RFC 8689): that of the route, with
 * `asks` set, so that such mail shares no session, site or failure with other mail.
 *
 * Each is made when the first such message comes, and kept as long as its table. */
#ifndef SCHED_ROUTE_ASKED_H
#define SCHED_ROUTE_ASKED_H

#include "sched/route/route.h"

struct asked_targets;

struct asked_targets *asked_targets_new(void);
void asked_targets_free(struct asked_targets **set);
/* target lives as long as the set, and so does the result. It is the target itself where
 * the wish changes nothing there. */
const struct target *asked_targets_find(struct asked_targets *set,
                                        const struct target *target,
                                        enum target_asks asks);

#endif
