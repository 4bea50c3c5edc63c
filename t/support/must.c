/* The end of a test that cannot go on. */
#include "t/support/must.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

noreturn void
must_fail(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: must hold: %s (errno: %s)\n", file, line, condition,
            strerror(errno));
    abort();
}
