/* The order of the parts, and the story of a daemon: it starts, reloads and ends. */
#include "admin/startup/daemon.h"

#include "admin/startup/parts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum {
    STARTED_MAX = 1024,
    INTERRUPT_MS = 5000 /* for work under way */
};

static int daemon_run(struct daemon *d);

/* Forwards at startup and at a reload, backwards at the stop. */
/* clang-format off */
const struct daemon_part daemon_parts[] = {
    {"base",        DAEMON_OPEN,  part_base_start,      part_base_reload,      part_base_stop},
    {"names",       DAEMON_QUEUE, part_dns_start,       part_dns_reload,       part_dns_stop},
    {"anchors",     DAEMON_QUEUE, part_anchors_start,   NULL,                  NULL},
    {"alias table", DAEMON_QUEUE, NULL,                 NULL,                  part_aliases_free},
    {"event files", DAEMON_QUEUE, NULL,                 NULL,                  part_events_stop},
    {"queue",       DAEMON_QUEUE, part_manager_start,   part_manager_reload,   part_manager_stop},
    {"group",       DAEMON_QUEUE, part_group_start,     part_group_reload,     part_group_stop},
    {"identity",    DAEMON_QUEUE, part_identity_start,  NULL,                  NULL},
    {"copies",      DAEMON_QUEUE, part_copies_start,    NULL,                  part_copies_stop},
    {"fragments",   DAEMON_QUEUE, part_fragments_start, part_fragments_reload, part_fragments_stop},
    {"token store", DAEMON_QUEUE, NULL,                 NULL,                  part_tokens_stop},
    {"delivery",    DAEMON_QUEUE, part_delivery_start,  part_delivery_reload,  part_delivery_stop},
    {"tokens",      DAEMON_QUEUE, part_tokens_start,    part_tokens_reload,    NULL},
    {"control",     DAEMON_QUEUE, part_control_start,   part_control_reload,   part_control_stop},
    {"history",     DAEMON_QUEUE, part_history_start,   part_history_reload,   part_history_pause},
    {"events",      DAEMON_QUEUE, part_events_start,    part_events_reload,    part_events_pause},
    {"listener",    DAEMON_DOORS, part_listener_start,  part_listener_reload,  part_listener_stop},
    {"answers",     DAEMON_DOORS, part_answers_start,   NULL,                  part_answers_stop},
    {"smarthosts",  DAEMON_DOORS, part_upstreams_start, part_upstreams_reload, part_upstreams_stop},
    {"peer door",   DAEMON_DOORS, part_peer_start,      part_peer_reload,      part_peer_stop},
    {"adoption",    DAEMON_DOORS, part_adoption_start,  part_adoption_reload,  part_adoption_stop},
    {"cluster",     DAEMON_DOORS, part_cluster_start,   NULL,                  part_cluster_stop},
    {"drain",       DAEMON_DOORS, part_drain_start,     NULL,                  part_drain_stop},
    {"http",        DAEMON_DOORS, part_http_start,      part_http_reload,      part_http_stop},
    {"passed",      DAEMON_LAST,  part_passed_start,    NULL,                  NULL},
    {"findings",    DAEMON_LAST,  part_findings_start,  part_findings_reload,  part_findings_stop},
    {"rights",      DAEMON_LAST,  part_rights_start,    part_rights_reload,    NULL},
    {"aliases",     DAEMON_LAST,  part_aliases_start,   part_aliases_reload,   part_aliases_stop},
    {"tls files",   DAEMON_LAST,  part_tls_start,       NULL,                  part_tls_stop},
    {"route files", DAEMON_LAST,  part_hop_tls_start,   part_hop_tls_reload,   part_hop_tls_stop},
    {"run",         DAEMON_RUNS,  daemon_run,           NULL,                  NULL},
    {NULL, DAEMON_RUNS, NULL, NULL, NULL}
};
/* clang-format on */

/* --- Startup ------------------------------------------------------------------------ */

bool
daemon_read(struct daemon *d)
{
    d->configuration = d->started = configuration_new(&d->sources);
    d->parts = daemon_parts;
    return d->configuration != NULL;
}

int
daemon_start(struct daemon *d, enum daemon_phase last)
{
    int code = 0;
    while (code == 0) {
        const struct daemon_part *part = &d->parts[d->part_count];
        if (part->name == NULL || part->phase > last)
            break;
        d->part_count++;
        if (part->start != NULL)
            code = part->start(d);
    }
    return code;
}

void
daemon_tell(const struct daemon *d, enum event_kind kind, const char *text)
{
    event_tell(
        d->events,
        &(struct event){.kind = kind, .program = "main", .text = text_from(text)});
}

/* --- Reload ------------------------------------------------------------------------- */

static void
daemon_refuse(struct daemon *d)
{
    part_http_refused(d);
    part_answers_reloaded(d, reload_errors(&d->reload), "");
    part_findings_refused(d);
}

/* The parts have used the old routes and files of aliases until now. */
static void
daemon_replace(struct daemon *d, struct configuration *fresh)
{
    if (d->configuration != d->started)
        configuration_free(&d->configuration);
    d->configuration = fresh;
}

