/* Settings: every kind and source, precedence, the file's form, and every mistake's
 * line. */
#include "base/settings/settings.h"

#include "base/settings/settings_file.h"
#include "t/support/tap.h"

#include <sys/stat.h>
#include <unistd.h>

struct target {
    char *hostname, *routes, *relay_password;
    bool open;
    int64_t port, limit, delay, offset;
};

#define AT(field) offsetof(struct target, field)

static const struct setting rows[] = {
    {"hostname",           SETTING_STRING,   AT(hostname),       NULL,   0,    0,        false,
     "Name in the banner.", 0, NULL                                                                                   },
    {"routes",             SETTING_LIST,     AT(routes),         "* mx", 0,    0,        false,
     "Where mail goes.\nFirst match wins.", 0, NULL                                                                   },
    {"relay_password",     SETTING_STRING,   AT(relay_password), NULL,   0,    0,        true,  "Secret.", 0, NULL    },
    {"open",               SETTING_BOOL,     AT(open),           "no",   0,    0,        false, "Open.", 0, NULL      },
    {"smtp_port",          SETTING_NUMBER,   AT(port),           "25",   1,    65535,    false, "Port.", 0, NULL      },
    {"message_size_limit", SETTING_SIZE,     AT(limit),          "50M",  1024, 0,        false, "Size.", 0, NULL      },
    {"delay_warning_time", SETTING_DURATION, AT(delay),          "4h",   0,    86400000, false,
     "Time.", 0, NULL                                                                                                 },
    {"offset",             SETTING_NUMBER,   AT(offset),         "-3",   -10,  10,       false, "Below zero.", 0, NULL},
    {NULL,                 SETTING_STRING,   0,                  NULL,   0,    0,        false, NULL, 0, NULL         },
};

static char folder[] = "/tmp/petrel-settings-XXXXXX";

/* The path of a file in the folder with this content; the name is part of mistakes. */
static const char *
file_with(const char *name, struct text content)
{
    static char path[100];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (file == NULL || fwrite(content.at, 1, content.length, file) != content.length)
        abort();
    fclose(file);
    return path;
}

struct fixture {
    struct settings *settings;
    struct target target;
};

static void
begin(struct fixture *f)
{
    memset(&f->target, 0, sizeof(f->target));
    f->settings = settings_new(rows, "PETREL", &f->target);
}

static void
begin_with_file(struct fixture *f, struct text content)
{
    begin(f);
    settings_read_file(f->settings, file_with("petrel.conf", content));
}

static void
end(struct fixture *f)
{
    settings_free(&f->settings);
    ok(f->settings == NULL);
}

/* Exactly this one mistake; `DIR` stands for the folder. */
static void
is_mistake(struct fixture *f, const char *want, const char *name)
{
    char expanded[4096] = "";
    if (strncmp(want, "DIR", 3) == 0)
        snprintf(expanded, sizeof(expanded), "%s%s\n", folder, want + 3);
    else if (want[0] != '\0')
        snprintf(expanded, sizeof(expanded), "%s\n", want);
    size_t count = settings_apply(f->settings);
    is_text(settings_errors(f->settings), text_from(expanded), name);
    is_number(count, want[0] != '\0', "so many mistakes");
}

static void
file_mistake(struct text content, const char *want, const char *name)
{
    FIXTURE(fixture, f, begin_with_file, end, content);
    is_mistake(&f, want, name);
}

static void
argument_mistake(const char *argument, const char *want)
{
    FIXTURE(fixture, f, begin, end);
    settings_read_argument(f.settings, argument);
    is_mistake(&f, want, argument);
}

static void
environment_mistake(const char *variable, const char *want)
{
    struct fixture f;
    char *copy = strdup(variable);
    char *const environment[] = {copy, NULL};
    begin(&f);
    settings_read_environment(f.settings, environment);
    is_mistake(&f, want, variable);
    end(&f);
    free(copy);
}

