/* Makes the daemon's log. */
#ifndef ADMIN_STARTUP_LOG_WIRING_H
#define ADMIN_STARTUP_LOG_WIRING_H

#include "admin/settings/options.h"
#include "base/log/log.h"

/* Its socket is made before the sandbox, which makes no new ones. */
struct log *log_wiring_open(struct loop *loop, const struct options *options);

#endif
