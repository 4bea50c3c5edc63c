/* link: t/sim/loop.c */
/* link: t/sim/dns.c */
/* From a domain to addresses: MX rules, order, loops, null MX, smarthosts. */
#include "smtp/connect/mx_lookup.h"

#include "base/net/net.h"

#include "sched/route/bind_address.h"

#include "t/sim/sim.h"
#include "t/sim/sim_dns.h"
#include "t/support/must.h"
#include "t/support/tap.h"
#include "sched/route/target.h"

struct bed {
    struct loop *loop;
    struct net *net;
    struct dns *dns;
    struct net_listener *listener; /* what makes 127.0.0.1 ourselves */
    uint16_t own_port;
    struct mx_lookup *exchange;
    unsigned answers;
    bool free_inside;
    struct outcome outcome;
    char list[4000]; /* "name ip:port, ..." */
};

static void
on_answer(void *context, const struct mx_lookup_answer *answer)
{
    struct bed *b = context;
    b->answers++;
    b->list[0] = '\0';
    for (size_t i = 0; i < answer->count; i++) {
        char one[NET_ADDRESS_TEXT_MAX];
        size_t used = strlen(b->list);
        net_address_format(&answer->hosts[i].address, one);
        snprintf(b->list + used, sizeof(b->list) - used, "%s%s %s", i > 0 ? ", " : "",
                 answer->hosts[i].name, one);
    }
    b->outcome = answer->outcome;
    if (b->free_inside)
        mx_lookup_free(&b->exchange);
}

static void
refuse(void *context, struct net_connection *connection)
{
    (void)context;
    net_abort(&connection);
}

static struct bed
bed_new(uint64_t seed)
{
    struct bed b = {.loop = sim_loop_new(seed)};
    char error[200];
    struct net_address address;
    b.net = net_new(b.loop);
    b.dns = dns_new(b.loop, TEXT(""), error, sizeof(error));
    must(net_address_parse(TEXT("127.0.0.1:0"), 1, &address));
    address.port = 0;
    b.listener = net_listen(b.net, &address, 0, refuse, NULL, error, sizeof(error));
    must(b.listener != NULL);
    b.own_port = net_listener_address(b.listener)->port;
    return b;
}

static void
bed_free(struct bed *b)
{
    mx_lookup_free(&b->exchange);
    net_listener_free(&b->listener);
    dns_free(&b->dns);
    net_free(&b->net);
    loop_free(&b->loop);
}

static void
ask(struct bed *b, const struct mx_lookup_query *query)
{
    mx_lookup_free(&b->exchange);
    b->answers = 0;
    b->list[0] = '\0';
    b->exchange = mx_lookup_find(b->loop, b->net, b->dns, query, on_answer, b);
    must(b->answers == 0); /* never before it returns */
    sim_loop_advance(b->loop, 60 * 1000);
    must(b->answers == 1);
}

static void
ask_mx(struct bed *b, const char *domain, int limit)
{
    struct mx_lookup_query query = {.name = domain,
                                    .by_mx = true,
                                    .hostname = "Me.example.test",
                                    .port = b->own_port,
                                    .address_limit = limit};
    ask(b, &query);
}

static void
ask_host(struct bed *b, const char *host)
{
    struct mx_lookup_query query = {
        .name = host, .smarthost = true, .port = b->own_port, .address_limit = 5};
    ask(b, &query);
}

/* The system chose the port. */
static void
is_list(const struct bed *b, const char *want, const char *name)
{
    char list[4000] = "", port[16];
    snprintf(port, sizeof(port), ":%u", b->own_port);
    for (const char *at = want; *at != '\0'; at++) {
        size_t used = strlen(list);
        if (*at == '!')
            snprintf(list + used, sizeof(list) - used, "%s", port);
        else
            snprintf(list + used, sizeof(list) - used, "%c", *at);
    }
    is_string(b->list, list, name);
}

