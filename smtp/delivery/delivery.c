/* Sessions for the queue manager: finds the hosts, connects, carries requests.
 *
 * A session looks up the hosts (exchange or relays, which own them until it ends), puts
 * them in order (candidates), connects (connecting) and converses (connection); the
 * last two exclude each other. It takes mail only after a host has greeted, so that a
 * dead host holds no message. A request that is taken is settled exactly once: by the
 * client machine while it has it (sent), otherwise by the session.
 * manager_session_ended() is the last call for a session. */
#include "smtp/delivery/delivery.h"

#include "base/dns/idna.h"
#include "base/event/event.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "sched/limits/reply_class.h"
#include "smtp/delivery/smarthost_probe.h"
#include "smtp/delivery/delivery_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* --- The activity of sessions, for operators who ask why mail waits --------------- */

/* Sessions keep monotonic times, since the wall clock may be set; operators read the
 * wall clock. */
static int64_t
wall_ms(const struct delivery_session *s, int64_t monotonic_ms)
{
    const struct loop *loop = s->delivery->loop;
    return loop_now_ms(loop) - (loop_monotonic_ms(loop) - monotonic_ms);
}

static void
tell_look_up(const struct delivery_session *s, struct activity *a)
{
    const struct target *t = s->target;
    const char *name = t->kind == TARGET_MX ? s->domain : t->host;
    bool by_mx = t->kind == TARGET_MX || t->look_up_mx;
    a->kind = ACTIVITY_LOOK_UP;
    a->since_ms = wall_ms(s, s->opened_ms);
    snprintf(a->what, sizeof(a->what), "%s of %s%s",
             !by_mx                ? "addresses"
             : s->exchange == NULL ? "MX"
                                   : exchange_asks(s->exchange),
             name, target_host_count(t) > 1 ? " and others" : "");
}

static void
tell_connect(const struct delivery_session *s, struct activity *a)
{
    struct reply_outcome_peer peer;
    size_t which;
    int64_t started_ms;
    if (!happy_eyeballs_now(s->connecting, &which, &started_ms))
        return;
    address_race_name(&s->candidates.hosts[which], &peer);
    a->kind = ACTIVITY_CONNECT;
    a->since_ms = wall_ms(s, started_ms);
    text_copy(a->remote, sizeof(a->remote), text_from(peer.remote));
}

/* A target other than TARGET_SMTP has no scheme to be changed. */
static const char *
other_scheme(const struct delivery_session *s, const struct activity *a)
{
    const struct mx_lookup_host *host = address_race_next(&s->candidates);
    if (s->target->kind != TARGET_SMTP || host == NULL)
        return NULL;
    return security_other_scheme(&s->security, host->address.port, a->kind,
                                 loop_now_ms(s->delivery->loop) - a->since_ms);
}

/* For a session between two connections: its request is not settled, so the envelope is
 * there. During a connection it may be gone before the last reply; the connection knows
 * the ids. */
static bool
carries(const struct delivery_session *s, struct id message)
{
    return s->in_request && id_compare(s->request.envelope->id, message) == 0;
}

static void
tell_conversation(const struct delivery_session *s, struct id message,
                  struct activity *a)
{
    client_connection_activity(s->connection, message, a);
    if (s->is_idle) {
        a->kind = ACTIVITY_IDLE;
        a->since_ms = wall_ms(s, s->idle_since_ms);
    } else if (s->in_request && wall_ms(s, s->request_ms) > a->since_ms) {
        a->since_ms = wall_ms(s, s->request_ms); /* the connection was idle before */
    }
    a->scheme = other_scheme(s, a);
}

/* A manager_watch(); context is the struct delivery. */
static void
delivery_watch(void *context, const struct sched_site *site, struct id message,
               manager_saw *each, void *each_context)
{
    const struct delivery *d = context;
    const struct delivery_session *s;
    DL_FOREACH (d->sessions, s) {
        struct activity a = {.kind = ACTIVITY_NONE};
        if (!sched_session_is_at(s->session, site))
            continue;
        if (s->connection != NULL)
            tell_conversation(s, message, &a);
        else if (s->connecting != NULL)
            tell_connect(s, &a);
        else if (s->candidates.hosts == NULL && (s->exchange != NULL || s->relays))
            tell_look_up(s, &a);
        if (s->connection == NULL)
            a.has_message = carries(s, message);
        if (a.kind != ACTIVITY_NONE)
            each(each_context, &a);
    }
}

/* --- Settings --------------------------------------------------------------------- */

bool
delivery_check(const struct delivery_settings *settings, struct buffer *errors)
{
    struct bind_address sources;
    struct site_keys *providers = site_keys_new(settings->providers, errors);
    bool good = bind_address_read(&sources, settings->smtp_bind, errors);
    good &= providers != NULL;
    site_keys_free(&providers);
    return good;
}

