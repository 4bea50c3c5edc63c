/* Smarthosts under mail and canaries: states, times, reports, reloads. Canaries go to scripted hosts on loopback. */
/* link: t/sim/clock.c */
#include "smtp/delivery/smarthost_health.h"

#include "base/log/log.h"
#include "base/memory.h"
#include "base/net/net.h"
#include "base/event/event.h"
#include "t/sim/clock.h"
#include "t/support/must.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

enum { MINUTE = 60 * 1000, HOUR = 60 * MINUTE };

/* A host that gives the next of these replies to each line. */
struct host {
    struct net_listener *listener;
    struct net_connection *connection;
    const char *replies[8]; /* the first is the greeting */
    size_t said;
    char heard[500];
    unsigned port, visits;
    bool hangs_up;
};

struct bed {
    struct loop *loop;
    struct net *net, *others; /* of the hosts: our own are no next hop */
    struct dns *dns;
    struct event_hub *events;
    struct log *log;
    struct tls_client *tls;
    struct smarthost_health *upstreams;
    struct route_table *routes;
    struct host hosts[2];
    char told[1000];
};
static struct bed b;

static void
host_say(struct host *h)
{
    const char *reply = h->replies[h->said] != NULL ? h->replies[h->said++] : "250 ok";
    char line[200];
    snprintf(line, sizeof(line), "%s\r\n", reply);
    net_send(h->connection, text_from(line));
}

static void
host_on_net(void *context, enum net_event event)
{
    struct host *h = context;
    if (event == NET_ENDED || event == NET_FAILED) {
        net_close(&h->connection);
        return;
    }
    struct text rest = net_input(h->connection), line;
    size_t before = rest.length;
    while (text_find(rest, '\n') != TEXT_NONE && text_cut(&rest, '\n', &line)) {
        size_t used = strlen(h->heard);
        snprintf(h->heard + used, sizeof(h->heard) - used, "%.*s|",
                 (int)line.length - 1, line.at);
        if (!text_starts(line, TEXT("QUIT")))
            host_say(h);
    }
    net_consume(h->connection, before - rest.length);
}

static void
host_on_accept(void *context, struct net_connection *connection)
{
    struct host *h = context;
    h->visits++;
    h->said = 0;
    h->heard[0] = '\0';
    if (h->hangs_up) {
        net_abort(&connection);
        return;
    }
    h->connection = connection;
    net_attach(connection, host_on_net, h);
    host_say(h);
}

static void
host_start(struct host *h)
{
    struct net_address a;
    char error[200];
    must(net_address_parse(TEXT("127.0.0.1:0"), 0, &a));
    h->listener = net_listen(b.others, &a, 0, host_on_accept, h, error, sizeof(error));
    must(h->listener != NULL);
    h->port = net_listener_address(h->listener)->port;
}

static void
host_script(struct host *h, const char *greeting, const char *ehlo, const char *auth,
            const char *mail)
{
    const char *replies[8] = {greeting, ehlo, auth, mail};
    memcpy(h->replies, replies, sizeof(replies));
}

static void
on_event(void *context, const struct event *v)
{
    (void)context;
    size_t used = strlen(b.told);
    snprintf(b.told + used, sizeof(b.told) - used, "%s%s %s;",
             v->kind == EVENT_UPSTREAM_OK ? "+" : "-",
             v->reason != NULL ? v->reason : "",
             v->relay.length == 0 || text_starts(v->text, v->relay) ? "misnamed"
             : text_starts(v->text, TEXT("is in no route"))         ? "other"
                                                                    : "relay");
}

static void
settings_of(void *context, const struct target *target, struct smarthost_probe_settings *out)
{
    (void)context;
    (void)target;
    *out = (struct smarthost_probe_settings){.loop = b.loop,
                                    .net = b.net,
                                    .dns = b.dns,
                                    .hostname = "petrel.test",
                                    .smtp_port = 25,
                                    .connect_timeout_ms = 5000,
                                    .tls = &b.tls,
                                    .secrets = route_secrets(b.routes)};
}

