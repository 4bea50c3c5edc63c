/* A manager with its control socket on the real disk, and mail in its queue. */
#include "base/log/log_internal.h"
#include "t/support/control_world.h"

#include <stdarg.h>

void
control_turns(struct world *w, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        loop_turn(w->loop, 1);
}

void
control_world_begin_of(struct world *w, const char *folder, struct text lines,
                       unsigned slices)
{
    char error[300] = "";
    *w = (struct world){.loop = loop_new()};
    struct manager_settings settings = {
        .hostname = "h.test",
        .queue = {.spool = folder,      .slices = slices},
        .sched = { .active_limit = 100, .session_limit = 10,   .seed = 1}
    };
    struct route_settings routes = {.routes = lines};
    transport_params_default(&routes.base);
    w->log = log_new(w->loop, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    w->events = event_hub_new(w->log);
    buffer_init(&w->lines, 64 * 1024 * 1024);
    log_capture(w->log, &w->lines);
    w->net = net_new(w->loop);
    w->routes = route_new(&routes, &w->lines);
    snprintf(w->path, sizeof(w->path), "%s/control", folder);
    if (w->routes == NULL || manager_new(&w->manager, w->loop, w->events, &settings,
                                         w->routes, error, sizeof(error)) != 0)
        abort();
    w->control =
        control_server_new(w->loop, w->net, w->log, w->manager, w->path, error, sizeof(error));
    if (!ok_named(w->control != NULL, "it listens"))
        printf("# %s\n", error);
}

void
control_world_begin(struct world *w, const char *folder, struct text lines)
{
    control_world_begin_of(w, folder, lines, 1);
}

void
control_world_end(struct world *w)
{
    control_server_free(&w->control);
    ok(w->control == NULL);
    control_server_free(&w->control);
    manager_free(&w->manager);
    net_free(&w->net);
    route_free(&w->routes);
    event_hub_free(&w->events);
    log_free(&w->log);
    buffer_free(&w->lines);
    loop_free(&w->loop);
}

void
on_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    struct world *w = context;
    w->accepted += refusal == NULL;
    manager_accept(w->manager, &e);
}

void
post_mail(struct world *w, unsigned recipients, const char *domain)
{
    struct outcome refusal;
    struct envelope *e = envelope_new();
    char address[60];
    for (unsigned i = 0; i < recipients; i++) {
        snprintf(address, sizeof(address), "user%u@%s", i, domain);
        if (!envelope_add(e, text_from(address), NOTIFY_NEVER, TEXT("")))
            abort();
    }
    struct queue_draft *draft = queue_begin(manager_queue(w->manager), 0, &refusal);
    if (draft == NULL || !queue_write(draft, TEXT("A: b\r\n\r\n")))
        abort();
    queue_name(draft, e);
    w->id = e->id;
    queue_commit(&draft, &e, on_stored, w);
}

void
control_store(struct world *w, struct envelope *e)
{
    struct outcome refusal;
    struct queue_draft *draft = queue_begin(manager_queue(w->manager), 0, &refusal);
    if (draft == NULL || !queue_write(draft, TEXT("A: b\r\n\r\n")))
        abort();
    queue_name(draft, e);
    queue_commit(&draft, &e, on_stored, w);
}

void
control_address(struct envelope *e, const char *format, ...)
{
    char address[200];
    va_list list;
    va_start(list, format);
    vsnprintf(address, sizeof(address), format, list);
    va_end(list);
    if (!envelope_add(e, text_from(address), NOTIFY_NEVER, TEXT("")))
        abort();
}