static void
is_refused(const struct bed *b, enum verdict verdict, int code, const char *enhanced,
           const char *name)
{
    is_string(b->list, "", name);
    is_number(b->outcome.verdict, verdict, name);
    is_number(b->outcome.blame, BLAME_SITE, name);
    is_number(b->outcome.code, code, name);
    is_string(b->outcome.enhanced, enhanced, name);
}

TEST(order)
{
    struct bed b = bed_new(1);
    sim_dns_mx(b.dns, "a.test", 20, "second.test");
    sim_dns_mx(b.dns, "a.test", 10, "first.test");
    sim_dns_mx(b.dns, "a.test", 30, "third.test");
    sim_dns_address(b.dns, "first.test", "192.0.2.1");
    sim_dns_address(b.dns, "second.test", "192.0.2.2");
    sim_dns_address(b.dns, "third.test", "192.0.2.3");
    ask_mx(&b, "a.test", 5);
    is_list(&b, "first.test 192.0.2.1!, second.test 192.0.2.2!, third.test 192.0.2.3!",
            "in the order of preference");
    ask_mx(&b, "a.test", 2);
    is_list(&b, "first.test 192.0.2.1!, second.test 192.0.2.2!", "up to the limit");
    size_t asked = sim_dns_questions(b.dns);
    ask_mx(&b, "a.test", 1);
    is_number(sim_dns_questions(b.dns) - asked, 2,
              "what is not needed is not looked up");
    sim_dns_mx(b.dns, "twice.test", 10, "first.test");
    sim_dns_mx(b.dns, "twice.test", 20, "first.test");
    ask_mx(&b, "twice.test", 5);
    is_list(&b, "first.test 192.0.2.1!", "an address is tried once");
    bed_free(&b);
}

/* Over many seeds, each of three equals comes first about as often. */
TEST(equals)
{
    unsigned first[3] = {0};
    for (uint64_t seed = 1; seed <= 90; seed++) {
        struct bed b = bed_new(seed);
        sim_dns_mx(b.dns, "a.test", 5, "h0.test");
        sim_dns_mx(b.dns, "a.test", 5, "h1.test");
        sim_dns_mx(b.dns, "a.test", 5, "h2.test");
        sim_dns_mx(b.dns, "a.test", 6, "last.test");
        sim_dns_address(b.dns, "h0.test", "192.0.2.10");
        sim_dns_address(b.dns, "h1.test", "192.0.2.11");
        sim_dns_address(b.dns, "h2.test", "192.0.2.12");
        sim_dns_address(b.dns, "last.test", "192.0.2.13");
        ask_mx(&b, "a.test", 5);
        must(b.list[0] == 'h');
        first[b.list[1] - '0']++;
        if (strstr(b.list, ", last.test 192.0.2.13") == NULL)
            first[0] = 1000;
        bed_free(&b);
    }
    ok_named(first[0] > 12 && first[1] > 12 && first[2] > 12 && first[0] < 60,
             "equals are in random order, before what is worse");
}

TEST(families)
{
    struct bed b = bed_new(3);
    sim_dns_mx(b.dns, "a.test", 10, "both.test");
    sim_dns_mx(b.dns, "a.test", 20, "more.test");
    sim_dns_address(b.dns, "both.test", "192.0.2.1");
    sim_dns_address(b.dns, "both.test", "2001:db8::1");
    sim_dns_address(b.dns, "more.test", "192.0.2.2");
    sim_dns_address(b.dns, "more.test", "2001:db8::2");
    sim_dns_address(b.dns, "more.test", "2001:db8::2");
    ask_mx(&b, "a.test", 5);
    is_list(&b,
            "both.test [2001:db8::1]!, both.test 192.0.2.1!, more.test [2001:db8::2]!, "
            "more.test 192.0.2.2!",
            "IPv6 and IPv4 take turns");
    sim_dns_mx(b.dns, "mapped.test", 10, "mapped-host.test");
    sim_dns_address(b.dns, "mapped-host.test", "::ffff:192.0.2.7");
    ask_mx(&b, "mapped.test", 5);
    is_list(&b, "mapped-host.test 192.0.2.7!", "a mapped address is an IPv4 address");
    for (int i = 1; i < 60; i++) {
        char ip[40];
        snprintf(ip, sizeof(ip), "198.51.100.%d", i);
        sim_dns_address(b.dns, "big.test", ip);
    }
    sim_dns_mx(b.dns, "big-mx.test", 10, "big.test");
    ask_mx(&b, "big-mx.test", MX_LOOKUP_ADDRESS_MAX);
    unsigned count = 0;
    for (const char *at = b.list; (at = strstr(at, "big.test")) != NULL; at++)
        count++;
    is_number(count, 16, "a host counts with so many addresses of a family");
    bed_free(&b);
}

