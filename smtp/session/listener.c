/* Binds the addresses, checks the limits of clients, hands connections to sessions.
 *
 * A connection comes to listener_on_accept(), waits in pregreet.c for the header of its
 * proxy (?proxy), is counted by listener_enter(), waits there again for its greeting
 * (greet_delay), and becomes a session. From listener_enter() to on_gone() it counts as
 * a session of its client, also while it waits and when it is refused. */
#include "smtp/session/listener.h"

#include "base/event/event.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "smtp/access/refusals.h"
#include "smtp/access/users.h"
#include "smtp/reply.h"
#include "smtp/session/pregreet.h"
#include "smtp/session/session.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MISTAKES_MAX = 64 * 1024 };

/* Copies the first of the collected lines to error. */
static void
tell_errors(const struct buffer *errors, char *error, size_t error_size)
{
    struct text rest = buffer_text(errors), line = TEXT("");
    text_cut(&rest, '\n', &line);
    text_copy(error, error_size, line);
}

/* --- AUTH and senders ------------------------------------------------------------- */

static const char secret_path[] = "lock/decoys", secret_draft[] = "lock/decoys.new";

static bool
read_secret(struct disk *disk, unsigned char secret[DIGEST_SIZE])
{
    char bytes[DIGEST_SIZE + 1]; /* one byte more detects a longer file */
    bool whole =
        disk_read_at(disk, secret_path, 0, bytes, sizeof(bytes)) == DIGEST_SIZE;
    if (whole)
        memcpy(secret, bytes, DIGEST_SIZE);
    return whole;
}

/* A synced draft that is renamed: a crash leaves no part of a secret. After an
 * error the secret is valid for this process only. */
static void
write_secret(struct disk *disk, const unsigned char secret[DIGEST_SIZE])
{
    disk_unlink(disk, secret_draft);
    int file = disk_create(disk, secret_draft, 0600);
    if (file < 0)
        return;
    /* Listening begins as root, but files in the spool belong to its user. */
    struct disk_info top;
    if (disk_inspect(disk, ".", &top) == 0 && top.owner != 0)
        (void)!disk_give(disk, secret_draft, top.owner, (unsigned)-1);
    int result = disk_write(disk, file, text_of(secret, DIGEST_SIZE));
    if (result == 0)
        result = disk_sync(disk, file);
    disk_close_file(disk, file);
    if (result == 0)
        (void)disk_rename(disk, secret_draft, secret_path);
}

void
listener_auth_secret(struct loop *loop, struct disk *disk,
                     unsigned char secret[DIGEST_SIZE])
{
    if (read_secret(disk, secret))
        return;
    for (size_t i = 0; i < DIGEST_SIZE; i += sizeof(uint64_t)) {
        uint64_t random = loop_random(loop);
        memcpy(secret + i, &random, sizeof(random));
    }
    write_secret(disk, secret);
}

static bool
listener_auth_complain(struct buffer *errors, const char *what)
{
    /* Beyond the limit of the buffer, enough errors are reported. */
    (void)!buffer_format(errors, "%s\n", what);
    return false;
}

static bool
read_clear_text(struct text word, bool *clear, struct buffer *errors)
{
    word = text_trim(word);
    *clear = text_equal(word, TEXT("loopback"));
    return *clear || word.length == 0 || text_equal(word, TEXT("no")) ||
           listener_auth_complain(errors, "auth_cleartext: say no or loopback");
}

/* False with a line in errors. */
static bool
listener_auth_read_source(const struct listener_settings *settings,
                          struct session_rules *rules, struct buffer *errors)
{
    static const struct text prefix = TEXT("dovecot:/");
    struct text source = text_trim(settings->auth);
    if (source.length == 0)
        return true;
    if (!text_starts(source, prefix) || text_has_control(source))
        return listener_auth_complain(errors,
                                      "auth: write dovecot:PATH, the absolute path of "
                                      "a socket of Dovecot's service auth");
    if (!text_copy(rules->auth_path, sizeof(rules->auth_path),
                   text_after(source, prefix.length - 1)))
        return listener_auth_complain(errors, "auth: the path is too long");
    return text_trim(settings->auth_users).length == 0 ||
           listener_auth_complain(errors,
                                  "auth: auth_users is set, too: remove one of them");
}

static bool
listener_auth_is_set(const struct session_rules *rules)
{
    return rules->accounts != NULL || rules->auth_path[0] != '\0';
}

/* Rules in force: the connection is made, or another one. */
static void
listener_auth_use(struct session_host *host, struct net *net)
{
    struct session_rules *rules = host->rules;
    if (host->dovecot == NULL && rules->auth_path[0] == '\0')
        return;
    if (host->dovecot == NULL)
        host->dovecot = dovecot_auth_new(host->loop, net, host->log);
    auth_gate_ask(host->gate, host->dovecot);
    dovecot_auth_use(host->dovecot, rules->auth_path);
    if (rules->auth_path[0] != '\0')
        rules->server.remote = dovecot_auth_mechanisms(host->dovecot);
}

