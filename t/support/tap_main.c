/* main() of a test program that has none: its tests, or those whose names contain the argument. */
#include "t/support/tap.h"

int
main(int count, char **arguments)
{
    tap_tests(count > 1 ? arguments[1] : "");
    return done();
}