TEST(implicit)
{
    struct bed b = bed_new(4);
    sim_dns_address(b.dns, "host.test", "192.0.2.1");
    ask_mx(&b, "host.test", 5);
    is_list(&b, "host.test 192.0.2.1!", "no MX: the domain itself");
    sim_dns_status(b.dns, "empty.test", DNS_NO_DATA);
    ask_mx(&b, "empty.test", 5);
    is_refused(&b, VERDICT_FAILED, 0, "5.4.4", "no MX and no address");
    bed_free(&b);
}

TEST(refusals)
{
    struct bed b = bed_new(5);
    sim_dns_mx(b.dns, "null.test", 0, "");
    ask_mx(&b, "null.test", 5);
    is_refused(&b, VERDICT_FAILED, 556, "5.1.10", "null MX");
    is_string(b.outcome.text, "null.test does not accept mail (null MX)", "its text");
    sim_dns_mx(b.dns, "odd.test", 0, "");
    sim_dns_mx(b.dns, "odd.test", 10, "host.test");
    sim_dns_address(b.dns, "host.test", "192.0.2.1");
    ask_mx(&b, "odd.test", 5);
    is_list(&b, "host.test 192.0.2.1!", "a null MX beside another counts for nothing");
    ask_mx(&b, "unknown.test", 5);
    is_refused(&b, VERDICT_FAILED, 550, "5.1.2", "NXDOMAIN");
    is_string(b.outcome.text, "Host or domain name not found: unknown.test",
              "its text");
    sim_dns_status(b.dns, "broken.test", DNS_TRY_AGAIN);
    ask_mx(&b, "broken.test", 5);
    is_refused(&b, VERDICT_DEFERRED, 0, "4.4.3", "SERVFAIL of the domain");
    sim_dns_mx(b.dns, "dead.test", 10, "gone.test");
    sim_dns_mx(b.dns, "dead.test", 20, "gone-too.test");
    ask_mx(&b, "dead.test", 5);
    is_refused(&b, VERDICT_FAILED, 0, "5.4.4", "no mail host exists");
    sim_dns_mx(b.dns, "half.test", 10, "gone.test");
    sim_dns_mx(b.dns, "half.test", 20, "broken.test");
    ask_mx(&b, "half.test", 5);
    is_refused(&b, VERDICT_DEFERRED, 0, "4.4.3",
               "one is gone, of one nothing is known");
    sim_dns_mx(b.dns, "some.test", 10, "broken.test");
    sim_dns_mx(b.dns, "some.test", 10, "gone.test");
    sim_dns_mx(b.dns, "some.test", 20, "host.test");
    ask_mx(&b, "some.test", 5);
    is_list(&b, "host.test 192.0.2.1!", "what has no address is skipped");
    char name[400];
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    ask_mx(&b, name, 5);
    is_refused(&b, VERDICT_FAILED, 550, "5.1.2", "a name that is too long");
    bed_free(&b);
}

