/* Settings that are warned of when they are read, and that others are not. */
#include "admin/findings/faults_internal.h"

#include "base/log/log_internal.h"
#include "t/support/tap.h"

static struct buffer said;

/* The warnings for these settings, without an error; `said` has them. */
static void
say(char *const *arguments)
{
    struct options options;
    struct options_sources sources = {.overrides = arguments};
    struct settings *settings = options_read(&sources, &options);
    FIXTURE(buffer, mistakes, buffer_init, buffer_free, 4096);
    struct route_table *routes = options_routes(&options, &mistakes);
    is_text(buffer_text(&mistakes), TEXT(""), "the settings are good");
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_WARNING);
    buffer_free(&said);
    buffer_init(&said, 4096);
    log_capture(log, &said);
    struct accounts accounts;
    ok(accounts_read(&options, &accounts, &mistakes));
    struct rewrites *rewrites = options_rewrites(&options, settings, &mistakes);
    faults_log(&(struct fault_world){.options = &options, .settings = settings, .routes = routes, .rewrites = rewrites, .accounts = &accounts},
               FAULT_RELOAD, log);
    rewrites_free(&rewrites);
    accounts_free(&accounts);
    log_free(&log);
    route_free(&routes);
    settings_free(&settings);
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
    static char vps[] = "hostname=vps";
    say((char *const[]){vps, NULL});
    ok(is_said("warning: hostname 'vps' is not a full name; other servers"));
    is_number(lines(), 1, "told once");
}

enum { WORDS = 5 };

/* Settings, each a word of its own: the number of lines that they bring. */
static void
warns(const char *const settings[WORDS], size_t count)
{
    static char copies[WORDS][2000], name[] = "hostname=mail.example.org";
    char *arguments[WORDS + 2] = {name};
    for (size_t i = 0; i < WORDS && settings[i] != NULL; i++) {
        snprintf(copies[i], sizeof(copies[0]), "%s", settings[i]);
        arguments[i + 1] = copies[i];
    }
    say(arguments);
    if (!is_number(lines(), (int64_t)count, settings[0]))
        printf("# %.*s\n", TEXT_ARGS(buffer_text(&said)));
}

struct row {
    const char *const settings[WORDS], *line; /* NULL: none */
};

static void
warns_all(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        warns(rows[i].settings, rows[i].line != NULL);
        ok_named(rows[i].line == NULL || is_said(rows[i].line), rows[i].line ? rows[i].line : "nothing is said");
    }
}

TEST(smarthosts)
{
    static const struct row rows[] = {
        {{"relay=smtp://h.test:465"},
         "warning: h.test:465: port 465 has TLS from the first byte: write smtps://\n"},
        {{"relay=smtps://h.test:587"},
         "warning: h.test:587: port 587 begins without TLS: write submission://\n"    },
        {{"routes=* smtps://h.test:25"},
         "warning: h.test:25: port 25 begins without TLS: write submission://\n"      },
        {{"relay=smtp://a.test|b.test:465"},
         "warning: b.test:465: port 465 has TLS from the first byte: write smtps://\n"},
        {{"relay=smtps://h.test:2525"},
         "warning: h.test:2525: port 2525 begins without TLS: write submission://\n"  },
        {{"relay=submission://h.test:2465"},
         "warning: h.test:2465: port 2465 has TLS from the first byte: write smtps://\n"},
        {{"relay=smtps://h.test"},
         "warning: h.test:465: port 465 usually takes mail only after a login, and no "
         "user is set: write smtps://USER@h.test, and a line 'h.test USER PASSWORD' "
         "into the file that auth_passwords names, unless this host is known there by "
         "its address\n"                                                              },
        {{"relay=smtp://a.test|u@b.test:587|c.test:587?tls=encrypt", "relay_password=x"},
         "warning: c.test:587: port 587 usually takes mail only after a login, and no "
         "user is set: write submission://USER@c.test, and a line 'c.test USER "
         "PASSWORD'"                                                                  },
        {{"relay=submission://u@h.test", "relay_password=x"},            NULL         },
        {{"relay=submission://127.0.0.1"},                               NULL         },
        {{"relay=submission://h.test?cert=/a.pem&key=/b.pem"},           NULL         },
        {{"relay=smtp://h.test:587"},                                    NULL         },
        {{"relay=smtps://h.test:2465"},                                  NULL         },
        {{"relay=smtp://h.test:2525"},                                   NULL         },
    };
    warns_all(rows, sizeof(rows) / sizeof(*rows));
}

