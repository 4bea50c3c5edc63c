/* The daemon's look-ups, as the settings say, and what they say in the log. */
#ifndef ADMIN_STARTUP_NAME_SERVERS_H
#define ADMIN_STARTUP_NAME_SERVERS_H

#include "admin/settings/options.h"
#include "base/dns/dns.h"
#include "base/log/log.h"

/* NULL, with one line in error: they cannot start. */
struct dns *name_servers_start(struct loop *loop, struct log *log,
                               const struct options *options, char *error, size_t size);
/* The trust, and resolv.conf as it is now; dns_servers stay until a restart. */
void name_servers_reload(struct dns *dns, const struct options *options);

#endif