/* delivery_check() has reported errors of smtp_bind. */
static void
delivery_take_settings(struct delivery *d, const struct delivery_settings *settings)
{
    char *hostname = memory_string(settings->hostname);
    free(d->hostname);
    d->hostname = hostname;
    d->outgoing = (struct outgoing_rules){
        .hostname = hostname,
        .rewrites = rewrites_are_empty(settings->rewrites) ? NULL : settings->rewrites,
        .verp = d->outgoing.verp};
    d->outgoing_mx = d->outgoing;
    d->outgoing.bounce_sender = settings->bounce_sender;
    d->settings = *settings;
    /* Borrowed only within this call. */
    d->settings.hostname = NULL;
    d->settings.peers = NULL;
    d->settings.tls = NULL;
    d->settings.dkim_keys = NULL;
    if (d->signing == NULL)
        d->signing = signing_new(d->loop, d->log, d->dns, settings->dkim_keys);
    else
        signing_reload(d->signing, settings->dkim_keys);
    if (settings->tls != NULL) {
        tls_client_free(&d->tls);
        d->tls = settings->tls;
        d->tls_number++;
    }
    d->settings.smtp_bind = d->settings.providers = TEXT("");
    struct site_keys *providers = site_keys_new(settings->providers, NULL);
    if (providers) {
        site_keys_free(&d->providers);
        d->providers = providers;
    }
    if (!bind_address_read(&d->sources, settings->smtp_bind, NULL))
        log_say(d->log, LOG_LEVEL_WARNING, "smtp", NULL, "smtp_bind has errors");
    bind_address_for_peers(&d->peer_sources, &d->sources, settings->peers);
}

void
delivery_set_verp(struct delivery *d, const struct verp *verp)
{
    d->outgoing.verp = d->outgoing_mx.verp = verp;
}

void
delivery_set_tokens(struct delivery *d, struct tokens *tokens)
{
    d->tokens = tokens;
}

void
delivery_set_sts(struct delivery *d, struct sts_cache *sts)
{
    d->sts = sts;
}

static bool
canary_skips(const struct delivery *d, const struct target *target,
             enum target_family family)
{
    enum target_family wanted = target->family != TARGET_FAMILY_UNSET
                                    ? target->family
                                    : d->settings.smtp_family;
    return wanted == TARGET_FAMILY_IPV4   ? family != TARGET_FAMILY_IPV4
           : wanted == TARGET_FAMILY_IPV6 ? family != TARGET_FAMILY_IPV6
                                          : false;
}

void
delivery_probe_settings(const struct delivery *d, const struct target *target,
                        struct smarthost_probe_settings *out)
{
    *out = (struct smarthost_probe_settings){
        .loop = d->loop,
        .net = d->net,
        .dns = d->dns,
        .events = d->events,
        .hostname = d->hostname,
        .smtp_port = d->settings.smtp_port,
        .sources = d->sources,
        .skip_v4 = canary_skips(d, target, TARGET_FAMILY_IPV4),
        .skip_v6 = canary_skips(d, target, TARGET_FAMILY_IPV6),
        .connect_timeout_ms = d->settings.connect_timeout_ms,
        .tls = &d->tls,
        .secrets = d->settings.secrets,
        .tokens = d->tokens};
}

struct tls_client *const *
delivery_tls(const struct delivery *d)
{
    return &d->tls;
}

struct tls_reports *
delivery_tls_reports(const struct delivery *d)
{
    return d->tls_reports;
}

const struct failed_dialogues *
delivery_failed_dialogues(const struct delivery *d)
{
    return d->failed_dialogues;
}

const struct signing *
delivery_signing(const struct delivery *d)
{
    return d->signing;
}

static const char *
program(const struct delivery_session *s)
{
    return s->target->kind == TARGET_LMTP ? "lmtp" : "smtp";
}

/* --- Ends ------------------------------------------------------------------------- */

/* For a request that no connection has taken: none of its recipients is settled. */
static void
delivery_settle_all(struct delivery_session *s, const struct outcome *outcome)
{
    size_t count = s->rest != NULL ? s->rest_count : s->request.count;
    for (size_t i = 0; i < count; i++)
        manager_settled(s->delivery->manager, &s->request,
                        s->rest != NULL ? s->rest[i] : i, outcome, NULL);
    s->in_request = false;
}

static void
request_forget_rest(struct delivery_session *s)
{
    free(s->rest);
    free(s->rest_indexes);
    s->rest = s->rest_indexes = NULL;
    s->rest_count = s->later_count = 0;
}

/* The list `early` is emptied at the end of the turn. A session whose reply to the dot
 * comes in the same turn, or whose connection ends, must leave it before. */
static void
leave_early(struct delivery_session *s)
{
    if (s->is_early)
        DL_DELETE2(s->delivery->early, s, early_prev, early_next);
    s->is_early = false;
}