TEST(parse)
{
    static const struct {
        const char *from;
        int64_t ms, bytes; /* -1: refused */
    } values[] = {
        {"0",                     0,                            0                        },
        {"90",                    90000,                        90                       },
        {"15ms",                  15,                           -1                       },
        {"2s",                    2000,                         -1                       },
        {"3m",                    180000,                       3 << 20                  },
        {"4h",                    14400000,                     -1                       },
        {"5d",                    432000000,                    -1                       },
        {"1w",                    604800000,                    -1                       },
        {"2K",                    -1,                           2048                     },
        {"2k",                    -1,                           2048                     },
        {"3M",                    -1,                           3 << 20                  },
        {"7G",                    -1,                           INT64_C(7) << 30         },
        {"7g",                    -1,                           INT64_C(7) << 30         },
        {"1h30m",                 -1,                           -1                       },
        {"",                      -1,                           -1                       },
        {"h",                     -1,                           -1                       },
        {"M",                     -1,                           -1                       },
        {"1 h",                   -1,                           -1                       },
        {"1 M",                   -1,                           -1                       },
        {"1.5h",                  -1,                           -1                       },
        {"-1",                    -1,                           -1                       },
        {"+1",                    -1,                           -1                       },
        {"1T",                    -1,                           -1                       },
        {"1KB",                   -1,                           -1                       },
        {"1H",                    -1,                           -1                       },
        {"0x10",                  -1,                           -1                       },
        {"9223372036854775807",   -1,                           INT64_MAX                },
        {"9223372036854775808",   -1,                           -1                       },
        {"9223372036854775807ms", INT64_MAX,                    -1                       },
        {"9223372036854775",      INT64_C(9223372036854775000), INT64_C(9223372036854775)},
        {"9223372036854776",      -1,                           INT64_C(9223372036854776)},
        {"8589934591G",           -1,                           INT64_C(8589934591) << 30},
        {"8589934592G",           -1,                           -1                       },
        {"99999999999999999999w", -1,                           -1                       },
    };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        int64_t ms = -1, bytes = -1;
        bool time = settings_parse_duration(text_from(values[i].from), &ms);
        bool size = settings_parse_size(text_from(values[i].from), &bytes);
        is_number(ms, values[i].ms, values[i].from);
        is_number(bytes, values[i].bytes, values[i].from);
        ok(time == (values[i].ms >= 0) && size == (values[i].bytes >= 0));
    }
}

TEST(defaults)
{
    struct fixture f;
    begin(&f);
    is_mistake(&f, "", "defaults are right");
    ok(f.target.hostname == NULL);
    is_string(f.target.routes, "* mx", "a list");
    ok(!f.target.open);
    is_number(f.target.port, 25, "a number");
    is_number(f.target.limit, 50 << 20, "a size");
    is_number(f.target.delay, 4 * 3600 * 1000, "a duration");
    is_number(f.target.offset, -3, "a number below zero");
    end(&f);
    settings_free(&f.settings); /* nothing twice */
}

TEST(bool)
{
    static const char *const yes[] = {"yes", "true", "on", "1", "Yes"};
    static const char *const no[] = {"no", "false", "off", "0", "FALSE"};
    for (size_t i = 0; i < 10; i++) {
        char argument[20];
        FIXTURE(fixture, f, begin, end);
        f.target.open = i >= 5;
        snprintf(argument, sizeof(argument), "open=%s", i < 5 ? yes[i] : no[i - 5]);
        settings_read_argument(f.settings, argument);
        ok_named(settings_apply(f.settings) == 0 && f.target.open == (i < 5), argument);
    }
}

TEST(file_form)
{
    struct fixture f;
    begin_with_file(&f, TEXT("# comment\n"
                             "\n"
                             "hostname=mx.example\n"
                             "  # a comment with blanks before it\n"
                             "routes =\n"
                             "   a.example   smtp://b  \n"
                             "# a comment between\n"
                             "\n"
                             "\tc.example error:no # and no comment\n"
                             "smtp_port\t=\t2525\t\n"
                             "relay_password = two\n"
                             " words = x\n"
                             "open = yes"));
    is_mistake(&f, "", "nothing wrong with it");
    is_string(f.target.hostname, "mx.example", "no blanks needed");
    is_string(f.target.routes,
              "a.example   smtp://b\nc.example error:no # and no comment",
              "a list's lines are joined by LF");
    is_number(f.target.port, 2525, "blanks around both");
    is_string(f.target.relay_password, "two words = x", "other lines by a space");
    ok_named(f.target.open, "the last line needs no end");
    end(&f);

    begin_with_file(&f, TEXT("\xef\xbb\xbfhostname = a\r\nroutes = b hold\r\n\r\n  c "
                             "hold\r\nopen = on\r\n"));
    is_mistake(&f, "", "CRLF and a byte order mark");
    is_string(f.target.hostname, "a", "without CR");
    is_string(f.target.routes, "b hold\nc hold", "nor in a continued line");
    ok(f.target.open);
    end(&f);

    begin_with_file(&f, TEXT("hostname =\nroutes =\n"));
    is_mistake(&f, "", "empty values");
    ok_named(f.target.hostname == NULL && f.target.routes == NULL, "unset a text");
    end(&f);

    begin_with_file(&f, TEXT(""));
    is_mistake(&f, "", "an empty file");
    end(&f);
}

