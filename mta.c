/* The main program: reads the options of the command line and connects the parts of the
 * daemon. The only file that knows all of them.
 *
 * Startup has a fixed order. Settings are checked as a whole before anything is
 * touched. The log is made before net and queue, whose hooks at the end of a turn must
 * run after its own (log.h). The queue is opened as `user`, so that its files belong to
 * this user, and before the first client can connect. Then ports are bound as root,
 * root is given up for good, and the sandbox closes last. mta_stop() takes everything
 * down in the reverse order, also after a failed start. */

#include "admin/settings/about.h"
#include "admin/command/command.h"
#include "admin/command/command_table.h"
#include "admin/dispatch/dispatch.h"
#include "admin/settings/sandbox_rules.h"
#include "admin/control/control_server.h"
#include "admin/settings/descriptors.h"
#include "admin/control/flush.h"
#include "admin/settings/options.h"
#include "admin/sendmail/sendmail.h"
#include "admin/startup/alias_keeper.h"
#include "admin/startup/certificate_keeper.h"
#include "admin/startup/channel_wiring.h"
#include "admin/startup/cluster_wiring.h"
#include "admin/startup/configuration.h"
#include "admin/startup/control_wiring.h"
#include "admin/startup/drain.h"
#include "admin/startup/event_wiring.h"
#include "admin/startup/findings_wiring.h"
#include "admin/startup/group_wiring.h"
#include "admin/startup/give_wiring.h"
#include "admin/startup/history_wiring.h"
#include "admin/startup/http_wiring.h"
#include "admin/startup/listening.h"
#include "admin/startup/log_wiring.h"
#include "admin/startup/notify.h"
#include "admin/startup/peer_wiring.h"
#include "admin/startup/reload.h"
#include "admin/startup/sts_wiring.h"
#include "admin/startup/token_keeper.h"
#include "admin/startup/readiness.h"
#include "admin/startup/upstream_wiring.h"
#include "admin/control/sibling_ask.h"
#include "admin/control/status.h"
#include "admin/settings/warnings.h"
#include "base/disk/disk.h"
#include "base/sandbox/identity.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/redis/redis.h"
#include "queue/event/event.h"
#include "queue/manager/local.h"
#include "queue/queue_operator.h"
#include "queue/spool/spool_owner.h"
#include "smtp/client/trust_anchors.h"
#include "smtp/client/delivery.h"
#include "smtp/server/listener.h"

#include <assert.h>
#include <inttypes.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum {
    ERROR_MAX = 512,
    STARTED_MAX = 1024,
    PASSED_NAMES_MAX = 512,
    OVERRIDES_MAX = 200,
    INTERRUPT_MS = 5000 /* for work under way */
};

extern char **environ;

struct petrel {
    struct options_sources sources;
    struct configuration *configuration;
    struct configuration *started; /* some of it is in force until a restart */
    struct loop *loop;
    struct log *log;
    struct event_hub *events;
    struct net *net;
    struct dns *dns;
    struct manager *manager;
    struct local *local;
    struct channel_wiring channel;
    struct group_wiring group;
    struct peer_wiring peer;
    struct give_wiring give;
    struct cluster_wiring cluster;
    struct delivery *delivery;
    struct token_keeper keeper;
    struct sts_wiring sts;
    struct event_wiring kept;
    struct alias_keeper aliases;
    struct certificate_keeper certificates;
    struct listener *listener;
    struct listening listening;
    struct control_server *control;
    struct trials *trials;
    struct health health;
    struct readiness readiness;
    struct control_wiring wiring;
    struct http_wiring http;
    struct history *history;
    struct findings_wiring findings;
    struct flush *flush;
    struct sandbox *sandbox;
    struct reload reload;
    struct notify notify;
    struct drain drain;
    bool hands_over; /* SIGTERM has come, and siblings take the queue */
    struct upstream_wiring upstreams;
    unsigned draining;
};

/* --- The daemon ------------------------------------------------------------------- */

/* Called once for incoming and once for outgoing sessions, and once for tokens. */
static void
on_drained(void *context)
{
    struct petrel *p = context;
    assert(p->draining > 0);
    if (--p->draining == 0)
        loop_stop(p->loop);
}