/* Sets users, senders and the like in rules. False with one line per error. */
static bool
listener_auth_read(const struct listener_settings *settings,
                   const unsigned char secret[DIGEST_SIZE], struct session_rules *rules,
                   struct buffer *errors)
{
    char *path = text_string(text_trim(settings->auth_users));
    bool set = path[0] != '\0';
    if (set)
        rules->accounts = users_read(path, secret, errors);
    free(path);
    rules->server.users = rules->accounts;
    rules->senders =
        senders_new(settings->sender_login, settings->sender_domains, errors);
    if (settings->sender_login.length > 0 || settings->sender_domains.length > 0)
        rules->server.senders = rules->senders;
    rules->tls_session_limit = (size_t)settings->server_tls_session_limit;
    bool good =
        read_clear_text(settings->auth_cleartext, &rules->auth_cleartext, errors);
    good = listener_auth_read_source(settings, rules, errors) && good;
    return good && rules->senders != NULL && (!set || rules->accounts != NULL);
}

/* A client may use AUTH at this address. */
static bool
can_log_in(const struct session_rules *rules, const struct endpoint *e)
{
    bool clear = e->address.family == NET_UNIX || e->legacy || rules->auth_cleartext;
    return clear || (rules->tls != NULL && (e->tls || !e->no_starttls));
}

/* By default AUTH is offered where it is possible: that is no promise. */
static bool
wants_auth(const struct endpoint *e)
{
    return e->auth == ENDPOINT_AUTH_OFFERED || e->auth == ENDPOINT_AUTH_REQUIRED;
}

/* False with one line per error. At an address that requires AUTH where no client can
 * log in, all mail would be refused. A reload without a usable certificate therefore
 * keeps the old settings. */
static bool
listener_auth_fits(const struct session_rules *rules, const struct endpoint *endpoints,
                   size_t count, struct buffer *errors)
{
    for (size_t i = 0; i < count; i++) {
        if (wants_auth(&endpoints[i]) && !listener_auth_is_set(rules))
            return listener_auth_complain(
                errors, "auth_users: unset, and `listen` has an address "
                        "auth=required or auth=offered");
        if (wants_auth(&endpoints[i]) && !can_log_in(rules, &endpoints[i]))
            return listener_auth_complain(
                errors, "tls_certificate: unset or unusable, but `listen` has an "
                        "address auth=required or auth=offered: AUTH needs TLS");
    }
    return true;
}

static void
listener_auth_warn_of(struct log *log, const struct endpoint *endpoint,
                      const char *what)
{
    char address[NET_ADDRESS_TEXT_MAX];
    net_address_format(&endpoint->address, address);
    log_say(log, LOG_LEVEL_WARNING, "smtpd", NULL, "listen: %s: %s", address, what);
}

/* Logs one warning for each setting that is valid but dangerous or without effect. */
static void
listener_auth_warn(struct log *log, const struct session_rules *rules,
                   const struct endpoint *endpoints, size_t count)
{
    bool usable = false;
    for (size_t i = 0; i < count; i++) {
        const struct endpoint *e = &endpoints[i];
        usable = usable || (e->auth != ENDPOINT_AUTH_NO && can_log_in(rules, e));
        if (e->legacy && policy_endpoint_is_public(e))
            listener_auth_warn_of(log, e,
                                  "profile=legacy accepts cleartext passwords and "
                                  "repairs line ends: only "
                                  "old devices should be able to reach this address");
    }
    if (listener_auth_is_set(rules) && !usable)
        log_say(log, LOG_LEVEL_WARNING, "smtpd", NULL,
                "%s is set, but AUTH is offered nowhere: AUTH requires "
                "tls_certificate",
                rules->accounts != NULL ? "auth_users" : "auth");
}

/* --- Certificates ----------------------------------------------------------------- */

/* One line about tls_certificate; false. */
static bool
listener_complain_tls(struct buffer *errors, const char *what)
{
    bool added = buffer_format(errors, "tls_certificate: %s\n", what);
    (void)added;
    return false;
}

/* Without tls_key each file of tls_certificate has its key, too, as most tools write
 * them. */
bool
listener_pairs_read(const struct listener_settings *settings,
                    struct listener_pairs *pairs)
{
    struct text certificates = settings->tls_certificate, keys = settings->tls_key;
    struct text file, key;
    bool has_keys = text_trim(keys).length > 0;
    *pairs = (struct listener_pairs){.old = settings->tls_legacy};
    if (text_trim(settings->relay_client_certificates).length > 0)
        pairs->clients = text_string(text_trim(settings->relay_client_certificates));
    while (text_word(&certificates, ", \t\r\n", &file)) {
        if (pairs->count == TLS_PAIRS_MAX ||
            (has_keys && !text_word(&keys, ", \t\r\n", &key)))
            return false;
        pairs->list[pairs->count++] = (struct tls_pair){
            text_string(file), has_keys ? text_string(key) : text_string(file)};
    }
    return !text_word(&keys, ", \t\r\n", &key);
}

