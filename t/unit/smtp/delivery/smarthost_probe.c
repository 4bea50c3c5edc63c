/* One canary: its verdict for each way in which a host may behave, and its end in the middle. */
/* link: t/sim/clock.c */
#include "smtp/delivery/smarthost_probe.h"

#include "base/net/net.h"
#include "t/sim/clock.h"
#include "t/support/must.h"
#include "t/support/tap.h"

#include <string.h>

static struct {
    struct loop *loop;
    struct net *net, *others;
    struct dns *dns;
    struct tls_client *tls;
    struct net_listener *listener;
    struct net_connection *connection;
    struct smarthost_probe *canary;
    const char *const *replies;
    size_t said;
    unsigned visits, port;
    char heard[300];
    unsigned done;
    enum smarthost_probe_verdict verdict;
    char text[600], where[100], demand[100], insecure[300];
    const char *recipient, *domain, *only; /* of the next ones */
} b;

static void
say(void)
{
    char line[200];
    if (b.replies[b.said] == NULL) {
        net_close(&b.connection);
        return;
    }
    snprintf(line, sizeof(line), "%s\r\n", b.replies[b.said++]);
    net_send(b.connection, text_from(line));
}

static void
on_net(void *context, enum net_event event)
{
    (void)context;
    struct text rest = net_input(b.connection), line;
    size_t before = rest.length;
    if (event == NET_ENDED || event == NET_FAILED) {
        net_close(&b.connection);
        return;
    }
    while (b.connection != NULL && text_find(rest, '\n') != TEXT_NONE && text_cut(&rest, '\n', &line)) {
        size_t used = strlen(b.heard);
        snprintf(b.heard + used, sizeof(b.heard) - used, "%.*s|", (int)line.length - 1, line.at);
        say();
    }
    if (b.connection != NULL)
        net_consume(b.connection, before - rest.length);
}

static void
on_accept(void *context, struct net_connection *connection)
{
    (void)context;
    b.visits++;
    b.said = 0;
    b.connection = connection;
    net_attach(connection, on_net, NULL);
    say();
}

static void
on_done(void *context, const struct smarthost_probe_result *result)
{
    (void)context;
    b.done++;
    b.verdict = result->verdict;
    snprintf(b.text, sizeof(b.text), "%s", result->text);
    snprintf(b.where, sizeof(b.where), "%s", result->where);
    snprintf(b.demand, sizeof(b.demand), "%s", result->demand);
    snprintf(b.insecure, sizeof(b.insecure), "%s", result->insecure);
    smarthost_probe_free(&b.canary);
}

static void
begin(void)
{
    struct net_address a;
    char error[200];
    memset(&b, 0, sizeof(b));
    b.loop = loop_new();
    b.net = net_new(b.loop);
    b.others = net_new(b.loop);
    b.dns = dns_new(b.loop, TEXT("127.0.0.1:9"), error, sizeof(error));
    must(net_address_parse(TEXT("127.0.0.1:0"), 0, &a));
    b.listener = net_listen(b.others, &a, 0, on_accept, NULL, error, sizeof(error));
    must(b.listener != NULL);
    b.port = net_listener_address(b.listener)->port;
}

static void
end(void)
{
    smarthost_probe_free(&b.canary);
    clock_turns(b.loop, 5);
    net_listener_free(&b.listener);
    if (b.connection != NULL)
        net_abort(&b.connection);
    dns_free(&b.dns);
    net_free(&b.net);
    net_free(&b.others);
    loop_free(&b.loop);
}

