/* Addresses and networks: what is read, what is refused, what matches. */
#include "base/net_address.h"

#include "t/support/tap.h"

static const struct {
    const char *text;
    uint16_t port;    /* the default */
    const char *want; /* NULL: refused */
} addresses[] = {
    {"1.2.3.4:25",                                      0,  "1.2.3.4:25"           },
    {"0.0.0.0:0",                                       0,  "0.0.0.0:0"            },
    {"255.255.255.255:65535",                           0,  "255.255.255.255:65535"},
    {"1.2.3.4:25",                                      99, "1.2.3.4:25"           },
    {"1.2.3.4",                                         99, "1.2.3.4:99"           },
    {"[::1]:25",                                        0,  "[::1]:25"             },
    {"[::]:0",                                          0,  "[::]:0"               },
    {"[2001:DB8:0:0:0:0:0:1]:587",                      0,  "[2001:db8::1]:587"    },
    {"[::1]",                                           99, "[::1]:99"             },
    {"::1",                                             99, "[::1]:99"             },
    {"2001:db8::53",                                    53, "[2001:db8::53]:53"    },
    {"[::ffff:1.2.3.4]:25",                             0,  "[::ffff:1.2.3.4]:25"  },
    {"unix:/run/lmtp",                                  0,  "unix:/run/lmtp"       },
    {"unix:relative/path",                              99, "unix:relative/path"   },
    {"1.2.3.4",                                         0,  NULL                   },
    {"[::1]",                                           0,  NULL                   },
    {"::1",                                             0,  NULL                   },
    {"::1:25",                                          0,  NULL                   },
    {"",                                                99, NULL                   },
    {":25",                                             0,  NULL                   },
    {"1.2.3.4:",                                        99, NULL                   },
    {"1.2.3.4:65536",                                   0,  NULL                   },
    {"1.2.3.4:000025",                                  0,  NULL                   },
    {"1.2.3.4:+25",                                     0,  NULL                   },
    {"1.2.3.4: 25",                                     0,  NULL                   },
    {"1.2.3.4:25 ",                                     0,  NULL                   },
    {" 1.2.3.4:25",                                     0,  NULL                   },
    {"1.2.3.4:smtp",                                    0,  NULL                   },
    {"1.2.3:25",                                        0,  NULL                   },
    {"1.2.3.4.5:25",                                    0,  NULL                   },
    {"1.2.3.256:25",                                    0,  NULL                   },
    {"1.2.3.04:25",                                     0,  NULL                   },
    {"0x7f.0.0.1:25",                                   0,  NULL                   },
    {"localhost:25",                                    0,  NULL                   },
    {"[1.2.3.4]:25",                                    0,  NULL                   },
    {"[::1:25",                                         0,  NULL                   },
    {"::1]:25",                                         0,  NULL                   },
    {"[]:25",                                           0,  NULL                   },
    {"[::1]25",                                         0,  NULL                   },
    {"[::1]:",                                          99, NULL                   },
    {"[[::1]]:25",                                      0,  NULL                   },
    {"[fe80::1%lo]:25",                                 0,  NULL                   },
    {"[::12345]:25",                                    0,  NULL                   },
    {"[1::2::3]:25",                                    0,  NULL                   },
    {"unix:",                                           0,  NULL                   },
    {"unix:/a\tb",                                      0,  NULL                   },
    {"UNIX:/a",                                         0,  NULL                   },
    {"1:2:3:4:5:6:7:8:9:a:b:c:d:e:f:0:1:2:3:4:5:6:7:8", 99, NULL                   },
};

TEST(parse)
{
    for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
        char name[160], out[NET_ADDRESS_TEXT_MAX] = "";
        struct net_address a, again;
        bool good =
            net_address_parse(text_from(addresses[i].text), addresses[i].port, &a);

        snprintf(name, sizeof(name), "'%s' with default port %u", addresses[i].text,
                 addresses[i].port);
        if (!addresses[i].want) {
            ok_named(!good, name);
            continue;
        }
        if (good)
            net_address_format(&a, out);
        is_string(out, addresses[i].want, name);
        ok_named(net_address_parse(text_from(out), 0, &again) &&
                     net_address_equal(&a, &again),
                 "and reads back the same");
    }
    ok_named(
        !net_address_parse(text_of("1.2.3.4\0:25", 11), 0, &(struct net_address){0}),
        "a NUL inside");
    ok_named(
        !net_address_parse(text_of("1.2.3.4:25\0", 11), 0, &(struct net_address){0}),
        "a NUL behind");
}