void
listener_pairs_free(struct listener_pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        free((void *)(uintptr_t)pairs->list[i].certificate);
        free((void *)(uintptr_t)pairs->list[i].key);
    }
    free(pairs->clients);
    pairs->clients = NULL;
    pairs->count = 0;
}

static struct tls_server *
listener_pairs_serve_alone(const struct listener_pairs *pairs, char *error,
                           size_t error_size)
{
    struct tls *tls = tls_new(error, error_size);
    struct tls_server *server =
        tls != NULL ? tls_server_new(tls, pairs->list, pairs->count, error, error_size)
                    : NULL;
    if (server != NULL && pairs->old && !tls_server_allow_old(server)) {
        snprintf(error, error_size,
                 "tls_legacy = yes: %s has no TLS 1.0 and 1.1; remove the line, "
                 "TLS 1.2 of old devices works without it",
                 tls_version());
        tls_server_free(&server);
    }
    tls_free(&tls);
    return server;
}

/* False: lines are added to errors. */
static bool
listener_ask_clients(const struct listener_pairs *pairs, struct tls_server *server,
                     struct buffer *errors)
{
    struct tls_clients *clients =
        pairs->clients != NULL ? tls_clients_read(pairs->clients, errors) : NULL;
    bool good = pairs->clients == NULL || clients != NULL;
    if (clients != NULL)
        tls_server_ask(server, &clients);
    return good;
}

struct tls_server *
listener_pairs_serve(const struct listener_pairs *pairs, char *error, size_t error_size)
{
    struct tls_server *server = listener_pairs_serve_alone(pairs, error, error_size);
    struct buffer errors;
    buffer_init(&errors, MISTAKES_MAX);
    if (server != NULL && !listener_ask_clients(pairs, server, &errors)) {
        tell_errors(&errors, error, error_size);
        tls_server_free(&server);
    }
    buffer_free(&errors);
    return server;
}

/* All of the settings. False: a line is added to errors. Without certificates
 * *server stays NULL. */
static bool
listener_read_tls(const struct listener_settings *settings, struct tls_server **server,
                  struct buffer *errors)
{
    struct listener_pairs pairs;
    char error[TLS_ERROR_MAX];
    bool good = listener_pairs_read(settings, &pairs);
    if (!good) {
        (void)listener_complain_tls(errors,
                                    "must name as many files as tls_key, at most 64");
    } else if (pairs.count > 0) {
        *server = listener_pairs_serve_alone(&pairs, error, sizeof(error));
        good = *server != NULL ? listener_ask_clients(&pairs, *server, errors)
                               : listener_complain_tls(errors, error);
    } else if (pairs.clients != NULL) {
        good = listener_auth_complain(
            errors, "relay_client_certificates: needs tls_certificate");
    }
    listener_pairs_free(&pairs);
    return good;
}

/* --- Listening -------------------------------------------------------------------- */

enum {
    UNIX_MODE = 0666,   /* its directory restricts access */
    FLUSH_CHECK_MS = 5, /* sendmail -bs: checks that the last reply is written */
    FLUSH_CHECKS = 6000 /* 30 s as in net_close(), then the reply is given up */
};

static const struct refusal no_space = {421, "4.7.0",
                                        "too many connections, try again later"};
static const struct refusal not_this_user = {554, "5.7.1",
                                             "user not allowed to send mail here"};
static const struct refusal out_of_service = {421, "4.3.2",
                                              "out of service, try again later"};
static const struct refusal locked_out = {
    421, "4.7.0", "too many failed logins from your address, try again later"};

/* One listening socket. */
struct door {
    struct listener *listener;
    struct net_listener *socket;
    struct session_options options;
    bool is_shared;
    struct net_users users;
};

struct listener {
    struct session_host host;
    struct pregreet_host arrivals;
    struct net *net;
    struct door *doors;
    size_t door_count;
    unsigned char secret[DIGEST_SIZE]; /* for users_read() */
    bool draining, closed;
    struct loop_timer grace;
    struct loop_task gone;
    void (*drained)(void *context);
    void *context;
    int flush_checks; /* sendmail -bs */
};

/* It stands in greetings, trace headers and notifications: a wrong one makes other
 * servers refuse our mail. */
static bool
hostname_is_good(const char *hostname, struct buffer *errors)
{
    struct text name = text_from(hostname);
    if (address_is_domain(name) && text_is_ascii(name))
        return true;
    bool added = buffer_format(errors, "hostname: '%s': is no host name\n", hostname);
    (void)added;
    return false;
}

/* An address with ?tls requires a certificate, one with ?proxy requires proxy_from.
 * File permissions replace proxy_from on a Unix socket. */