/* The longest value there can be has space: all of the file but the key. */
TEST(long_value)
{
    struct fixture f;
    size_t size = 1 << 20;
    char *content = malloc(size);
    memset(content, 'x', size);
    memcpy(content, "hostname=", 9);
    begin_with_file(&f, text_of(content, size));
    is_mistake(&f, "", "a line of a mebibyte");
    is_number(strlen(f.target.hostname), size - 9, "is whole");
    end(&f);
    free(content);

    size = 5 << 20;
    content = malloc(size);
    memset(content, '\n', size);
    begin_with_file(&f, text_of(content, size));
    is_mistake(&f, "DIR/petrel.conf: cannot read: File too large",
               "a file without end");
    end(&f);
    free(content);
}

TEST(file_mistakes)
{
    file_mistake(TEXT("\nlistne = x\n"), "DIR/petrel.conf:2: listne: unknown setting",
                 "a key that is like no other");
    file_mistake(
        TEXT("hostnmae = x\n"),
        "DIR/petrel.conf:1: hostnmae: unknown setting; did you mean 'hostname'?",
        "two letters swapped");
    file_mistake(
        TEXT("Hostname = x\n"),
        "DIR/petrel.conf:1: Hostname: unknown setting; did you mean 'hostname'?",
        "keys are in lower case");
    file_mistake(TEXT("relay-pasword_file = x\n"),
                 "DIR/petrel.conf:1: relay-pasword_file: unknown setting; did you mean "
                 "'relay_password_file'?",
                 "the same for a key with _file");
    file_mistake(TEXT("open = no\nhostname\n  = b\n  c\n"),
                 "DIR/petrel.conf:2: expected 'key = value'", "no equals sign");
    file_mistake(TEXT("# x\n= b\n  c\n"), "DIR/petrel.conf:2: expected 'key = value'",
                 "no key; what continues it is no second mistake");
    file_mistake(TEXT("\n  hostname = a\n  b\n"),
                 "DIR/petrel.conf:2: an indented line continues the one above it, and "
                 "there is none: keys begin in the first column",
                 "an indented first line");
    file_mistake(TEXT("nonsense = a\n  b\n  c = d\n"),
                 "DIR/petrel.conf:1: nonsense: unknown setting",
                 "what continues an unknown key");
    file_mistake(TEXT("hostname = a\nopen = no\nhostname = a\n"),
                 "DIR/petrel.conf:3: hostname: set twice, first in line 1",
                 "a key twice");
    file_mistake(TEXT("hostname = a\nhostname_file = /x\n"),
                 "DIR/petrel.conf:2: hostname_file: hostname is set too, in line 1",
                 "a key and its file");
    file_mistake(TEXT("routes = a\n  b\n  c\nsmtp_port = 99999\n"),
                 "DIR/petrel.conf:4: smtp_port: 99999 is more than the maximum, 65535",
                 "lines are counted through continued ones");
    file_mistake(TEXT("hostname = a\0b\n"),
                 "DIR/petrel.conf:1: hostname: a NUL byte in the value", "a NUL");
    file_mistake(TEXT("host\x1b[2Jname = a\n"),
                 "DIR/petrel.conf:1: host\\x1b[2Jname: unknown setting", "an escape");
    file_mistake(TEXT("open = maybe\n"),
                 "DIR/petrel.conf:1: open: 'maybe' is neither yes nor no", "no bool");
    file_mistake(TEXT("open =\n"), "DIR/petrel.conf:1: open: '' is neither yes nor no",
                 "empty is no bool");
}

