/* `petrel status --cluster`: all hosts of the group on one page.
 *
 * The JSON is one object: hosts, each with host and either trouble or what `summary` has
 * (admin/startup/parts.h); differing, settings that are not the same on all hosts,
 * by name: a digest and the hosts that have it; sites, those whose limits are shared, most
 * mail first: site, limit, shared_tokens (transactions in 5 s, of all), tokens and granted
 * (of them and of the sessions, what the hosts have), sessions, busy, waiting, backlogged,
 * hosts (who has mail there: host, waiting). */
#ifndef ADMIN_VIEW_CLUSTER_STATUS_H
#define ADMIN_VIEW_CLUSTER_STATUS_H

#include "admin/settings/options.h"

#include <stdbool.h>

/* A sysexits code: EX_TEMPFAIL if a host did not answer or accepts no mail. */
int cluster_status_command(bool json, const struct options *options);

#endif
