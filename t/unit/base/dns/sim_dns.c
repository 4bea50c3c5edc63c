/* link: t/sim/loop.c */
/* link: t/sim/dns.c */
/* Proves that the resolver's stand-in keeps the promises of base/dns/dns.h in virtual time.
 */
#include "t/sim/sim.h"
#include "t/sim/sim_dns.h"

#include "base/dns/dns.h"
#include "t/support/tap.h"

struct asked {
    struct dns_query *query;
    struct dns_answer answer;
    int64_t at_ms;
    int times;
    struct loop *loop;
};

static void
answered(void *context, const struct dns_answer *answer)
{
    struct asked *a = context;
    a->answer = *answer;
    a->at_ms = loop_monotonic_ms(a->loop);
    a->times++;
    dns_cancel(&a->query); /* harmless */
}

static struct asked
ask(struct loop *loop, struct dns *dns, bool mx, const char *name)
{
    struct asked a = {.loop = loop};
    a.query = mx ? dns_find_mx(dns, name, answered, &a)
                 : dns_find_addresses(dns, name, answered, &a);
    ok_named(a.times == 0, "not before the start returns");
    sim_loop_advance(loop, 1000);
    is_number(a.times, 1, "once");
    return a;
}

static void
test_answers(struct loop *loop, struct dns *dns)
{
    char ip[NET_ADDRESS_TEXT_MAX];
    sim_dns_mx(dns, "example.test", 20, "MX2.example.test");
    sim_dns_mx(dns, "Example.Test.", 10, "mx1.example.test");
    sim_dns_mx(dns, "null.test", 0, "");
    sim_dns_address(dns, "mx1.example.test", "192.0.2.1");
    sim_dns_address(dns, "mx1.example.test", "192.0.2.2");
    sim_dns_address(dns, "mx1.example.test", "2001:db8::1");

    struct asked a = ask(loop, dns, true, "EXAMPLE.test");
    is_number(a.answer.status, DNS_FOUND, "in the table");
    is_number(a.answer.count, 2, "both");
    is_string(a.answer.mx[0].host, "mx2.example.test", "as added, lower case");
    is_number(a.answer.mx[0].preference, 20, "its preference");
    is_string(a.answer.mx[1].host, "mx1.example.test", "the second");
    is_number(a.answer.ttl_s, SIM_DNS_TTL_S, "a TTL");
    is_string(a.answer.reason, "", "no reason");

    a = ask(loop, dns, true, "null.test");
    is_number(a.answer.count, 1, "the null MX");
    is_string(a.answer.mx[0].host, "", "is the root");

    a = ask(loop, dns, false, "mx1.example.test");
    is_number(a.answer.count, 3, "all addresses");
    net_address_ip(&a.answer.addresses[0], ip);
    is_string(ip, "2001:db8::1", "IPv6 first");
    net_address_ip(&a.answer.addresses[1], ip);
    is_string(ip, "192.0.2.1", "then as added");

    a = ask(loop, dns, false, "example.test");
    is_number(a.answer.status, DNS_NO_DATA, "no address");
    ok(a.answer.reason[0] != '\0');
    a = ask(loop, dns, true, "mx1.example.test");
    is_number(a.answer.status, DNS_NO_DATA, "no MX");
    a = ask(loop, dns, true, "nosuch.test");
    is_number(a.answer.status, DNS_NO_NAME, "not in the table");
    a = ask(loop, dns, false, "a b\n");
    is_number(a.answer.status, DNS_NO_NAME, "no name at all");
    ok(!text_has_control(text_from(a.answer.reason)));
    a = ask(loop, dns, false, "::1");
    is_number(a.answer.addresses[0].family, NET_IPV6, "a literal answers itself");
    a = ask(loop, dns, false, "127.0.0.9");
    is_number(a.answer.addresses[0].ip[3], 9, "of both families");
    a = ask(loop, dns, false, "localhost");
    is_number(a.answer.count, 2, "localhost is known");
}

static void
test_status(struct loop *loop, struct dns *dns)
{
    sim_dns_status(dns, "example.test", DNS_TRY_AGAIN);
    sim_dns_status(dns, "only.test", DNS_NO_DATA);
    struct asked a = ask(loop, dns, true, "example.test");
    is_number(a.answer.status, DNS_TRY_AGAIN, "a status beats the records");
    is_number(a.answer.count, 0, "which are not told");
    a = ask(loop, dns, false, "only.test");
    is_number(a.answer.status, DNS_NO_DATA, "a name that only exists");
    sim_dns_status(dns, "example.test", DNS_FOUND);
    a = ask(loop, dns, true, "example.test");
    is_number(a.answer.count, 2, "and gives them back");
}

static void
test_time(struct loop *loop, struct dns *dns)
{
    int64_t start_ms = loop_monotonic_ms(loop);
    struct asked a = ask(loop, dns, true, "example.test");
    is_number(a.at_ms - start_ms, SIM_DNS_DELAY_MS, "an answer takes its time");
    sim_dns_delay(dns, 700);
    start_ms = loop_monotonic_ms(loop);
    a = ask(loop, dns, false, "127.0.0.1");
    is_number(a.at_ms - start_ms, 700, "or another");
    sim_dns_delay(dns, 0);
    a = ask(loop, dns, true, "example.test");
    is_number(a.answer.count, 2, "or none, still later than the start");
    sim_dns_delay(dns, 500);
    struct asked late = {.loop = loop};
    late.query = dns_find_mx(dns, "late.test", answered, &late);
    sim_loop_advance(loop, 100);
    sim_dns_mx(dns, "late.test", 1, "mx.late.test");
    sim_loop_advance(loop, 500);
    is_number(late.answer.count, 1, "the table of the moment of the answer counts");
}

static void
test_end(struct loop *loop, struct dns **dns)
{
    struct asked a = {.loop = loop}, b = {.loop = loop};
    size_t before = sim_dns_questions(*dns);
    a.query = dns_find_mx(*dns, "example.test", answered, &a);
    b.query = dns_find_mx(*dns, "example.test", answered, &b);
    is_number(sim_dns_questions(*dns) - before, 2, "questions are counted");
    dns_cancel(&a.query);
    ok(a.query == NULL);
    dns_cancel(&a.query);
    sim_loop_advance(loop, 1000);
    is_number(a.times, 0, "a cancelled one is silent");
    is_number(b.times, 1, "the other is not");
    dns_find_mx(*dns, "example.test", answered, &a);
    dns_free(dns);
    ok(*dns == NULL);
    dns_free(dns);
    sim_loop_advance(loop, 1000);
    is_number(a.times, 0, "nothing after the end");
}

int
main(void)
{
    char error[100] = "";
    struct loop *loop = sim_loop_new(1);
    struct dns *dns = dns_new(loop, TEXT(""), error, sizeof(error));
    ok(strlen(dns_version()) > 0);
    dns_set_patience(dns, 100, 1);
    test_answers(loop, dns);
    test_status(loop, dns);
    test_time(loop, dns);
    test_end(loop, &dns);
    loop_free(&loop);
    return done();
}