static bool
has_what_it_needs(const struct session_rules *rules, const struct endpoint *endpoints,
                  size_t count, struct buffer *errors)
{
    for (size_t i = 0; i < count; i++) {
        if (endpoints[i].tls && rules->tls == NULL)
            return listener_complain_tls(
                errors, "unset, but `listen` has an address with ?tls");
        if (endpoints[i].proxy && endpoints[i].address.family != NET_UNIX &&
            rules->proxies.count == 0) {
            (void)!buffer_add(errors, TEXT("proxy_from: unset, and `listen` has an "
                                           "address ?proxy\n"));
            return false;
        }
    }
    return listener_auth_fits(rules, endpoints, count, errors);
}

/* Copies the domain of <postmaster>: the rules may outlive the routes. <postmaster>
 * without a domain must be accepted (RFC 5321 §4.5.1). */
static void
take_postmaster(struct session_rules *r, const struct route_table *routes)
{
    struct text domain = routes ? route_first_local_domain(routes) : TEXT("");
    if (domain.length == 0 ||
        !text_copy(r->postmaster_domain, sizeof(r->postmaster_domain), domain))
        return;
    r->server.postmaster_domain = r->postmaster_domain;
}

/* NULL: errors has the causes. The caller holds the first reference. routes may be
 * NULL. Every part is read although another one is wrong, so that the operator sees all
 * errors together. The rules are one object that sessions share: a reload replaces it,
 * and a session keeps the old one until its transaction is over. */
static struct session_rules *
rules_new(const struct listener_settings *settings, const struct route_table *routes,
          const unsigned char secret[DIGEST_SIZE], struct buffer *errors)
{
    struct session_rules *r = memory_new(sizeof(*r));
    r->users = 1;
    bool good = policy_read(&r->policy, settings->relay_from,
                            settings->allow_open_relay, errors);
    good = listener_read_tls(settings, &r->tls, errors) && good;
    good = client_usage_read(&r->clients, &settings->clients, errors) && good;
    good = networks_read(&r->proxies, "proxy_from", settings->proxy_from,
                         "would let any client claim any address", errors) &&
           good;
    good = policy_read_etrn(&r->policy, settings->etrn, errors) && good;
    good = policy_read_priority(&r->policy, settings->mt_priority, errors) && good;
    good = hostname_is_good(settings->hostname, errors) &&
           text_copy(r->hostname, sizeof(r->hostname), text_from(settings->hostname)) &&
           good;
    r->server =
        (struct server_rules){.hostname = r->hostname,
                              .size_limit = settings->message_size_limit,
                              .recipient_limit = settings->recipient_limit,
                              .hop_limit = settings->hop_limit,
                              .etrn = policy_flushes(&r->policy),
                              .received = settings->received,
                              .priority = r->policy.priority,
                              .priority_of_strangers = r->policy.priority_of_all,
                              .future_release_s = settings->future_release_ms / 1000,
                              .error_limit = settings->error_limit,
                              .soft_error_limit = settings->soft_error_limit,
                              .error_delay_ms = settings->error_delay_ms,
                              .junk_limit = settings->junk_limit,
                              .refuses_partial = settings->refuses_partial};
    if (settings->received == SERVER_RECEIVED_NONE)
        r->server.seen = memory_array(SERVER_SEEN_MAX, sizeof(*r->server.seen));
    take_postmaster(r, routes);
    r->check = (struct policy_checks){.helo = settings->check_helo,
                                      .sender = settings->check_sender};
    r->patience = (struct deadline_rules){.command_ms = settings->idle_timeout_ms,
                                          .data_ms = settings->data_timeout_ms,
                                          .data_rate = settings->data_rate_min};
    r->greet_delay_ms = settings->greet_delay_ms;
    r->lifetime_ms = settings->lifetime_ms;
    good = listener_auth_read(settings, secret, r, errors) && good;
    r->idle_timeout_ms = settings->idle_timeout_ms;
    r->data_timeout_ms = settings->data_timeout_ms;
    r->handshake_timeout_ms = settings->handshake_timeout_ms;
    if (!good)
        session_rules_release(&r);
    return r;
}

bool
listener_check(const struct listener_settings *settings, struct buffer *errors)
{
    static const unsigned char secret[DIGEST_SIZE]; /* these rules serve no login */
    struct endpoint *endpoints;
    size_t count;
    struct session_rules *rules = rules_new(settings, NULL, secret, errors);
    bool good = policy_endpoints_read(settings->listen, &endpoints, &count, errors);
    policy_endpoints_keep(endpoints, &count, false);
    good = good && rules != NULL && has_what_it_needs(rules, endpoints, count, errors);
    free(endpoints);
    session_rules_release(&rules);
    return good;
}

static void
drained(void *context)
{
    struct listener *l = context;
    loop_timer_stop(l->host.loop, &l->grace);
    loop_unpost(l->host.loop, &l->gone);
    l->draining = false;
    l->drained(l->context);
}

/* Time-outs become shorter before the session limit is reached. Asked when a session
 * begins and when one ends; there is no timer for it. */
