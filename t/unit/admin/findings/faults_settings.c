/* Settings that are warned of when they are read, and that others are not. */
#include "admin/findings/faults_internal.h"

#include "base/log/log_internal.h"
#include "t/support/tap.h"

static struct buffer said;
static const char *hostname = "mail.example.org";

/* The warnings for these settings, without an error; `said` has them. */
static void
say(char *const *arguments)
{
    struct options options;
    struct options_sources sources = {.overrides = arguments};
    struct settings *settings = options_read(&sources, &options);
    struct buffer mistakes;
    buffer_init(&mistakes, 4096);
    struct route_table *routes = options_routes(&options, &mistakes);
    is_text(buffer_text(&mistakes), TEXT(""), "the settings are good");
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_WARNING);
    buffer_free(&said);
    buffer_init(&said, 4096);
    log_capture(log, &said);
    faults_log(&options, settings, routes, FAULT_RELOAD, log);
    log_free(&log);
    route_free(&routes);
    settings_free(&settings);
    buffer_free(&mistakes);
}

static void
ask(const char *registry, const char *list, bool joins, const char *slices)
{
    static char copies[6][200];
    char *const arguments[] = {copies[0], copies[1], copies[2], copies[3],
                               copies[4], copies[5], NULL};
    snprintf(copies[0], sizeof(copies[0]), "defrag_registry=%s", registry);
    snprintf(copies[1], sizeof(copies[1]), "defrag_peers=%s", list);
    snprintf(copies[2], sizeof(copies[2]), "relay=smtp://10.0.0.7%s",
             joins ? "?defragment=yes" : "");
    snprintf(copies[3], sizeof(copies[3]), "slices=%s", slices);
    snprintf(copies[4], sizeof(copies[4]), "defrag_host=a");
    snprintf(copies[5], sizeof(copies[5]), "hostname=%s", hostname);
    say(arguments);
}

static bool
is_said(const char *words)
{
    return said.length > 0 &&
           memmem(said.at, said.length, words, strlen(words)) != NULL;
}

static size_t
lines(void)
{
    size_t count = 0;
    for (size_t i = 0; i < said.length; i++)
        count += said.at[i] == '\n';
    return count;
}

TEST(good)
{
    ask("local", "", false, "1");
    is_number(lines(), 0, "the defaults");
    ask("local", "", true, "1");
    is_number(lines(), 0, "one host");
    ask("local", "a=10.0.0.1", true, "1");
    is_number(lines(), 0, "who names itself alone");
    ask("dir:/shared", "a=10.0.0.1 b=10.0.0.2", true, "1");
    is_number(lines(), 0, "two hosts");
    ask("redis://10.0.0.9", "b=10.0.0.2", true, "4");
    is_number(lines(), 1, "and slices, of which one line warns");
    ask("local", "", false, "4");
    is_number(lines(), 1, "slices that join nothing");
}

TEST(bad)
{
    ask("dir:/shared", "", true, "1");
    ok(is_said("but defrag_peers names no other"));
    is_number(lines(), 1, "nobody to send to");
    ask("redis://10.0.0.9", "a=10.0.0.1", true, "1");
    ok_named(is_said("but defrag_peers names no other"), "oneself is nobody");
    ask("local", "b=10.0.0.2", true, "1");
    ok(is_said("but defrag_registry is local"));
    is_number(lines(), 1, "nowhere to ask");
    ask("dir:/shared", "b=10.0.0.2", false, "1");
    ok(is_said("but no route says defragment=yes"));
    is_number(lines(), 1, "nothing to join");
    ask("local", "", true, "2");
    ok(is_said("slices do not share fragments"));
    is_number(lines(), 2, "slices apart");
    ask("dir:/shared", "", false, "1");
    is_number(lines(), 2, "each has its line");
}

TEST(hostname)
{
    static const struct {
        const char *hostname, *system, *says; /* NULL: nothing */
    } rows[] = {
        {"mail.example.org",      "vps",       NULL                                               },
        {"mail.example.org.",     "vps",       NULL                                               },
        {"[192.0.2.1]",           "vps",       NULL                                               },
        {NULL,                    NULL,        NULL                                               },
        {"vps",                   "vps",
         "hostname 'vps' is not a full name; other servers will refuse mail: set "
         "hostname"                                                                               },
        {"vps.",                  "vps",       "hostname 'vps.' is not a full name; other servers"},
        {"localhost",             "localhost", "hostname 'localhost' is not a full name; other"   },
        {"localhost",             NULL,        "hostname 'localhost' is not a full name; other"   },
        {"localhost.localdomain", "x",
         "'localhost.localdomain' is not a full name; other"                                      },
        {"me.LocalDomain.",       "x",         "'me.LocalDomain.' is not a full name"             },
        {"me.localhost",          "x",         "'me.localhost' is not a full name"                },
        {"localhost",             "my_app",
         "'localhost' is not a full name (the system's, 'my_app', is not usable); "
         "other"                                                                                  },
        {"localhost",             "(none)",    "(the system's, '(none)', is not usable)"          },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char what[FAULTS_HOSTNAME_MAX];
        bool warned = faults_hostname(rows[i].hostname, rows[i].system, what)[0] != '\0';
        ok_named(warned == (rows[i].says != NULL), what);
        ok(rows[i].says == NULL || strstr(what, rows[i].says) != NULL);
    }
    hostname = "vps";
    ask("local", "", false, "1");
    ok(is_said("warning: hostname 'vps' is not a full name; other servers"));
    is_number(lines(), 1, "told once");
    hostname = "mail.example.org";
}

