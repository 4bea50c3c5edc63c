/* Prints the settings in effect, as lines of a settings file or as JSON. */
#include "admin/startup/commands.h"

#include "admin/view/listing.h"
#include "admin/settings/sandbox_rules.h"
#include "admin/startup/configuration.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

enum { ANCHORS_ERROR_MAX = 512 };

struct check {
    bool changed, json; /* flags */
    json_t *settings;
};

/* JSON escapes control characters by itself; bytes that are not UTF-8 it refuses. */
static json_t *
check_value(const char *value)
{
    if (value == NULL)
        return json_null();
    json_t *plain = json_string(value);
    return plain != NULL ? plain : listing_text(text_from(value));
}

static void
check_add(void *context, const struct setting_view *view)
{
    struct check *c = context;
    if (c->changed && !view->is_changed)
        return;
    json_object_set_new(
        c->settings, view->key,
        json_pack("{s:o,s:o,s:o,s:b}", "value", check_value(view->value), "source",
                  check_value(view->source), "default", check_value(view->preset),
                  "changed", (int)view->is_changed));
}

static void
check_print_json(struct check *c, const struct settings *settings)
{
    c->settings = json_object();
    settings_each(settings, check_add, c);
    json_t *all = json_pack("{s:o}", "settings", c->settings);
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
}

static void
check_print(struct check *c, const struct settings *settings)
{
    struct buffer out;
    if (c->json) {
        check_print_json(c, settings);
        return;
    }
    buffer_init(&out, CONFIGURATION_ERRORS_MAX);
    if (c->changed)
        settings_print_changed(settings, &out);
    else
        settings_print(settings, &out);
    fwrite(out.at, 1, out.length, stdout);
    buffer_free(&out);
}

/* Standard output ends before the warnings, but for the last line. */
static int
check_good(struct check *c, struct configuration *configuration)
{
    check_print(c, configuration->settings);
    fflush(stdout);
    int code = sandbox_rules_check(&configuration->options) ? 0 : EX_OSERR;
    configuration_warn(configuration, NULL);
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_WARNING);
    struct fault_world world = configuration_faults(configuration);
    faults_log(&world, FAULT_CHECK, log);
    log_free(&log);
    if (code == 0 && !c->json)
        puts("# These settings have no errors.");
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == 0)
        code = EX_IOERR;
    return code;
}

static int
check_settings(struct check *c, const struct options_sources *sources)
{
    char error[ANCHORS_ERROR_MAX];
    int code = EX_CONFIG;
    struct configuration *configuration = configuration_new(sources);
    if (configuration == NULL)
        return code;
    if (configuration_trust(configuration, NULL, error, sizeof(error)))
        code = check_good(c, configuration);
    else
        fprintf(stderr, "%s\n", error);
    configuration_free(&configuration);
    return code;
}

int
check_command(int count, char **arguments, const struct options_sources *sources)
{
    struct check c = {0};
    bool good = true;
    if (count == 1 && strcmp(arguments[0], "--example") == 0) {
        options_print_example();
        return fflush(stdout) == 0 ? 0 : EX_IOERR;
    }
    for (int i = 0; i < count; i++) {
        if (strcmp(arguments[i], "--changed") == 0)
            c.changed = true;
        else if (strcmp(arguments[i], "--json") == 0)
            c.json = true;
        else
            good = false;
    }
    if (good)
        return check_settings(&c, sources);
    fputs("usage: petrel check [--changed] [--json] | --example\n", stderr);
    return EX_USAGE;
}
