/* link: t/sim/dns.c */
/* link: t/sim/clock.c */
/* link: t/sim/delivery_world.c */
/* Sites that refuse our IPv6 address: once, and then IPv4 carries their mail. */
#include "smtp/delivery/delivery_internal.h"
#include "t/sim/delivery_world.h"

#include <errno.h>

#define NO_PTR "550 5.7.25 The IP address sending this message does not have a PTR record\r\n"

static const struct host_rule refuses[] = {
    {.start = "RCPT", .reply = NO_PTR},
    {.start = NULL},
};
static const struct host_rule by_spf[] = {
    {.start = "RCPT", .reply = "550 5.7.26 A message sent from an IPv6 address: SPF must pass\r\n"},
    {.start = NULL},
};
static const struct host_rule defers[] = {
    {.start = "DATA", .reply = "421 4.7.23 The sending IP address does not have a PTR record\r\n"},
    {.start = NULL},
};
static const struct host_rule unknown[] = {
    {.start = "RCPT", .reply = "550 5.1.1 User unknown\r\n"},
    {.start = NULL},
};

static const struct host_rule in_part[] = {
    {.start = "RCPT TO:<r", .reply = NO_PTR},
    {.start = NULL},
};
static const struct host_rule to_ehlo[] = {
    {.start = "EHLO", .reply = NO_PTR},
    {.start = "HELO", .reply = NO_PTR},
    {.start = NULL},
};
static const struct host_rule to_mail[] = {
    {.start = "MAIL", .reply = NO_PTR},
    {.start = NULL},
};
static const struct host_rule to_dot[] = {
    {.start = ".", .reply = NO_PTR},
    {.start = NULL},
};

/* y.test and z.test: [::1] (six) and 127.0.0.2 (b->a) of one host. */
static void
start(struct bed *b, struct host *six, const struct host_rule *rules)
{
    bed_start(b);
    memset(six, 0, sizeof(*six));
    fake_host_start(six, b->theirs, "::1", b->settings.smtp_port);
    six->rules = rules;
    sim_dns_address(b->dns, "six.test", "::1");
    sim_dns_address(b->dns, "six.test", "127.0.0.2");
    sim_dns_mx(b->dns, "y.test", 10, "six.test");
    sim_dns_mx(b->dns, "z.test", 10, "six.test");
    sim_dns_address(b->dns, "only.test", "::1");
    sim_dns_mx(b->dns, "o.test", 10, "only.test");
    sim_dns_address(b->dns, "dead.test", "::1");
    sim_dns_address(b->dns, "dead.test", "192.0.2.200");
    sim_dns_mx(b->dns, "d.test", 10, "dead.test");
}

static void
stop(struct bed *b, struct host *six)
{
    fake_host_stop(six);
    bed_stop(b);
}

static unsigned
times(const struct bed *b, const char *what)
{
    unsigned count = 0;
    size_t length = strlen(what);
    for (size_t i = 0; i + length <= b->lines.length; i++)
        count += memcmp(b->lines.at + i, what, length) == 0;
    return count;
}

static void
to(struct bed *b, const char *rcpt, const char *domain, const char *want, const char *name)
{
    b->manager.verdicts.length = 0;
    add_mail(b, rcpt);
    run(b, domain);
    is_settled(b, want, name);
}

static void
test_refused(const struct host_rule *rules, const char *verdict)
{
    struct bed b;
    struct host six;
    char want[100];
    start(&b, &six, rules);
    snprintf(want, sizeof(want), "u@y.test deferred %s address\n", verdict);
    to(&b, "u@y.test", "y.test", want, "not a failure");
    is_number(six.connections, 1, "IPv6");
    is_number(b.a.connections, 0, "alone");
    to(&b, "u@y.test", "y.test", "u@y.test sent 2.0.0 none\n", "sent over IPv4");
    to(&b, "v@z.test", "z.test", "v@z.test sent 2.0.0 none\n", "so is mail for another domain there");
    is_number(six.connections, 1, "without IPv6");
    is_number(b.a.connections, 2, "by IPv4");
    is_number(times(&b, "six.test[::1] refuses our IPv6 address: using IPv4"), 1, "logged once");
    clock_pass(INT64_C(24) * 3600 * 1000);
    to(&b, "u@y.test", "y.test", want, "a day later");
    is_number(six.connections, 2, "IPv6 is tried again");
    stop(&b, &six);
}