static void
leave_idle(struct delivery_session *s)
{
    if (s->is_idle)
        DL_DELETE2(s->delivery->idle, s, idle_prev, idle_next);
    s->is_idle = false;
    loop_timer_stop(s->delivery->loop, &s->idle_end);
}

/* Also called within events of the members that it frees: each of them stays valid
 * until the end of the turn, and so does the session. */
static void
delivery_session_end(struct delivery_session *s, const struct outcome *why)
{
    struct delivery *d = s->delivery;
    assert(!s->in_request && !s->has_next);
    leave_early(s);
    leave_idle(s);
    happy_eyeballs_free(&s->connecting);
    credentials_free(&s->login);
    client_connection_free(&s->connection);
    exchange_free(&s->exchange);
    mx_lookup_list_free(&s->relays);
    request_forget_rest(s);
    loop_unpost(d->loop, &s->task);
    DL_DELETE(d->sessions, s);
    loop_release(d->loop, free, s);
    manager_session_ended(d->manager, s->session, why);
}

/* It has carried its mail, and nothing is wrong. */
static void
delivery_session_done(struct delivery_session *s)
{
    delivery_session_end(s, &outcome_no_trouble);
}

/* We do not want it any more, whatever its host does. */
static void
delivery_session_cancel(struct delivery_session *s, const char *why)
{
    struct outcome outcome =
        outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.2", "%s", why);
    if (s->in_request)
        delivery_settle_all(s, &outcome);
    delivery_session_end(s, &outcome);
}

/* Every address was tried. If all that was missing is a token, the site is not to blame:
 * the scheduler opens another session when that is there. */
static void
session_fail(struct delivery_session *s)
{
    assert(s->has_trouble || s->lacks_token);
    struct outcome why = s->trouble;
    if (!s->has_trouble)
        why =
            outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, REPLY_CLASS_TOKEN_ENHANCED,
                         "waits for a token to log in with");
    why = delivery_judge_required(s, &why);
    if (s->in_request)
        delivery_settle_all(s, &why);
    delivery_session_end(s, &why);
}

static void
fail_later(void *context)
{
    session_fail(context);
}

static bool
gave_reason(const struct outcome *trouble)
{
    return trouble->code != 0 || strncmp(trouble->enhanced, "4.7.", 4) == 0;
}

/* Its reason may be the one that the mail has: its deferral is logged or counted. */
static bool
is_last_host(const struct delivery_session *s)
{
    return s->candidates.at + 1 >= s->candidates.count;
}

/* The reply of one host is worth more than the silence of the next. A refused password
 * is worth most: it must not be tried again soon. */
static void
delivery_keep_trouble(struct delivery_session *s, const struct outcome *trouble)
{
    s->has_other_trouble = s->has_other_trouble || !delivery_refuses_required(trouble);
    if (s->has_trouble && reply_class_refuses_us(&s->trouble))
        return;
    if (!s->has_trouble || gave_reason(trouble) || !gave_reason(&s->trouble))
        s->trouble = *trouble;
    s->has_trouble = true;
}

static void
delivery_remember(struct delivery_session *s, const struct outcome *trouble)
{
    delivery_keep_trouble(s, trouble);
    bool mail_says_it = is_last_host(s) && strcmp(s->trouble.text, trouble->text) == 0;
    enum log_level level = reply_class_refuses_us(trouble) ? LOG_LEVEL_WARNING
                           : mail_says_it                  ? LOG_LEVEL_DEBUG
                                                           : LOG_LEVEL_INFO;
    log_say(s->delivery->log, level, program(s), NULL, "%s", trouble->text);
}

/* In a later turn, since delivery_open() must not end a session before it returns. */
static void
delivery_give_up(struct delivery_session *s, const struct outcome *why)
{
    delivery_remember(s, why);
    loop_post(s->delivery->loop, &s->task, fail_later, s);
}

/* --- Requests --------------------------------------------------------------------- */

static void
request_say(struct delivery_session *s, const struct delivery_request *request)
{
    struct client_mail mail = {.envelope = request->envelope,
                               .indexes = request->indexes,
                               .count = request->count};
    client_connection_send(s->connection, &mail);
}

/* The recipients that are to be asked for now: all, or those for which the host had no
 * space in the transaction before. */
static void
request_send(struct delivery_session *s)
{
    struct delivery_request request = s->request;
    s->request_ms = loop_monotonic_ms(s->delivery->loop);
    s->sent = true;
    if (s->rest != NULL) {
        request.indexes = s->rest_indexes;
        request.count = s->rest_count;
    }
    request_say(s, &request);
}

