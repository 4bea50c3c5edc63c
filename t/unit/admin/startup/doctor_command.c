/* `petrel doctor` before it asks anybody: arguments, and settings with an error. The rest:
 * t/e2e/doctor.t. */
#include "admin/startup/commands.h"

#include "t/support/tap.h"

#include <sysexits.h>

int
main(void)
{
    char bad[] = "--bad", domain[] = "a.test", wrong[] = "hostname=a b c", *arguments[] = {bad, domain};
    char *overrides[] = {wrong, NULL}, *none[] = {NULL};
    struct options_sources sources = {.file = "/dev/null", .overrides = overrides, .environment = none};
    is_number(doctor_command(1, arguments, &sources), EX_USAGE, "an unknown option");
    is_number(doctor_command(1, arguments + 1, &sources), EX_CONFIG, "settings with an error");
    return done();
}
