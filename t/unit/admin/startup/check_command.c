/* `petrel check`: what it prints, and where it ends with which code. */
#include "admin/startup/commands.h"

#include "t/support/command_world.h"
#include "t/support/tap.h"

#include <jansson.h>
#include <string.h>
#include <sysexits.h>

static struct command_world world;
static char name[] = "hostname=a.test", routes[] = "routes=* hold", bad[] = "slices=3";
static char *const good_settings[] = {name, routes, NULL}, *const bad_settings[] = {name, bad, NULL};
static char *const *overrides = good_settings;

static int
check(int count, char **arguments, const struct options *options)
{
    (void)options;
    struct options_sources sources = {.file = "/dev/null", .overrides = overrides};
    return check_command(count, arguments, &sources);
}

TEST(lines)
{
    static const char end[] = "\n# These settings have no errors.\n";
    is_number(run(check, ""), 0, "check");
    ok(strstr(world.output, "hostname = a.test   # command line\n") && strstr(world.output, "smtp_port = 25   # default\n"));
    ok(strcmp(world.output + strlen(world.output) - strlen(end), end) == 0);
    is_number(run(check, "--changed"), 0, "check --changed");
    is_string(world.output,
              "hostname = a.test   # command line\nroutes = * hold   # command line\n"
              "# These settings have no errors.\n",
              "what is not the default, and the last line");
    is_number(run(check, "--example"), 0, "check --example");
    ok(strstr(world.output, "\n#smtp_port = 25\n") != NULL);
}

TEST(json)
{
    is_number(run(check, "--json --changed"), 0, "check --json");
    json_t *all = json_loads(world.output, 0, NULL), *settings = json_object_get(all, "settings");
    const json_t *row = json_object_get(settings, "routes");
    is_number((int)json_object_size(settings), 2, "as many as were changed");
    is_string(json_string_value(json_object_get(row, "value")), "* hold", "value");
    is_string(json_string_value(json_object_get(row, "source")), "command line", "source");
    is_string(json_string_value(json_object_get(row, "default")), "* mx", "default");
    ok(json_is_true(json_object_get(row, "changed")));
    json_decref(all);
}

TEST(refused)
{
    static const char *const wrong[] = {"--frob", "twice", "--example --json", "--json --example", "--json=1"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        is_refused(run(check, wrong[i]), EX_USAGE, "usage: petrel check [--changed] [--json] | --example\n");
    overrides = bad_settings;
    is_refused(run(check, ""), EX_CONFIG, "command line: slices: 3 is not a power of two");
    is_refused(run(check, "--json"), EX_CONFIG, "command line: slices: 3 is not a power of two");
    overrides = good_settings;
}

int
main(void)
{
    command_world_begin(&world, "check_command");
    tap_tests("");
    command_world_end(&world);
    return done();
}