static void
request_settle(struct delivery_session *s, size_t which, const struct outcome *outcome)
{
    assert(s->in_request);
    s->timing.transmit_ms = loop_monotonic_ms(s->delivery->loop) - s->request_ms;
    client_connection_note_mail(s->connection, &s->timing);
    struct outcome judged = delivery_family_judge(s, outcome);
    if (s->rest != NULL)
        which = s->rest[which];
    manager_settled(s->delivery->manager, &s->request, which, &judged, &s->timing);
}

/* The rest grows at the front of the list, behind which the present transaction reads. */
static void
request_later(struct delivery_session *s, size_t which, const struct outcome *why)
{
    size_t count = s->request.count;
    if (s->rest == NULL) {
        s->rest = memory_array(count, sizeof(*s->rest));
        s->rest_indexes = memory_array(count, sizeof(*s->rest_indexes));
        s->rest_count = count;
        for (size_t i = 0; i < count; i++)
            s->rest[i] = (unsigned)i;
    }
    s->rest[s->later_count] = s->rest[which];
    s->rest_indexes[s->later_count] = s->request.indexes[s->rest[which]];
    s->later_count++;
    s->later = *why;
}

static void
request_settle_later(struct delivery_session *s)
{
    for (size_t i = 0; i < s->later_count; i++)
        request_settle(s, i, &s->later);
    request_forget_rest(s);
}

/* A rate, or a pause between transactions, forbids another one now, and so does a host
 * that takes one message over a connection. */
static bool
request_may_go_on(const struct delivery_session *s)
{
    const struct transport_params *t = &s->target->transport;
    return !s->closing && client_connection_limits(s->connection).mails != 1 &&
           t->rate.amount == 0 && t->rate_delay_ms == 0 &&
           t->transport_rate_delay_ms == 0;
}

/* RFC 5321 §4.5.3.1.10: the recipients that the host had no space for follow in another
 * transaction. The site remembers how many it took. False: there are none. */
static bool
request_goes_on(struct delivery_session *s)
{
    size_t taken = s->rest_count - s->later_count;
    if (s->later_count == 0)
        return false;
    sched_session_takes(manager_sched(s->delivery->manager), s->session,
                        (unsigned)taken);
    if (!request_may_go_on(s)) {
        request_settle_later(s);
        return false;
    }
    s->rest_count = s->later_count;
    s->later_count = 0;
    request_send(s);
    return true;
}

/* A request that its last connection could not carry comes before new mail. */
static bool
request_take(struct delivery_session *s)
{
    if (!s->in_request && !delivery_family_rests(s))
        s->in_request = manager_take(s->delivery->manager, s->session, &s->request);
    if (s->in_request) {
        leave_idle(s);
        request_send(s);
    }
    return s->in_request;
}

/* Mail may have come in this turn: the hook at its end would find the connection gone.
 */
static void
on_idle_end(void *context)
{
    struct delivery_session *s = context;
    if (!request_take(s))
        delivery_session_done(s);
}

/* Mail that comes before is taken in delivery_at_stage_answer(). */
static void
idle_timer_start(struct delivery_session *s)
{
    struct loop *loop = s->delivery->loop;
    int64_t end_ms = s->idle_since_ms + s->delivery->settings.reuse_idle_ms;
    loop_timer_start(loop, &s->idle_end, end_ms - loop_monotonic_ms(loop), on_idle_end,
                     s);
}

/* The next request, in one group with the dot of this one. */
static void
request_take_early(struct delivery_session *s)
{
    struct manager *m = s->delivery->manager;
    assert(s->in_request && s->sent && !s->has_next);
    if (!s->prompt || s->closing || !client_connection_has_space(s->connection) ||
        delivery_family_rests(s) || !manager_has_work(m, s->session) ||
        !manager_take(m, s->session, &s->next_request))
        return;
    s->has_next = true;
    s->next_request_ms = loop_monotonic_ms(s->delivery->loop);
    request_say(s, &s->next_request);
}

/* Only the first message of a connection has waited for it: connect_ms is 0 for the
 * next ones. The next request, if it was taken early, becomes the one under way. */
static void
request_done(struct delivery_session *s)
{
    leave_early(s);
    request_forget_rest(s);
    s->prompt = loop_monotonic_ms(s->delivery->loop) - s->dot_ms <= SCHED_PROMPT_MS;
    s->timing.connect_ms = 0;
    s->in_request = s->sent = s->has_next;
    if (s->has_next) {
        s->request = s->next_request;
        s->request_ms = s->next_request_ms;
    }
    s->has_next = false;
}

/* Mail for a kept connection leaves in the turn that brought it, or in which a pause of
 * the site ends; where a dot leaves in this turn, in the same packet. */
