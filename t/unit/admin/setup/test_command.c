/* Refusals of `petrel test`, and its output without a daemon; t/e2e/test_command.t has the
 * rest. */
#include "admin/setup/test_command.h"

#include "t/support/command_world.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

static struct command_world world;

static void
waits(const char *line)
{
    is_refused(run(test_command, line), EX_TEMPFAIL,
               "petrel test: no daemon runs (control socket");
    ok(strstr(world.errors, " is safe in ") &&
       strstr(world.errors, "run `systemctl start petrel`"));
}

int
main(void)
{
    static const char *const wrong[] = {"",
                                        "a@b.test c@d.test",
                                        "-v",
                                        "--from",
                                        "--from a@b.test",
                                        "a@b.test --for",
                                        "a@b.test --for x",
                                        "a@b.test --for 25h",
                                        "a@b.test --json",
                                        "-x a@b.test"};
    command_world_begin(&world, "test_command");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        is_refused(run(test_command, wrong[i]), EX_USAGE,
                   "usage: petrel test [-v] ADDRESS ");
    is_refused(run(test_command, "a@b@c"), EX_DATAERR,
               "petrel test: this is not one mail address");
    waits("a@b.test");
    waits("--for 10s a@b.test --from c@d.test");
    command_world_end(&world);
    return done();
}
