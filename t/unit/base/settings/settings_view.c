/* Settings as a user sees them: what was changed, each with its source and default, and
 * variables that are no setting. */
#include "base/settings/settings.h"

#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

struct target {
    char *hostname, *routes, *password;
    bool open;
    int64_t port, warning_ms;
};

#define ROW(field, key, kind, preset, secret) {key, kind, offsetof(struct target, field), preset, 0, 0, secret, "Help.", 0, NULL}

static const struct setting rows[] = {
    ROW(hostname, "hostname", SETTING_STRING, NULL, false),
    ROW(routes, "routes", SETTING_LIST, "* mx", false),
    ROW(password, "relay_password", SETTING_STRING, NULL, true),
    ROW(open, "open", SETTING_BOOL, "no", false),
    ROW(port, "smtp_port", SETTING_NUMBER, "25", false),
    ROW(warning_ms, "delay_warning_time", SETTING_DURATION, "4h", false),
    {NULL, SETTING_STRING, 0, NULL, 0, 0, false, NULL, 0, NULL},
};

static void
environment_warning(const char *variable, const char *want)
{
    struct target target = {0};
    struct settings *s = settings_new(rows, "PETREL", &target);
    char *copy = strdup(variable);
    char *const environment[] = {copy, NULL};
    settings_read_environment(s, environment);
    is_text(settings_warnings(s), text_from(want), variable);
    is_number((int)settings_apply(s), 0, "a warning is no error");
    settings_free(&s);
    free(copy);
}

/* A variable that resembles nothing is reported and ignored; those of Kubernetes are
 * not reported. */
TEST(unknown_variables)
{
    static const char *const quiet[] = {
        "PETREL_SERVICE_HOST=10.0.0.1", "PETREL_SERVICE_PORT=25", "PETREL_SERVICE_PORT_SMTP=25",
        "PETREL_PORT=tcp://10.0.0.1:25", "PETREL_PORT_25_TCP=x", "PETREL_PORT_25_TCP_ADDR=10.0.0.1",
        "PETREL_OUT_SERVICE_HOST=10.0.0.1", "PETREL_OUT_PORT=x", "PETREL_OUT_PORT_25_TCP_PROTO=tcp",
        "PETREL_CONFIG=/etc/x", "PETREL=x", "PETRELX_FOO=x", "petrel_foo=x", "PETREL_HOSTNAME=a.test"};
    for (size_t i = 0; i < sizeof(quiet) / sizeof(*quiet); i++)
        environment_warning(quiet[i], "");
    environment_warning("PETREL_VERSION=1", "environment: PETREL_VERSION: unknown setting, ignored\n");
    environment_warning("PETREL_Nonsense=1", "environment: PETREL_Nonsense: unknown setting, ignored\n");
    environment_warning("PETREL_RELAY_USER=me", "environment: PETREL_RELAY_USER: unknown setting, ignored; the nearest is "
                                                "'PETREL_RELAY_PASSWORD'\n");
    environment_warning("PETREL_SUPPORT=me", "environment: PETREL_SUPPORT: unknown setting, ignored\n");
    environment_warning("PETREL_A\nB=me", "environment: PETREL_A\\x0aB: unknown setting, ignored\n");
    environment_warning("PETREL_=x", "environment: PETREL_: unknown setting, ignored\n");
}

static void
see(void *context, const struct setting_view *view)
{
    struct buffer *out = context;
    ok(buffer_format(out, "%s|%s|%s|%s|%d\n", view->key, view->value ? view->value : "NULL",
                     view->preset ? view->preset : "NULL", view->source, view->is_changed));
}

/* A value that equals its default is not changed, wherever it was set. */
TEST(changed)
{
    static const char *const arguments[] = {"routes=* hold",  "smtp_port=25", "relay_password=sesame",
                                            "delay_warning_time=0", "hostname="};
    struct target target = {0};
    struct settings *s = settings_new(rows, "PETREL", &target);
    struct buffer out;
    for (size_t i = 0; i < sizeof(arguments) / sizeof(*arguments); i++)
        settings_read_argument(s, arguments[i]);
    is_number((int)settings_apply(s), 0, "good settings");
    buffer_init(&out, 10000);
    settings_print_changed(s, &out);
    is_text(buffer_text(&out),
            TEXT("routes = * hold   # command line\n"
                 "relay_password = ********   # command line\n"
                 "delay_warning_time = 0   # command line\n"),
            "what is not the default");
    buffer_free(&out);
    buffer_init(&out, 10000);
    settings_each(s, see, &out);
    is_text(buffer_text(&out),
            TEXT("hostname|NULL|NULL|command line|0\n"
                 "routes|* hold|* mx|command line|1\n"
                 "relay_password|********|NULL|command line|1\n"
                 "open|no|no|default|0\n"
                 "smtp_port|25|25|command line|0\n"
                 "delay_warning_time|0|4h|command line|1\n"),
            "each setting with its source and default");
    buffer_free(&out);
    settings_free(&s);
}

/* A value that is not read yet is not the default; and a full buffer has whole
 * lines. */
TEST(file)
{
    struct target target = {0};
    struct settings *s = settings_new(rows, "PETREL", &target);
    settings_read_argument(s, "relay_password_file=/nowhere");
    settings_read_preset(s, "hostname=a.test");
    for (size_t limit = 0; limit < 60; limit += 50) {
        FIXTURE(buffer, out, buffer_init, buffer_free, limit);
        settings_print_changed(s, &out);
        is_text(buffer_text(&out), limit == 0 ? TEXT("") : TEXT("relay_password_file = /nowhere   # command line\n"), "a path");
    }
    settings_free(&s);
}