static void
delivery_at_stage_answer(void *context)
{
    struct delivery *d = context;
    struct delivery_session *s, *next;
    while ((s = d->early) != NULL) {
        leave_early(s);
        request_take_early(s);
    }
    DL_FOREACH_SAFE2 (d->idle, s, next, idle_next)
        if (delivery_family_rests(s))
            delivery_session_done(s);
        else if (manager_has_work(d->manager, s->session))
            (void)request_take(s);
        else if (sched_session_is_spent(s->session))
            delivery_session_done(s);
}

/* A spent session gets no more mail, so that keeping its connection would only hold a
 * place in the window of its site. */
static void
request_next(struct delivery_session *s)
{
    struct delivery *d = s->delivery;
    if (request_take(s))
        return;
    if (sched_session_is_spent(s->session) || delivery_family_rests(s)) {
        delivery_session_done(s);
        return;
    }
    s->is_idle = true;
    DL_PREPEND2(d->idle, s, idle_prev, idle_next); /* used first: the others end */
    s->idle_since_ms = loop_monotonic_ms(d->loop);
    idle_timer_start(s);
}

/* --- Connections ------------------------------------------------------------------ */

static const struct mx_lookup_host *
host_now(const struct delivery_session *s)
{
    return address_race_next(&s->candidates);
}

static void
report_health(struct delivery_session *s, bool good)
{
    struct address_race *c = &s->candidates;
    size_t which = c->order[c->at];
    if (good)
        address_race_good(c, which,
                          loop_monotonic_ms(s->delivery->loop) - s->connecting_ms);
    else
        address_race_bad(c, which);
}

/* TLS failed, and the route does not demand it: the same address is tried once more,
 * for one message. An attacker who breaks a handshake can read no more than that. */
static bool
may_fall_back(struct delivery_session *s, const struct outcome *trouble)
{
    struct delivery *d = s->delivery;
    if (s->closing || !s->security.may_fall_back ||
        !client_connection_tls_failed(s->connection))
        return false;
    s->clear = host_now(s);
    if (security_failures_add(&d->tls_failures, &s->clear->address,
                              loop_monotonic_ms(d->loop)))
        log_say(d->log, LOG_LEVEL_WARNING, program(s), NULL,
                "%s; sending one message to it in cleartext, as tls=may allows",
                trouble->text);
    return true;
}

/* False: we cannot log in there. A host that has refused us is not tried at its other
 * addresses. */
static bool
delivery_log_in(struct delivery_session *s, const struct mx_lookup_host *host)
{
    struct delivery *d = s->delivery;
    struct outcome why;
    size_t number = delivery_host_number(s, host);
    credentials_free(&s->login);
    if (s->target->kind != TARGET_SMTP)
        return true;
    if ((s->refused & 1u << number) != 0)
        return false;
    if (credentials_new(&s->login, d->loop, d->settings.secrets, d->tokens, s->target,
                        number, &host->address, &why))
        return true;
    if (reply_class_classify(&why) == REPLY_CLASS_TOKEN) {
        s->lacks_token = true;
        return false;
    }
    log_say(d->log, LOG_LEVEL_WARNING, program(s), NULL, "%s", why.text);
    delivery_remember(s, &why);
    return false;
}

static void
converse(struct delivery_session *s, struct net_connection *connection,
         client_connection_happened *on_event)
{
    struct delivery *d = s->delivery;
    const struct mx_lookup_host *host = host_now(s);
    const char *helo = target_helo(s->target);
    assert(s->connection == NULL);
    s->greeted = false;
    address_race_name(host, &s->peer);
    delivery_decide_security(s, host);
    struct client_connection_settings settings = {
        .loop = d->loop,
        .events = d->events,
        .queue = manager_queue(d->manager),
        .first = manager_first(s->session),
        .hostname = helo != NULL ? helo : d->hostname,
        .redirect_to = target_peer(s->target),
        .to = s->target->to,
        .add_header = s->target->add_header,
        .remove_header = s->target->remove_header,
        .lmtp = s->target->kind == TARGET_LMTP,
        .timeout_scale = s->target->timeout_scale > 0 ? s->target->timeout_scale : 1,
        .data_rate_min = d->settings.data_rate_min,
        .connection = connection,
        .peer = s->peer,
        .login = s->login,
        .security = s->security,
        .tls = &d->tls,
        .outgoing = s->target->kind == TARGET_MX ? &d->outgoing_mx : &d->outgoing,
        .tagged = s->target->transport.verp != 0,
        .signing = target_signs(s->target) ? d->signing : NULL,
        .failed_dialogues = d->failed_dialogues,
        .site = sched_session_site(s->session)};
    s->login = NULL;
    s->connection = client_connection_new(&settings, on_event, s);
}