static void
mta_drain(struct petrel *p, int64_t grace_ms)
{
    p->draining = 2;
    drain_stop(&p->drain);
    upstream_wiring_stop(&p->upstreams);
    reload_stop(&p->reload);
    control_wiring_stop(&p->wiring);
    notify_stopping(&p->notify);
    p->draining += token_keeper_drain(&p->keeper, grace_ms, on_drained, p);
    listener_drain(p->listener, grace_ms, on_drained, p);
    delivery_drain(p->delivery);
    manager_drain(p->manager, grace_ms, on_drained, p);
}

/* Nothing runs that a grace would be for, but for tokens. */
static void
mta_on_given(void *context)
{
    struct petrel *p = context;
    log_say(p->log, LOG_LEVEL_INFO, "main", NULL, "terminating: the queue is given");
    mta_drain(p, p->configuration->options.drain_timeout_ms);
}

static void
on_terminate(void *context)
{
    struct petrel *p = context;
    const struct options *o = &p->configuration->options;
    if (p->draining > 0 || p->hands_over)
        return;
    if (options_hands_over(o) && p->drain.siblings != NULL) {
        log_say(p->log, LOG_LEVEL_INFO, "main", NULL,
                "terminating: handing the queue over, %" PRId64 " s at most",
                o->hand_over_timeout_ms / 1000);
        p->hands_over = true;
        notify_stopping(&p->notify);
        drain_hand_over(&p->drain, o->hand_over_timeout_ms, mta_on_given, p);
        return;
    }
    log_say(p->log, LOG_LEVEL_INFO, "main", NULL, "terminating: finishing open work");
    mta_drain(p, p->configuration->options.drain_timeout_ms);
}

/* If the reply to a final dot is not read, the message is sent twice. */
static void
on_interrupt(void *context)
{
    struct petrel *p = context;
    log_say(p->log, LOG_LEVEL_INFO, "main", NULL, "interrupted: stopping%s",
            p->draining > 0 ? " immediately" : "");
    if (p->draining > 0)
        loop_stop(p->loop);
    else
        mta_drain(p, INTERRUPT_MS);
}

static void
use_accounts(struct petrel *p, const struct configuration *fresh)
{
    token_keeper_use(&p->keeper, &fresh->accounts);
    questions_on_tokens(control_server_questions(p->control), p->keeper.tokens);
}

/* Why no mail should come, on purpose; NULL: it may. */
static const char *
mta_leaves(void *context)
{
    const struct petrel *p = context;
    return p->draining > 0 ? "the daemon stops" : drain_reason(&p->drain);
}

static const char *
mta_hostname(void *context)
{
    const struct petrel *p = context;
    return p->configuration->options.hostname;
}

static bool
mta_is_draining(void *context)
{
    const struct petrel *p = context;
    return p->draining > 0;
}

/* For callers that show it, not for those that must be quick. */
static bool
mta_is_leaving(void *context)
{
    return mta_leaves(context) != NULL;
}

static bool
start_http(struct petrel *p, char *error)
{
    p->http = (struct http_wiring){.loop = p->loop,
                                   .net = p->net,
                                   .log = p->log,
                                   .manager = p->manager,
                                   .listener = p->listener,
                                   .events = p->events,
                                   .control = p->control,
                                   .history = p->history,
                                   .delivery = p->delivery,
                                   .findings = &p->findings,
                                   .upstreams = &p->upstreams,
                                   .group = &p->group,
                                   .count_sessions = control_wiring_sessions,
                                   .is_draining = mta_is_leaving,
                                   .health = &p->health,
                                   .trials = p->trials,
                                   .context = p};
    return http_wiring_start(&p->http, p->configuration, error, ERROR_MAX);
}

static void
mta_tell(const struct petrel *p, enum event_kind kind, const char *text)
{
    event_tell(
        p->events,
        &(struct event){.kind = kind, .program = "main", .text = text_from(text)});
}

