/* Proves which name servers are taken, and which are trusted to validate. */
#include "base/dns/dns_servers.h"

#include "t/support/tap.h"

static void
test_lists(void)
{
    static const struct {
        const char *list, *spelt;
        bool vouched;
    } rows[] = {
        {"127.0.0.1", "127.0.0.1:53", true},
        {"127.0.0.53:5353, ::1", "127.0.0.53:5353,[::1]:53", true},
        {"[::1]:54 ::ffff:127.0.0.1", "[::1]:54,", true},
        {"127.0.0.11", "127.0.0.11:53", false},
        {"[::ffff:127.0.0.11]:53", "", false},
        {"127.0.0.1 192.0.2.1", "127.0.0.1:53,192.0.2.1:53", false},
        {"192.0.2.1 127.0.0.1", "192.0.2.1:53,127.0.0.1:53", false},
        {"10.0.0.1", "10.0.0.1:53", false},
        {"2001:db8::1", "[2001:db8::1]:53", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct dns_servers servers;
        char error[200] = "";
        dns_servers_init(&servers);
        ok(dns_servers_parse(&servers, text_from(rows[i].list), error, sizeof(error)));
        ok_named(text_starts(buffer_text(&servers.spelt), text_from(rows[i].spelt)),
                 rows[i].list);
        ok_named(servers.vouched == rows[i].vouched, "  is it trusted?");
        buffer_free(&servers.spelt);
    }
}

static void
test_limits(void)
{
    struct dns_servers servers;
    struct net_address address = {.family = NET_IPV4, .ip = {127, 0, 0, 1}, .port = 53};
    dns_servers_init(&servers);
    for (int i = 0; i < DNS_SERVERS_MAX; i++)
        ok(dns_servers_add(&servers, &address));
    ok_named(!dns_servers_add(&servers, &address), "16 at most");
    buffer_free(&servers.spelt);
    dns_servers_init(&servers);
    address.port = 0;
    ok_named(!dns_servers_add(&servers, &address), "port 0");
    address = (struct net_address){.family = NET_UNIX, .port = 53};
    ok_named(!dns_servers_add(&servers, &address), "a Unix socket");
    is_number(servers.count, 0, "  is none");
    buffer_free(&servers.spelt);
}

static void
test_declared(void)
{
    static const struct {
        const char *content;
        bool trusted;
    } rows[] = {
        {"nameserver 192.0.2.1\noptions trust-ad\n", true},
        {"options edns0  trust-ad ndots:1", true},
        {"\toptions\tndots:2\ttrust-ad\r\n", true},
        {"options edns0\noptions trust-ad\n", true},
        {"", false},
        {"nameserver 192.0.2.1\n", false},
        {"# options trust-ad\n; options trust-ad\n", false},
        {"#options trust-ad\n", false},
        {"options no-trust-ad\n", false},
        {"options trust-adx TRUST-AD\n", false},
        {"search options trust-ad\n", false},
        {"options\ntrust-ad\n", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct dns_servers servers;
        struct net_address far = {.family = NET_IPV4, .ip = {192, 0, 2, 1}, .port = 53};
        dns_servers_init(&servers);
        ok(dns_servers_add(&servers, &far));
        dns_servers_declare(&servers, text_from(rows[i].content));
        ok_named(servers.vouched == rows[i].trusted, rows[i].content);
        buffer_free(&servers.spelt);
    }
}

int
main(void)
{
    test_lists();
    test_limits();
    test_declared();
    return done();
}