/* We are a backup for backup.test, and the first for loop.test. */
static void
plant_backup(struct bed *b, const char *us, const char *ip)
{
    sim_dns_address(b->dns, "better.test", "192.0.2.1");
    sim_dns_address(b->dns, us, ip);
    sim_dns_address(b->dns, "worse.test", "192.0.2.3");
    sim_dns_mx(b->dns, "backup.test", 10, "better.test");
    sim_dns_mx(b->dns, "backup.test", 20, us);
    sim_dns_mx(b->dns, "backup.test", 20, "worse.test");
    sim_dns_mx(b->dns, "backup.test", 30, "worse.test");
    sim_dns_mx(b->dns, "loop.test", 10, us);
    sim_dns_mx(b->dns, "loop.test", 20, "worse.test");
}

TEST(loops)
{
    struct bed b = bed_new(6);
    plant_backup(&b, "me.test", "127.0.0.1");
    ask_mx(&b, "backup.test", 5);
    is_list(&b, "better.test 192.0.2.1!",
            "we are a backup: only what is better than us");
    ask_mx(&b, "loop.test", 5);
    is_refused(&b, VERDICT_FAILED, 0, "5.4.6", "we are the best");
    is_string(b.outcome.text, "mail for loop.test loops back to myself", "its text");
    sim_dns_address(b.dns, "mapped.test", "::ffff:127.0.0.1");
    ask_mx(&b, "mapped.test", 5);
    is_refused(&b, VERDICT_FAILED, 0, "5.4.6", "a mapped address does not hide us");
    ask_mx(&b, "[127.0.0.1]", 5);
    is_refused(&b, VERDICT_FAILED, 0, "5.4.6", "nor does a literal");
    bed_free(&b);
}

/* A host with our name is ourselves on any port: it may be mapped to the one we
 * have. */
TEST(own_name)
{
    struct bed b = bed_new(12);
    plant_backup(&b, "me.example.test", "192.0.2.2");
    ask_mx(&b, "loop.test", 5);
    is_refused(&b, VERDICT_FAILED, 0, "5.4.6", "the best has our name");
    ask_mx(&b, "ME.example.test", 5);
    is_refused(&b, VERDICT_FAILED, 0, "5.4.6", "so has a domain without MX");
    ask_mx(&b, "backup.test", 5);
    is_list(&b, "better.test 192.0.2.1!", "we are a backup by name");
    ask_host(&b, "me.example.test");
    is_list(&b, "me.example.test 192.0.2.2!", "what the settings name is meant so");
    b.own_port++;
    struct mx_lookup_query query = {
        .name = "backup.test", .by_mx = true, .port = b.own_port, .address_limit = 1};
    ask(&b, &query);
    is_list(&b, "better.test 192.0.2.1!", "without a name of ours nobody has it");
    bed_free(&b);
}

/* As a backup we wait for those before us. */
TEST(primary)
{
    struct bed b = bed_new(13);
    sim_dns_status(b.dns, "broken.test", DNS_TRY_AGAIN);
    sim_dns_mx(b.dns, "a.test", 10, "broken.test");
    sim_dns_mx(b.dns, "a.test", 20, "me.example.test");
    ask_mx(&b, "a.test", 5);
    is_refused(&b, VERDICT_DEFERRED, 0, "4.4.3", "of the primary nothing is known");
    sim_dns_mx(b.dns, "b.test", 10, "gone.test");
    sim_dns_mx(b.dns, "b.test", 20, "me.example.test");
    ask_mx(&b, "b.test", 5);
    is_refused(&b, VERDICT_DEFERRED, 0, "4.4.4", "the primary has no address");
    bed_free(&b);
}