/* The routes; passwords for all users. */
static void
use(const char *routes, int64_t interval_ms)
{
    struct buffer errors;
    struct route_table *old = b.routes;
    char passwords[200];
    snprintf(passwords, sizeof(passwords),
             "127.0.0.1:%u alice secret\n127.0.0.1:%u alice secret\n", b.hosts[0].port,
             b.hosts[1].port);
    buffer_init(&errors, 2000);
    struct route_settings settings = {
        .routes = text_from(routes),
        .passwords = text_from(passwords),
        .smtp_port = 25,
        .base = {.minimal_backoff_ms = 5 * MINUTE, .maximal_backoff_ms = HOUR}
    };
    b.routes = route_new(&settings, &errors);
    if (b.routes == NULL)
        fprintf(stderr, "# %.*s\n", (int)errors.length, errors.at);
    must(b.routes != NULL);
    buffer_free(&errors);
    smarthost_health_use(b.upstreams, b.routes, "petrel.test", interval_ms);
    route_free(&old);
}

static struct smarthost_health_view
at(size_t index)
{
    struct smarthost_health_view view = {.code = "none"};
    (void)smarthost_health_at(b.upstreams, index, &view);
    return view;
}

/* Some turns, in which no time passes but what the system takes. */
static void
turns(void)
{
    for (int i = 0; i < 60; i++)
        clock_turn(b.loop);
}

static void
pass(int64_t ms)
{
    clock_pass(ms);
    turns();
}

static const char *mail_sender = "ann@x.test";

static void
mail(enum event_kind kind, enum verdict verdict, enum blame blame, int code,
     const char *enhanced, const char *text)
{
    struct outcome o = outcome_make(verdict, blame, code, enhanced, "%s", text);
    snprintf(o.remote, sizeof(o.remote), "127.0.0.1[127.0.0.1]:%u", b.hosts[0].port);
    event_tell(
        b.events,
        &(struct event){.kind = kind, .outcome = &o, .sender = text_from(mail_sender)});
}

static void
told(const char *want, const char *what)
{
    is_string(b.told, want, what);
    b.told[0] = '\0';
}