TEST(value_mistakes)
{
    argument_mistake("smtp_port=0",
                     "command line: smtp_port: 0 is less than the minimum, 1");
    argument_mistake("smtp_port=25x", "command line: smtp_port: '25x' is not a number");
    argument_mistake("smtp_port=", "command line: smtp_port: '' is not a number");
    argument_mistake("smtp_port=99999999999999999999",
                     "command line: smtp_port: '99999999999999999999' is not a number");
    argument_mistake("smtp_port=65535", "");
    argument_mistake("smtp_port=1", "");
    argument_mistake("offset=-10", "");
    argument_mistake("offset=-11",
                     "command line: offset: -11 is less than the minimum, -10");
    argument_mistake("offset=--1", "command line: offset: '--1' is not a number");
    argument_mistake("message_size_limit=1K", "");
    argument_mistake("message_size_limit=9999999G", ""); /* max 0 is no bound */
    argument_mistake(
        "message_size_limit=1",
        "command line: message_size_limit: 1 bytes is less than the minimum, "
        "1024 bytes");
    argument_mistake(
        "message_size_limit=1Q",
        "command line: message_size_limit: '1Q' is not a size: digits, then "
        "K, M, G or nothing");
    argument_mistake("delay_warning_time=1d", "");
    argument_mistake("delay_warning_time=2d",
                     "command line: delay_warning_time: 172800000 ms is more than the "
                     "maximum, 86400000 ms");
    argument_mistake("delay_warning_time=soon",
                     "command line: delay_warning_time: 'soon' is not a time: digits, "
                     "then ms, s, m, h, d, w or nothing");
    argument_mistake("hostname", "command line: hostname: expected key=value");
    argument_mistake("=x", "command line: expected key=value");
    argument_mistake("", "command line: expected key=value");
    argument_mistake("opne=yes",
                     "command line: opne: unknown setting; did you mean 'open'?");
    argument_mistake("opes=yes",
                     "command line: opes: unknown setting; did you mean 'open'?");
    argument_mistake("oxxn=yes", "command line: oxxn: unknown setting");
    argument_mistake(
        "smptport=1",
        "command line: smptport: unknown setting; did you mean 'smtp_port'?");
    argument_mistake("_file=x", "command line: _file: unknown setting");

    char many[200];
    snprintf(many, sizeof(many), "%0150d=x", 0);
    char want[200];
    snprintf(want, sizeof(want), "command line: %0128d: unknown setting", 0);
    argument_mistake(many, want);
}

TEST(environment)
{
    environment_mistake("PETREL_HOSTNMAE=x",
                        "environment: PETREL_HOSTNMAE: unknown setting; did you mean "
                        "'PETREL_HOSTNAME'?");
    environment_mistake("PETREL_hostname=x",
                        "environment: PETREL_hostname: unknown setting; did you mean "
                        "'PETREL_HOSTNAME'?");
    environment_mistake("PETREL_ROUTS_FILE=x",
                        "environment: PETREL_ROUTS_FILE: unknown setting; did you mean "
                        "'PETREL_ROUTES_FILE'?");
    environment_mistake("PETREL_=x", "");
    environment_mistake("PETREL_SERVICE_HOST=10.0.0.1", "");
    environment_mistake("PETREL_PORT=tcp://10.0.0.1:25", "");
    environment_mistake("PETREL_PORT_25_TCP_ADDR=10.0.0.1", "");
    environment_mistake("PETREL_Nonsense=x", "");
    environment_mistake("PETREL_NONSENSE_FILE=/etc/x", "");
    environment_mistake("PETREL_SMTP_PORT=no",
                        "environment: PETREL_SMTP_PORT: 'no' is not a number");
    environment_mistake("PETREL_CONFIG=/etc/x", "");
    environment_mistake("PETREL=x", "");
    environment_mistake("PETRELX_FOO=x", "");
    environment_mistake("petrel_foo=x", "");
    environment_mistake("PETREL_HOSTNAME", "");
    environment_mistake("", "");

    struct fixture f;
    char host[] = "PETREL_HOSTNAME= a=b ", routes[] = "PETREL_ROUTES=a hold\nb mx";
    char password[] = "PETREL_RELAY_PASSWORD= pass word \n";
    char *const environment[] = {host, routes, password, NULL};
    begin(&f);
    settings_read_environment(f.settings, environment);
    is_mistake(&f, "", "three variables");
    is_string(f.target.hostname, "a=b", "a value with =");
    is_string(f.target.relay_password, " pass word ", "a password keeps its blanks");
    is_string(f.target.routes, "a hold\nb mx", "a value with LF");
    end(&f);

    char path[] = "PETREL_HOSTNAME_FILE=/x";
    char *const both[] = {host, path, NULL};
    begin(&f);
    settings_read_environment(f.settings, both);
    is_mistake(&f, "environment: PETREL_HOSTNAME_FILE: PETREL_HOSTNAME is set too",
               "a variable and its file");
    end(&f);
}

