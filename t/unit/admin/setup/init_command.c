/* `petrel init` without a terminal: every combination of answers makes settings that pass the check; flags, missing
 * answers and wrong ones. */
#include "admin/setup/init_command.h"

#include "admin/startup/configuration.h"
#include "base/memory.h"
#include "t/support/command_world.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

static struct command_world world;
static char file[200];
static unsigned examined;

static int
examine(const struct options_sources *sources)
{
    examined += strcmp(sources->file, file) == 0; /* standard output is listened to */
    return 1;
}

static int
init(int count, char **arguments, const struct options *options)
{
    static const struct init_helpers helpers = {configuration_is_good, examine};
    char *const none[] = {NULL};
    struct options_sources sources = {.file = file, .overrides = none, .environment = none};
    (void)options;
    return init_command(count, arguments, &sources, &helpers);
}

static void
spit(const char *name, const char *content)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", world.folder, name);
    FILE *f = fopen(path, "w");
    if (f == NULL || fputs(content, f) < 0 || fclose(f) != 0)
        abort();
}

/* The output of --print, as a file. */
static bool
passes(void)
{
    char path[300], *const none[] = {NULL};
    struct buffer errors;
    spit("printed", world.output);
    snprintf(path, sizeof(path), "%s/printed", world.folder);
    struct options_sources sources = {.file = path, .overrides = none, .environment = none};
    buffer_init(&errors, CONFIGURATION_ERRORS_MAX);
    bool good = configuration_is_good(&sources, &errors);
    if (!good)
        ok_named(false, errors.at);
    buffer_free(&errors);
    return good;
}

TEST(combinations)
{
    static const char *const hosts[] = {"", "--hostname mail.example.org"};
    static const char *const ways[] = {"mx", "hold", "smtp.example.org", "gmail", "smtp://[2001:db8::1]:2525", "submission://a%40b.test@smtp.example.org --password-file PW",
                                       "sendgrid --password-file PW", "microsoft --relay-user a@b.test --password-file PW", "microsoft --relay-user a@b.test",
                                       "smtp.example.org:2525 --relay-user \xc3\xa9%+@x --password-file PW", "smtp://a.test,smtp://b.test"};
    static const char *const listens[] = {"", "--listen local", "--listen 192.168.1.0/24,2001:db8::/32", "--listen 127.0.0.1:2525", "--listen [::1]:25,10.0.0.0/8"};
    static const char *const roots[] = {"", "--root a@b.test"};
    static const char *const https[] = {"", "--http yes", "--http [::1]:8025"};
    char pw[300];
    unsigned good = 0, all = 0;
    spit("pw", "secret\n");
    spit("password", "secret\n");
    snprintf(pw, sizeof(pw), "%s/pw", world.folder);
    for (size_t h = 0; h < 2; h++)
        for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++)
            for (size_t l = 0; l < 5; l++)
                for (size_t r = 0; r < 2; r++)
                    for (size_t p = 0; p < 3; p++) {
                        char line[900], way[400];
                        const char *at = strstr(ways[w], "PW");
                        snprintf(way, sizeof(way), "%.*s%s", at ? (int)(at - ways[w]) : 300, ways[w], at ? pw : "");
                        if (strcmp(ways[w], "gmail") == 0)
                            snprintf(way, sizeof(way), "gmail --relay-user me@gmail.com");
                        snprintf(line, sizeof(line), "--yes --print --relay %s %s %s %s %s", way, hosts[h], listens[l], roots[r], https[p]);
                        int code = run(init, line);
                        all++;
                        if (code != 0)
                            ok_named(false, line);
                        else if (passes())
                            good++;
                    }
    is_number(good, all, "all combinations pass the check");
    ok(all == 2 * 11 * 5 * 2 * 3 && examined == 0);
}

