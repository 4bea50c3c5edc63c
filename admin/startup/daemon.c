/* Startup, reload and stop of the parts of a daemon. */
#include "admin/startup/daemon.h"

#include "admin/control/sibling_ask.h"
#include "admin/control/status.h"
#include "admin/settings/about.h"
#include "admin/settings/descriptors.h"
#include "admin/settings/sandbox_rules.h"
#include "admin/settings/warnings.h"
#include "admin/startup/log_wiring.h"
#include "admin/startup/name_servers.h"
#include "base/redis/redis.h"
#include "queue/queue_operator.h"
#include "smtp/trust/trust_anchors.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

enum {
    STARTED_MAX = 1024,
    PASSED_NAMES_MAX = 512,
    INTERRUPT_MS = 5000 /* for work under way */
};

bool
daemon_read(struct daemon *d)
{
    d->configuration = d->started = configuration_new(&d->sources);
    return d->configuration != NULL;
}

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
    drain_stop(&d->drain);
    upstream_wiring_stop(&d->upstreams);
    reload_stop(&d->reload);
    control_wiring_stop(&d->wiring);
    notify_stopping(&d->notify);
    d->draining += token_keeper_drain(&d->keeper, grace_ms, on_drained, d);
    listener_drain(d->listener, grace_ms, on_drained, d);
    delivery_drain(d->delivery);
    manager_drain(d->manager, grace_ms, on_drained, d);
}