/* Every subset of the three sources, in two orders: the strongest decides. */
TEST(precedence)
{
    char variable[] = "PETREL_HOSTNAME=environment";
    char *const environment[] = {variable, NULL};
    static const char *const wants[] = {NULL,           "file",         "environment",
                                        "environment",  "command line", "command line",
                                        "command line", "command line"};
    for (unsigned sources = 0; sources < 8; sources++) {
        for (unsigned order = 0; order < 2; order++) {
            FIXTURE(fixture, f, begin, end);
            for (unsigned i = 0; i < 3; i++) {
                unsigned source = order == 0 ? i : 2 - i;
                if (source == 0 && (sources & 1))
                    settings_read_file(f.settings,
                                       file_with("a.conf", TEXT("hostname = file\n")));
                if (source == 1 && (sources & 2))
                    settings_read_environment(f.settings, environment);
                if (source == 2 && (sources & 4))
                    settings_read_argument(f.settings, "hostname = command line");
            }
            ok(settings_apply(f.settings) == 0);
            is_string(f.target.hostname, wants[sources],
                      "the strongest source decides");
        }
    }

    FIXTURE(fixture, f, begin, end);
    settings_read_argument(f.settings, "hostname=a");
    settings_read_argument(f.settings, "hostname=b");
    settings_read_file(f.settings, file_with("a.conf", TEXT("smtp_port = 1\n")));
    settings_read_file(f.settings, file_with("b.conf", TEXT("smtp_port = 2\n")));
    ok(settings_apply(f.settings) == 0);
    is_string(f.target.hostname, "b", "the later argument");
    is_number(f.target.port, 2, "the later file");
}

TEST(origin)
{
    FIXTURE(fixture, f, begin_with_file, end, TEXT("\nhostname = a\n"));
    settings_read_argument(f.settings, "smtp_port=26");
    ok(settings_apply(f.settings) == 0);
    const char *place = settings_origin(f.settings, TEXT("hostname"));
    ok_named(place && strstr(place, "petrel.conf:2"), "file and line");
    is_string(settings_origin(f.settings, TEXT("smtp_port")), "command line",
              "not a file");
    ok_named(!settings_origin(f.settings, TEXT("open")), "a default");
    ok_named(!settings_origin(f.settings, TEXT("nonsense")), "no key");
}

/* Values of the machine: in place of the default, weaker than any source. */
TEST(preset)
{
    FIXTURE(fixture, f, begin, end);
    ok(settings_apply(f.settings) == 0);
    ok(f.target.hostname == NULL);
    settings_read_preset(f.settings, "hostname=box=1");
    settings_read_preset(f.settings, "smtp_port=2525");
    ok(settings_apply(f.settings) == 0);
    is_string(f.target.hostname, "box=1", "the machine's name");
    is_number(f.target.port, 2525, "instead of the default");
    settings_read_preset(f.settings, "hostname=other");
    settings_read_argument(f.settings, "smtp_port=26");
    ok(settings_apply(f.settings) == 0);
    is_string(f.target.hostname, "other", "the machine changes its mind");
    is_number(f.target.port, 26, "an argument is stronger");
    settings_read_preset(f.settings, "smtp_port=27");
    ok(settings_apply(f.settings) == 0);
    is_number(f.target.port, 26, "whenever it came");
    FIXTURE(buffer, out, buffer_init, buffer_free, 4096);
    settings_print(f.settings, &out);
    ok_named(text_starts(buffer_text(&out), TEXT("hostname = other   # default\n")),
             "check shows it as a default");
}