/* A stranger's MX must not lead to what listens on this host alone. */
TEST(loopback)
{
    static const char *const ips[] = {"127.0.0.1", "127.8.9.10", "::1",
                                      "::ffff:127.0.0.1"};
    struct bed b = bed_new(14);
    uint16_t own_port = b.own_port++;
    for (size_t i = 0; i < sizeof(ips) / sizeof(ips[0]); i++) {
        char name[40];
        snprintf(name, sizeof(name), "n%zu.test", i);
        sim_dns_address(b.dns, name, ips[i]);
        sim_dns_mx(b.dns, "mx.test", 10, name);
        ask_mx(&b, name, 5);
        is_refused(&b, VERDICT_FAILED, 0, "5.4.4", ips[i]);
        ask_host(&b, name);
        is_number(b.answers > 0 && b.list[0] != '\0', 1, "but by a route");
        snprintf(name, sizeof(name), strchr(ips[i], ':') ? "[IPv6:%s]" : "[%s]",
                 ips[i]);
        ask_mx(&b, name, 5);
        is_refused(&b, VERDICT_FAILED, 0, "5.4.4", name);
    }
    ask_mx(&b, "mx.test", 5);
    is_refused(&b, VERDICT_FAILED, 0, "5.4.4", "all of them");
    is_string(
        b.outcome.text,
        "no mail host of mx.test has an address: a loopback address, which only a "
        "route can name",
        "its text");
    sim_dns_address(b.dns, "n0.test", "192.0.2.1");
    ask_mx(&b, "n0.test", 5);
    is_list(&b, "n0.test 192.0.2.1!", "the address beside it is good");
    struct bind_address sources;
    must(bind_address_read(&sources, TEXT("127.0.0.5"), NULL));
    struct mx_lookup_query query = {.name = "n1.test",
                                    .by_mx = true,
                                    .sources = &sources,
                                    .port = b.own_port,
                                    .address_limit = 5};
    ask(&b, &query);
    is_list(&b, "n1.test 127.8.9.10!", "where it is open, it is found");
    query.name = "n2.test";
    ask(&b, &query);
    is_refused(&b, VERDICT_FAILED, 0, "5.4.4", "of this family only");
    must(bind_address_read(&sources, TEXT("::1"), NULL));
    ask(&b, &query);
    is_list(&b, "n2.test [::1]!", "or of the other");
    must(bind_address_read(&sources, TEXT("192.0.2.1 2001:db8::1"), NULL));
    ask(&b, &query);
    is_refused(&b, VERDICT_FAILED, 0, "5.4.4", "not where others are reached");
    b.own_port = own_port;
    bed_free(&b);
}

TEST(skipped_family)
{
    struct bed b = bed_new(1);
    sim_dns_mx(b.dns, "f.test", 10, "both.test");
    sim_dns_address(b.dns, "both.test", "192.0.2.1");
    sim_dns_address(b.dns, "both.test", "2001:db8::1");
    struct mx_lookup_query query = {.name = "f.test",
                                    .by_mx = true,
                                    .skip_v6 = true,
                                    .port = 25,
                                    .address_limit = 5};
    ask(&b, &query);
    is_list(&b, "both.test 192.0.2.1:25", "IPv4 alone");
    query.skip_v6 = false;
    query.skip_v4 = true;
    ask(&b, &query);
    is_list(&b, "both.test [2001:db8::1]:25", "IPv6 alone");
    query.name = "192.0.2.9";
    query.by_mx = false;
    query.smarthost = true;
    ask(&b, &query);
    is_list(&b, "192.0.2.9 192.0.2.9:25", "an address that the operator has named");
    query.name = "[192.0.2.9]";
    query.by_mx = true;
    query.smarthost = false;
    ask(&b, &query);
    is_refused(&b, VERDICT_DEFERRED, 0, "4.3.5", "not one that a sender has named");
    bed_free(&b);
}