static void
watch_stress(struct listener *l)
{
    const struct client_usage_rules *rules = &l->host.rules->clients;
    bool stressed = client_usage_stressed(l->host.clients, rules);
    if (stressed == l->host.stressed)
        return;
    log_say(l->host.log, stressed ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "smtpd", NULL,
            "%zu of %d sessions (server_session_limit): %s",
            client_usage_sessions(l->host.clients), rules->sessions,
            stressed ? "stress begins: untrusted clients have shorter time-outs"
                     : "stress ends");
    session_host_stress(&l->host, stressed);
}

/* A session has ended, perhaps in a callback of its connection. drained() is posted, so
 * its receiver is called in none. */
static void
on_gone(void *context, const struct net_address *peer)
{
    struct listener *l = context;
    client_usage_left(l->host.clients, peer, loop_monotonic_ms(l->host.loop));
    watch_stress(l);
    if (l->draining && l->host.count == 0)
        loop_post(l->host.loop, &l->gone, drained, l);
}

/* Not for an address behind a proxy that named no client. */
static bool
may_relay(const struct listener *l, const struct net_address *client,
          const struct session_options *options)
{
    return !options->stranger && policy_may_relay(&l->host.rules->policy, client);
}

/* The rates for untrusted clients do not apply to fragments between our hosts. A
 * listener that is full has space for a newcomer if another session gives way. The
 * choice of that session compares the clients' counts, the newcomer included: so the
 * limit is lifted for the count, and the newcomer is refused if no session gives
 * way. */
static bool
may_enter(struct listener *l, const struct net_address *client,
          const struct session_options *options, struct outcome *why)
{
    struct client_usage_rules rules = l->host.rules->clients;
    bool full = client_usage_sessions(l->host.clients) >= (size_t)rules.sessions;
    bool is_peer = session_is_peer(&l->host, client, options);
    bool trusted = is_peer || options->lmtp || may_relay(l, client, options);
    if (is_peer)
        rules.each[CLIENT_USAGE_SESSION] = rules.all[CLIENT_USAGE_SESSION] =
            (struct rate){0};
    if (full)
        rules.sessions = INT_MAX;
    bool enters = client_usage_entered(l->host.clients, &rules, client,
                                       loop_monotonic_ms(l->host.loop), why);
    if (enters && full && !session_make_place(&l->host, client, trusted)) {
        *why = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, no_space.code,
                            no_space.enhanced, "%s", no_space.text);
        enters = false;
    }
    watch_stress(l);
    return enters;
}

/* A locked-out client of an address that requires a login could do nothing there, so it
 * is refused at the greeting. */
static void
listener_enter(struct listener *l, struct net_connection *connection,
               const struct session_options *options, const struct refusal *refusal)
{
    const struct session_rules *rules = l->host.rules;
    const struct net_address *client = net_peer(connection);
    struct outcome why = {.code = 0};
    bool is_peer = session_is_peer(&l->host, client, options);
    bool enters = may_enter(l, client, options, &why);
    struct refusal crowded = {why.code, why.enhanced, why.text};
    /* With TLS from the first byte the client speaks first: it cannot be early. */
    bool waits = rules->greet_delay_ms > 0 && !options->tls && !is_peer &&
                 !may_relay(l, client, options);
    if (!enters)
        refusal = &crowded;
    else if (refusal == NULL && l->closed)
        refusal = &out_of_service;
    else if (refusal == NULL && options->auth == ENDPOINT_AUTH_REQUIRED &&
             session_is_locked_out(&l->host, connection, options))
        refusal = &locked_out;
    if (refusal == NULL && waits)
        pregreet_wait(&l->arrivals, connection, options, rules->greet_delay_ms);
    else
        session_start(&l->host, connection, options, refusal);
}

/* The address of the client is known, or will not be. */
static void
on_named(void *context, struct net_connection *connection,
         const struct session_options *options)
{
    listener_enter(context, connection, options, NULL);
}

static void
listener_on_ready(void *context, struct net_connection *connection,
                  const struct session_options *options, const struct refusal *refusal)
{
    struct listener *l = context;
    session_start(&l->host, connection, options, refusal);
}

/* NULL, or the reason not to trust a PROXY header of the peer. The header names the
 * client, so a peer that may send one may claim any address. Connections without a
 * header yet are counted by no client, hence the limit of their own. */
static const char *
is_no_proxy(const struct listener *l, const struct net_address *peer)
{
    const struct session_rules *rules = l->host.rules;
    if (peer->family != NET_UNIX && !networks_have(&rules->proxies, peer))
        return "is not in proxy_from";
    return l->arrivals.unnamed >= (size_t)rules->clients.sessions
               ? "too many connections without a header yet"
               : NULL;
}

/* The mode of a socket's file keeps users out, too, but not where all of them are in
 * one group. */