TEST(key_file)
{
    struct fixture f;
    char argument[200];
    begin(&f);
    snprintf(argument, sizeof(argument), "relay_password_file=%s",
             file_with("secret", TEXT(" pass word\r\n\n")));
    settings_read_argument(f.settings, argument);
    settings_read_file(f.settings,
                       file_with("a.conf", TEXT("relay_password_file = /nowhere\n")));
    is_mistake(&f, "", "only the file that counts is read");
    is_string(f.target.relay_password, " pass word", "the newlines at its end are cut");
    ok_named(settings_apply(f.settings) == 0, "applied again it is the same");
    is_string(f.target.relay_password, " pass word", "so is the value");
    end(&f);

    begin(&f);
    snprintf(argument, sizeof(argument), "relay_password_file=%s",
             file_with("secret", TEXT("\xef\xbb\xbf pass word\r\n")));
    settings_read_argument(f.settings, argument);
    is_mistake(&f, "", "a byte order mark is no part of a value");
    is_string(f.target.relay_password, " pass word", "a blank is");
    end(&f);

    begin(&f);
    settings_read_argument(f.settings, argument);
    settings_read_argument(f.settings, "relay_password=other");
    is_mistake(&f, "", "a later argument replaces the file");
    is_string(f.target.relay_password, "other", "by its value");
    end(&f);

    begin(&f);
    settings_read_argument(f.settings, "hostname_file=");
    is_mistake(&f, "", "no file, no value");
    ok(f.target.hostname == NULL);
    end(&f);

    file_mistake(
        TEXT("open = no\nhostname_file = /nowhere/x\n"),
        "DIR/petrel.conf:2: hostname_file: cannot read '/nowhere/x': No such file "
        "or directory",
        "a file that is not there");

    char content[200];
    snprintf(content, sizeof(content), "smtp_port_file = %s\n",
             file_with("port", TEXT("many\n")));
    snprintf(argument, sizeof(argument),
             "DIR/petrel.conf:1, from %s/port: smtp_port_file: 'many' is not a number",
             folder);
    file_mistake(text_from(content), argument, "a bad value in it");

    snprintf(content, sizeof(content), "hostname_file = %s\n",
             file_with("zero", TEXT("a\0b\n")));
    snprintf(argument, sizeof(argument),
             "DIR/petrel.conf:1: hostname_file: a NUL byte in '%s/zero'", folder);
    file_mistake(text_from(content), argument, "a NUL in it");
}

TEST(unreadable)
{
    struct fixture f;
    begin(&f);
    settings_read_file(f.settings, "/nowhere/petrel.conf");
    is_mistake(&f, "/nowhere/petrel.conf: cannot read: No such file or directory",
               "a missing file");
    end(&f);
    begin(&f);
    settings_read_file(f.settings, folder);
    ok_named(settings_apply(f.settings) == 1, "a folder is no file");
    end(&f);
}

TEST(complain)
{
    struct fixture f;
    char variable[] = "PETREL_ROUTES=x";
    char *const environment[] = {variable, NULL};
    begin_with_file(&f, TEXT("\nhostname = b\xc3\xb6\n"));
    settings_read_environment(f.settings, environment);
    ok(settings_apply(f.settings) == 0);
    settings_complain(f.settings, "hostname", "'%s' is no name", f.target.hostname);
    settings_complain(f.settings, "routes", "bad\ntarget");
    settings_complain(f.settings, "smtp_port", "is taken");
    is_number(settings_apply(f.settings), 3, "the caller's mistakes count");
    char want[300];
    snprintf(want, sizeof(want),
             "%s/petrel.conf:2: hostname: 'b\xc3\xb6' is no name\n"
             "environment: PETREL_ROUTES: bad\\x0atarget\n"
             "default: smtp_port: is taken\n",
             folder);
    is_text(settings_errors(f.settings), text_from(want), "with the value's source");
    end(&f);
    begin_with_file(&f, TEXT("smtp_port = x\n"));
    ok(settings_apply(f.settings) == 1);
    settings_complain(f.settings, "smtp_port", "is too low");
    is_number(settings_apply(f.settings), 1, "one mistake for a key is enough");
    end(&f);
}

/* Several mistakes are all told, once; very many come to an end. */
TEST(many_mistakes)
{
    struct fixture f;
    begin_with_file(&f, TEXT("smtp_port = x\nopen = x\nxyzzy = x\n"));
    is_number(settings_apply(f.settings), 3, "three mistakes");
    is_number(settings_apply(f.settings), 3, "and no more when applied again");
    is_number(f.target.port, 0, "a bad value changes nothing");
    end(&f);

    begin(&f);
    for (int i = 0; i < 5000; i++)
        settings_read_argument(f.settings, "a-very-long-key-that-is-not-known=1");
    is_number(settings_apply(f.settings), 5000, "5000 mistakes are counted");
    struct text t = settings_errors(f.settings);
    ok(t.length <= 65536 && t.at[t.length - 1] == '\n');
    end(&f);
}