TEST(nobody)
{
    static const char *const ips[] = {
        "0.0.0.0",         "0.1.2.3", "::",        "224.0.0.1",
        "255.255.255.255", "ff02::1", "240.0.0.1", "::ffff:0.0.0.0"};
    struct bed b = bed_new(7);
    for (size_t i = 0; i < sizeof(ips) / sizeof(ips[0]); i++) {
        char name[40];
        snprintf(name, sizeof(name), "n%zu.test", i);
        sim_dns_address(b.dns, name, ips[i]);
        ask_mx(&b, name, 5);
        is_refused(&b, VERDICT_FAILED, 0, "5.4.4", ips[i]);
    }
    sim_dns_address(b.dns, "n0.test", "192.0.2.1");
    ask_mx(&b, "n0.test", 5);
    is_list(&b, "n0.test 192.0.2.1!", "the address beside it is good");
    bed_free(&b);
}

TEST(literals)
{
    struct bed b = bed_new(8);
    ask_mx(&b, "[192.0.2.1]", 5);
    is_list(&b, "[192.0.2.1] 192.0.2.1!", "an IPv4 literal");
    ask_mx(&b, "[IPv6:2001:db8::1]", 5);
    is_list(&b, "[IPv6:2001:db8::1] [2001:db8::1]!", "an IPv6 literal");
    ask_mx(&b, "[0.0.0.0]", 5);
    is_refused(&b, VERDICT_FAILED, 0, "5.4.4", "a literal that is nobody");
    is_number(sim_dns_questions(b.dns), 0, "literals ask no DNS");
    ask_mx(&b, "[nonsense]", 5);
    is_refused(&b, VERDICT_FAILED, 550, "5.1.2", "brackets around nonsense");
    ask_host(&b, "192.0.2.1");
    is_list(&b, "192.0.2.1 192.0.2.1!", "a smarthost by address");
    ask_host(&b, "2001:db8::1");
    is_list(&b, "2001:db8::1 [2001:db8::1]!", "by IPv6 address");
    bed_free(&b);
}

TEST(smarthost)
{
    struct bed b = bed_new(9);
    sim_dns_address(b.dns, "relay.test", "192.0.2.1");
    sim_dns_mx(b.dns, "relay.test", 10, "other.test");
    ask_host(&b, "relay.test");
    is_list(&b, "relay.test 192.0.2.1!", "its MX does not matter");
    ask_host(&b, "misspelt.test");
    is_refused(&b, VERDICT_DEFERRED, 0, "4.4.3", "a wrong name bounces nothing");
    ok_named(strstr(b.outcome.text, "write the full name: search domains"),
             "a short name may be one of a search domain");
    ask_host(&b, "misspelt.relay.test");
    ok_named(!strstr(b.outcome.text, "search domains"), "a long one is not");
    sim_dns_status(b.dns, "relay.test", DNS_TRY_AGAIN);
    ask_host(&b, "relay.test");
    is_refused(&b, VERDICT_DEFERRED, 0, "4.4.3", "nor does SERVFAIL");
    ask_host(&b, "127.0.0.1");
    is_refused(&b, VERDICT_DEFERRED, 0, "4.4.3", "nor does a loop");
    struct mx_lookup_query query = {.name = "null.test",
                                    .by_mx = true,
                                    .smarthost = true,
                                    .port = 25,
                                    .address_limit = 5};
    sim_dns_mx(b.dns, "null.test", 0, "");
    ask(&b, &query);
    is_refused(&b, VERDICT_DEFERRED, 0, "4.4.3", "nor does a null MX");
    bed_free(&b);
}

/* A recipient in the spool may be <postmaster> alone. */
TEST(no_domain)
{
    struct bed b = bed_new(11);
    ask_mx(&b, "", 5);
    is_refused(&b, VERDICT_FAILED, 550, "5.1.2", "no domain is none that exists");
    is_number(sim_dns_questions(b.dns), 0, "and nobody is asked for it");
    bed_free(&b);
}

