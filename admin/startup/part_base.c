/* The log, events, sockets, names and rights, which all other parts use. */
#include "admin/startup/parts.h"

#include "admin/settings/descriptors.h"
#include "queue/queue_operator.h"

#include <string.h>
#include <sysexits.h>

enum { PASSED_NAMES_MAX = 512 };

static void
part_log_open(struct daemon *d, const struct options *o)
{
    const char *path = options_log_socket(o);
    d->log = log_new(d->loop, o->log_style, o->log_level);
    log_mask_by(d->log, o->log_addresses, NULL); /* the key is in the spool */
    log_name_host(d->log, o->hostname);
    log_watch_journal(d->log);
    log_write_at_crash(d->log);
    int error = path != NULL ? log_open_syslog(d->log, path) : 0;
    if (error != 0)
        log_say(d->log, LOG_LEVEL_WARNING, "main", NULL,
                "log_to: %s: %s: the log goes to standard error", path,
                strerror(-error));
}

int
part_base_start(struct daemon *d)
{
    const struct options *o = &d->configuration->options;
    part_log_open(d, o);
    notify_open(&d->notify, d->loop, d->log);
    d->events = event_hub_new(d->log);
    event_hub_count_waiting(d->events, d->loop);
    d->net = net_new(d->loop);
    descriptors_want(o, d->log);
    d->sandbox = sandbox_new();
    return net_take_passed(d->net, d->error, DAEMON_ERROR_MAX) ? 0 : EX_CONFIG;
}

void
part_base_reload(struct daemon *d, struct configuration *fresh)
{
    const struct options *o = &fresh->options;
    log_restyle(d->log, o->log_style, o->log_level);
    log_mask_by(d->log, o->log_addresses, NULL);
    log_name_host(d->log, o->hostname);
    descriptors_want(o, d->log);
}

/* Interrupted sessions have been logged before "stopped". */
void
part_base_stop(struct daemon *d)
{
    net_free(&d->net);
    notify_close(&d->notify);
    sandbox_free(&d->sandbox);
    if (d->ran)
        daemon_tell(d, EVENT_STOPPING, "stopped");
    event_hub_free(&d->events);
    log_free(&d->log);
}

/* --- Names ------------------------------------------------------------------------- */

static void
part_dns_say(void *log, bool wrong, const char *text)
{
    log_say(log, wrong ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "dns", NULL, "%s", text);
}

int
part_dns_start(struct daemon *d)
{
    const struct options *o = &d->configuration->options;
    d->dns = dns_new(d->loop, text_from(o->dns_servers), d->error, DAEMON_ERROR_MAX);
    if (d->dns == NULL)
        return EX_CONFIG;
    dns_set_trust(d->dns, o->dns_trust);
    dns_listen(d->dns, part_dns_say, d->log);
    return 0;
}

void
part_dns_reload(struct daemon *d, struct configuration *fresh)
{
    dns_set_trust(d->dns, fresh->options.dns_trust);
    dns_reload(d->dns);
}

void
part_dns_stop(struct daemon *d)
{
    dns_free(&d->dns);
}

/* --- At the end of startup --------------------------------------------------------- */

int
part_passed_start(struct daemon *d)
{
    char names[PASSED_NAMES_MAX];
    if (net_drop_passed(d->net, names, sizeof(names)) > 0)
        log_say(d->log, LOG_LEVEL_WARNING, "main", NULL,
                "sockets were passed that no setting names, and are closed: %s; write "
                "fd:NAME in `listen` or `http`",
                names);
    queue_check_disk(manager_queue(d->manager));
    return 0;
}

static bool
part_rights_may_write(const void *sandbox, const char *directory)
{
    return sandbox_may_write(sandbox, directory);
}

int
part_rights_start(struct daemon *d)
{
    struct sandbox_rules rules = configuration_sandbox(d->configuration);
    sandbox_rules_plan(d->sandbox, &rules);
    local_on_ask(d->local, part_rights_may_write, d->sandbox);
    questions_on_sandbox(control_server_questions(d->control), d->sandbox);
    return 0;
}

void
part_rights_reload(struct daemon *d, struct configuration *fresh)
{
    struct sandbox_rules rules = configuration_sandbox(fresh);
    sandbox_rules_review(d->sandbox, &rules, d->log);
}