/* A connection that is kept gets no more mail over IPv6, and ends. */
TEST(kept)
{
    struct bed b;
    struct host six;
    start(&b, &six, refuses);
    b.settings.reuse_idle_ms = 100000;
    delivery_reload(b.delivery, &b.settings);
    add_mail(&b, "u@y.test");
    add_mail(&b, "v@y.test");
    run(&b, "y.test");
    is_settled(&b, "u@y.test deferred 4.7.25 address\n", "the second mail is not tried");
    stop(&b, &six);
}

TEST(stands)
{
    struct bed b;
    struct host six;
    start(&b, &six, refuses);
    to(&b, "u@o.test", "o.test", "u@o.test bounced 5.7.25 message\n", "the host has IPv6 alone");
    b.settings.smtp_family = TARGET_FAMILY_IPV6;
    delivery_reload(b.delivery, &b.settings);
    to(&b, "u@y.test", "y.test", "u@y.test bounced 5.7.25 message\n", "we use IPv6 alone");
    is_number(times(&b, "refuses our IPv6 address"), 0, "nothing to log");
    six.rules = unknown;
    b.settings.smtp_family = TARGET_FAMILY_ANY;
    delivery_reload(b.delivery, &b.settings);
    to(&b, "u@y.test", "y.test", "u@y.test bounced 5.1.1 message\n", "a refusal for another reason");
    stop(&b, &six);
}

/* The same words over IPv4 are a refusal. */
TEST(ipv4)
{
    struct bed b;
    struct host six;
    start(&b, &six, refuses);
    b.a.rules = refuses;
    to(&b, "u@y.test", "y.test", "u@y.test deferred 4.7.25 address\n", "IPv6");
    to(&b, "u@y.test", "y.test", "u@y.test bounced 5.7.25 message\n", "then IPv4, and no third way");
    stop(&b, &six);
}

/* At its EHLO, too, the session goes on; nothing that was sent is sent twice. */
TEST(ehlo)
{
    struct bed b;
    struct host six;
    start(&b, &six, to_ehlo);
    to(&b, "u@y.test", "y.test", "u@y.test sent 2.0.0 none\n", "sent at once");
    to(&b, "u@y.test", "y.test", "u@y.test sent 2.0.0 none\n", "and again");
    is_number(six.connections, 1, "with one refusal");
    is_number(times(&b, "refuses our IPv6 address"), 1, "and one line");
    stop(&b, &six);
}

/* Whom the host accepts over IPv6 is not sent to again; each refusal has its line of log. */
TEST(in_part)
{
    struct bed b;
    struct host six;
    start(&b, &six, in_part);
    to(&b, "a@y.test r1@y.test b@y.test r2@y.test", "y.test",
       "r1@y.test deferred 4.7.25 address\nr2@y.test deferred 4.7.25 address\n"
       "a@y.test sent 2.0.0 none\nb@y.test sent 2.0.0 none\n", "in part");
    is_number(times(&b, "refuses our IPv6 address"), 1, "one line for all");
    to(&b, "r1@y.test r2@y.test", "y.test", "r1@y.test sent 2.0.0 none\nr2@y.test sent 2.0.0 none\n", "the others over IPv4");
    stop(&b, &six);
}

/* A restart forgets: that costs one refusal more, and no mail. */
TEST(restart)
{
    struct bed b;
    struct host six;
    for (int i = 0; i < 2; i++) {
        start(&b, &six, refuses);
        to(&b, "u@y.test", "y.test", "u@y.test deferred 4.7.25 address\n", "refused once");
        to(&b, "u@y.test", "y.test", "u@y.test sent 2.0.0 none\n", "then sent");
        stop(&b, &six);
    }
}

/* An address in the route has one family, so that there is no other way. */
TEST(literals)
{
    struct bed b;
    struct host six;
    start(&b, &six, refuses);
    b.a.rules = refuses;
    to(&b, "u@[IPv6:::1]", "[IPv6:::1]", "u@[IPv6:::1] bounced 5.7.25 message\n", "IPv6");
    to(&b, "u@[127.0.0.2]", "[127.0.0.2]", "u@[127.0.0.2] bounced 5.7.25 message\n", "IPv4");
    is_number(times(&b, "refuses our IPv6 address"), 0, "nothing to log");
    stop(&b, &six);
}

/* Refused at the greeting, the session goes on by IPv4, and later ones begin there. */
TEST(greeting)
{
    struct bed b;
    struct host six;
    start(&b, &six, NULL);
    six.greeting = "554 5.7.25 No PTR record\r\n";
    to(&b, "u@y.test", "y.test", "u@y.test sent 2.0.0 none\n", "sent at once");
    to(&b, "u@y.test", "y.test", "u@y.test sent 2.0.0 none\n", "and again");
    is_number(six.connections, 1, "with one refusal");
    stop(&b, &six);
}