TEST(cancel)
{
    struct bed b = bed_new(10);
    struct mx_lookup_query query = {
        .name = "a.test", .by_mx = true, .port = 25, .address_limit = 5};
    sim_dns_mx(b.dns, "a.test", 10, "h.test");
    sim_dns_mx(b.dns, "a.test", 10, "i.test");
    sim_dns_address(b.dns, "h.test", "192.0.2.1");
    for (int64_t ms = 0; ms < 4 * SIM_DNS_DELAY_MS; ms += SIM_DNS_DELAY_MS / 2) {
        b.answers = 0;
        b.exchange = mx_lookup_find(b.loop, b.net, b.dns, &query, on_answer, &b);
        sim_loop_advance(b.loop, ms);
        unsigned before = b.answers;
        mx_lookup_free(&b.exchange);
        sim_loop_advance(b.loop, 1000);
        ok_named(b.answers == before && b.exchange == NULL,
                 "no answer after it was freed");
    }
    b.free_inside = true;
    ask(&b, &query);
    is_string(b.list, "h.test 192.0.2.1:25", "freed inside its answer");
    bed_free(&b);
}

/* --- The addresses of a list of hosts --------------------------------------------- */

/* The addresses of a list of hosts: order, ports, hosts that are not found, or late. */

struct list_bed {
    struct loop *loop;
    struct net *net;
    struct dns *dns;
    struct mx_lookup_list *relays;
    unsigned answers;
    bool free_inside;
    struct outcome outcome;
    char list[4000]; /* "place name ip:port, ..." */
};

static void
on_list_answer(void *context, const struct mx_lookup_answer *answer)
{
    struct list_bed *b = context;
    b->answers++;
    b->list[0] = '\0';
    for (size_t i = 0; i < answer->count; i++) {
        char one[NET_ADDRESS_TEXT_MAX];
        size_t used = strlen(b->list);
        const struct mx_lookup_host *host = &answer->hosts[i];
        must(i == 0 || answer->hosts[i - 1].preference <= host->preference);
        net_address_format(&host->address, one);
        snprintf(b->list + used, sizeof(b->list) - used, "%s%zu %s %s",
                 i > 0 ? ", " : "", mx_lookup_list_place(host), host->name, one);
    }
    b->outcome = answer->outcome;
    if (b->free_inside)
        mx_lookup_list_free(&b->relays);
}

static struct list_bed
list_bed_new(void)
{
    struct list_bed b = {.loop = sim_loop_new(7)};
    char error[200];
    b.net = net_new(b.loop);
    b.dns = dns_new(b.loop, TEXT(""), error, sizeof(error));
    sim_dns_address(b.dns, "a.test", "192.0.2.1");
    sim_dns_address(b.dns, "a.test", "2001:db8::1");
    sim_dns_address(b.dns, "b.test", "192.0.2.2");
    sim_dns_mx(b.dns, "m.test", 10, "a.test");
    sim_dns_mx(b.dns, "m.test", 20, "b.test");
    return b;
}

static void
list_bed_free(struct list_bed *b)
{
    mx_lookup_list_free(&b->relays);
    dns_free(&b->dns);
    net_free(&b->net);
    loop_free(&b->loop);
}

static void
begin(struct list_bed *b, const char *written, int limit)
{
    struct target target;
    struct transport_params base;
    char problem[TARGET_PROBLEM_MAX];
    transport_params_default(&base);
    must(target_parse(text_from(written), 25, &base, &target, problem));
    mx_lookup_list_free(&b->relays);
    b->answers = 0;
    b->list[0] = '\0';
    struct mx_lookup_query query = {
        .by_mx = target.look_up_mx, .smarthost = true, .port = 25, .address_limit = limit};
    b->relays =
        mx_lookup_list_find(b->loop, b->net, b->dns, &target, &query, on_list_answer, b);
    must(b->answers == 0); /* never before it returns */
}

static void
finds(struct list_bed *b, const char *written, int limit, const char *want)
{
    begin(b, written, limit);
    sim_loop_advance(b->loop, 60 * 1000);
    must(b->answers == 1);
    is_string(b->list, want, written);
}

