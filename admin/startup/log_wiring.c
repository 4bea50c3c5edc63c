/* Makes the log in the style of the settings, where these say. */
#include "admin/startup/log_wiring.h"

#include <string.h>

struct log *
log_wiring_open(struct loop *loop, const struct options *o)
{
    const char *path = options_log_socket(o);
    struct log *log = log_new(loop, options_log_style(o), options_log_level(o));
    log_name_host(log, o->hostname);
    log_watch_journal(log);
    log_write_at_crash(log);
    int error = path != NULL ? log_open_syslog(log, path) : 0;
    if (error != 0)
        log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                "log_to: %s: %s: the log goes to standard error", path,
                strerror(-error));
    return log;
}
