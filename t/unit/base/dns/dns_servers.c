/* Proves which name servers are taken, and which are trusted to validate. */
#include "base/dns/dns_servers.h"

#include "t/support/tap.h"

TEST(lists)
{
    static const struct {
        const char *list, *spelt;
        bool vouched;
    } rows[] = {
        {"127.0.0.1",                 "127.0.0.1",                  true },
        {"127.0.0.53:5353, ::1",      "127.0.0.53:5353, ::1",       true },
        {"[::1]:54 ::ffff:127.0.0.1", "[::1]:54, ::ffff:127.0.0.1", true },
        {"127.0.0.11",                "127.0.0.11",                 false},
        {"[::ffff:127.0.0.11]:53",    "::ffff:127.0.0.11",          false},
        {"127.0.0.1 192.0.2.1",       "127.0.0.1, 192.0.2.1",       false},
        {"192.0.2.1 127.0.0.1",       "192.0.2.1, 127.0.0.1",       false},
        {"10.0.0.1",                  "10.0.0.1",                   false},
        {"2001:db8::1",               "2001:db8::1",                false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct dns_servers servers;
        char error[200] = "", spelt[DNS_SERVERS_TEXT_MAX];
        dns_servers_init(&servers);
        ok(dns_servers_parse(&servers, text_from(rows[i].list), error, sizeof(error)));
        (void)dns_servers_list(&servers, false, spelt);
        is_string(spelt, rows[i].spelt, rows[i].list);
        ok_named(servers.vouched == rows[i].vouched, "  is it trusted?");
    }
}

TEST(limits)
{
    struct dns_servers servers;
    struct net_address address = {
        .family = NET_IPV4, .ip = {127, 0, 0, 1},
             .port = 53
    };
    dns_servers_init(&servers);
    for (int i = 0; i < DNS_SERVERS_MAX; i++)
        ok(dns_servers_add(&servers, &address));
    ok_named(!dns_servers_add(&servers, &address), "16 at most");
    dns_servers_init(&servers);
    address.port = 0;
    ok_named(!dns_servers_add(&servers, &address), "port 0");
    address = (struct net_address){.family = NET_UNIX, .port = 53};
    ok_named(!dns_servers_add(&servers, &address), "a Unix socket");
    is_number(servers.count, 0, "  is none");
}

TEST(declared)
{
    static const struct {
        const char *content;
        bool trusted;
    } rows[] = {
        {"nameserver 192.0.2.1\noptions trust-ad\n", true },
        {"options edns0  trust-ad ndots:1",          true },
        {"\toptions\tndots:2\ttrust-ad\r\n",         true },
        {"options edns0\noptions trust-ad\n",        true },
        {"",                                         false},
        {"nameserver 192.0.2.1\n",                   false},
        {"# options trust-ad\n; options trust-ad\n", false},
        {"#options trust-ad\n",                      false},
        {"options no-trust-ad\n",                    false},
        {"options trust-adx TRUST-AD\n",             false},
        {"search options trust-ad\n",                false},
        {"options\ntrust-ad\n",                      false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct dns_servers servers;
        struct net_address far = {
            .family = NET_IPV4, .ip = {192, 0, 2, 1},
                 .port = 53
        };
        dns_servers_init(&servers);
        ok(dns_servers_add(&servers, &far));
        dns_servers_read(&servers, text_from(rows[i].content));
        ok_named(servers.vouched == rows[i].trusted, rows[i].content);
    }
}

TEST(read)
{
    static const struct {
        const char *content, *spelt;
    } rows[] = {
        {"nameserver 192.0.2.1\nnameserver ::1",                                      "192.0.2.1, ::1"},
        {"# nameserver 192.0.2.9\n;nameserver 192.0.2.9\n\tnameserver\t192.0.2.1 # "
         "x\r\n",                                                            "192.0.2.1"     },
        {"nameserver fe80::1%eth0\nnameserver\nnameserver x\nnameserver 192.0.2.1 "
         "192.0.2.9\n",                                                      "192.0.2.1"     },
        {"search nameserver 192.0.2.9\ndomain x\noptions ndots:9 timeout:1 rotate\n",
         ""                                                                                           },
        {"nameserver 127.0.0.1:5353\n",                                               "127.0.0.1:5353"},
        {"",                                                                          ""              },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct dns_servers servers;
        char spelt[DNS_SERVERS_TEXT_MAX];
        dns_servers_init(&servers);
        dns_servers_read(&servers, text_from(rows[i].content));
        (void)dns_servers_list(&servers, false, spelt);
        is_string(spelt, rows[i].spelt, rows[i].content);
    }
}

static void
servers_of(struct dns_servers *servers, const char *list)
{
    char error[200];
    dns_servers_init(servers);
    ok(dns_servers_parse(servers, text_from(list), error, sizeof(error)));
}

/* Dead ones are asked last, for a minute; when all are, each is asked. */
TEST(order)
{
    struct dns_servers s, other;
    char list[DNS_SERVERS_TEXT_MAX];
    int64_t now_ms = 5000;
    servers_of(&s, "192.0.2.1 192.0.2.2 192.0.2.3");
    is_number(dns_servers_next(&s, 0, now_ms), 0, "the first");
    ok_named(dns_server_failed(&s.at[0], now_ms), "is dead, which is news");
    ok_named(!dns_server_failed(&s.at[0], now_ms), "once");
    is_number(dns_servers_next(&s, 0, now_ms), 1, "the second");
    is_number(dns_servers_next(&s, 2, now_ms), 2, "the third");
    is_number(dns_servers_next(&s, 2 | 4, now_ms), 0, "the dead one last");
    ok_named(dns_servers_next(&s, 1 | 2 | 4, now_ms) == SIZE_MAX, "all are asked");
    is_number(dns_servers_next(&s, 0, now_ms + DNS_SERVER_DEAD_MS - 1), 1, "a minute");
    is_number(dns_servers_next(&s, 0, now_ms + DNS_SERVER_DEAD_MS), 0, "has passed");
    ok_named(!dns_server_failed(&s.at[0], now_ms), "still dead: no news");
    ok(dns_server_failed(&s.at[1], now_ms) && dns_server_failed(&s.at[2], now_ms));
    is_number(dns_servers_next(&s, 0, now_ms), 0, "all are dead: in their order");
    is_number(dns_servers_next(&s, 1, now_ms), 1, "each");
    ok_named(dns_server_answered(&s.at[1], now_ms), "one answers again: news");
    ok_named(!dns_server_answered(&s.at[1], now_ms), "once");
    is_number(dns_servers_next(&s, 0, now_ms), 1, "and is first");
    is_number(dns_servers_list(&s, true, list), 2, "two are dead");
    is_string(list, "192.0.2.1, 192.0.2.3", "these");
    servers_of(&other, "192.0.2.1 192.0.2.2 192.0.2.3");
    ok_named(!dns_servers_replace(&s, &other), "the same list changes nothing");
    servers_of(&other, "192.0.2.4 192.0.2.3 192.0.2.2");
    ok(dns_servers_replace(&s, &other));
    is_number(s.generation, 1, "another list");
    is_number(dns_servers_list(&s, true, list), 1, "what is known stays known");
    is_string(list, "192.0.2.3", "of a server that both have");
}