TEST(values)
{
    static const struct row rows[] = {
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
        {{"http_keys=/x", "client_recipient_rate=5/s"},
         "warning: client_recipient_rate: a message by HTTP with more recipients than "
         "its burst of 5 is refused for good: append ,burst=1000, or set "
         "recipient_limit = 5\n"                                                      },
        {{"http_keys=/x", "server_recipient_rate=9/s,burst=999"},
         "warning: server_recipient_rate: a message by HTTP with more recipients than "
         "its burst of 999 is refused for good: append ,burst=1000, or set "
         "recipient_limit = 999\n"                                                    },
        {{"http_keys=/x", "client_recipient_rate=5/s,burst=1000",
          "server_recipient_rate=1000/s"},                               NULL         },
        {{"http_keys=/x", "client_recipient_rate=5/s", "recipient_limit=5"}, NULL     },
        {{"client_recipient_rate=1/s"},                                  NULL         },
        {{"slices=1"},                                                   NULL         },
        {{"routes=* mx\n    a.test smtp://h.test"},
         "warning: command line: routes: the route 'a.test' is never chosen, because "
         "'*' "
         "stands before it and the first match wins: move it up, or remove it\n"      },
        {{"routes=a.test smtp://h.test\n    * mx"},                      NULL         },
        {{"rewrite=* a@b.test\n    x@y.test c@d.test"},
         "warning: command line: rewrite: 'x@y.test' never matches, because '*' stands before it and the first match wins: move it up, or remove it\n"},
    };
    warns_all(rows, sizeof(rows) / sizeof(*rows));
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

/* Several hosts or daemons that share less than one might think, and what they do share. */
TEST(several)
{
    static const char secret[] = "cluster_secret=0123456789012345678901234567890123456789";
    static const struct {
        const char *settings[WORDS];
        size_t lines;
        const char *says; /* NULL: nothing of interest */
    } rows[] = {
        /* Fragments. "a" is this host: oneself is nobody. */
        {{"defrag_host=a", "relay=smtp://10.0.0.7"}, 0, NULL},
        {{"defrag_host=a", "relay=smtp://10.0.0.7?defragment=yes"}, 0, NULL},
        {{"defrag_host=a", "relay=smtp://10.0.0.7?defragment=yes", "defrag_peers=a=10.0.0.1"}, 0, NULL},
        {{"defrag_host=a", "relay=smtp://10.0.0.7?defragment=yes", "defrag_peers=a=10.0.0.1 b=10.0.0.2", "defrag_registry=dir:/shared"}, 0, NULL},
        {{"defrag_host=a", "relay=smtp://10.0.0.7?defragment=yes", "defrag_peers=b=10.0.0.2", "defrag_registry=redis://10.0.0.9", "slices=4"}, 1, "slices = 4"},
        {{"defrag_host=a", "relay=smtp://10.0.0.7", "slices=4"}, 1, "slices = 4"},
        {{"defrag_host=a", "relay=smtp://10.0.0.7?defragment=yes", "defrag_registry=dir:/shared"}, 1, "but defrag_peers names no other"},
        {{"defrag_host=a", "relay=smtp://10.0.0.7?defragment=yes", "defrag_registry=redis://10.0.0.9", "defrag_peers=a=10.0.0.1"}, 1, "but defrag_peers names no other"},
        {{"defrag_host=a", "relay=smtp://10.0.0.7?defragment=yes", "defrag_peers=b=10.0.0.2"}, 1, "but defrag_registry is local"},
        {{"defrag_host=a", "relay=smtp://10.0.0.7", "defrag_registry=dir:/shared", "defrag_peers=b=10.0.0.2"}, 1, "but no route says defragment=yes"},
        {{"defrag_host=a", "relay=smtp://10.0.0.7?defragment=yes", "slices=2"}, 2, "slices do not share fragments"},
        {{"defrag_host=a", "relay=smtp://10.0.0.7", "defrag_registry=dir:/shared"}, 2, "but no route says defragment=yes"},
        /* Accounts. */
        {{"oauth=h.test joe@h.test google client=x", "relay=smtp://joe%40h.test@h.test"}, 0, NULL},
        {{"oauth=h.test:25 joe google client=x", "relay=smtp://h.test"}, 1, "oauth: no route logs in to h.test as joe: write that user"},
        /* Lists are each daemon's own. */
        {{"suppress=yes"}, 0, NULL},
        {{"suppress=yes", "slices=4"}, 1, NULL},
        {{"suppress=yes", "cluster=mail", "cluster_peers=b=10.0.0.2:4650"}, 1, "suppress: each host of the cluster has a list"},
        {{"suppress=yes", "cluster=mail", "cluster_redis=redis://h"}, 0, NULL},
        /* A sender that uses several daemons has that many quotas. */
        {{"quotas=user:* 5/d", "relay=smtp://h.test"}, 0, NULL},
        {{"quotas=user:* 5/d", "relay=smtp://h.test", "slices=4"}, 2, "quotas: each of the 4 daemons of this spool counts by itself, so all together may send 4 times as much: divide the amounts\n"},
        {{"quotas=user:* 5/d", "relay=smtp://h.test?quota=500/d", "slices=4"}, 2, "quotas and quota=: each of the 4 daemons"},
        {{"relay=smtp://h.test?quota=500/d", "slices=4"}, 2, "warning: quota=: each of the 4 daemons"},
        {{"relay=smtp://h.test?quota=500/d", "defrag_peers=b=10.0.0.2"}, 2, "quota=: each host of defrag_peers counts by itself"},
        {{"relay=smtp://h.test", "defrag_peers=b=10.0.0.2"}, 1, "but defrag_registry is local"},
        /* REQUIRETLS, which TLS offers to clients. */
        {{"tls_certificate=/c.pem", "relay=smtp://h.test?tls=none"}, 1, "REQUIRETLS is offered to clients, but no route can carry such mail: give a route tls=encrypt or tls=verify, or leave dane or mta_sts on\n"},
        {{"relay=smtp://h.test?tls=none"}, 0, NULL},
        {{"tls_certificate=/c.pem", "relay=smtp://h.test"}, 0, NULL},
        {{"tls_certificate=/c.pem", "relay="}, 0, NULL},
        {{"tls_certificate=/c.pem", "relay=", "dane=no"}, 0, NULL},
        {{"tls_certificate=/c.pem", "relay=", "dane=no", "mta_sts=no"}, 1, "no route can carry such mail"},
        {{"tls_certificate=/c.pem", "routes=a.test smtp://h.test, * mx?sts=no", "dane=no"}, 0, NULL},
        {{"tls_certificate=/c.pem", "routes=a.test smtp://h.test?tls=none, * mx?sts=no", "dane=no"}, 1, "no route can carry such mail"},
        {{"tls_certificate=/c.pem", "relay=discard"}, 0, NULL},
        /* A group. */
        {{"cluster_redis=none", "relay=smtp://h.test?rate_delay=1s&quota=5/d"}, 1, "cluster, its name, is not set: no limit is shared"},
        {{"cluster=mail", "slices=2", "relay=smtp://h.test?rate_delay=1s", "cluster_redis=none"}, 2, "a rate delay is each host's own"},
        {{"cluster=mail", "relay=smtp://h.test?rate_delay=1s&quota=5/d", "cluster_redis=none"}, 3, "cluster is set without cluster_redis and cluster_peers"},
        {{"cluster=mail", "relay=smtp://h.test?rate_delay=1s", "cluster_peers=b=10.0.0.2:4650"}, 1, "a rate delay is each host's own, also in a group: rate= is shared"},
        {{"cluster=mail", "relay=smtp://h.test?quota=5/d", "cluster_peers=b=10.0.0.2:4650"}, 1, "quota=: each host of the cluster counts by itself"},
        {{"cluster=mail", "relay=smtp://h.test?rate=5/s", "cluster_peers=b=10.0.0.2:4650", "cluster_redis=none"}, 0, NULL},
        {{"cluster=mail", "cluster_peers=b=10.0.0.2:4650", "stop=hand_over"}, 1, "stop = hand_over gives the queue to nobody without cluster and cluster_secret"},
        {{"cluster=mail", "cluster_peers=b=10.0.0.2:4650", "stop=hand_over", secret}, 0, NULL},
        {{"stop=hand_over", secret}, 2, "to nobody"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        warns(rows[i].settings, rows[i].lines);
        ok_named(rows[i].says == NULL || is_said(rows[i].says), rows[i].says ? rows[i].says : "nothing is said");
    }
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
    return done();
}
