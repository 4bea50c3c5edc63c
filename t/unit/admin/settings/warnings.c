/* admin/settings/warnings.c: what is warned of, and that what fits is not. */
#include "admin/settings/warnings.h"

#include "t/support/tap.h"

static struct buffer said;
static const char *hostname = "mail.example.org";

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
    warnings_say(&options, settings, routes, log);
    log_free(&log);
    route_free(&routes);
    settings_free(&settings);
    buffer_free(&mistakes);
}

static bool
is_said(const char *words)
{
    return memmem(said.at, said.length, words, strlen(words)) != NULL;
}

static size_t
lines(void)
{
    size_t count = 0;
    for (size_t i = 0; i < said.length; i++)
        count += said.at[i] == '\n';
    return count;
}

static void
test_good(void)
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
    is_number(lines(), 0, "and slices");
    ask("local", "", false, "4");
    is_number(lines(), 0, "slices that join nothing");
}

static void
test_bad(void)
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
    is_number(lines(), 1, "slices apart");
    ask("dir:/shared", "", false, "1");
    is_number(lines(), 2, "each has its line");
}

static void
test_hostname(void)
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
        char what[WARNINGS_HOSTNAME_MAX] = "";
        bool warned = warnings_hostname(rows[i].hostname, rows[i].system, what);
        ok_named(warned == (rows[i].says != NULL), what);
        ok(rows[i].says == NULL || strstr(what, rows[i].says) != NULL);
    }
    hostname = "vps";
    ask("local", "", false, "1");
    ok(is_said("warning: hostname 'vps' is not a full name; other servers"));
    is_number(lines(), 1, "told once");
    hostname = "mail.example.org";
}

int
main(void)
{
    test_good();
    test_bad();
    test_hostname();
    buffer_free(&said);
    return done();
}