static void
connect_race(struct delivery_session *s, happy_eyeballs_happened *on_event)
{
    struct delivery *d = s->delivery;
    struct happy_eyeballs_settings settings = {
        .loop = d->loop,
        .net = d->net,
        .sources = &s->sources,
        .timeout_ms = d->settings.connect_timeout_ms,
        .head_start_ms = HAPPY_EYEBALLS_HEAD_START_MS};
    size_t count = address_race_pair(&s->candidates, s->race);
    s->connecting =
        happy_eyeballs_new(&settings, s->candidates.hosts, s->race, count, on_event, s);
    bool tries = happy_eyeballs_go_on(s->connecting);
    assert(tries);
}

/* False: no host is left. */
static bool
connect_next(struct delivery_session *s, happy_eyeballs_happened *on_event)
{
    for (; host_now(s) != NULL; address_race_pass(&s->candidates)) {
        if (!delivery_log_in(s, host_now(s)))
            continue;
        connect_race(s, on_event);
        return true;
    }
    return false;
}

/* The address that failed is brought forward and passed; the other one of the race may
 * still answer. */
static void
connect_failed(struct delivery_session *s, const struct happy_eyeballs_event *event)
{
    address_race_bring_forward(&s->candidates, event->which);
    address_race_name(&s->candidates.hosts[event->which], &s->peer);
    struct outcome outcome =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.1", "connect to %s: %s",
                     s->peer.remote, event->why);
    text_copy(outcome.remote, sizeof(outcome.remote), text_from(s->peer.remote));
    delivery_remember(s, &outcome);
    delivery_family_failed(s, &s->candidates.hosts[event->which], event->error);
    report_health(s, false);
    address_race_pass(&s->candidates);
}

/* A token that the host does not take any more is renewed, and nobody is blamed. */
static bool
renews_token(struct delivery_session *s, const struct outcome *trouble)
{
    if (!reply_class_refuses_us(trouble) ||
        !credentials_refused(client_connection_credentials(s->connection)))
        return false;
    log_say(s->delivery->log, LOG_LEVEL_INFO, program(s), NULL,
            "%s; trying another token", trouble->text);
    s->lacks_token = true;
    return true;
}

/* The next address follows, or the same one in cleartext. */
static void
delivery_host_failed(struct delivery_session *s, const struct outcome *trouble)
{
    if (may_fall_back(s, trouble))
        return;
    if (!renews_token(s, trouble)) {
        delivery_remember(s, trouble);
        delivery_report_failed(s, trouble);
        (void)delivery_family_refused(s, trouble);
        /* Other routes, or senders, may demand less of the same host. */
        if (!client_connection_tls_failed(s->connection) &&
            !delivery_lacks_requiretls(trouble))
            report_health(s, false);
    }
    if (reply_class_refuses_us(trouble))
        s->refused |= 1u << delivery_host_number(s, host_now(s));
    address_race_pass(&s->candidates);
}

/* A host may close a connection on which nothing is under way, and many do: that is
 * news only if it says why. */
static void
kept_connection_lost(struct delivery_session *s, const struct outcome *why)
{
    log_say(s->delivery->log, why->code != 0 ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
            program(s), NULL, "a kept connection has ended: %s", why->text);
}

/* The only way on from the end of a connection. The session goes on while it may have a
 * request that no host has heard: to the next host if this one has failed, to the same
 * one if it was a kept connection. After any other end the scheduler opens another
 * session if mail waits. */
static void
on_over(struct delivery_session *s, const struct client_event *event,
        happy_eyeballs_happened *on_event)
{
    struct outcome why = *event->outcome;
    assert(why.verdict == VERDICT_DEFERRED || event->end == CLIENT_END_MAIL);
    leave_early(s);
    leave_idle(s);
    s->prompt = s->sent = false;
    if (event->end == CLIENT_END_MAIL) {
        request_settle_later(s);
        s->in_request = false; /* the client machine has given its verdicts */
    }
    if (event->end == CLIENT_END_HOST && !s->closing)
        delivery_host_failed(s, &why);
    else if (event->end == CLIENT_END_KEPT || event->end == CLIENT_END_IDLE)
        kept_connection_lost(s, &why);
    if (event->end == CLIENT_END_KEPT)
        s->opened_ms = loop_monotonic_ms(s->delivery->loop);
    client_connection_free(&s->connection);
    if (s->closing)
        delivery_session_cancel(s, why.text);
    else if (event->end == CLIENT_END_IDLE)
        delivery_session_done(s);
    else if (event->end == CLIENT_END_MAIL)
        /* FAILED is a word on the mail, which has it; of a session it is one on the domain. */
        delivery_session_end(s, why.verdict == VERDICT_FAILED ? &outcome_no_trouble
                                                              : &why);
    else if (!connect_next(s, on_event))
        session_fail(s);
}

/* A limit of domains limits recipients, too: each may be of another domain. By MX all
 * recipients of a request have one domain. */
