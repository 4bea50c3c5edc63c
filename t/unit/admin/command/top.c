/* `petrel top` without a terminal: its arguments, and no daemon. t/e2e/top.t has the rest. */
#include "admin/command/top.h"

#include "t/support/command_world.h"
#include "t/support/tap.h"

#include <sysexits.h>

static struct command_world world;

int
main(void)
{
    static const char *const wrong[] = {"-x", "now", "-d", "-d soon", "-d 99ms", "-d0", "-d 61m", "-n", "-n 0", "-n -1", "-n x", "--json"};
    command_world_begin(&world, "top");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        is_refused(run(top_command, wrong[i]), EX_USAGE, "usage: petrel top [-d TIME] [-n ROUNDS]\n");
    is_refused(run(top_command, "-d 99ms"), EX_USAGE, "petrel top: -d needs a time from 100ms to 1h: 99ms\n");
    is_refused(run(top_command, "-n0"), EX_USAGE, "petrel top: -n needs a number, at least 1: 0\n");
    is_refused(run(top_command, ""), EX_UNAVAILABLE, "petrel top: no daemon answers: control socket ");
    is_refused(run(top_command, "-d 1s -n3"), EX_UNAVAILABLE, "petrel top: no daemon answers: control socket ");
    command_world_end(&world);
    return done();
}