TEST(print)
{
    struct fixture f;
    struct buffer out;
    char argument[200], want[1000];
    begin_with_file(&f, TEXT("routes = a mx\n  b hold\nsmtp_port = 26\nhostname = "
                             "a\x1b[m\n"));
    snprintf(argument, sizeof(argument), "relay_password_file=%s",
             file_with("secret", TEXT("sesame\n")));
    settings_read_argument(f.settings, argument);
    is_mistake(&f, "", "to be printed");
    buffer_init(&out, 10000);
    settings_print(f.settings, &out);
    snprintf(want, sizeof(want),
             "hostname = a\\x1b[m   # %s/petrel.conf:4\n"
             "routes =   # %s/petrel.conf:1\n"
             "    a mx\n"
             "    b hold\n"
             "relay_password = ********   # command line, from %s/secret\n"
             "open = no   # default\n"
             "smtp_port = 26   # %s/petrel.conf:3\n"
             "message_size_limit = 50M   # default\n"
             "delay_warning_time = 4h   # default\n"
             "offset = -3   # default\n",
             folder, folder, folder, folder);
    is_text(buffer_text(&out), text_from(want), "effective values, sources, no secret");
    buffer_free(&out);
    for (size_t limit = 0; limit < 300; limit += 7) {
        buffer_init(&out, limit);
        settings_print(f.settings, &out);
        bool secret = out.length > 0 && memmem(out.at, out.length, "sesame", 6) != NULL;
        if (out.length > limit || secret)
            ok_named(false, "a small buffer");
        buffer_free(&out);
    }
    end(&f);

    begin(&f);
    settings_read_argument(f.settings, "relay_password_file=/nowhere");
    settings_apply(f.settings);
    buffer_init(&out, 10000);
    settings_print(f.settings, &out);
    ok(text_starts(buffer_text(&out),
                   TEXT("hostname =   # default\nroutes = * mx   # default\n"
                        "relay_password_file = /nowhere   # command line\n")));
    buffer_free(&out);
    end(&f);
}

TEST(example)
{
    static const struct setting few[] = {
        {"hostname",  SETTING_STRING, 0, NULL,           0, 0, false, "Name in the banner.", 0, NULL},
        {"routes",    SETTING_LIST,   0, "a mx\nb hold", 0, 0, false, "One line.\nAnd two.", 0, NULL},
        {"smtp_port", SETTING_NUMBER, 0, "25",           0, 0, false, "Port.", 0, NULL              },
        {NULL,        SETTING_STRING, 0, NULL,           0, 0, false, NULL, 0, NULL                 },
    };
    struct buffer out;
    buffer_init(&out, 1000);
    settings_example(few, &out);
    is_text(buffer_text(&out),
            TEXT("# Name in the banner.\n"
                 "#hostname =\n"
                 "\n"
                 "# One line.\n"
                 "# And two.\n"
                 "#routes =\n"
                 "#    a mx\n"
                 "#    b hold\n"
                 "\n"
                 "# Port.\n"
                 "#smtp_port = 25\n"),
            "help and defaults");
    buffer_free(&out);

    /* Without the marks it is a file that says what the defaults say. */
    buffer_init(&out, 10000);
    settings_example(rows, &out);
    for (size_t i = 0; i + 1 < out.length; i++)
        if (out.at[i] == '#' && out.at[i + 1] != ' ')
            out.at[i] = '\n';
    FIXTURE(fixture, f, begin_with_file, end, buffer_text(&out));
    is_mistake(&f, "", "the example is a right file");
    is_number(f.target.limit, 50 << 20, "with the defaults in it");
    is_string(f.target.routes, "* mx", "all of them");
    buffer_free(&out);
}

