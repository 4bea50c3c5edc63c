/* `petrel queue adopt` without a daemon, and its arguments; t/e2e/slices.t has the
 * rest. */
#include "admin/command/queue_command.h"

#include "t/support/tap.h"

#include <sysexits.h>

int
main(void)
{
    static char nowhere[] = "/nonexistent/petrel/control";
    struct options options = {.control = nowhere, .slices = 2};
    static char one[] = "1", strange[] = "one", far[] = "1024";
    char *good[] = {one, one}, *no_number[] = {strange}, *too_far[] = {far};
    is_number(queue_command_adopt(0, good, &options), EX_USAGE, "no slice");
    is_number(queue_command_adopt(1, no_number, &options), EX_USAGE, "no number");
    is_number(queue_command_adopt(1, too_far, &options), EX_USAGE, "out of any range");
    is_number(queue_command_adopt(2, good, &options), EX_USAGE, "one at a time");
    is_number(queue_command_adopt(1, good, &options), EX_UNAVAILABLE, "no daemon answers");
    return done();
}
