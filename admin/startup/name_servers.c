/* Starts the look-ups of the daemon. */
#include "admin/startup/name_servers.h"

static void
name_servers_say(void *context, bool wrong, const char *text)
{
    log_say(context, wrong ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "dns", NULL, "%s",
            text);
}

struct dns *
name_servers_start(struct loop *loop, struct log *log, const struct options *o,
                   char *error, size_t size)
{
    struct dns *dns = dns_new(loop, text_from(o->dns_servers), error, size);
    if (dns == NULL)
        return NULL;
    dns_set_trust(dns, options_dns_trust(o));
    dns_listen(dns, name_servers_say, log);
    return dns;
}

void
name_servers_reload(struct dns *dns, const struct options *o)
{
    dns_set_trust(dns, options_dns_trust(o));
    dns_reload(dns);
}