TEST(paths)
{
    char text[200] = "unix:/", out[NET_ADDRESS_TEXT_MAX];
    struct net_address a;

    memset(text + 6, 'x', sizeof(text) - 6);
    ok_named(net_address_parse(text_of(text, 5 + NET_PATH_MAX - 1), 0, &a),
             "the longest path");
    net_address_format(&a, out);
    is_text(text_from(out), text_of(text, 5 + NET_PATH_MAX - 1), "is written in full");
    ok_named(!net_address_parse(text_of(text, 5 + NET_PATH_MAX), 0, &a),
             "one byte more");
    net_address_ip(&a, out);
    is_string(out, "unix", "a path has no IP address");
    a = (struct net_address){0};
    net_address_format(&a, out);
    is_string(out, "unknown", "no address");
}

TEST(ip)
{
    static const char *const good[][2] = {
        {"127.0.0.1",       "127.0.0.1"      },
        {"::",              "::"             },
        {"::1",             "::1"            },
        {"FE80::A",         "fe80::a"        },
        {"::ffff:10.0.0.1", "::ffff:10.0.0.1"},
    };
    static const char *const bad[] = {"",      "1.2.3.4:25", "[::1]", "IPv6:::1",
                                      "1.2.3", "1234",       "::g",   " ::1",
                                      "::1\t", "unix:/a"};
    char out[NET_ADDRESS_TEXT_MAX];
    struct net_address a;

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        ok_named(net_address_parse_ip(text_from(good[i][0]), &a), good[i][0]);
        net_address_ip(&a, out);
        is_string(out, good[i][1], "is written canonically");
        is_number(a.port, 0, "without a port");
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ok_named(!net_address_parse_ip(text_from(bad[i]), &a), bad[i]);
}

static struct net_address
address(const char *text)
{
    struct net_address a;

    if (!net_address_parse(text_from(text), 25, &a))
        abort();
    return a;
}

static bool
equal(const char *a, const char *b)
{
    struct net_address left = address(a), right = address(b);

    return net_address_equal(&left, &right);
}