static void
on_reload(void *context)
{
    struct petrel *p = context;
    notify_reloaded(&p->notify);
    struct tls_client *anchors;
    struct configuration *fresh = reload_end(&p->reload, p->sandbox, &anchors);
    if (fresh == NULL) {
        http_wiring_reload(&p->http, NULL);
        control_wiring_reloaded(&p->wiring, reload_errors(&p->reload), "");
        findings_wiring_reload(&p->findings, NULL);
        return;
    }
    const struct options *o = &fresh->options;
    struct listener_settings listener = configuration_listener(o);
    struct delivery_settings delivery = configuration_delivery(o, fresh->routes);
    delivery.rewrites = fresh->rewrites;
    struct manager_settings manager = options_manager(o, loop_random(p->loop));
    delivery.tls = anchors;
    configuration_warn(fresh, p->log);
    delivery.dkim_keys = configuration_take_dkim_keys(fresh);
    log_restyle(p->log, options_log_style(o), options_log_level(o));
    log_name_host(p->log, o->hostname);
    dns_set_trust(p->dns, options_dns_trust(o));
    certificate_keeper_note(&p->certificates, &listener);
    listener_reload(p->listener, fresh->routes, &listener);
    certificate_keeper_watch(&p->certificates);
    delivery_reload(p->delivery, &delivery);
    use_accounts(p, fresh);
    sts_wiring_use(&p->sts, &p->keeper, o);
    event_wiring_reload(&p->kept, p->events, &p->keeper,
                        control_server_questions(p->control), fresh);
    http_wiring_reload(&p->http, fresh);
    history_wiring_reload(p->history, p->manager, fresh);
    upstream_wiring_reload(&p->upstreams, fresh);
    p->readiness.age_ms = options_ready_age_ms(&fresh->options);
    findings_wiring_reload(&p->findings, fresh);
    manager_reload(p->manager, &manager, fresh->routes);
    group_wiring_reload(&p->group, fresh);
    peer_wiring_reload(&p->peer, fresh);
    give_wiring_reload(&p->give, fresh);
    local_reload(p->local, o->hostname);
    channel_wiring_reload(&p->channel, fresh);
    struct sandbox_rules confine = configuration_sandbox(fresh);
    sandbox_rules_review(p->sandbox, &confine, p->log);
    alias_keeper_use(&p->aliases, fresh); /* takes their files from fresh */
    char waits[OPTIONS_RESTART_MAX], text[OPTIONS_RESTART_MAX + 64];
    options_need_restart(&p->started->options, o, waits);
    /* Only now: until here the parts have used the old routes and files of aliases. */
    if (p->configuration != p->started)
        configuration_free(&p->configuration);
    p->configuration = fresh;
    descriptors_want(o, p->log);
    warnings_say(o, fresh->settings, fresh->routes, p->log);
    about_write(queue_disk(manager_queue(p->manager)), o);
    snprintf(text, sizeof(text), "settings reloaded%s%s",
             waits[0] != '\0' ? "; without effect before a restart: " : "", waits);
    mta_tell(p, EVENT_RELOADED, text);
    control_wiring_reloaded(&p->wiring, NULL, waits);
}

static void
start_findings(struct petrel *p)
{
    p->findings =
        (struct findings_wiring){.loop = p->loop,
                                 .log = p->log,
                                 .events = p->events,
                                 .manager = p->manager,
                                 .keeper = &p->keeper,
                                 .listener = p->listener,
                                 .dns = p->dns,
                                 .questions = control_server_questions(p->control),
                                 .history = p->history,
                                 .registry = p->channel.registry,
                                 .group = &p->group,
                                 .sandbox = p->sandbox,
                                 .sts = &p->sts,
                                 .certificates = &p->certificates,
                                 .is_draining = mta_is_leaving,
                                 .context = p};
    findings_wiring_start(&p->findings, p->configuration);
}

static void
on_certificates(void *context)
{
    const struct petrel *p = context;
    findings_look(p->findings.findings);
}

static void
on_hangup(void *context)
{
    struct petrel *p = context;
    if (p->draining > 0)
        return;
    notify_reloading(&p->notify);
    dns_reload(p->dns); /* also when the settings are refused */
    reload_begin(&p->reload, &p->sources);
}