static void
test_lists(void)
{
    struct list_bed b = list_bed_new();
    finds(&b, "smtp://a.test|b.test:26", 5,
          "0 a.test [2001:db8::1]:25, 0 a.test 192.0.2.1:25, 1 b.test 192.0.2.2:26");
    finds(&b, "smtp://b.test|a.test", 1,
          "0 b.test 192.0.2.2:25, 1 a.test [2001:db8::1]:25");
    finds(&b, "submission://[127.0.0.1]|[::1]:26|b.test", 5,
          "0 127.0.0.1 127.0.0.1:587, 1 ::1 [::1]:26, 2 b.test 192.0.2.2:587");
    finds(&b, "smtp://none.test|b.test", 5, "1 b.test 192.0.2.2:25");
    finds(&b, "smtp://b.test|none.test", 5, "0 b.test 192.0.2.2:25");
    finds(&b, "smtp://b.test|b.test:26", 5,
          "0 b.test 192.0.2.2:25, 1 b.test 192.0.2.2:26");
    finds(&b, "smtp://m.test|b.test?mx=yes", 5,
          "0 a.test [2001:db8::1]:25, 0 a.test 192.0.2.1:25, 0 b.test 192.0.2.2:25, "
          "1 b.test 192.0.2.2:25");
    finds(&b, "smtp://none.test|never.test", 5, "");
    is_number(b.outcome.verdict, VERDICT_DEFERRED, "nobody is found: it waits");
    ok(strstr(b.outcome.text, "never.test") != NULL);
    list_bed_free(&b);
}

static void
test_many(void)
{
    struct list_bed b = list_bed_new();
    char name[40], ip[40];
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 9; j++) {
            snprintf(name, sizeof(name), "h%d.test", i);
            snprintf(ip, sizeof(ip), "192.0.2.%d", 10 * (i + 1) + j);
            sim_dns_address(b.dns, name, ip);
        }
    begin(&b, "smtp://h0.test|h1.test|h2.test|h3.test|h4.test|h5.test|h6.test|h7.test",
          40);
    sim_loop_advance(b.loop, 60 * 1000);
    unsigned seen = 0, commas = 0;
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "%d h%d.test", i, i);
        seen += strstr(b.list, name) != NULL;
    }
    for (const char *at = b.list; *at; at++)
        commas += *at == ',';
    is_number(seen, 8, "each of a long list has its share");
    is_number(commas + 1, 40, "of all that are tried");
    list_bed_free(&b);
}

static void
test_patience(void)
{
    struct list_bed b = list_bed_new();
    sim_dns_delay(b.dns, 10000);
    begin(&b, "smtp://[127.0.0.1]|b.test", 5);
    sim_loop_advance(b.loop, MX_LOOKUP_LIST_WAIT_MS - 100);
    is_number(b.answers, 0, "a little patience");
    sim_loop_advance(b.loop, 200);
    is_string(b.list, "0 127.0.0.1 127.0.0.1:25", "then without the late one");
    sim_loop_advance(b.loop, 60 * 1000);
    is_number(b.answers, 1, "who is not told later");
    begin(&b, "smtp://[127.0.0.1]|b.test", 5);
    sim_loop_advance(b.loop, MX_LOOKUP_LIST_WAIT_MS + 100);
    mx_lookup_list_free(&b.relays);
    sim_loop_advance(b.loop, 60 * 1000);
    is_number(b.answers, 1, "nor when it is freed meanwhile");
    begin(&b, "smtp://b.test|a.test", 5);
    sim_loop_advance(b.loop, 5000);
    mx_lookup_list_free(&b.relays);
    sim_loop_advance(b.loop, 60 * 1000);
    is_number(b.answers, 0, "freed before the answer");
    b.free_inside = true;
    begin(&b, "smtp://[127.0.0.1]|b.test", 5);
    sim_loop_advance(b.loop, 60 * 1000);
    is_number(b.answers, 1, "freed inside it");
    list_bed_free(&b);
}

TEST(mx_lookup_list_tests)
{
    test_lists();
    test_many();
    test_patience();
}