static bool
is_welcome(const struct door *door, const struct net_connection *connection)
{
    struct net_credentials who;
    if (door->users.uid_count == 0)
        return true;
    bool known = net_peer_credentials(connection, &who);
    if (known && net_users_have(&door->users, who.uid))
        return true;
    if (known && refusals_admit(door->listener->host.refusals, "unix"))
        log_say(door->listener->host.log, LOG_LEVEL_INFO, "smtpd", NULL,
                "client=unix: uid=%u may not use this socket", who.uid);
    return false;
}

static void
listener_on_accept(void *context, struct net_connection *connection)
{
    struct door *door = context;
    struct listener *l = door->listener;
    bool welcome = is_welcome(door, connection);
    if (!door->options.proxy) {
        listener_enter(l, connection, &door->options, welcome ? NULL : &not_this_user);
        return;
    }
    /* From here on no reply is sent: the client behind the proxy is unknown. */
    const char *why = welcome ? is_no_proxy(l, net_peer(connection))
                              : "this user may not use this socket";
    if (why == NULL) {
        pregreet_read_header(&l->arrivals, connection, &door->options);
        return;
    }
    char ip[NET_ADDRESS_TEXT_MAX], proxy[sizeof(ip) + 2];
    net_address_ip(net_peer(connection), ip);
    snprintf(proxy, sizeof(proxy), "[%s]", ip);
    if (refusals_admit(l->host.refusals, proxy))
        log_say(l->host.log, LOG_LEVEL_INFO, "smtpd", NULL,
                "cut off: client=%s: proxy protocol: %s", proxy, why);
    l->arrivals.cut_off++;
    net_abort(&connection);
}

static struct listener *
listener_make(struct loop *loop, struct event_hub *events, struct queue *queue,
              const struct route_table *routes, struct session_rules *rules)
{
    struct listener *l = memory_new(sizeof(*l));
    l->host = (struct session_host){.loop = loop,
                                    .events = events,
                                    .log = event_hub_log(events),
                                    .queue = queue,
                                    .routes = routes,
                                    .clients = client_usage_new(),
                                    .rules = rules,
                                    .on_gone = on_gone,
                                    .context = l};
    l->arrivals = (struct pregreet_host){.loop = loop,
                                         .log = event_hub_log(events),
                                         .on_named = on_named,
                                         .on_ready = listener_on_ready,
                                         .on_gone = on_gone,
                                         .context = l};
    session_host_start(&l->host);
    l->arrivals.refusals = l->host.refusals;
    return l;
}

/* As it was configured, but with the address in use. */
static struct endpoint
door_endpoint(const struct door *door)
{
    const struct session_options *options = &door->options;
    return (struct endpoint){.address = *net_listener_address(door->socket),
                             .tls = options->tls,
                             .no_starttls = !options->starttls,
                             .proxy = options->proxy,
                             .legacy = options->legacy,
                             .auth = options->auth};
}

static bool
open_door(struct listener *l, const struct endpoint *e, char *error, size_t error_size)
{
    struct door *door = &l->doors[l->door_count];
    *door = (struct door){
        .listener = l,
        .users = e->users,
        .options = {.lmtp = e->lmtp,
                    .auth = e->auth,
                    .legacy = e->legacy,
                    .tls = e->tls,
                    .starttls = !e->no_starttls && !e->tls,
                    .proxy = e->proxy}
    };
    door->is_shared = e->shared;
    if (e->shared)
        door->socket = net_listen_shared(l->net, &e->address, listener_on_accept, door,
                                         error, error_size);
    else
        door->socket = net_listen(l->net, &e->address,
                                  e->users.mode != 0 ? e->users.mode : UNIX_MODE,
                                  listener_on_accept, door, error, error_size);
    if (door->socket == NULL)
        return false;
    l->door_count++;
    return true;
}

/* How many sockets the endpoint is: several can be passed with one name. */
static size_t
doors_of(const struct listener *l, const struct endpoint *e)
{
    size_t passed =
        e->address.family == NET_PASSED ? net_passed_left(l->net, e->address.path) : 1;
    return passed > 0 ? passed : 1; /* which fails */
}

static bool
open_doors(struct listener *l, const struct endpoint *endpoints, size_t count,
           char *error, size_t error_size)
{
    size_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += doors_of(l, &endpoints[i]);
    l->doors = memory_array(all > 0 ? all : 1, sizeof(*l->doors));
    for (size_t i = 0; i < count; i++)
        for (size_t left = doors_of(l, &endpoints[i]); left > 0; left--)
            if (!open_door(l, &endpoints[i], error, error_size))
                return false;
    return true;
}

/* No client may be served in cleartext where TLS is configured. */
static bool
keeps_promises(const struct listener *l, const struct session_rules *rules,
               struct buffer *errors)
{
    for (size_t i = 0; i < l->door_count; i++) {
        const struct endpoint endpoint = door_endpoint(&l->doors[i]);
        if (!has_what_it_needs(rules, &endpoint, 1, errors))
            return false;
    }
    return true;
}