/* A spool made by root belongs to the user. */
static void
prepare_spool(const struct petrel *p, const struct identity *who)
{
    const char *spool = p->configuration->options.spool;
    /* A file whose owner cannot be changed is an error when the queue is opened. */
    int given = who->change ? spool_owner_give(spool, who->uid, who->gid) : 0;
    if (given > 0)
        log_say(p->log, LOG_LEVEL_INFO, "main", NULL,
                "spool %s: %d files and directories of root now belong to '%s'", spool,
                given, who->name);
}

/* As the other hosts of the group know it. */
static const char *
mta_state(void *context)
{
    const struct petrel *p = context;
    return p->draining > 0 ? "closing" : drain_word(&p->drain);
}

static bool
prepare_peer(struct petrel *p, char *error)
{
    p->peer = (struct peer_wiring){.loop = p->loop,
                                   .log = p->log,
                                   .net = p->net,
                                   .dns = p->dns,
                                   .manager = p->manager,
                                   .group = &p->group.group,
                                   .state = mta_state,
                                   .is_closed = mta_is_draining,
                                   .context = p};
    return peer_wiring_prepare(&p->peer, p->configuration, error, ERROR_MAX);
}

static void
on_dns_said(void *context, bool wrong, const char *text)
{
    const struct petrel *p = context;
    log_say(p->log, wrong ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "dns", NULL, "%s",
            text);
}

static int
start_queue(struct petrel *p, char *error)
{
    const struct options *o = &p->configuration->options;
    struct manager_settings settings = options_manager(o, loop_random(p->loop));
    struct delivery_settings out = configuration_delivery(o, p->configuration->routes);
    out.rewrites = p->configuration->rewrites;
    p->dns = dns_new(p->loop, text_from(o->dns_servers), error, ERROR_MAX);
    if (p->dns == NULL)
        return EX_CONFIG;
    dns_set_trust(p->dns, options_dns_trust(o));
    dns_listen(p->dns, on_dns_said, p);
    char place[TRUST_ANCHORS_PLACE_MAX];
    out.tls = configuration_anchors(p->configuration, place, error, ERROR_MAX);
    if (out.tls == NULL)
        return EX_CONFIG;
    trust_anchors_say(place, p->log);
    int code = manager_new(&p->manager, p->loop, p->events, &settings,
                           p->configuration->routes, error, ERROR_MAX);
    if (code != 0) {
        tls_client_free(&out.tls);
        return code;
    }
    p->group = (struct group_wiring){.loop = p->loop,
                                     .log = p->log,
                                     .net = p->net,
                                     .dns = p->dns,
                                     .manager = p->manager};
    p->channel = (struct channel_wiring){.loop = p->loop,
                                         .log = p->log,
                                         .net = p->net,
                                         .dns = p->dns,
                                         .events = p->events,
                                         .manager = p->manager,
                                         .group = &p->group};
    if (!group_wiring_start(&p->group, p->configuration, error, ERROR_MAX) ||
        !prepare_peer(p, error) ||
        !channel_wiring_start(&p->channel, p->configuration, error, ERROR_MAX)) {
        tls_client_free(&out.tls);
        return EX_CONFIG;
    }
    about_write(queue_disk(manager_queue(p->manager)), o);
    configuration_warn(p->configuration, p->log);
    out.dkim_keys = configuration_take_dkim_keys(p->configuration);
    p->delivery = delivery_new(p->loop, p->net, p->dns, p->events, p->manager, &out);
    p->keeper = (struct token_keeper){.loop = p->loop,
                                      .log = p->log,
                                      .net = p->net,
                                      .dns = p->dns,
                                      .manager = p->manager,
                                      .delivery = p->delivery};
    token_keeper_use(&p->keeper, &p->configuration->accounts);
    sts_wiring_use(&p->sts, &p->keeper, o);
    p->local = local_new(p->loop, p->manager, o->hostname);
    manager_set_channel(p->manager, TARGET_MX, delivery_open, p->delivery);
    manager_set_channel(p->manager, TARGET_SMTP, delivery_open, p->delivery);
    manager_set_channel(p->manager, TARGET_LMTP, delivery_open, p->delivery);
    manager_set_channel(p->manager, TARGET_MAILDIR, local_open, p->local);
    p->flush = flush_new(p->loop, p->log, p->manager);
    p->control = control_server_new(p->loop, p->net, p->log, p->manager, o->control,
                                    error, ERROR_MAX);
    if (p->control == NULL)
        return EX_CANTCREAT;
    questions_on_tokens(control_server_questions(p->control), p->keeper.tokens);
    p->history =
        history_wiring_start(p->loop, p->log, p->events, p->manager,
                             control_server_questions(p->control), p->configuration);
    history_on_line(p->history, control_server_on_line, p->control);
    return event_wiring_use(&p->kept, p->events, &p->keeper,
                            control_server_questions(p->control), p->configuration,
                            error, ERROR_MAX)
               ? 0
               : EX_CANTCREAT;
}