TEST(wrong)
{
    static const struct {
        const char *line;
        int code;
        const char *part;
    } rows[] = {
        {"--what",                                                                  EX_USAGE,   "usage: petrel init [--yes]"                                  },
        {"--yes more",                                                              EX_USAGE,   "usage: petrel init [--yes]"                                  },
        {"--relay",                                                                 EX_USAGE,   "usage: petrel init [--yes]"                                  },
        {"--relay mx --relay mx",                                                   EX_USAGE,   "usage: petrel init [--yes]"                                  },
        {"--yes",                                                                   EX_USAGE,   "an answer is missing; add --relay (a provider's name, submission://HOST, mx or hold), or run it without --yes"},
        {"--yes --relay gmail",                                                     EX_USAGE,   "an answer is missing; add --relay-user"                       },
        {"--yes --relay zoho --relay-user a@b.test",                                EX_USAGE,   "an answer is missing; add --password-file"                    },
        {"--yes --relay mx --relay-user a",                                         EX_USAGE,   "--relay-user needs one smarthost that is named without a user; remove it"},
        {"--yes --relay mx --sender a@b.test",                                      EX_USAGE,   "--sender needs a smarthost; remove it"                        },
        {"--yes --relay smtp.test --sender a@@b",                                   EX_DATAERR, "--sender: "                                                   },
        {"--yes --relay mx --password-file /dev/null",                              EX_USAGE,   "--password-file needs a user; remove it"                      },
        {"--yes --relay zoho --relay-user a@b.test --password-file /dev/null",      EX_DATAERR, "the password is empty; write it"                              },
        {"--yes --relay zoho --relay-user a@b.test --password-file /nonexistent/x", EX_NOINPUT, "--password-file cannot be read; name a file"                  },
        {"--yes --relay zoho --relay-user a@b.test --password-file /dev/zero",      EX_NOINPUT, "--password-file is too long; write at most 1,024 bytes"       },
        {"--yes --relay nobody",                                                    EX_DATAERR, "--relay: this is neither a provider nor a host; write"         },
        {"--yes --relay mx --root a@@b",                                            EX_DATAERR, "--root: "                                                     },
        {"--yes --relay mx --listen 1.2.3.4",                                       0,          NULL                                                           },
        {"--yes --relay mx --listen 1.2.3.4:99999",                                 EX_DATAERR, "--listen: "                                                   },
        {"--yes --relay mx --listen everywhere",                                    EX_DATAERR, "--listen: 'everywhere': not an address (1.2.3.4:25, [::1]:25 or unix:/path); write local, or networks"},
        {"--yes --relay mx --listen 192.168.1.1/24",                                EX_DATAERR, "--listen: '192.168.1.1/24': has bits behind the mask: write 192.168.1.0/24\n"},
        {"--yes --relay mx --http 8025",                                            EX_DATAERR, "--http: "                                                     },
        {"--yes --relay mx --hostname a..b",                                        EX_DATAERR, "--hostname: 'a..b' is not a host name; write HOST.DOMAIN\n"},
        {"--yes --relay ftp://a.test",                                              EX_DATAERR, "--relay: "                                                    },
        {"--yes --relay smtp://a:b:c",                                              EX_DATAERR, "--relay: "                                                    },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char line[300];
        snprintf(line, sizeof(line), "--print --hostname h.test %s", rows[i].line);
        if (strstr(rows[i].line, "--hostname") != NULL)
            snprintf(line, sizeof(line), "--print %s", rows[i].line);
        int code = run(init, line);
        is_number(code, rows[i].code, rows[i].line);
        if (rows[i].part != NULL)
            ok_named(strstr(world.errors, rows[i].part) != NULL, world.errors);
        ok(rows[i].part == NULL || world.output[0] == '\0');
    }
    char line[400];
    snprintf(line, sizeof(line), "--print --yes --relay submission://a%%40b@c.test --hostname h.test --password-file %s/pw", world.folder);
    is_number(run(init, line), 0, "printed");
    ok(strstr(world.errors, "petrel init: write the password into ") != NULL);
    ok(strstr(world.output, "\nrewrite = local ") == NULL); /* "b" is no domain */
    run(init, "--print --yes --relay smtp.test --root me@b.test --hostname h.test");
    ok(strstr(world.errors, "warning: nobody logs in at the smarthost") != NULL && strstr(world.output, "\nrewrite = local me@b.test\n") != NULL);
    run(init, "--print --yes --relay smtp://smtp.test --hostname h.test");
    ok(strstr(world.errors, "warning: mail of root and cron comes from root@h.test") != NULL && strstr(world.errors, "--sender NAME@DOMAIN\n") != NULL);
    run(init, "--print --yes --relay smtp://smtp.test --sender none --root me@b.test --hostname h.test");
    ok(world.errors[0] == '\0' && strstr(world.output, "rewrite") == NULL);
    run(init, "--print --yes --relay mx --hostname vps");
    ok(strstr(world.errors, "warning: vps has no dot") && strstr(world.errors, "give the full name of this host, HOST.DOMAIN (--hostname)\n"));
}

TEST(write)
{
    spit("petrel.conf", "# petrel: as installed\nuser = nobody\n");
    unlink(strcat(strcpy(world.output, world.folder), "/password"));
    is_number(run(init, "--yes --hostname h.test --relay hold --root a@b.test"), 0, "written");
    ok(examined == 0 && strstr(world.output, "Written: ") == world.output);
    ok(strstr(world.output, "test a@b.test\n") && strstr(world.output, "Mail is kept until you decide: run petrel -c "));
    is_refused(run(init, "--yes --hostname h.test --relay mx"), EX_CANTCREAT, "has settings already; run it with --force to replace them");
    is_number(run(init, "--yes --force --hostname h.test --relay mx"), 0, "replaced");
    ok(examined == 1);
}

int
main(void)
{
    command_world_begin(&world, "init_command");
    snprintf(file, sizeof(file), "%s/petrel.conf", world.folder);
    tap_tests("");
    command_world_end(&world);
    return done();
}