TEST(public)
{
    static const struct {
        const char *text;
        bool want;
    } rows[] = {
        {"1.1.1.1", true},        {"8.8.8.8", true},         {"9.255.255.255", true},   {"11.0.0.0", true},
        {"0.0.0.0", false},       {"0.1.2.3", false},        {"10.0.0.1", false},       {"10.255.255.255", false},
        {"127.0.0.1", false},     {"100.63.255.255", true},  {"100.64.0.0", false},     {"100.127.255.255", false},
        {"100.128.0.0", true},    {"169.253.1.1", true},     {"169.254.169.254", false}, {"172.15.0.1", true},
        {"172.16.0.1", false},    {"172.31.255.255", false}, {"172.32.0.0", true},      {"192.167.1.1", true},
        {"192.168.1.1", false},   {"192.169.0.0", true},     {"223.255.255.255", true}, {"224.0.0.1", false},
        {"255.255.255.255", false}, {"::", false},           {"::1", false},            {"fe80::1", false},
        {"fc00::1", false},       {"fd12::1", false},        {"ff02::1", false},        {"2001:4860::1", true},
        {"3fff::1", true},        {"4000::1", false},        {"::ffff:10.0.0.1", false}, {"::ffff:1.1.1.1", true},
        {"64:ff9b::a00:1", false}, {"64:ff9b::101:101", true}, {"2002:a00:1::", false}, {"2002:101:101::", true},
        {"::10.0.0.1", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct net_address a;
        ok(net_address_parse_ip(text_from(rows[i].text), &a));
        is_number(net_address_is_public(&a), rows[i].want, rows[i].text);
    }
    struct net_address socket = {.family = NET_UNIX};
    ok(!net_address_is_public(&socket));
}

static bool
is_loopback(const char *text)
{
    struct net_address a = address(text);

    return net_address_is_loopback(&a);
}

TEST(compare)
{
    ok_named(equal("1.2.3.4:25", "1.2.3.4"), "equal");
    ok_named(!equal("1.2.3.4:25", "1.2.3.4:26"), "another port");
    ok_named(!equal("1.2.3.4", "1.2.3.5"), "another address");
    ok_named(equal("2001:db8::1", "2001:db8:0::1"), "equal IPv6");
    ok_named(!equal("2001:db8::1", "2001:db8::2"), "another IPv6 address");
    ok_named(!equal("1.2.3.4", "102:304::"), "another family, same bytes");
    ok_named(equal("unix:/a", "unix:/a"), "equal paths");
    ok_named(!equal("unix:/a", "unix:/b"), "another path");
    ok_named(is_loopback("127.0.0.1"), "127.0.0.1 is loopback");
    ok_named(is_loopback("127.255.0.9"), "so is all of 127/8");
    ok_named(!is_loopback("128.0.0.1"), "128.0.0.1 is not");
    ok_named(is_loopback("::1"), "::1 is");
    ok_named(!is_loopback("::"), ":: is not");
    ok_named(!is_loopback("1::1"), "nor is 1::1");
    ok_named(is_loopback("::ffff:127.0.0.1"), "the mapped one is");
    ok_named(!is_loopback("::ffff:1.2.3.4"), "another mapped one is not");
    ok_named(is_loopback("unix:/a"), "a path is on this host");
    ok_named(!net_address_is_loopback(&(struct net_address){0}), "nothing is not");
}

static const struct {
    const char *network, *inside, *outside; /* inside NULL: refused */
} networks[] = {
    {"10.0.0.0/8",          "10.255.255.255",   "11.0.0.0"       },
    {"10.0.0.0/8",          "10.0.0.0",         "9.255.255.255"  },
    {"10.0.0.0/8",          "::ffff:10.1.2.3",  "::ffff:11.1.2.3"},
    {"192.168.128.0/17",    "192.168.255.1",    "192.168.127.255"},
    {"192.168.1.4/30",      "192.168.1.7",      "192.168.1.8"    },
    {"1.2.3.4",             "1.2.3.4",          "1.2.3.5"        },
    {"1.2.3.4/32",          "1.2.3.4",          "1.2.3.5"        },
    {"0.0.0.0/0",           "200.1.1.1",        "::1"            },
    {"::/0",                "2001:db8::1",      "1.2.3.4"        },
    {"::/0",                "::1",              "::ffff:1.2.3.4" },
    {"::1",                 "::1",              "::2"            },
    {"::1/128",             "::1",              "::"             },
    {"2001:db8::/32",       "2001:db8:ffff::1", "2001:db9::"     },
    {"2001:db8::/33",       "2001:db8:7fff::1", "2001:db8:8000::"},
    {"::ffff:10.0.0.0/104", "10.9.9.9",         "11.0.0.0"       },
    {"::ffff:1.2.3.4",      "1.2.3.4",          "1.2.3.5"        },
    {"127.0.0.0/8",         "127.0.0.1",        "unix:/a"        },
    {"[::1]/128",           "::1",              "::2"            },
    {"[::1]",               "::1",              "::2"            },
    {"[::ffff:127.0.0.0]/104", "127.0.0.1",     "126.0.0.1"      },
    {"[1.2.3.4]",           NULL,               NULL             },
    {"[::1/128]",           NULL,               NULL             },
    {"[]/8",                NULL,               NULL             },
    {"[::1]x/128",          NULL,               NULL             },
    {"10.0.0.1/8",          NULL,               NULL             },
    {"10.0.0.0/33",         NULL,               NULL             },
    {"10.0.0.0/",           NULL,               NULL             },
    {"10.0.0.0/-1",         NULL,               NULL             },
    {"10.0.0.0/8 ",         NULL,               NULL             },
    {"10.0.0.0/0008",       NULL,               NULL             },
    {"10.0.0.0/8/8",        NULL,               NULL             },
    {"10.0.0.0/255.0.0.0",  NULL,               NULL             },
    {"10.0.0/24",           NULL,               NULL             },
    {"10/8",                NULL,               NULL             },
    {"/8",                  NULL,               NULL             },
    {"",                    NULL,               NULL             },
    {"1.2.3.4/31x",         NULL,               NULL             },
    {"1.2.3.5/31",          NULL,               NULL             },
    {"::1/127",             NULL,               NULL             },
    {"::1/129",             NULL,               NULL             },
    {"2001:db8::/31",       "2001:db9::",       "2001:dba::"     },
    {"2001:db9::/31",       NULL,               NULL             },
    {"unix:/a",             NULL,               NULL             },
    {"host/8",              NULL,               NULL             },
};

TEST(networks)
{
    for (size_t i = 0; i < sizeof(networks) / sizeof(*networks); i++) {
        struct net_network network;
        struct net_address inside, outside;
        bool good = net_network_parse(text_from(networks[i].network), &network);
        char name[100];

        snprintf(name, sizeof(name), "network '%s'", networks[i].network);
        ok_named(good == (networks[i].inside != NULL), name);
        if (!good || !networks[i].inside)
            continue;
        inside = address(networks[i].inside);
        outside = address(networks[i].outside);
        ok_named(net_network_has(&network, &inside), networks[i].inside);
        ok_named(!net_network_has(&network, &outside), networks[i].outside);
    }
}
