/* admin/command/suppress_command.c: without a daemon the spool is changed; with one it is asked. */
#include "admin/command/suppress_command.h"
#include "t/support/command_world.h"
#include "t/support/must.h"
#include "t/support/tap.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

static struct command_world world;

static int
with_list(int count, char **arguments, const struct options *options)
{
    struct options own = *options;
    own.manager.suppression = (struct suppression_settings){.is_on = true, .limit = 1000};
    return suppress_command(count, arguments, &own);
}

static const char *
list_file(const char *content)
{
    static char path[120];
    snprintf(path, sizeof(path), "%s/list", world.folder);
    FILE *file = fopen(path, "w");
    must(file != NULL && fputs(content, file) >= 0 && fclose(file) == 0);
    return path;
}

static int
import(const char *content)
{
    char line[200];
    snprintf(line, sizeof(line), "import %s", list_file(content));
    return run(with_list, line);
}

TEST(without_daemon)
{
    command_world_begin(&world, "suppress");
    (void)command_world_inject(&world, "you@b.test");
    is_printed(run(with_list, "ls"), 0, "");
    is_printed(run(with_list, "add A@B.test gone"), 0, "A@B.test is suppressed\n");
    is_printed(run(with_list, "ls"), 0, "a@b.test  manual ");
    is_printed(run(with_list, "ls --json"), 0, "\"reason\":\"gone\"");
    is_printed(run(with_list, "ls c.test"), 0, "");
    is_refused(run(with_list, "add nonsense"), EX_DATAERR, "petrel suppress: nonsense: not an address\n");
    is_refused(run(with_list, "add postmaster@b.test"), EX_DATAERR, "postmaster");
    is_number(import("email,reason\nx@b.test,abuse complaint,2026-01-02\n\n# no\nbad\ny@b.test,,,hard,c.test\n"), EX_DATAERR,
              "a list with a bad line");
    is_string(world.errors, "petrel suppress: line 5: not an address\n", "which is named");
    is_string(world.output, "2 addresses are suppressed; lines refused: 1\n", "the others are taken");
    is_printed(run(with_list, "export"), 0, "x@b.test,abuse complaint,2026-01-02T00:00:00Z,complaint,\n");
    ok(strstr(world.output, ",hard,c.test\n") != NULL);
    is_number(run(with_list, "rm x@b.test a@b.test nobody@b.test"), EX_DATAERR, "one was not there");
    is_string(world.output,
              "x@b.test is tried again\na@b.test is tried again\nnobody@b.test was not suppressed\n", "the others go");
    is_printed(run(with_list, "ls"), 0, "y@b.test for c.test  hard ");
    is_printed(import("z@b.test\n"), 0, "1 addresses are suppressed; lines refused: 0\n");
    is_refused(run(with_list, "import /nonexistent/file"), EX_NOINPUT, "No such file");
    is_refused(run(suppress_command, "ls"), EX_CONFIG, "no list is kept: set suppress = yes");
    is_refused(run(with_list, "frob"), EX_USAGE, "usage: petrel suppress ls");
    is_refused(run(with_list, ""), EX_USAGE, "usage: petrel suppress ls");
    command_world_end(&world);
}

TEST(by_daemon)
{
    int status;
    command_world_begin(&world, "suppress");
    (void)command_world_inject(&world, "you@b.test");
    pid_t child = command_world_daemon(&world, "{\"ok\":true,\"removed\":[1]}\n");
    is_printed(run(with_list, "rm a@b.test"), 0, "a@b.test is tried again\n");
    ok(strstr(command_world_asked(&world), "\"suppress-remove\"") != NULL);
    waitpid(child, &status, 0);
    child = command_world_daemon(&world, "{\"ok\":false,\"error\":\"no list is kept: set suppress = yes\"}\n");
    is_refused(run(with_list, "ls"), EX_CONFIG, "no list is kept");
    waitpid(child, &status, 0);
    command_world_end(&world);
}