/* Nothing runs that a grace would be for, but for tokens. */
static void
daemon_on_given(void *context)
{
    struct daemon *d = context;
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
    if (options_hands_over(o) && d->drain.siblings != NULL) {
        log_say(d->log, LOG_LEVEL_INFO, "main", NULL,
                "terminating: handing the queue over, %" PRId64 " s at most",
                o->hand_over_timeout_ms / 1000);
        d->hands_over = true;
        notify_stopping(&d->notify);
        drain_hand_over(&d->drain, o->hand_over_timeout_ms, daemon_on_given, d);
        return;
    }
    log_say(d->log, LOG_LEVEL_INFO, "main", NULL, "terminating: finishing open work");
    daemon_drain(d, d->configuration->options.drain_timeout_ms);
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

static void
use_accounts(struct daemon *d, const struct configuration *fresh)
{
    token_keeper_use(&d->keeper, &fresh->accounts);
    questions_on_tokens(control_server_questions(d->control), d->keeper.tokens);
}

/* Why no mail should come, on purpose; NULL: it may. */
static const char *
daemon_leaves(void *context)
{
    const struct daemon *d = context;
    return d->draining > 0 ? "the daemon stops" : drain_reason(&d->drain);
}

static const char *
daemon_hostname(void *context)
{
    const struct daemon *d = context;
    return d->configuration->options.hostname;
}

static bool
daemon_is_draining(void *context)
{
    const struct daemon *d = context;
    return d->draining > 0;
}

/* For callers that show it, not for those that must be quick. */
static bool
daemon_is_leaving(void *context)
{
    return daemon_leaves(context) != NULL;
}

static bool
start_http(struct daemon *d, char *error)
{
    d->http = (struct http_wiring){.loop = d->loop,
                                   .net = d->net,
                                   .log = d->log,
                                   .manager = d->manager,
                                   .listener = d->listener,
                                   .events = d->events,
                                   .control = d->control,
                                   .history = d->history,
                                   .delivery = d->delivery,
                                   .findings = &d->findings,
                                   .upstreams = &d->upstreams,
                                   .group = &d->group,
                                   .count_sessions = control_wiring_sessions,
                                   .is_draining = daemon_is_leaving,
                                   .health = &d->health,
                                   .trials = d->trials,
                                   .context = d};
    return http_wiring_start(&d->http, d->configuration, error, DAEMON_ERROR_MAX);
}

static void
daemon_tell(const struct daemon *d, enum event_kind kind, const char *text)
{
    event_tell(
        d->events,
        &(struct event){.kind = kind, .program = "main", .text = text_from(text)});
}

static void
on_reload(void *context)
{
    struct daemon *d = context;
    notify_reloaded(&d->notify);
    struct tls_client *anchors;
    struct configuration *fresh =
        reload_end(&d->reload, d->configuration->settings, d->sandbox, &anchors);
    if (fresh == NULL) {
        http_wiring_reload(&d->http, NULL);
        control_wiring_reloaded(&d->wiring, reload_errors(&d->reload), "");
        findings_wiring_reload(&d->findings, NULL);
        return;
    }
    const struct options *o = &fresh->options;
    struct listener_settings listener = configuration_listener(o);
    struct delivery_settings delivery = configuration_delivery(o, fresh->routes);
    delivery.rewrites = fresh->rewrites;
    struct manager_settings manager = options_manager(o, loop_random(d->loop));
    delivery.tls = anchors;
    configuration_warn(fresh, d->log);
    delivery.dkim_keys = configuration_take_dkim_keys(fresh);
    log_restyle(d->log, options_log_style(o), options_log_level(o));
    log_name_host(d->log, o->hostname);
    name_servers_reload(d->dns, o);
    certificate_keeper_note(&d->certificates, &listener);
    listener_reload(d->listener, fresh->routes, &listener);
    certificate_keeper_watch(&d->certificates);
    delivery_reload(d->delivery, &delivery);
    use_accounts(d, fresh);
    sts_wiring_use(&d->sts, &d->keeper, o);
    event_wiring_reload(&d->kept, d->events, &d->keeper,
                        control_server_questions(d->control), fresh);
    http_wiring_reload(&d->http, fresh);
    history_wiring_reload(d->history, d->manager, fresh);
    upstream_wiring_reload(&d->upstreams, fresh);
    d->readiness.age_ms = options_ready_age_ms(&fresh->options);
    findings_wiring_reload(&d->findings, fresh);
    manager_reload(d->manager, &manager, fresh->routes);
    group_wiring_reload(&d->group, fresh);
    peer_wiring_reload(&d->peer, fresh);
    give_wiring_reload(&d->give, fresh);
    local_reload(d->local, o->hostname);
    channel_wiring_reload(&d->channel, fresh);
    struct sandbox_rules confine = configuration_sandbox(fresh);
    sandbox_rules_review(d->sandbox, &confine, d->log);
    alias_keeper_use(&d->aliases, fresh); /* takes their files from fresh */
    char waits[OPTIONS_RESTART_MAX], text[OPTIONS_RESTART_MAX + 64];
    options_need_restart(&d->started->options, o, waits);
    /* Only now: until here the parts have used the old routes and files of aliases. */
    if (d->configuration != d->started)
        configuration_free(&d->configuration);
    d->configuration = fresh;
    descriptors_want(o, d->log);
    warnings_say(o, fresh->settings, fresh->routes, d->log);
    about_write(queue_disk(manager_queue(d->manager)), o);
    snprintf(text, sizeof(text), "settings reloaded%s%s",
             waits[0] != '\0' ? "; without effect before a restart: " : "", waits);
    daemon_tell(d, EVENT_RELOADED, text);
    control_wiring_reloaded(&d->wiring, NULL, waits);
}

static void
start_findings(struct daemon *d)
{
    d->findings =
        (struct findings_wiring){.loop = d->loop,
                                 .log = d->log,
                                 .events = d->events,
                                 .manager = d->manager,
                                 .keeper = &d->keeper,
                                 .listener = d->listener,
                                 .dns = d->dns,
                                 .questions = control_server_questions(d->control),
                                 .history = d->history,
                                 .registry = d->channel.registry,
                                 .group = &d->group,
                                 .sandbox = d->sandbox,
                                 .sts = &d->sts,
                                 .certificates = &d->certificates,
                                 .is_draining = daemon_is_leaving,
                                 .context = d};
    findings_wiring_start(&d->findings, d->configuration);
}

static void
on_certificates(void *context)
{
    const struct daemon *d = context;
    findings_look(d->findings.findings);
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

int
daemon_open(struct daemon *d, char *error)
{
    const struct options *o = &d->configuration->options;
    d->log = log_wiring_open(d->loop, o);
    notify_open(&d->notify, d->loop, d->log);
    d->events = event_hub_new(d->log);
    event_hub_count_waiting(d->events, d->loop);
    d->certificates = (struct certificate_keeper){.loop = d->loop,
                                                  .log = d->log,
                                                  .events = d->events,
                                                  .changed = on_certificates,
                                                  .context = d};
    d->net = net_new(d->loop);
    descriptors_want(o, d->log);
    d->sandbox = sandbox_new();
    return net_take_passed(d->net, error, DAEMON_ERROR_MAX) ? 0 : EX_CONFIG;
}

/* As the other hosts of the group know it. */
static const char *
daemon_state(void *context)
{
    const struct daemon *d = context;
    return d->draining > 0 ? "closing" : drain_word(&d->drain);
}

static bool
prepare_peer(struct daemon *d, char *error)
{
    d->peer = (struct peer_wiring){.loop = d->loop,
                                   .log = d->log,
                                   .net = d->net,
                                   .dns = d->dns,
                                   .manager = d->manager,
                                   .group = &d->group.group,
                                   .state = daemon_state,
                                   .is_closed = daemon_is_draining,
                                   .context = d};
    return peer_wiring_prepare(&d->peer, d->configuration, error, DAEMON_ERROR_MAX);
}

int
daemon_start_queue(struct daemon *d, char *error)
{
    const struct options *o = &d->configuration->options;
    struct manager_settings settings = options_manager(o, loop_random(d->loop));
    struct delivery_settings out = configuration_delivery(o, d->configuration->routes);
    out.rewrites = d->configuration->rewrites;
    d->dns = name_servers_start(d->loop, d->log, o, error, DAEMON_ERROR_MAX);
    if (d->dns == NULL)
        return EX_CONFIG;
    char place[TRUST_ANCHORS_PLACE_MAX];
    out.tls = configuration_anchors(d->configuration, place, error, DAEMON_ERROR_MAX);
    if (out.tls == NULL)
        return EX_CONFIG;
    trust_anchors_say(place, d->log);
    int code = manager_new(&d->manager, d->loop, d->events, &settings,
                           d->configuration->routes, error, DAEMON_ERROR_MAX);
    if (code != 0) {
        tls_client_free(&out.tls);
        return code;
    }
    d->group = (struct group_wiring){.loop = d->loop,
                                     .log = d->log,
                                     .net = d->net,
                                     .dns = d->dns,
                                     .manager = d->manager};
    d->channel = (struct channel_wiring){.loop = d->loop,
                                         .log = d->log,
                                         .net = d->net,
                                         .dns = d->dns,
                                         .events = d->events,
                                         .manager = d->manager,
                                         .group = &d->group};
    if (!group_wiring_start(&d->group, d->configuration, error, DAEMON_ERROR_MAX) ||
        !prepare_peer(d, error) ||
        !channel_wiring_start(&d->channel, d->configuration, error, DAEMON_ERROR_MAX)) {
        tls_client_free(&out.tls);
        return EX_CONFIG;
    }
    about_write(queue_disk(manager_queue(d->manager)), o);
    configuration_warn(d->configuration, d->log);
    out.dkim_keys = configuration_take_dkim_keys(d->configuration);
    d->delivery = delivery_new(d->loop, d->net, d->dns, d->events, d->manager, &out);
    d->keeper = (struct token_keeper){.loop = d->loop,
                                      .log = d->log,
                                      .net = d->net,
                                      .dns = d->dns,
                                      .manager = d->manager,
                                      .delivery = d->delivery};
    token_keeper_use(&d->keeper, &d->configuration->accounts);
    sts_wiring_use(&d->sts, &d->keeper, o);
    d->local = local_new(d->loop, d->manager, o->hostname);
    manager_set_channel(d->manager, TARGET_MX, delivery_open, d->delivery);
    manager_set_channel(d->manager, TARGET_SMTP, delivery_open, d->delivery);
    manager_set_channel(d->manager, TARGET_LMTP, delivery_open, d->delivery);
    manager_set_channel(d->manager, TARGET_MAILDIR, local_open, d->local);
    d->flush = flush_new(d->loop, d->log, d->manager);
    d->control = control_server_new(d->loop, d->net, d->log, d->manager, o->control,
                                    error, DAEMON_ERROR_MAX);
    if (d->control == NULL)
        return EX_CANTCREAT;
    questions_on_tokens(control_server_questions(d->control), d->keeper.tokens);
    d->history =
        history_wiring_start(d->loop, d->log, d->events, d->manager,
                             control_server_questions(d->control), d->configuration);
    history_on_line(d->history, control_server_on_line, d->control);
    return event_wiring_use(&d->kept, d->events, &d->keeper,
                            control_server_questions(d->control), d->configuration,
                            error, DAEMON_ERROR_MAX)
               ? 0
               : EX_CANTCREAT;
}

/* A session_flush(). */
static enum server_flush
daemon_flush_node(void *context, const char *node, const char *client)
{
    switch (flush_ask(context, node, client)) {
    case FLUSH_STARTED:
        return SERVER_FLUSH_STARTED;
    case FLUSH_RECENT:
        return SERVER_FLUSH_RECENT;
    case FLUSH_FULL:
        break;
    }
    return SERVER_FLUSH_UNABLE;
}

static void
start_control(struct daemon *d)
{
    d->health = (struct health){.look = readiness_look, .context = &d->readiness};
    d->readiness =
        (struct readiness){.loop = d->loop,
                           .manager = d->manager,
                           .upstreams = &d->upstreams,
                           .leaves = daemon_leaves,
                           .context = d,
                           .findings = &d->findings.findings,
                           .age_ms = options_ready_age_ms(&d->configuration->options)};
    d->wiring = (struct control_wiring){.loop = d->loop,
                                        .log = d->log,
                                        .manager = d->manager,
                                        .listener = d->listener,
                                        .delivery = d->delivery,
                                        .control = d->control,
                                        .health = &d->health,
                                        .reload = daemon_reload,
                                        .is_draining = daemon_is_draining,
                                        .context = d};
    control_wiring_start(&d->wiring);
    d->trials = trials_new(&(struct trials_setup){.loop = d->loop,
                                                  .events = d->events,
                                                  .manager = d->manager,
                                                  .hostname = daemon_hostname,
                                                  .leaves = daemon_leaves,
                                                  .context = d});
    control_server_on_trials(d->control, d->trials);
    d->listening = (struct listening){.loop = d->loop,
                                      .listener = d->listener,
                                      .control = d->control,
                                      .http = &d->http.server,
                                      .certificates = &d->certificates,
                                      .peer = &d->peer};
    listening_start(&d->listening);
    d->drain = (struct drain){.loop = d->loop,
                              .events = d->events,
                              .manager = d->manager,
                              .listener = d->listener,
                              .questions = control_server_questions(d->control),
                              .configuration = &d->configuration,
                              .delivery = d->delivery};
    drain_start(&d->drain);
    d->upstreams =
        (struct upstream_wiring){.loop = d->loop,
                                 .log = d->log,
                                 .events = d->events,
                                 .delivery = d->delivery,
                                 .questions = control_server_questions(d->control)};
    upstream_wiring_start(&d->upstreams, d->configuration);
    group_wiring_answer(&d->group, control_server_questions(d->control));
}

static bool
start_peer(struct daemon *d, char *error)
{
    sibling_ask_serve(control_server_service(d->control), &d->peer.ask);
    peer_wiring_answer(&d->peer, control_server_questions(d->control));
    d->give = (struct give_wiring){.loop = d->loop,
                                   .events = d->events,
                                   .manager = d->manager,
                                   .group = &d->group.group,
                                   .peer = &d->peer,
                                   .leaves = daemon_leaves,
                                   .context = d};
    give_wiring_start(&d->give, d->configuration);
    if (!peer_wiring_start(&d->peer, d->configuration, error, DAEMON_ERROR_MAX))
        return false;
    d->drain.siblings = give_wiring_siblings(&d->give);
    d->cluster = (struct cluster_wiring){.manager = d->manager,
                                         .control = d->control,
                                         .group = &d->group.group,
                                         .configuration = &d->configuration,
                                         .calls = peer_wiring_calls(&d->peer),
                                         .state = daemon_state,
                                         .context = d,
                                         .metrics = &d->http.metrics};
    cluster_wiring_start(&d->cluster);
    return true;
}

int
daemon_start_doors(struct daemon *d, char *error)
{
    struct listener_settings settings =
        configuration_listener(&d->configuration->options);
    certificate_keeper_note(&d->certificates, &settings);
    d->listener =
        listener_new(d->loop, d->net, d->events, d->manager, d->configuration->routes,
                     &settings, error, DAEMON_ERROR_MAX);
    if (d->listener != NULL) {
        start_control(d);
        listener_on_flush(d->listener, daemon_flush_node, d->flush);
    }
    if (d->listener != NULL && start_peer(d, error) && start_http(d, error))
        return 0;
    return net_passed_is_missing(d->net) ? EX_CONFIG : EX_UNAVAILABLE;
}

static bool
daemon_may_write(const void *context, const char *directory)
{
    return sandbox_may_write(context, directory);
}

/* A port that nobody answers would leave its clients waiting. */
static void
daemon_drop_passed(const struct daemon *d)
{
    char names[PASSED_NAMES_MAX];
    if (net_drop_passed(d->net, names, sizeof(names)) > 0)
        log_say(d->log, LOG_LEVEL_WARNING, "main", NULL,
                "sockets were passed that no setting names, and are closed: %s; write "
                "fd:NAME in `listen` or `http`",
                names);
}

void
daemon_prepare(struct daemon *d)
{
    daemon_drop_passed(d);
    queue_check_disk(manager_queue(d->manager));
    start_findings(d);
    struct sandbox_rules confine = configuration_sandbox(d->configuration);
    sandbox_rules_plan(d->sandbox, &confine);
    d->aliases = (struct alias_keeper){
        .loop = d->loop, .log = d->log, .manager = d->manager, .listener = d->listener};
    alias_keeper_use(&d->aliases, d->configuration);
    d->certificates.listener = d->listener;
    certificate_keeper_watch(&d->certificates);
    local_on_ask(d->local, daemon_may_write, d->sandbox);
    questions_on_sandbox(control_server_questions(d->control), d->sandbox);
}

/* The reverse of start. Interrupted sessions are logged before "stopped". */
void
daemon_stop(struct daemon *d, bool ran)
{
    http_wiring_stop(&d->http);
    certificate_keeper_stop(&d->certificates);
    findings_wiring_stop(&d->findings);
    if (d->history != NULL)
        history_on_line(d->history, NULL, NULL);
    drain_stop(&d->drain);
    cluster_wiring_stop(&d->cluster);
    peer_wiring_stop(&d->peer);
    give_wiring_stop(&d->give);
    control_wiring_stop(&d->wiring);
    listener_free(&d->listener);
    control_server_free(&d->control);
    trials_free(&d->trials);
    flush_free(&d->flush);
    upstream_wiring_stop(&d->upstreams);
    event_wiring_pause(&d->kept);
    delivery_free(&d->delivery);
    token_keeper_stop(&d->keeper);
    sts_wiring_stop(&d->sts);
    local_free(&d->local);
    channel_wiring_stop(&d->channel);
    group_wiring_stop(&d->group);
    history_free(&d->history);
    manager_free(&d->manager);
    event_wiring_stop(&d->kept);
    alias_keeper_stop(&d->aliases);
    dns_free(&d->dns);
    net_free(&d->net);
    notify_close(&d->notify);
    sandbox_free(&d->sandbox);
    if (ran)
        daemon_tell(d, EVENT_STOPPING, "stopped");
    event_hub_free(&d->events);
    log_free(&d->log);
    loop_free(&d->loop);
    if (d->configuration != d->started)
        configuration_free(&d->configuration);
    configuration_free(&d->started);
    d->configuration = NULL;
}

static void
daemon_tell_started(const struct daemon *d)
{
    const struct options *o = &d->configuration->options;
    char text[STARTED_MAX];
    snprintf(text, sizeof(text), "petrel " PETREL_VERSION " is %s, spool %s",
             o->hostname, o->spool);
    daemon_tell(d, EVENT_STARTED, text);
}

void
daemon_begin(struct daemon *d)
{
    const struct options *o = &d->configuration->options;
    d->reload = (struct reload){
        .loop = d->loop, .log = d->log, .done = on_reload, .context = d};
    daemon_tell_started(d);
    warnings_at_start(o, d->configuration->settings, d->configuration->routes, d->log);
    notify_start(&d->notify, readiness_describe, &d->readiness);
}