static void
begin(void)
{
    char error[200];
    memset(&b, 0, sizeof(b));
    b.loop = loop_new();
    b.net = net_new(b.loop);
    b.others = net_new(b.loop);
    b.dns = dns_new(b.loop, TEXT("127.0.0.1:9"), error, sizeof(error));
    b.log = log_new(b.loop, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    b.events = event_hub_new(NULL);
    event_read(b.events,
               EVENT_BIT(EVENT_UPSTREAM_FAILED) | EVENT_BIT(EVENT_UPSTREAM_OK),
               on_event, &b);
    host_start(&b.hosts[0]);
    host_start(&b.hosts[1]);
    b.upstreams = smarthost_health_new(&(struct smarthost_health_setup){
        .loop = b.loop, .log = b.log, .events = b.events, .settings = settings_of});
}

static void
end(void)
{
    smarthost_health_free(&b.upstreams);
    turns();
    route_free(&b.routes);
    for (int i = 0; i < 2; i++) {
        net_listener_free(&b.hosts[i].listener);
        if (b.hosts[i].connection != NULL)
            net_abort(&b.hosts[i].connection);
    }
    event_hub_free(&b.events);
    log_free(&b.log);
    dns_free(&b.dns);
    net_free(&b.net);
    net_free(&b.others);
    loop_free(&b.loop);
}

static const char *
one(const char *options)
{
    static char routes[200];
    snprintf(routes, sizeof(routes), "* smtp://alice@127.0.0.1:%u%s", b.hosts[0].port,
             options);
    return routes;
}

#define EHLO_AUTH "250-x\r\n250 AUTH PLAIN"

static void
canaries(void)
{
    struct host *h = &b.hosts[0];
    begin();
    use(one(""), HOUR);
    host_script(h, "220 x", EHLO_AUTH, "235 ok", "250 ok");
    ok_named(at(0).is_up && at(0).since_ms == 0 && at(0).good_ms == 0,
             "nothing is known");
    pass(29 * 1000);
    is_number(h->visits, 0, "no canary yet");
    pass(1500);
    is_number(h->visits, 1, "after 30 s");
    is_string(h->heard,
              "EHLO petrel.test|AUTH PLAIN AGFsaWNlAHNlY3JldA==|MAIL "
              "FROM:<postmaster@petrel.test>|RSET|QUIT|",
              "the dialogue");
    ok_named(at(0).is_up && at(0).good_ms > 0 && strcmp(at(0).code, "") == 0,
             "it works");
    told("", "which is nothing to tell");
    pass(HOUR - MINUTE);
    is_number(h->visits, 1, "the next one");
    pass(MINUTE + 1000);
    is_number(h->visits, 2, "an hour later");
    /* Down: 1, 2, 5, 10, 10 minutes. */
    h->hangs_up = true;
    pass(HOUR + 1000);
    told("-upstream_down relay;", "it is down");
    ok(!at(0).is_up && strcmp(at(0).code, "upstream_down") == 0 &&
       at(0).text[0] != '\0');
    static const int minutes[] = {1, 2, 5, 10, 10};
    for (size_t i = 0; i < sizeof(minutes) / sizeof(minutes[0]); i++) {
        unsigned visits = h->visits;
        pass((minutes[i] - 1) * (int64_t)MINUTE + 50 * 1000);
        ok_named(h->visits == visits, "not sooner");
        pass(11 * 1000);
        ok_named(h->visits == visits + 1, "and then");
    }
    told("", "once");
    h->hangs_up = false;
    host_script(h, "220 x", EHLO_AUTH, "235 ok", "550 5.7.1 not yours");
    pass(10 * MINUTE + 1000);
    told("-sender_refused relay;", "the sender is refused");
    ok(at(0).is_up);
    host_script(h, "220 x", EHLO_AUTH, "535 5.7.8 wrong", NULL);
    pass(10 * MINUTE + 1000);
    told("-login_refused relay;", "the login is refused");
    ok(!at(0).is_up && strstr(at(0).text, "535 5.7.8 wrong") != NULL);
    is_string(h->heard, "EHLO petrel.test|AUTH PLAIN AGFsaWNlAHNlY3JldA==|QUIT|",
              "the dialogue");
    unsigned visits = h->visits;
    pass(55 * MINUTE);
    is_number(h->visits, visits, "as seldom as mail would log in");
    host_script(h, "220 x", EHLO_AUTH, "235 ok", "250 ok");
    pass(10 * MINUTE);
    told("+ relay;", "it works again");
    is_number(h->visits, visits + 1, "as the only one has found");
    end();
}

/* An operator asks. */
TEST(on_request)
{
    struct host *h = &b.hosts[0];
    begin();
    is_number((long)smarthost_health_ask(b.upstreams), 0, "there is none to ask");
    use(one(""), 0);
    host_script(h, "220 x", EHLO_AUTH, "235 ok", "250 ok");
    pass(HOUR);
    is_number(h->visits, 0, "canaries are turned off");
    is_number((long)smarthost_health_ask(b.upstreams), 1, "one is asked");
    pass(1000);
    is_number(h->visits, 1, "immediately");
    ok(at(0).good_ms > 0 && at(0).next_ms == 0);
    is_number((long)smarthost_health_ask(b.upstreams), 0, "not again so soon");
    pass(SMARTHOST_HEALTH_ASK_MS);
    is_number(h->visits, 1, "nor later by itself");
    host_script(h, "220 x", EHLO_AUTH, "535 5.7.8 wrong", NULL);
    is_number((long)smarthost_health_ask(b.upstreams), 1, "but on request");
    pass(1000);
    is_number(h->visits, 2, "which finds a wrong password");
    told("-login_refused relay;", "as is told");
    pass(HOUR);
    is_number((long)smarthost_health_ask(b.upstreams), 0,
              "a login that may lock us out is nobody's wish");
    end();
}

TEST(by_mail)
{
    struct host *h = &b.hosts[0];
    begin();
    use(one(""), HOUR);
    host_script(h, "220 x", EHLO_AUTH, "235 ok", "250 ok");
    mail(EVENT_DELIVERED, VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "ok");
    ok_named(at(0).good_ms > 0 && at(0).is_up, "a delivery is a success");
    pass(31 * 1000);
    is_number(h->visits, 0, "and no canary is needed");
    mail(EVENT_DEFERRED, VERDICT_DEFERRED, BLAME_SITE, 451, "4.7.1",
         "host x said: 451 4.7.1 slow down");
    mail(EVENT_DEFERRED, VERDICT_DEFERRED, BLAME_MESSAGE, 450, "4.2.1",
         "host x said: 450 4.2.1 mailbox busy");
    mail(EVENT_BOUNCED, VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1",
         "host x said: 550 5.1.1 unknown");
    told("", "what is about the mail, or asks for time, is no trouble");
    mail(EVENT_DEFERRED, VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.1",
         "connect to x: Connection refused");
    told("-upstream_down relay;", "a host that is down is");
    for (int i = 0; i < 20; i++)
        mail(EVENT_DEFERRED, VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.1",
             "delivery temporarily suspended: connect to x: Connection refused");
    told("", "once");
    pass(110 * 1000);
    is_number(h->visits, 0, "mail is tried sooner than a canary");
    pass(15 * 1000);
    is_number(h->visits, 1, "but one goes if no mail does");
    told("+ relay;", "and finds that it works");
    is_string(h->heard,
              "EHLO petrel.test|AUTH PLAIN AGFsaWNlAHNlY3JldA==|MAIL "
              "FROM:<ann@x.test>|RSET|QUIT|",
              "with the last sender");
    mail(EVENT_DEFERRED, VERDICT_DEFERRED, BLAME_SITE, 535, "4.7.8",
         "host x said: 535 5.7.8 wrong (in reply to AUTH command)");
    told("-login_refused relay;", "a refused login");
    pass(9 * MINUTE);
    is_number(h->visits, 1, "is not repeated for twice the backoff");
    static const char refused[] = "host x said: 553 5.7.1 sender not owned by this "
                                  "account (in reply to MAIL FROM command)";
    mail(EVENT_DEFERRED, VERDICT_DEFERRED, BLAME_MESSAGE, 553, "4.7.1", refused);
    told("-sender_refused relay;",
         "the password is right, and then the sender is refused");
    mail(EVENT_DEFERRED, VERDICT_DEFERRED, BLAME_MESSAGE, 553, "4.7.1", refused);
    told("", "once");
    mail_sender = "";
    mail(EVENT_DELIVERED, VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "ok");
    told("", "a notification that is taken says nothing of senders");
    mail_sender = "ann@x.test";
    mail(EVENT_DELIVERED, VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "ok");
    told("+ relay;", "another sender's mail is taken");
    mail(EVENT_DEFERRED, VERDICT_DEFERRED, BLAME_MESSAGE, 553, "4.7.1", refused);
    told("", "one sender of many is no trouble of the host");
    mail(EVENT_DEFERRED, VERDICT_DEFERRED, BLAME_SITE, 535, "4.7.8",
         "host x said: 535 5.7.8 wrong (in reply to AUTH command)");
    told("-login_refused relay;", "a refused login again");
    /* Another host, or port. */
    struct outcome o = outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "ok");
    snprintf(o.remote, sizeof(o.remote), "127.0.0.1[127.0.0.1]:%u", b.hosts[1].port);
    event_tell(b.events, &(struct event){.kind = EVENT_DELIVERED, .outcome = &o});
    snprintf(o.remote, sizeof(o.remote), "x127.0.0.1[127.0.0.1]:%u", b.hosts[0].port);
    event_tell(b.events, &(struct event){.kind = EVENT_DELIVERED, .outcome = &o});
    told("", "is not ours");
    mail(EVENT_DELIVERED, VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "ok");
    told("+ relay;", "our own is");
    end();
}