/* The form alone, on every beginning of a file: no line is lost or made up. */
TEST(prefixes)
{
    struct text whole =
        TEXT("a = 1\r\n  2\n# c\n b\n=\n  x\nkey\n\n c = d\ne=f=g\n\t h");
    bool good = true;
    for (size_t length = 0; length <= whole.length; length++) {
        struct settings_file file;
        struct settings_line line;
        char *exact = malloc(length + 1); /* a read beyond it is seen by sanitizers */
        memcpy(exact, whole.at, length);
        settings_file_start(&file, text_of(exact, length));
        size_t number = 0;
        while (settings_file_next(&file, &line)) {
            good = good && line.number > number && line.number <= 11;
            good = good && (line.error == NULL) == (line.key.length > 0);
            good = good && (line.error == NULL || line.value.length == 0);
            number = line.number;
        }
        settings_file_end(&file);
        free(exact);
    }
    ok_named(good, "every beginning of a file is read");
}

static void
add_file(void *context, const char *path)
{
    char *all = context;
    size_t length = strlen(all);
    snprintf(all + length, 1000 - length, "%s;", strrchr(path, '/') + 1);
}

TEST(each_file)
{
    struct fixture f;
    char all[1000] = "";
    begin(&f);
    settings_read_file(f.settings,
                       file_with("petrel.conf", TEXT("hostname_file = /none/x\n")));
    settings_read_file(f.settings, "/none/y");
    settings_apply(f.settings);
    settings_each_file(f.settings, add_file, all);
    is_string(all, "petrel.conf;y;x;", "every file that was read, or should have been");
    settings_free(&f.settings);
}

/* Fields of the types that other structs have. */
TEST(sizes)
{
    struct fields {
        struct text text, unset;
        int flag, word, choice;
        bool is_second;
        uint16_t half;
        int64_t number;
    } fields = {0};
    static const char *const choices[] = {"a", "b", "c", NULL};
#define SIZED(field, its_kind, its_max) \
    {.key = #field, .kind = its_kind, .offset = offsetof(struct fields, field), .max = its_max, .size = sizeof(fields.field)}
    const struct setting sized[] = {
        SIZED(text, SETTING_STRING, 0),       SIZED(unset, SETTING_LIST, 0),         SIZED(flag, SETTING_BOOL, 0),
        SIZED(word, SETTING_DURATION, 90000), SIZED(half, SETTING_NUMBER, UINT16_MAX), SIZED(number, SETTING_SIZE, 0),
        {.key = "choice", .kind = SETTING_WORD, .offset = offsetof(struct fields, choice), .preset = "b", .min = 7, .size = sizeof(int), .words = choices},
        {.key = "is_second", .kind = SETTING_WORD, .offset = offsetof(struct fields, is_second), .preset = "a", .size = sizeof(bool), .words = choices},
        {.key = NULL}
    };
    struct settings *s = settings_new(sized, "PETREL", &fields);
    settings_read_argument(s, "text=a b");
    settings_read_argument(s, "flag=yes");
    settings_read_argument(s, "word=90");
    settings_read_argument(s, "half=65535");
    settings_read_argument(s, "number=8G");
    is_number((int64_t)settings_apply(s), 0, "fields of all types");
    is_text(fields.text, TEXT("a b"), "a text");
    is_text(settings_text(&sized[0], &fields), TEXT("a b"), "which its row finds");
    is_text(fields.unset, TEXT(""), "one that is unset is empty");
    is_number(fields.flag, 1, "a flag");
    is_number(fields.word, 90000, "a time");
    is_number(fields.half, UINT16_MAX, "a port");
    is_number(fields.number, INT64_C(8) << 30, "a size");
    is_number(fields.choice, 8, "a word by default");
    ok_named(!fields.is_second, "and a flag");
    settings_read_argument(s, "choice=c");
    settings_read_argument(s, "is_second=b");
    is_number((int64_t)settings_apply(s), 0, "other words");
    ok_named(fields.choice == 9 && fields.is_second, "have other values");
    settings_read_argument(s, "choice=d");
    is_number((int64_t)settings_apply(s), 1, "no word of them");
    is_text(settings_errors(s), TEXT("command line: choice: 'd': say a, b or c\n"), "which are named");
    is_number(fields.choice, 9, "changes nothing");
    settings_free(&s);
}

int
main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    tap_tests("");

    static const char *const names[] = {"petrel.conf", "a.conf", "b.conf",
                                        "secret",      "port",   "zero"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[100];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    ok(rmdir(folder) == 0);
    return done();
}