/* Settings, each a word of its own; the line that they bring, NULL: none. */
static void
warns(const char *const *settings, const char *line)
{
    static char copies[4][2000], name[] = "hostname=mail.example.org";
    char *arguments[6] = {name};
    size_t count = 0;
    for (; settings[count] != NULL; count++) {
        snprintf(copies[count], sizeof(copies[0]), "%s", settings[count]);
        arguments[count + 1] = copies[count];
    }
    arguments[count + 1] = NULL;
    say(arguments);
    is_number(lines(), line != NULL, settings[0]);
    if (!ok_named(line == NULL || is_said(line), line ? line : "nothing is said"))
        printf("# %.*s\n", TEXT_ARGS(buffer_text(&said)));
}

TEST(values)
{
    static const struct {
        const char *const settings[4], *line;
    } rows[] = {
        {{"relay=smtp://h.test:465"},
         "warning: h.test:465: port 465 has TLS from the first byte: write smtps://\n"},
        {{"relay=smtps://h.test:587"},
         "warning: h.test:587: port 587 begins without TLS: write submission://\n"    },
        {{"routes=* smtps://h.test:25"},
         "warning: h.test:25: port 25 begins without TLS: write submission://\n"      },
        {{"relay=smtp://a.test|b.test:465"},
         "warning: b.test:465: port 465 has TLS from the first byte: write smtps://\n"},
        {{"relay=smtps://h.test"},                                       NULL         },
        {{"relay=submission://h.test"},                                  NULL         },
        {{"relay=smtp://h.test:2525"},                                   NULL         },
        {{"routes=* smtp://h.test?concurrency=2&initial=3"},
         "warning: h.test: an initial concurrency of 3 is above the limit of 2, which "
         "applies\n"                                                                  },
        {{"routes=* smtp://h.test?concurrency=3&initial=3"},             NULL         },
        {{"spool=queue"},
         "warning: spool is not an absolute path: it depends on the directory in which "
         "the "
         "daemon is started\n"                                                        },
        {{"maximal_queue_lifetime=1d", "bounce_queue_lifetime=2d"},
         "warning: bounce_queue_lifetime is longer than maximal_queue_lifetime, which "
         "ends "
         "bounces, too\n"                                                             },
        {{"maximal_queue_lifetime=5", "bounce_queue_lifetime=5s"},
         "warning: command line: maximal_queue_lifetime: 5 without a unit is 5 "
         "seconds, in Postfix days: write 5d or 5s\n"                                 },
        {{"bounce_queue_lifetime=3600"},
         "warning: command line: bounce_queue_lifetime: 3600 without a unit is 3600 "
         "seconds, in Postfix days: write 3600d or 3600s\n"                           },
        {{"delay_warning_time=4"},
         "warning: command line: delay_warning_time: 4 without a unit is 4 seconds, in "
         "Postfix hours: write 4h or 4s\n"                                            },
        {{"maximal_queue_lifetime=5d", "delay_warning_time=0",
          "bounce_queue_lifetime=0"},
         NULL                                                                         },
        {{"relay=smtp://h.test?defragment=yes&lifetime=1d"},
         "warning: half of notices= is longer than the lifetime: fragments that wait "
         "expire "
         "first\n"                                                                    },
        {{"relay=smtp://h.test?defragment=yes&notices=20h&lifetime=1d"}, NULL         },
        {{"relay=smtp://h.test?notices=4h,1d&lifetime=1d"},
         "warning: notices= has a time beyond the lifetime: mail is returned to its "
         "sender before\n"                                                            },
        {{"relay=smtp://h.test?notices=4h,23h&lifetime=1d"},             NULL         },
        {{"slices=4", "slice=3"},
         "warning: slices = 4: each daemon applies the limits of clients (client_..., "
         "server_...) by itself, so all together may reach 4 times as much: divide them\n"},
        {{"slices=1"},                                                   NULL         },
        {{"routes=* mx\n    a.test smtp://h.test"},
         "warning: command line: routes: the route 'a.test' is never chosen, because "
         "'*' "
         "stands before it and the first match wins: move it up, or remove it\n"      },
        {{"routes=a.test smtp://h.test\n    * mx"},                      NULL         },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        warns(rows[i].settings, rows[i].line);
}

/* Ten are named, one a line. */
TEST(many_hidden)
{
    static char routes[1000] = "routes=* mx";
    for (int i = 0; i < 12; i++) {
        size_t used = strlen(routes);
        snprintf(routes + used, sizeof(routes) - used, "\n    d%d.test smtp://h.test",
                 i);
    }
    char *const arguments[] = {routes, NULL};
    say(arguments);
    ok(is_said("'d9.test' is never chosen") && !is_said("d10.test"));
    ok(is_said("warning: 2 more routes are never chosen\n"));
}

static void
test_accounts(void)
{
    static char account[100], relay[100], host[] = "hostname=mail.example.org";
    char *const arguments[] = {account, relay, host, NULL};
    strcpy(account, "oauth=h.test joe@h.test google client=x");
    strcpy(relay, "relay=smtp://joe%40h.test@h.test");
    say(arguments);
    ok_named(!is_said("oauth"), "a route has the user");
    strcpy(account, "oauth=h.test:25 joe google client=x");
    strcpy(relay, "relay=smtp://h.test");
    say(arguments);
    ok_named(is_said("oauth: no route logs in to h.test as joe: write that user"),
             "none has it");
}

/* A sender that uses several daemons has that many quotas. */
TEST(quotas)
{
    static char quotas[60], relay[80], slices[20], peers[60], registry[40];
    char *const arguments[] = {quotas, relay, slices, peers, registry, NULL};
    strcpy(quotas, "quotas=user:* 5/d");
    strcpy(relay, "relay=smtp://h.test");
    strcpy(slices, "slices=1");
    strcpy(peers, "defrag_peers=");
    strcpy(registry, "defrag_registry=local");
    say(arguments);
    ok_named(!is_said("counts by itself"), "one daemon");
    strcpy(slices, "slices=4");
    say(arguments);
    ok(is_said("quotas: each of the 4 daemons of this spool counts by itself, so all "
               "together may send 4 times as much: divide the amounts\n"));
    strcpy(relay, "relay=smtp://h.test?quota=500/d");
    say(arguments);
    ok(is_said("quotas and quota=: each of the 4 daemons"));
    strcpy(quotas, "quotas=");
    say(arguments);
    ok(is_said("quota=: each of the 4 daemons") && !is_said("quotas and"));
    strcpy(slices, "slices=1");
    strcpy(peers, "defrag_peers=b=10.0.0.2");
    say(arguments);
    ok(is_said("quota=: each host of defrag_peers counts by itself"));
    ok(!is_said("daemons of this spool"));
    strcpy(relay, "relay=smtp://h.test");
    say(arguments);
    ok_named(!is_said("counts by itself"), "without quotas nothing is said");
}

/* A group of hosts that shares less than one might think. */
TEST(group)
{
    static char cluster[40], peers[60], relay[80], redis[40];
    char *const arguments[] = {cluster, peers, relay, redis, NULL};
    strcpy(cluster, "cluster=");
    strcpy(peers, "cluster_peers=");
    strcpy(relay, "relay=smtp://h.test?rate_delay=1s&quota=5/d");
    strcpy(redis, "cluster_redis=none");
    say(arguments);
    ok(is_said("cluster, its name, is not set: no limit is shared"));
    ok_named(!is_said("a rate delay"), "nothing else is said then");
    strcpy(cluster, "cluster=mail");
    strcpy(peers, "slices=2");
    say(arguments);
    ok_named(!is_said("cluster is set"), "slices know each other");
    strcpy(peers, "cluster_peers=");
    say(arguments);
    ok(is_said("cluster is set without cluster_redis and cluster_peers"));
    ok(is_said("a rate delay is each host's own, also in a group: rate= is shared"));
    ok(is_said("quota=: each host of the cluster counts by itself"));
    strcpy(peers, "cluster_peers=b=10.0.0.2:4650");
    strcpy(relay, "relay=smtp://h.test?rate=5/s");
    say(arguments);
    ok_named(!is_said("cluster is set") && !is_said("a rate delay") &&
                 !is_said("counts by itself"),
             "a group of peers with a rate is good");
    strcpy(redis, "stop=hand_over");
    say(arguments);
    ok(is_said("stop = hand_over gives the queue to nobody without cluster and cluster_secret"));
    strcpy(relay, "cluster_secret=0123456789012345678901234567890123456789");
    say(arguments);
    ok_named(!is_said("to nobody"), "with a secret it can");
    strcpy(cluster, "cluster=");
    say(arguments);
    ok_named(is_said("to nobody"), "but not without a group");
}

TEST(cores)
{
    static const struct {
        int slices, cores;
        const char *says; /* NULL: nothing */
    } rows[] = {
        {1,    64,   NULL                                                            },
        {2,    0,    NULL                                                            },
        {2,    3,    NULL                                                            },
        {4,    7,    NULL                                                            },
        {1024, 4096, NULL                                                            },
        {2,    4,    "slices = 2, and this host has 4 cores: slices = 4 uses them, if"},
        {2,    15,   "and this host has 15 cores: slices = 8 uses them"              },
        {512,  4096, "this host has 4096 cores: slices = 1024 uses them"             },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct faults found = {.row = faults_row("cores_unused")};
        ok(!faults_find_cores(rows[i].slices, rows[i].cores, &found));
        is_number(found.count, rows[i].says != NULL, "cores of slices");
        ok(rows[i].says == NULL || strstr(found.items[0].text, rows[i].says) != NULL);
        faults_free(&found);
    }
}

int
main(void)
{
    tap_tests("");
    buffer_free(&said);
    test_accounts();
    return done();
}