static void
on_reload(void *context)
{
    struct daemon *d = context;
    char waits[OPTIONS_RESTART_MAX], text[OPTIONS_RESTART_MAX + 64];
    notify_reloaded(&d->notify);
    struct configuration *fresh =
        reload_end(&d->reload, d->configuration->settings, d->sandbox);
    if (fresh == NULL) {
        daemon_refuse(d);
        return;
    }
    configuration_warn(fresh, d->log);
    for (const struct daemon_part *part = d->parts; part->name != NULL; part++)
        if (part->reload != NULL)
            part->reload(d, fresh);
    daemon_replace(d, fresh);
    options_need_restart(&d->started->options, &fresh->options, waits);
    struct fault_world world = configuration_faults(fresh);
    faults_log(&world, FAULT_RELOAD, d->log);
    snprintf(text, sizeof(text), "settings reloaded%s%s",
             waits[0] != '\0' ? "; without effect before a restart: " : "", waits);
    daemon_tell(d, EVENT_RELOADED, text);
    part_answers_reloaded(d, NULL, waits);
}

void
daemon_reload(void *daemon)
{
    struct daemon *d = daemon;
    if (d->draining > 0)
        return;
    notify_reloading(&d->notify);
    reload_begin(&d->reload, &d->sources);
}

/* --- The loop runs ------------------------------------------------------------------ */

static int
daemon_run(struct daemon *d)
{
    const struct options *o = &d->configuration->options;
    char text[STARTED_MAX];
    d->reload = (struct reload){
        .loop = d->loop, .log = d->log, .done = on_reload, .context = d};
    snprintf(text, sizeof(text), "petrel " PETREL_VERSION " is %s, spool %s",
             o->hostname, o->spool);
    daemon_tell(d, EVENT_STARTED, text);
    struct fault_world world = configuration_faults(d->configuration);
    faults_log(&world, FAULT_START, d->log);
    notify_start(&d->notify, part_answers_describe, d);
    d->ran = true;
    return 0;
}

const char *
daemon_leaves(void *daemon)
{
    const struct daemon *d = daemon;
    return d->draining > 0 ? "the daemon stops" : part_drain_reason(d);
}

bool
daemon_is_leaving(void *daemon)
{
    return daemon_leaves(daemon) != NULL;
}

const char *
daemon_state(void *daemon)
{
    const struct daemon *d = daemon;
    return d->draining > 0 ? "closing" : part_drain_word(d);
}

/* --- The end ------------------------------------------------------------------------ */

/* Called once for incoming and once for outgoing sessions, and once for tokens. */
static void
on_drained(void *context)
{
    struct daemon *d = context;
    assert(d->draining > 0);
    if (--d->draining == 0)
        loop_stop(d->loop);
}

static void
daemon_drain(struct daemon *d, int64_t grace_ms)
{
    d->draining = 2;
    part_drain_stop(d);
    part_upstreams_stop(d);
    reload_stop(&d->reload);
    part_answers_stop(d);
    notify_stopping(&d->notify);
    d->draining += part_tokens_drain(d, grace_ms, on_drained);
    listener_drain(d->listener, grace_ms, on_drained, d);
    delivery_drain(d->delivery);
    poster_drain(d->poster);
    manager_drain(d->manager, grace_ms, on_drained, d);
}

/* The grace period is for requests of tokens alone: all else has ended. */
static void
daemon_on_given(void *daemon)
{
    struct daemon *d = daemon;
    log_say(d->log, LOG_LEVEL_INFO, "main", NULL, "terminating: the queue is given");
    daemon_drain(d, d->configuration->options.drain_timeout_ms);
}

void
daemon_terminate(void *daemon)
{
    struct daemon *d = daemon;
    const struct options *o = &d->configuration->options;
    if (d->draining > 0 || d->hands_over)
        return;
    if (o->hands_over && part_drain_has_siblings(d)) {
        log_say(d->log, LOG_LEVEL_INFO, "main", NULL,
                "terminating: handing the queue over, %" PRId64 " s at most",
                o->hand_over_timeout_ms / 1000);
        d->hands_over = true;
        notify_stopping(&d->notify);
        part_drain_hand_over(d, o->hand_over_timeout_ms, daemon_on_given);
        return;
    }
    log_say(d->log, LOG_LEVEL_INFO, "main", NULL, "terminating: finishing open work");
    daemon_drain(d, o->drain_timeout_ms);
}

/* If the reply to a final dot is not read, the message is sent twice. */
void
daemon_interrupt(void *daemon)
{
    struct daemon *d = daemon;
    log_say(d->log, LOG_LEVEL_INFO, "main", NULL, "interrupted: stopping%s",
            d->draining > 0 ? " immediately" : "");
    if (d->draining > 0)
        loop_stop(d->loop);
    else
        daemon_drain(d, INTERRUPT_MS);
}

/* A part that ends may turn the loop: signals find a daemon that stops. */
void
daemon_stop(struct daemon *d)
{
    d->draining = 1;
    reload_stop(&d->reload);
    while (d->part_count > 0) {
        const struct daemon_part *part = &d->parts[--d->part_count];
        if (part->stop != NULL)
            part->stop(d);
    }
    loop_free(&d->loop);
    if (d->configuration != d->started)
        configuration_free(&d->configuration);
    configuration_free(&d->started);
    d->configuration = NULL;
}