static void
start(const char *url, const char *sender)
{
    static struct route_table *routes;
    struct buffer errors;
    char table[200];
    buffer_init(&errors, 1000);
    snprintf(table, sizeof(table), "* %s", url);
    route_free(&routes);
    routes = route_new(&(struct route_settings){.routes = text_from(table), .without_secrets = true, .smtp_port = 25}, &errors);
    must(routes != NULL);
    struct smarthost_probe_settings settings = {.loop = b.loop, .net = b.net, .dns = b.dns, .hostname = "petrel.test", .smtp_port = 25,
                                       .connect_timeout_ms = 5000, .tls = &b.tls, .secrets = route_secrets(routes),
                                       .recipient = b.recipient, .domain = b.domain, .only = b.only};
    if (b.domain != NULL) {
        settings.smtp_port = (uint16_t)b.port;
        must(bind_address_read(&settings.sources, TEXT("127.0.0.1"), NULL));
    }
    b.canary = smarthost_probe_new(&settings, route_find(routes, &(struct address){.local = TEXT("a"), .domain = TEXT("x.test")}), 0, sender, on_done, NULL);
    ok_named(b.done == 0, "never before it returns");
}

static void
until_done(void)
{
    for (int i = 0; i < 3000 && b.done == 0; i++)
        clock_turn(b.loop);
    is_number(b.done, 1, "done once");
}

static const char *const good[] = {"220 x", "250 x", "250 ok", "250 ok", "221 bye", NULL};

static const struct row {
    const char *what, *const *replies;
    enum smarthost_probe_verdict verdict;
    const char *text, *heard;
} rows[] = {
    {"good", good, SMARTHOST_PROBE_GOOD, "250 ok", "EHLO petrel.test|MAIL FROM:<s@x.test>|RSET|QUIT|"},
    {"no greeting", (const char *const[]){"554 go away", "221 bye", NULL}, SMARTHOST_PROBE_DOWN, "554 go away", "QUIT|"},
    {"closed at once", (const char *const[]){NULL}, SMARTHOST_PROBE_DOWN, "lost connection", ""},
    {"closed at EHLO", (const char *const[]){"220 x", NULL}, SMARTHOST_PROBE_DOWN, "lost connection", "EHLO petrel.test|"},
    {"no SMTP", (const char *const[]){"SSH-2.0-x", NULL}, SMARTHOST_PROBE_DOWN, "", ""},
    {"refused", (const char *const[]){"220 x", "250 x", "550 5.7.1 not you", "221 bye", NULL}, SMARTHOST_PROBE_SENDER, "550 5.7.1 not you",
     "EHLO petrel.test|MAIL FROM:<s@x.test>|QUIT|"},
    {"busy", (const char *const[]){"220 x", "250 x", "451 4.7.1 later", "221 bye", NULL}, SMARTHOST_PROBE_SENDER, "451 4.7.1 later",
     "EHLO petrel.test|MAIL FROM:<s@x.test>|QUIT|"},
    {"shuts down", (const char *const[]){"220 x", "250 x", "421 4.3.2 bye", NULL}, SMARTHOST_PROBE_DOWN, "421 4.3.2 bye", "EHLO petrel.test|MAIL FROM:<s@x.test>|"},
};

TEST(verdicts)
{
    char url[60];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin();
        b.replies = rows[i].replies;
        snprintf(url, sizeof(url), "smtp://127.0.0.1:%u", b.port);
        start(url, "s@x.test");
        until_done();
        clock_turns(b.loop, 20);
        is_number(b.verdict, rows[i].verdict, rows[i].what);
        ok_named(strstr(b.text, rows[i].text) != NULL, b.text);
        is_string(b.heard, rows[i].heard, "what the host heard");
        end();
    }
}