/* A session_flush(). */
static enum server_flush
mta_flush_node(void *context, const char *node, const char *client)
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
start_control(struct petrel *p)
{
    p->health = (struct health){.look = readiness_look, .context = &p->readiness};
    p->readiness =
        (struct readiness){.loop = p->loop,
                           .manager = p->manager,
                           .upstreams = &p->upstreams,
                           .leaves = mta_leaves,
                           .context = p,
                           .findings = &p->findings.findings,
                           .age_ms = options_ready_age_ms(&p->configuration->options)};
    p->wiring = (struct control_wiring){.loop = p->loop,
                                        .log = p->log,
                                        .manager = p->manager,
                                        .listener = p->listener,
                                        .delivery = p->delivery,
                                        .control = p->control,
                                        .health = &p->health,
                                        .reload = on_hangup,
                                        .is_draining = mta_is_draining,
                                        .context = p};
    control_wiring_start(&p->wiring);
    p->trials = trials_new(&(struct trials_setup){.loop = p->loop,
                                                  .events = p->events,
                                                  .manager = p->manager,
                                                  .hostname = mta_hostname,
                                                  .leaves = mta_leaves,
                                                  .context = p});
    control_server_on_trials(p->control, p->trials);
    p->listening = (struct listening){.loop = p->loop,
                                      .listener = p->listener,
                                      .control = p->control,
                                      .http = &p->http.server,
                                      .certificates = &p->certificates,
                                      .peer = &p->peer};
    listening_start(&p->listening);
    p->drain = (struct drain){.loop = p->loop,
                              .events = p->events,
                              .manager = p->manager,
                              .listener = p->listener,
                              .questions = control_server_questions(p->control),
                              .configuration = &p->configuration,
                              .delivery = p->delivery};
    drain_start(&p->drain);
    p->upstreams =
        (struct upstream_wiring){.loop = p->loop,
                                 .log = p->log,
                                 .events = p->events,
                                 .delivery = p->delivery,
                                 .questions = control_server_questions(p->control)};
    upstream_wiring_start(&p->upstreams, p->configuration);
    group_wiring_answer(&p->group, control_server_questions(p->control));
}

static bool
start_peer(struct petrel *p, char *error)
{
    sibling_ask_serve(control_server_service(p->control), &p->peer.ask);
    peer_wiring_answer(&p->peer, control_server_questions(p->control));
    p->give = (struct give_wiring){.loop = p->loop,
                                   .events = p->events,
                                   .manager = p->manager,
                                   .group = &p->group.group,
                                   .peer = &p->peer,
                                   .leaves = mta_leaves,
                                   .context = p};
    give_wiring_start(&p->give, p->configuration);
    if (!peer_wiring_start(&p->peer, p->configuration, error, ERROR_MAX))
        return false;
    p->drain.siblings = give_wiring_siblings(&p->give);
    p->cluster = (struct cluster_wiring){.manager = p->manager,
                                         .control = p->control,
                                         .group = &p->group.group,
                                         .configuration = &p->configuration,
                                         .calls = peer_wiring_calls(&p->peer),
                                         .state = mta_state,
                                         .context = p,
                                         .metrics = &p->http.metrics};
    cluster_wiring_start(&p->cluster);
    return true;
}

static int
start_listening(struct petrel *p, char *error)
{
    struct listener_settings settings =
        configuration_listener(&p->configuration->options);
    certificate_keeper_note(&p->certificates, &settings);
    p->listener = listener_new(p->loop, p->net, p->events, p->manager,
                               p->configuration->routes, &settings, error, ERROR_MAX);
    if (p->listener != NULL) {
        start_control(p);
        listener_on_flush(p->listener, mta_flush_node, p->flush);
    }
    if (p->listener != NULL && start_peer(p, error) && start_http(p, error))
        return 0;
    return net_passed_is_missing(p->net) ? EX_CONFIG : EX_UNAVAILABLE;
}

