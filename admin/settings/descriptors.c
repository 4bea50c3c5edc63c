/* Raises the limit of file descriptors to the number that the settings need. */
#include "admin/settings/descriptors.h"

#include "base/dns/dns.h"
#include "base/net/net.h"

#include <sys/resource.h>

enum {
    FILES_BESIDES = 300,   /* spool, log, control */
    FILES_OF_A_GROUP = 256 /* handshakes at the peer door, connections of siblings */
};

/* A session is a descriptor, and the queue needs some too: without them it would take
 * connections, and then no mail. With idle ones there are twice as many deliveries. */
void
descriptors_want(const struct options *o, struct log *log)
{
    rlim_t want =
        (rlim_t)(o->server.clients.sessions + 2 * o->manager.sched.session_limit) +
        NET_LINGERING_MAX + DNS_SOCKETS_MAX + FILES_BESIDES +
        (o->cluster_secret != NULL ? FILES_OF_A_GROUP : 0);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= want)
        return;
    files.rlim_cur = files.rlim_max < want ? files.rlim_max : want;
    if (setrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur < want)
        log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                "%llu descriptors are too few for server_session_limit and "
                "delivery_session_limit: "
                "raise the limit (ulimit -n) to %llu",
                (unsigned long long)files.rlim_cur, (unsigned long long)want);
}