TEST(reloads)
{
    char routes[400];
    struct smarthost_health_view view;
    begin();
    host_script(&b.hosts[0], "220 x", EHLO_AUTH, "235 ok", "250 ok");
    host_script(&b.hosts[1], "220 x", EHLO_AUTH, "235 ok", "250 ok");
    use("* mx", HOUR);
    ok_named(!smarthost_health_at(b.upstreams, 0, &view) &&
                 !smarthost_health_is_cut_off(b.upstreams, 0, &view),
             "no smarthost");
    use(one("?canary=no"), HOUR);
    ok_named(!smarthost_health_at(b.upstreams, 0, &view), "one that is not to be asked");
    snprintf(routes, sizeof(routes), "* smtp://127.0.0.1:%u", b.hosts[0].port);
    use(routes, HOUR);
    ok_named(!smarthost_health_at(b.upstreams, 0, &view), "one without a login");
    snprintf(routes, sizeof(routes), "* smtp://127.0.0.1:%u?canary=yes",
             b.hosts[0].port);
    use(routes, HOUR);
    ok_named(smarthost_health_at(b.upstreams, 0, &view), "unless the route says so");
    use(one(""), 0);
    pass(2 * HOUR);
    ok_named(b.hosts[0].visits == 0 && at(0).next_ms == 0, "interval 0: never");
    mail(EVENT_DEFERRED, VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.1",
         "connect to x: Connection refused");
    told("-upstream_down relay;", "but mail is watched");
    pass(2 * HOUR);
    is_number(b.hosts[0].visits, 0, "still no canary");
    ok_named(!smarthost_health_is_cut_off(b.upstreams, 100 * (int64_t)HOUR, &view),
             "within its grace");
    /* A list: one of them is enough. */
    snprintf(routes, sizeof(routes), "* smtp://alice@127.0.0.1:%u|alice@127.0.0.1:%u",
             b.hosts[0].port, b.hosts[1].port);
    use(routes, 0);
    ok_named(!at(0).is_up && at(1).is_up && !smarthost_health_at(b.upstreams, 2, &view),
             "what is known of a host stays");
    ok_named(!smarthost_health_is_cut_off(b.upstreams, -1, &view),
             "the other one takes the mail");
    told("", "nothing has changed");
    use(one(""), 0);
    ok_named(smarthost_health_is_cut_off(b.upstreams, -1, &view) &&
                 strcmp(view.code, "upstream_down") == 0,
             "alone it is cut off");
    use(one(""), HOUR);
    pass(2000);
    is_number(b.hosts[0].visits, 1, "after a reload it is asked soon");
    told("+ relay;", "and works");
    mail(EVENT_DEFERRED, VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.1",
         "connect to x: Connection refused");
    told("-upstream_down relay;", "it fails");
    use("* mx", HOUR);
    told("+ other;", "it is in no route any more: its trouble ends");
    /* A canary under way when all ends. */
    use(one(""), HOUR);
    b.hosts[0].replies[0] = NULL;
    clock_pass(31 * 1000);
    loop_turn(b.loop, 10);
    loop_turn(b.loop, 10);
    end();
}

static void
many(void)
{
    char routes[4000] = "";
    struct smarthost_health_view view;
    size_t count = 0;
    begin();
    for (int i = 0; i < 40; i++) {
        size_t used = strlen(routes);
        snprintf(routes + used, sizeof(routes) - used,
                 "d%d.test smtp://127.0.0.1:%d?canary=yes\n", i, 2000 + i / 2);
    }
    use(routes, 0);
    while (smarthost_health_at(b.upstreams, count, &view))
        count++;
    is_number(count, SMARTHOST_HEALTH_MAX, "each once, and no more than the limit");
    end();
}

int
main(void)
{
    clock_stop();
    canaries();
    tap_tests("");
    many();
    return done();
}