static void
log_doors(const struct listener *l)
{
    char address[NET_ADDRESS_TEXT_MAX];
    struct endpoint *endpoints =
        memory_array(l->door_count > 0 ? l->door_count : 1, sizeof(*endpoints));
    for (size_t i = 0; i < l->door_count; i++) {
        const struct door *door = &l->doors[i];
        net_address_format(net_listener_address(door->socket), address);
        endpoints[i] = door_endpoint(door);
        log_say(l->host.log, LOG_LEVEL_INFO, "main", NULL, "listening on %s%s%s%s%s",
                address, door->options.lmtp ? " for LMTP" : "",
                door->options.tls ? " by TLS" : "",
                door->options.proxy ? " for proxies" : "",
                door->is_shared ? ", shared" : "");
    }
    listener_auth_warn(l->host.log, l->host.rules, endpoints, l->door_count);
    free(endpoints);
}

struct listener *
listener_new(struct loop *loop, struct net *net, struct event_hub *events,
             struct manager *manager, const struct route_table *routes,
             const struct listener_settings *settings, char *error, size_t error_size)
{
    struct buffer errors;
    struct endpoint *endpoints;
    struct listener *l = NULL;
    unsigned char secret[DIGEST_SIZE];
    size_t count;
    buffer_init(&errors, MISTAKES_MAX);
    listener_auth_secret(loop, queue_disk(manager_queue(manager)), secret);
    struct session_rules *rules = rules_new(settings, routes, secret, &errors);
    bool good = policy_endpoints_read(settings->listen, &endpoints, &count, &errors);
    policy_endpoints_keep(endpoints, &count, false);
    if (good && rules != NULL && has_what_it_needs(rules, endpoints, count, &errors)) {
        l = listener_make(loop, events, manager_queue(manager), routes, rules);
        l->host.manager = manager;
        l->net = net;
        memcpy(l->secret, secret, sizeof(secret));
        lockout_set_limit(l->host.lockout, settings->auth_failure_limit);
        listener_auth_use(&l->host, net);
        if (open_doors(l, endpoints, count, error, error_size))
            log_doors(l);
        else
            listener_free(&l);
    } else {
        tell_errors(&errors, error, error_size);
        session_rules_release(&rules);
    }
    free(endpoints);
    buffer_free(&errors);
    return l;
}

struct session_host *
listener_host(struct listener *l)
{
    return &l->host;
}

void
listener_set_aliases(struct listener *l, struct aliases *aliases, const struct srs *srs)
{
    l->host.aliases = aliases;
    l->host.srs = srs;
}

void
listener_set_verp(struct listener *l, const struct verp *verp)
{
    l->host.verp = verp;
}

void
listener_reload(struct listener *l, const struct route_table *routes,
                const struct listener_settings *settings)
{
    struct buffer errors;
    buffer_init(&errors, MISTAKES_MAX);
    struct session_rules *rules = rules_new(settings, routes, l->secret, &errors);
    /* Even if the rules have errors: the old routes are borrowed until now only. */
    l->host.routes = routes;
    session_host_answer(&l->host);
    if (rules != NULL && !keeps_promises(l, rules, &errors))
        session_rules_release(&rules);
    if (rules != NULL) {
        session_rules_release(&l->host.rules);
        l->host.rules = rules;
        listener_auth_use(&l->host, l->net);
        lockout_set_limit(l->host.lockout, settings->auth_failure_limit);
    } else {
        log_say(l->host.log, LOG_LEVEL_ERROR, "smtpd", NULL, "old settings stay: %.*s",
                TEXT_ARGS(text_trim(buffer_text(&errors))));
    }
    buffer_free(&errors);
}

void
listener_on_flush(struct listener *l, session_flush *on_flush, void *context)
{
    l->host.on_flush = on_flush;
    l->host.flusher = context;
}

static void
close_doors(struct listener *l)
{
    for (size_t i = 0; i < l->door_count; i++)
        net_listener_free(&l->doors[i].socket);
    free(l->doors);
    l->doors = NULL;
    l->door_count = 0;
}

static void
on_grace_over(void *context)
{
    struct listener *l = context;
    session_host_stop(&l->host); /* its sessions do not call on_gone() */
    drained(l);
}

void
listener_drain(struct listener *l, int64_t grace_ms, void (*on_drained)(void *context),
               void *context)
{
    assert(!l->draining && on_drained != NULL);
    l->draining = true;
    l->drained = on_drained;
    l->context = context;
    /* A client that waits to be accepted gets an answer. */
    l->closed = true;
    for (size_t i = 0; i < l->door_count; i++)
        net_listener_accept_rest(l->doors[i].socket);
    close_doors(l);
    /* Before the count: connections in the delay become sessions, to read their 421. */
    pregreet_drain(&l->arrivals);
    if (l->host.count == 0) {
        loop_post(l->host.loop, &l->gone, drained, l);
        return;
    }
    loop_timer_start(l->host.loop, &l->grace, grace_ms, on_grace_over, l);
    session_drain(&l->host);
}

