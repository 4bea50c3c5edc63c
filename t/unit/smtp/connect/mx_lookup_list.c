/* link: t/sim/loop.c */
/* link: t/sim/dns.c */
/* The addresses of a list of hosts: order, ports, hosts that are not found, or late. */
#include "smtp/connect/mx_lookup.h"

#include "base/net/net.h"

#include "sched/route/target.h"
#include "t/sim/sim.h"
#include "t/sim/sim_dns.h"
#include "t/support/must.h"
#include "t/support/tap.h"

struct bed {
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
on_answer(void *context, const struct mx_lookup_answer *answer)
{
    struct bed *b = context;
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

static struct bed
bed_new(void)
{
    struct bed b = {.loop = sim_loop_new(7)};
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
bed_free(struct bed *b)
{
    mx_lookup_list_free(&b->relays);
    dns_free(&b->dns);
    net_free(&b->net);
    loop_free(&b->loop);
}

static void
begin(struct bed *b, const char *written, int limit)
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
        mx_lookup_list_find(b->loop, b->net, b->dns, &target, &query, on_answer, b);
    must(b->answers == 0); /* never before it returns */
}

static void
finds(struct bed *b, const char *written, int limit, const char *want)
{
    begin(b, written, limit);
    sim_loop_advance(b->loop, 60 * 1000);
    must(b->answers == 1);
    is_string(b->list, want, written);
}

TEST(lists)
{
    struct bed b = bed_new();
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
    bed_free(&b);
}

TEST(many)
{
    struct bed b = bed_new();
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
    bed_free(&b);
}

TEST(patience)
{
    struct bed b = bed_new();
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
    bed_free(&b);
}