static int
mta_start(struct petrel *p, char *error)
{
    const struct options *o = &p->configuration->options;
    struct identity who;
    if (!identity_find(&who, o->user)) {
        snprintf(error, ERROR_MAX, "user: no such user: '%s'", o->user);
        return EX_CONFIG;
    }
    prepare_spool(p, &who);
    /* Files that the queue makes belong to the user. */
    if (!identity_try_on(&who)) {
        snprintf(error, ERROR_MAX, "user: cannot become '%s': %s", o->user,
                 strerror(errno));
        return EX_NOPERM;
    }
    int code = start_queue(p, error);
    if (code != 0)
        return code;
    if (!identity_take_off(&who)) {
        snprintf(error, ERROR_MAX, "user: cannot become root again: %s",
                 strerror(errno));
        return EX_OSERR;
    }
    /* As root again: for ports below 1024, and for keys that only root can read. */
    code = start_listening(p, error);
    if (code == 0 && !identity_keep(&who)) {
        snprintf(error, ERROR_MAX, "user: cannot become '%s' for good: %s", o->user,
                 strerror(errno));
        code = EX_NOPERM;
    }
    return code;
}

static bool
may_write(const void *context, const char *directory)
{
    return sandbox_may_write(context, directory);
}

/* The last step before the loop: all steps that need more rights are done. */
static int
enter_sandbox(struct petrel *p, char *error)
{
    struct sandbox_rules confine = configuration_sandbox(p->configuration);
    sandbox_rules_plan(p->sandbox, &confine);
    p->aliases = (struct alias_keeper){
        .loop = p->loop, .log = p->log, .manager = p->manager, .listener = p->listener};
    alias_keeper_use(&p->aliases, p->configuration);
    p->certificates.listener = p->listener;
    certificate_keeper_watch(&p->certificates);
    local_on_ask(p->local, may_write, p->sandbox);
    questions_on_sandbox(control_server_questions(p->control), p->sandbox);
    if (sandbox_rules_enter(p->sandbox, confine.options, p->log))
        return 0;
    snprintf(error, ERROR_MAX, "sandbox: required, but this system lacks: %s",
             sandbox_get_state(p->sandbox)->missing);
    return EX_OSERR;
}

/* The reverse of start. Interrupted sessions are logged before "stopped". */
static void
mta_stop(struct petrel *p, bool ran)
{
    http_wiring_stop(&p->http);
    certificate_keeper_stop(&p->certificates);
    findings_wiring_stop(&p->findings);
    if (p->history != NULL)
        history_on_line(p->history, NULL, NULL);
    drain_stop(&p->drain);
    cluster_wiring_stop(&p->cluster);
    peer_wiring_stop(&p->peer);
    give_wiring_stop(&p->give);
    control_wiring_stop(&p->wiring);
    listener_free(&p->listener);
    control_server_free(&p->control);
    trials_free(&p->trials);
    flush_free(&p->flush);
    upstream_wiring_stop(&p->upstreams);
    event_wiring_pause(&p->kept);
    delivery_free(&p->delivery);
    token_keeper_stop(&p->keeper);
    sts_wiring_stop(&p->sts);
    local_free(&p->local);
    channel_wiring_stop(&p->channel);
    group_wiring_stop(&p->group);
    history_free(&p->history);
    manager_free(&p->manager);
    event_wiring_stop(&p->kept);
    alias_keeper_stop(&p->aliases);
    dns_free(&p->dns);
    net_free(&p->net);
    notify_close(&p->notify);
    sandbox_free(&p->sandbox);
    if (ran)
        mta_tell(p, EVENT_STOPPING, "stopped");
    event_hub_free(&p->events);
    log_free(&p->log);
    loop_free(&p->loop);
    if (p->configuration != p->started)
        configuration_free(&p->configuration);
    configuration_free(&p->started);
}