static void
take_limits(struct delivery_session *s)
{
    struct client_limits announced = client_connection_limits(s->connection);
    struct session_limits limits = {.recipients = announced.recipients,
                                    .mails = announced.mails};
    if (s->security.fallen_back)
        limits.mails = 1;
    if (s->target->kind != TARGET_MX && announced.domains > 0 &&
        (announced.recipients == 0 || announced.domains < announced.recipients))
        limits.recipients = announced.domains;
    sched_session_limit(s->session, &limits);
}

/* The limits come first: request_next() takes a request that must fit them. */
static void
delivery_on_ready(struct delivery_session *s)
{
    take_limits(s);
    delivery_report_greeted(s);
    s->greeted = true;
    s->timing.connect_ms = loop_monotonic_ms(s->delivery->loop) - s->opened_ms;
    report_health(s, true);
    request_next(s);
}

static void
on_sending(void *context, const struct client_event *event)
{
    struct delivery_session *s = context;
    switch ((unsigned)event->kind) {
    case CLIENT_READY:
        delivery_on_ready(s);
        return;
    case CLIENT_VERDICT:
        request_settle(s, event->which, event->outcome);
        return;
    case CLIENT_LATER:
        request_later(s, event->which, event->outcome);
        return;
    case CLIENT_EARLY:
        s->dot_ms = loop_monotonic_ms(s->delivery->loop);
        DL_APPEND2(s->delivery->early, s, early_prev, early_next);
        s->is_early = true;
        return;
    case CLIENT_DONE:
        if (request_goes_on(s))
            return;
        request_done(s);
        if (!s->in_request)
            request_next(s);
        return;
    case CLIENT_OVER:
        on_over(s, event, s->on_connecting);
        return;
    default:
        abort(); /* client_connection.c does not pass them on; we never probe */
    }
}

static void
on_connected(struct delivery_session *s, const struct happy_eyeballs_event *event,
             happy_eyeballs_happened *on_event)
{
    struct net_connection *connection = event->connection;
    s->connecting_ms = event->started_ms;
    address_race_bring_forward(&s->candidates, event->which);
    happy_eyeballs_free(&s->connecting);
    /* Whether a login may be in cleartext depends on the address, and the race was won
     * by another one. */
    if (event->which == s->race[0] || delivery_log_in(s, host_now(s))) {
        converse(s, connection, on_sending);
        return;
    }
    net_abort(&connection);
    address_race_pass(&s->candidates);
    if (!connect_next(s, on_event))
        session_fail(s);
}

static void
on_connecting(void *context, const struct happy_eyeballs_event *event)
{
    struct delivery_session *s = context;
    struct id before = manager_enter(s->delivery->manager, s->session);
    switch (event->kind) {
    case HAPPY_EYEBALLS_TRYING:
        address_race_name(&s->candidates.hosts[event->which], &s->peer);
        log_say(s->delivery->log, LOG_LEVEL_DEBUG, program(s), NULL, "connecting to %s",
                s->peer.remote);
        break;
    case HAPPY_EYEBALLS_CONNECTED:
        on_connected(s, event, on_connecting);
        break;
    case HAPPY_EYEBALLS_FAILED:
        connect_failed(s, event);
        break;
    case HAPPY_EYEBALLS_BEATEN: /* others come first for some time */
        address_race_bad(&s->candidates, event->which);
        break;
    case HAPPY_EYEBALLS_OVER:
        happy_eyeballs_free(&s->connecting);
        if (!connect_next(s, on_connecting))
            session_fail(s);
        break;
    }
    manager_leave(s->delivery->manager, before); /* it lives until the turn ends */
}

/* --- Finding the hosts ------------------------------------------------------------ */

static void
on_hosts_found(void *context, const struct mx_lookup_answer *answer)
{
    struct delivery_session *s = context;
    struct id before = manager_enter(s->delivery->manager, s->session);
    if (answer->count == 0) {
        delivery_remember(s, &answer->outcome);
        delivery_report_no_host(s, &answer->outcome);
        session_fail(s);
    } else if (!delivery_belongs_to_site(s, answer)) {
        delivery_session_cancel(s, "its site has as many sessions as it may have");
    } else {
        s->has_other_trouble = s->exchange != NULL && exchange_is_unsure(s->exchange);
        address_race_start(&s->candidates, s->delivery->manager, answer->hosts,
                           answer->count);
        delivery_family_choose(s);
        if (!connect_next(s, on_connecting))
            session_fail(s);
    }
    manager_leave(s->delivery->manager, before); /* it lives until the turn ends */
}

static void
find_socket(struct delivery_session *s)
{
    struct buffer name;
    buffer_init(&name, TARGET_PATH_MAX + 8);
    bool fits = buffer_format(&name, "unix:%s", s->target->path);
    if (fits && net_address_parse(buffer_text(&name), 0, &s->socket.address)) {
        address_race_start(&s->candidates, s->delivery->manager, &s->socket, 1);
        connect_race(s, on_connecting);
    } else {
        struct outcome outcome =
            outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.3.5",
                         "not a valid path of a Unix socket: %s", s->target->path);
        delivery_give_up(s, &outcome);
    }
    buffer_free(&name);
}