/* An IPv4 host that did not answer may do so later: the site has IPv4. */
static void
test_ipv4_failed_first(void)
{
    struct bed b;
    struct host six;
    start(&b, &six, refuses);
    sim_dns_address(b.dns, "four.test", "127.0.0.77");
    sim_dns_mx(b.dns, "p.test", 5, "four.test");
    sim_dns_mx(b.dns, "p.test", 10, "only.test");
    to(&b, "u@p.test", "p.test", "u@p.test deferred 4.7.25 address\n", "not bounced");
    is_number(six.connections, 1, "IPv6 has refused it");
    stop(&b, &six);
}

/* One address without a route is no proof for a day of mail: a reply over IPv4 is. */
static void
test_ipv4_works_again(void)
{
    struct bed b;
    struct host six;
    start(&b, &six, refuses);
    b.delivery->no_ipv4_until_ms = INT64_MAX;
    to(&b, "u@y.test", "y.test", "u@y.test bounced 5.7.25 message\n", "no IPv4: the refusal stands");
    to(&b, "u@[127.0.0.2]", "[127.0.0.2]", "u@[127.0.0.2] sent 2.0.0 none\n", "IPv4 carries mail");
    to(&b, "u@y.test", "y.test", "u@y.test deferred 4.7.25 address\n", "so there is another way");
    to(&b, "u@y.test", "y.test", "u@y.test sent 2.0.0 none\n", "which is taken");
    stop(&b, &six);
}

/* Errors that show that this host has no IPv4, and errors of one address alone. */
static void
test_errors(void)
{
    static const struct {
        int error;
        bool none;
    } cases[] = {{ENETUNREACH, true}, {EADDRNOTAVAIL, true}, {EAFNOSUPPORT, true}, {EHOSTUNREACH, false}, {ECONNREFUSED, false}, {ETIMEDOUT, false}, {0, false}};
    struct bed b;
    struct host six;
    struct mx_lookup_host four = {.address.family = NET_IPV4}, host6 = {.address.family = NET_IPV6};
    start(&b, &six, NULL);
    struct delivery_session s = {.delivery = b.delivery};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        b.delivery->no_ipv4_until_ms = 0;
        delivery_family_failed(&s, &host6, cases[i].error);
        ok_named(b.delivery->no_ipv4_until_ms == 0, "IPv6 says nothing");
        delivery_family_failed(&s, &four, cases[i].error);
        ok_named((b.delivery->no_ipv4_until_ms > loop_monotonic_ms(b.delivery->loop)) == cases[i].none, strerror(cases[i].error));
    }
    stop(&b, &six);
}

/* Rests of other sites stay while there is a place; then that which ends first goes. */
static void
test_many_sites(void)
{
    struct bed b;
    struct host six;
    for (size_t free_slots = 0; free_slots < 2; free_slots++) {
        start(&b, &six, refuses);
        struct delivery *d = b.delivery;
        int64_t now = loop_monotonic_ms(d->loop);
        d->ipv6_rests_until_ms = now + 100000;
        for (size_t i = free_slots; i < DELIVERY_IPV6_RESTS_MAX; i++)
            d->ipv6_rests[i] = (struct ipv6_rest){.site = i + 1, .until_ms = now + 100000 + (i == 40 ? -1 : (int64_t)i)};
        to(&b, "u@y.test", "y.test", "u@y.test deferred 4.7.25 address\n", "refused");
        to(&b, "u@y.test", "y.test", "u@y.test sent 2.0.0 none\n", "it rests");
        size_t lost = 0;
        for (size_t i = free_slots; i < DELIVERY_IPV6_RESTS_MAX; i++)
            lost += d->ipv6_rests[i].site != i + 1;
        is_number(lost, 1 - free_slots, free_slots ? "a free place is taken" : "one place is taken");
        ok_named(free_slots || d->ipv6_rests[40].site != 41, "of the one that ends first");
        stop(&b, &six);
    }
}

int
main(void)
{
    spool.content = memory_new(CONTENT_MAX);
    test_errors();
    test_many_sites();
    test_ipv4_failed_first();
    test_ipv4_works_again();
    test_refused(refuses, "4.7.25");
    test_refused(by_spf, "4.7.26");
    test_refused(defers, "4.7.23");
    test_refused(to_mail, "4.7.25");
    test_refused(to_dot, "4.7.25");
    tap_tests("");
    free(spool.content);
    return done();
}