/* With a recipient, at a smarthost and at the host of a domain. */
TEST(recipients)
{
    static const char *const takes[] = {"220 x", "250 x", "250 ok", "250 yes", "250 ok", "221 bye", NULL};
    static const char *const refuses[] = {"220 x", "250 x", "250 ok", "550 5.1.1 nobody", "250 ok", "221 bye", NULL};
    static const char *const no_mail[] = {"220 x", "250 x", "550 5.7.1 not you", "221 bye", NULL};
    static const struct {
        const char *const *replies;
        enum smarthost_probe_verdict verdict;
        const char *text, *heard;
    } list[] = {
        {takes, SMARTHOST_PROBE_GOOD, "250 yes", "EHLO petrel.test|MAIL FROM:<s@x.test>|RCPT TO:<r@y.test>|RSET|QUIT|"},
        {refuses, SMARTHOST_PROBE_RECIPIENT, "550 5.1.1 nobody", "EHLO petrel.test|MAIL FROM:<s@x.test>|RCPT TO:<r@y.test>|RSET|QUIT|"},
        {no_mail, SMARTHOST_PROBE_SENDER, "550 5.7.1 not you", "EHLO petrel.test|MAIL FROM:<s@x.test>|QUIT|"},
    };
    char url[60];
    for (size_t i = 0; i < 6; i++) {
        begin();
        b.replies = list[i / 2].replies;
        b.recipient = "r@y.test";
        b.domain = i % 2 > 0 ? "[127.0.0.1]" : NULL;
        snprintf(url, sizeof(url), b.domain != NULL ? "mx" : "smtp://127.0.0.1:%u", b.port);
        start(url, "s@x.test");
        until_done();
        clock_turns(b.loop, 20);
        is_number(b.verdict, list[i / 2].verdict, list[i / 2].text);
        ok_named(strstr(b.text, list[i / 2].text) != NULL, b.text);
        is_string(b.heard, list[i / 2].heard, "what the host heard");
        ok_named(strstr(b.where, "[127.0.0.1]") != NULL, b.where);
        is_string(b.demand, "", "nothing is demanded");
        end();
    }
    begin();
    b.replies = takes;
    b.domain = "[127.0.0.1]";
    b.only = "elsewhere.test";
    start("mx", "s@x.test");
    until_done();
    is_number(b.verdict, SMARTHOST_PROBE_DOWN, "a host that is none of the domain's");
    is_string(b.heard, "", "nobody is asked");
    end();
}

/* A host that offers STARTTLS and cannot do it: in cleartext if the route allows it. */
TEST(broken_tls)
{
    static const char *const replies[] = {"220 x", "250-x\r\n250 STARTTLS", "454 4.7.0 no TLS now", "250 ok", "221 bye", NULL};
    char url[80];
    begin();
    b.replies = replies;
    snprintf(url, sizeof(url), "smtp://127.0.0.1:%u?tls=encrypt", b.port);
    start(url, "s@x.test");
    until_done();
    is_number(b.verdict, SMARTHOST_PROBE_DOWN, "TLS is demanded");
    ok(strstr(b.heard, "MAIL") == NULL);
    end();
}

TEST(unreachable)
{
    char url[60];
    begin();
    b.replies = good;
    snprintf(url, sizeof(url), "smtp://127.0.0.1:%u", b.port);
    net_listener_free(&b.listener);
    start(url, "");
    until_done();
    is_number(b.verdict, SMARTHOST_PROBE_DOWN, "nobody listens");
    ok_named(strstr(b.text, "refused") != NULL, b.text);
    end();
    begin();
    start("smtp://host.test:9?family=ipv6", "");
    smarthost_probe_free(&b.canary);
    clock_turns(b.loop, 20);
    ok_named(b.done == 0 && b.canary == NULL, "freed before its look-up ends");
    end();
    /* After each turn of a good conversation. */
    for (int turns = 0; turns < 12; turns++) {
        begin();
        b.replies = good;
        snprintf(url, sizeof(url), "smtp://127.0.0.1:%u", b.port);
        start(url, "s@x.test\r\nDATA");
        clock_turns(b.loop, turns);
        bool was_done = b.done > 0;
        smarthost_probe_free(&b.canary);
        clock_turns(b.loop, 10);
        ok_named(b.done == was_done, "no callback after the end");
        ok_named(strstr(b.heard, "DATA") == NULL, "nor a command in the sender");
        end();
    }
}

int
main(void)
{
    clock_stop();
    tap_tests("");
    return done();
}