/* Mail written into the spool by another program may have such a domain. */
static void
delivery_refuse_domain(struct delivery_session *s, const char *domain)
{
    struct outcome outcome =
        idna_version() == NULL
            ? outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 0, "5.6.7",
                           "the domain %s needs libidn2, which is not built in", domain)
            : outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 0, "5.1.2",
                           "%s is not a valid domain name under IDNA", domain);
    delivery_give_up(s, &outcome);
}

static void
find_hosts(struct delivery_session *s, const char *domain)
{
    if (text_is_ascii(text_from(domain)))
        delivery_ask_hosts(s, domain, on_hosts_found);
    else
        delivery_refuse_domain(s, domain);
}

void
delivery_open(void *context, struct sched_session *session, const struct target *target,
              const char *domain)
{
    struct delivery *d = context;
    struct delivery_session *s = memory_new(sizeof(*s));
    struct outcome missing;
    assert(target->kind == TARGET_MX || target->kind == TARGET_SMTP ||
           target->kind == TARGET_LMTP);
    s->delivery = d;
    s->session = session;
    s->target = target;
    s->domain = domain;
    s->opened_ms = loop_monotonic_ms(d->loop);
    s->on_connecting = on_connecting;
    DL_APPEND(d->sessions, s);
    if (target->kind == TARGET_LMTP && target->host[0] == '\0')
        find_socket(s);
    else if (delivery_choose_source(s, &missing))
        find_hosts(s, domain);
    else
        delivery_give_up(s, &missing);
}

/* --- Settings --------------------------------------------------------------------- */

struct delivery *
delivery_new(struct loop *loop, struct net *net, struct dns *dns,
             struct event_hub *events, struct manager *manager,
             const struct delivery_settings *settings)
{
    struct delivery *d = memory_new(sizeof(*d));
    d->loop = loop;
    d->net = net;
    d->dns = dns;
    d->events = events;
    d->log = event_hub_log(events);
    d->manager = manager;
    d->tls_reports = tls_reports_new();
    d->failed_dialogues = failed_dialogues_new();
    assert(settings->tls != NULL);
    /* After the manager's own hook, which hands out the mail of this turn, and before
     * that of signing. */
    loop_at_end(loop, LOOP_ANSWER_DELIVERY, delivery_at_stage_answer, d);
    delivery_take_settings(d, settings);
    manager_set_watch(manager, delivery_watch, d);
    return d;
}

void
delivery_reload(struct delivery *d, const struct delivery_settings *settings)
{
    struct delivery_session *s;
    if (settings->tls != NULL || settings->dane != d->settings.dane ||
        settings->mta_sts != d->settings.mta_sts)
        sched_ask_again(manager_sched(d->manager));
    delivery_take_settings(d, settings);
    DL_FOREACH2 (d->idle, s, idle_next)
        idle_timer_start(s);
}

static const char shutting_down[] = "Petrel is shutting down";

void
delivery_drain(struct delivery *d)
{
    struct delivery_session *s, *next;
    d->settings.reuse_idle_ms = 0;
    /* A session that looks up hosts, connects, or waits for a greeting has no mail: a
     * slow DNS server or host must not delay the stop. */
    DL_FOREACH_SAFE (d->sessions, s, next)
        if (s->is_idle || ((s->connection == NULL || !s->greeted) && !s->in_request))
            delivery_session_cancel(s, shutting_down);
}

static void
session_abort(struct delivery_session *s)
{
    struct outcome outcome =
        outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.2", "%s", shutting_down);
    s->closing = true;
    if (s->connection != NULL)
        client_connection_abandon(s->connection, &outcome); /* ends in on_over() */
    else /* it is looking up hosts or connecting */
        delivery_session_cancel(s, shutting_down);
}

/* Each of them leaves the list before session_abort() returns. */
void
delivery_cut(struct delivery *d)
{
    while (d->sessions != NULL)
        session_abort(d->sessions);
}

void
delivery_free(struct delivery **delivery)
{
    struct delivery *d = *delivery;
    if (d == NULL)
        return;
    delivery_cut(d);
    manager_set_watch(d->manager, NULL, d);
    loop_at_end_remove(d->loop, LOOP_ANSWER_DELIVERY, delivery_at_stage_answer, d);
    site_keys_free(&d->providers);
    tls_client_free(&d->tls);
    tls_reports_free(&d->tls_reports);
    failed_dialogues_free(&d->failed_dialogues);
    signing_free(&d->signing);
    free(d->hostname);
    free(d);
    *delivery = NULL;
}
