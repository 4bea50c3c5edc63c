/* The options of a target for source address, name in EHLO and family: read, refused,
 * and shown in the name of its queue. */
#include "sched/route/target.h"

#include "t/support/tap.h"
#include "t/support/target_kit.h"

#include <stdio.h>
#include <string.h>

/* Where we come from, and to which addresses we go: a queue of its own. */
TEST(sources)
{
    static const struct {
        const char *written, *key, *problem;
    } all[] = {
        {"mx?bind=192.0.2.7&helo=mail.d.example",
         "smtp:other.example?bind=192.0.2.7&helo=mail.d.example",                            NULL                                  },
        {"mx?bind=2001:DB8::7,192.0.2.7",
         "smtp:other.example?bind=192.0.2.7,2001:db8::7",                                    NULL                                  },
        {"smtp://a|b?helo=x.y&family=IPv4",       "smtp:[a]:25|[b]:25?helo=x.y&family=ipv4",
         NULL                                                                                                                      },
        {"smtps://a?tls=encrypt&family=any",      "smtps:[a]:465?tls=encrypt&family=any",
         NULL                                                                                                                      },
        {"mx?helo=[192.0.2.7]",                   "smtp:other.example?helo=[192.0.2.7]",     NULL                                  },
        {"smtp://[::1]?family=ipv6",              "smtp:[::1]:25?family=ipv6",               NULL                                  },
        {"mx?bind=",                              NULL,                                      "'' is no address"                    },
        {"mx?bind=host.example",                  NULL,                                      "'host.example' is not an IP address" },
        {"mx?bind=192.0.2.1,192.0.2.2",           NULL,
         "'192.0.2.2' is a second address of its family"                                                                           },
        {"mx?helo=",                              NULL,                                      "use a full host name"                },
        {"mx?helo=pod-7",                         NULL,                                      "use a full host name"                },
        {"mx?helo=a_b.example",                   "smtp:other.example?helo=a_b.example",     NULL                                  },
        {"mx?helo=a b.example",                   NULL,                                      "use a full host name"                },
        {"mx?cert=/a.pem",                        "smtp:other.example?tls=encrypt&cert=/a.pem", NULL                               },
        {"smtp://a?key=/K&cert=/C&tls=verify",    "smtp:[a]:25?tls=verify&cert=/C",          NULL                                  },
        {"smtps://u@a?cert=/C",                   "smtps:u@[a]:465?cert=/C",                 NULL                                  },
        {"mx?cert=a.pem",                         NULL,                                      "cert=a.pem: use the absolute path"   },
        {"mx?cert=/a&key=",                       NULL,                                      "key=: use the absolute path"         },
        {"mx?key=/a",                             NULL,                                      "key= needs cert="                    },
        {"smtp://a?tls=none&cert=/a",             NULL,                                      "cert= needs TLS"                     },
        {"lmtp://a?cert=/a",                      NULL,                                      "is unknown here"                     },
        {"mx?family=ipv5",                        NULL,                                      "use any, ipv4 or ipv6"               },
        {"smtp://a|[::1]?family=ipv4",            NULL,                                      "family=ipv4 excludes the address ::1"},
        {"smtp://192.0.2.1?family=ipv6",          NULL,
         "family=ipv6 excludes the address 192.0.2.1"                                                                              },
        {"lmtp://a?bind=192.0.2.7",               NULL,                                      "is unknown here"                     },
        {"maildir:/x/%u?helo=a.b",                NULL,                                      "is unknown here"                     },
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct target t;
        char problem[TARGET_PROBLEM_MAX], key[ROUTE_KEY_MAX];
        bool good = target_kit_parse(all[i].written, &t, problem);
        ok_named(good == (all[i].problem == NULL), all[i].written);
        if (all[i].problem != NULL) {
            ok_named(strstr(problem, all[i].problem) != NULL, problem);
            continue;
        }
        route_key(&t, TEXT("other.example"), key);
        is_string(key, all[i].key, "its queue");
    }
}

/* The longest options leave space for the host. */
TEST(long_source)
{
    struct target t;
    char written[1300], problem[TARGET_PROBLEM_MAX], key[ROUTE_KEY_MAX], name[256];
    memset(name, 'a', sizeof(name));
    for (size_t i = 50; i < 251; i += 50)
        name[i] = '.';
    name[250] = '\0';
    snprintf(
        written, sizeof(written),
        "smtp://h.%.200s?tls=encrypt&family=ipv4&helo=%s&bind=255.255.255.255,2001:db8:"
        "1111:2222:3333:4444:5555:6666&cert=/%.250s",
        name, name, name);
    ok_named(target_kit_parse(written, &t, problem), problem);
    size_t length = route_key(&t, TEXT(""), key);
    ok(length > 500 && strstr(key, "family=ipv4") != NULL &&
       strstr(key, "[h.") != NULL);
}
