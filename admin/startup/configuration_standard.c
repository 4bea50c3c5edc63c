/* sendmail -bs: a session on standard input and output. */
#include "admin/startup/configuration.h"

#include "admin/settings/complaint.h"
#include "base/loop/loop.h"
#include "base/net/net.h"
#include "base/event/event.h"
#include "queue/queue.h"
#include "smtp/session/listener.h"

#include <stdio.h>
#include <sysexits.h>

enum { ERROR_SIZE = 512 };

static void
configuration_served(void *context)
{
    loop_stop(context);
}

int
configuration_serve_standard(const struct options *o)
{
    char error[ERROR_SIZE];
    struct buffer errors;
    struct queue *queue;
    struct loop *loop = loop_new();
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_WARNING);
    struct event_hub *events = event_hub_new(log);
    struct manager_settings settings = options_manager(o, 0);
    buffer_init(&errors, CONFIGURATION_ERRORS_MAX);
    struct route_table *routes = options_routes(o, &errors);
    struct listener_settings listener = configuration_public_listener(o);
    struct alias_files *files = NULL;
    struct buffer unused; /* errors are the daemon's, which expands stored recipients */
    buffer_init(&unused, CONFIGURATION_ERRORS_MAX);
    if (routes != NULL)
        (void)!alias_files_read(o, routes, &listener.aliases, &files, &unused);
    buffer_free(&unused);
    int code = routes != NULL && listener_check(&listener, &errors) ? 0 : EX_CONFIG;
    complaint_write(&errors);
    if (code == 0)
        code = queue_open_injector(&queue, log, &settings.queue, error, sizeof(error));
    else
        snprintf(error, sizeof(error), "the settings have errors");
    if (code == 0) {
        struct net *net = net_new(loop);
        listener_serve_standard(loop, net, events, queue, routes, &listener,
                                configuration_served, loop);
        loop_run(loop);
        net_free(&net);
        queue_close(&queue);
    } else {
        fprintf(stderr, "sendmail: %s\n", error);
    }
    aliases_free(&listener.aliases);
    alias_files_free(&files);
    route_free(&routes);
    buffer_free(&errors);
    event_hub_free(&events);
    log_free(&log);
    loop_free(&loop);
    return code;
}
