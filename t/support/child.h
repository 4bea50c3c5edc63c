/* Children of a test that end by _exit(): with `make coverage` what they reach counts, too. */
#ifndef T_SUPPORT_CHILD_H
#define T_SUPPORT_CHILD_H

#include "base/sandbox/sandbox.h"

#include <stdnoreturn.h>

/* Before sandbox_enter(): the files of the counts stay in reach. Else it does nothing. */
void child_plan(struct sandbox *s);

noreturn void child_exit(int status);

#endif