static void
tell_started(const struct petrel *p)
{
    const struct options *o = &p->configuration->options;
    char text[STARTED_MAX];
    snprintf(text, sizeof(text), "petrel " PETREL_VERSION " is %s, spool %s",
             o->hostname, o->spool);
    mta_tell(p, EVENT_STARTED, text);
}

/* A port that nobody answers would leave its clients waiting. */
static void
mta_drop_passed(const struct petrel *p)
{
    char names[PASSED_NAMES_MAX];
    if (net_drop_passed(p->net, names, sizeof(names)) > 0)
        log_say(p->log, LOG_LEVEL_WARNING, "main", NULL,
                "sockets were passed that no setting names, and are closed: %s; write "
                "fd:NAME in `listen` or `http`",
                names);
}

static int
mta_run(const struct options_sources *sources)
{
    struct petrel p = {.sources = *sources};
    char error[ERROR_MAX] = "";
    p.configuration = p.started = configuration_new(sources);
    if (p.configuration == NULL)
        return EX_CONFIG;
    const struct options *o = &p.configuration->options;
    p.loop = loop_new();
    p.log = log_wiring_open(p.loop, o);
    notify_open(&p.notify, p.loop, p.log);
    p.events = event_hub_new(p.log);
    p.certificates = (struct certificate_keeper){.loop = p.loop,
                                                 .log = p.log,
                                                 .events = p.events,
                                                 .changed = on_certificates,
                                                 .context = &p};
    p.net = net_new(p.loop);
    descriptors_want(o, p.log);
    p.sandbox = sandbox_new();
    int code =
        net_take_passed(p.net, error, ERROR_MAX) ? mta_start(&p, error) : EX_CONFIG;
    if (code == 0) {
        mta_drop_passed(&p);
        queue_check_disk(manager_queue(p.manager));
        start_findings(&p);
        code = enter_sandbox(&p, error);
    }
    if (code == 0) {
        /* Until now a signal ended the process: startup is idempotent. */
        loop_on_signal(p.loop, SIGTERM, on_terminate, &p);
        loop_on_signal(p.loop, SIGINT, on_interrupt, &p);
        loop_on_signal(p.loop, SIGQUIT, on_interrupt, &p);
        p.reload = (struct reload){
            .loop = p.loop, .log = p.log, .done = on_reload, .context = &p};
        loop_on_signal(p.loop, SIGHUP, on_hangup, &p);
        tell_started(&p);
        if (geteuid() == 0 && o->user == NULL)
            log_say(p.log, LOG_LEVEL_WARNING, "main", NULL,
                    "running as root: set `user` to leave it after binding");
        warnings_at_start(o, p.configuration->settings, p.configuration->routes, p.log);
        notify_start(&p.notify, readiness_describe, &p.readiness);
        memory_trim();
        loop_run(p.loop);
    } else {
        fprintf(stderr, "petrel: %s\n", error);
    }
    mta_stop(&p, code == 0);
    return code;
}

/* --- Other commands --------------------------------------------------------------- */

int
main(int count, char **arguments)
{
    static const struct option words[] = {
        {"help",    no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL,      0,           NULL, 0  }
    };
    char *overrides[OVERRIDES_MAX + 1] = {NULL};
    struct options_sources sources = {.environment = environ, .overrides = overrides};
    int option, code, used = 0;
    memory_return_large();
    if (disk_fill_standard() != 0)
        return EX_OSERR;
    /* a file size limit makes write() fail; the process goes on */
    signal(SIGXFSZ, SIG_IGN);
    char **called = sendmail_called(count, arguments, &used);
    if (called != NULL) {
        sources.careful = true;
        code = dispatch_sendmail(&sources, used, called);
        free(called);
        return code;
    }
    while ((option = getopt_long(count, arguments, "+c:o:hV", words, NULL)) != -1) {
        if (option == 'c')
            sources.file = optarg;
        else if (option == 'o' && used < OVERRIDES_MAX)
            overrides[used++] = optarg;
        else if (option == 'h')
            return command_help(0, NULL);
        else if (option == 'V')
            return command_version(0, NULL, redis_version());
        else
            return command_refuse_all();
    }
    return dispatch_command(&sources, count - optind, arguments + optind, mta_run);
}