void
listener_close(struct listener *l)
{
    l->closed = true;
    pregreet_drain(&l->arrivals);
    session_drain(&l->host);
}

void
listener_open(struct listener *l)
{
    l->closed = false;
}

static void
listener_release(void *object)
{
    struct listener *l = object;
    client_usage_free(&l->host.clients);
    session_rules_release(&l->host.rules);
    free(l);
}

void
listener_free(struct listener **listener)
{
    struct listener *l = *listener;
    *listener = NULL;
    if (l == NULL)
        return;
    close_doors(l);
    loop_timer_stop(l->host.loop, &l->grace);
    loop_unpost(l->host.loop, &l->gone);
    /* First the arrivals: they borrow the refusals of the sessions' host. */
    pregreet_stop(&l->arrivals);
    session_host_stop(&l->host);
    loop_release(l->host.loop, listener_release, l);
}

struct lockout *
listener_lockout(const struct listener *l)
{
    return l->host.lockout;
}

bool
listener_is_open_relay(const struct listener *l)
{
    return networks_open(&l->host.rules->policy.networks) != NULL;
}

bool
listener_takes_cleartext(const struct listener *l)
{
    bool takes = false;
    for (size_t i = 0; i < l->door_count; i++)
        takes = takes || l->doors[i].options.legacy;
    return takes && listener_auth_is_set(l->host.rules);
}

const char *
listener_auth_trouble(const struct listener *l)
{
    return l->host.dovecot != NULL ? dovecot_auth_trouble(l->host.dovecot) : NULL;
}

bool
listener_is_stressed(const struct listener *l)
{
    return l->host.stressed;
}

struct tls_server *
listener_tls(const struct listener *l)
{
    return l->host.rules->tls;
}

/* Sessions of these rules that have not begun TLS yet get the new ones. */
void
listener_take_tls(struct listener *l, struct tls_server **server)
{
    tls_server_free(&l->host.rules->tls);
    l->host.rules->tls = *server;
    *server = NULL;
}

bool
listener_describe(const struct listener *l, size_t index, struct listener_view *out)
{
    if (index >= l->door_count)
        return false;
    const struct door *door = &l->doors[index];
    struct net_listener_counts counts = net_listener_counts(door->socket);
    bool may_start = door->options.starttls && l->host.rules->tls != NULL;
    *out = (struct listener_view){.address = net_listener_address(door->socket),
                                  .kind = door->options.lmtp ? "lmtp"
                                          : door->options.auth == ENDPOINT_AUTH_REQUIRED
                                              ? "submission"
                                              : "smtp",
                                  .tls = door->options.tls ? "tls"
                                         : may_start       ? "starttls"
                                                           : "none",
                                  .sessions = counts.open,
                                  .accepted = counts.accepted};
    return true;
}

struct session_counts
listener_counts(const struct listener *l)
{
    struct session_counts counts = l->host.counts;
    counts.refused[SESSION_REFUSED_PROXY] += l->arrivals.cut_off;
    for (size_t i = 0; i < l->door_count; i++)
        counts.refused[SESSION_REFUSED_DESCRIPTORS] +=
            net_listener_pauses(l->doors[i].socket);
    return counts;
}

size_t
listener_sessions(const struct listener *l)
{
    return l->host.count;
}

/* The descriptors may be closed when the last reply is written. */
static void
check_flushed(void *context)
{
    struct listener *l = context;
    if (net_connections(l->net) > 0 && l->flush_checks++ < FLUSH_CHECKS) {
        loop_timer_start(l->host.loop, &l->grace, FLUSH_CHECK_MS, check_flushed, l);
        return;
    }
    l->drained(l->context);
    listener_free(&l);
}

static void
on_standard_gone(void *context, const struct net_address *peer)
{
    struct listener *l = context;
    (void)peer;
    loop_timer_start(l->host.loop, &l->grace, 0, check_flushed, l);
}

void
listener_serve_standard(struct loop *loop, struct net *net, struct event_hub *events,
                        struct queue *queue, const struct route_table *routes,
                        const struct listener_settings *settings,
                        void (*over)(void *context), void *context)
{
    static const unsigned char secret[DIGEST_SIZE]; /* sendmail -bs has no AUTH */
    struct buffer errors;
    struct listener_settings plain = *settings;
    plain.auth_users = plain.auth = TEXT("");
    buffer_init(&errors, MISTAKES_MAX);
    struct session_rules *rules = rules_new(&plain, routes, secret, &errors);
    /* The caller has checked the settings. */
    assert(rules != NULL);
    rules->server.etrn = false; /* this process does not deliver */
    buffer_free(&errors);
    struct listener *l = listener_make(loop, events, queue, routes, rules);
    l->net = net;
    client_usage_free(&l->host.clients); /* the only session is local: no limits */
    l->host.on_gone = on_standard_gone;
    l->drained = over;
    l->context = context;
    l->host.aliases = settings->aliases;
    session_start_standard(&l->host, net, 0, 1);
}
