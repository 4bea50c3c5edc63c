/* `petrel import`: its arguments. t/e2e/import.t has what it writes and says. */
#include "admin/import/import_command.h"

#include "admin/startup/configuration.h"
#include "t/support/command_world.h"
#include "t/support/tap.h"

#include <string.h>
#include <sysexits.h>

static struct command_world world;

static int
import(int count, char **arguments, const struct options *options)
{
    static const struct init_helpers helpers = {configuration_is_good, NULL};
    (void)options;
    return import_command(count, arguments, &helpers);
}

static void
spit(const char *name, const char *content)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", world.folder, name);
    FILE *f = fopen(path, "w");
    ok(f != NULL && fputs(content, f) >= 0 && fclose(f) == 0);
}

static int
import_in(const char *before, const char *name)
{
    char line[600];
    snprintf(line, sizeof(line), "%s %s/%s", before, world.folder, name);
    return run(import, line);
}

TEST(arguments)
{
    command_world_begin(&world, "import");
    spit("x.conf", "account default\nhost a.test\nfrom me@a.test\n");
    spit("nothing", "hello\n");
    is_refused(run(import, ""), EX_USAGE, "usage: petrel import");
    is_refused(import_in("--from", "x.conf"), EX_USAGE, "usage");
    is_refused(import_in("--force", "x.conf"), EX_USAGE, "usage");
    is_refused(import_in("--from sendmail", "x.conf"), EX_USAGE, "usage");
    is_refused(import_in("", "missing"), EX_NOINPUT, "cannot be read");
    is_refused(import_in("", "nothing"), EX_DATAERR, "--from postfix");
    ok(import_in("", "x.conf") == 0);
    ok(strstr(world.output, "\nrelay = smtp://a.test\n") != NULL);
    ok(strstr(world.errors, "x.conf:2: host: -> relay\n") != NULL);
    is_printed(import_in("--from dma --json", "x.conf"), 0, "\"result\": \"unknown\"");
    command_world_end(&world);
}

/* Files of logins, named by mistake, or with another separator. */
TEST(no_secrets)
{
    static const char *const lines[] = {"[a.test]:587 me:hidden", "a.test:me:hidden", "me|a.test:hidden", "password hidden"};
    command_world_begin(&world, "import");
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        spit("logins", lines[i]);
        (void)import_in("--from postfix", "logins");
        ok_named(strstr(world.output, "hidden") == NULL && strstr(world.errors, "hidden") == NULL, lines[i]);
        (void)import_in("--from dma --json", "logins");
        ok_named(strstr(world.output, "hidden") == NULL, "as JSON");
    }
    command_world_end(&world);
}
