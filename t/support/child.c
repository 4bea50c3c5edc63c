/* The end of a child. */
#include "t/support/child.h"

#include <unistd.h>

#ifdef COVERAGE
void __gcov_dump(void);
#endif

void
child_plan(struct sandbox *s)
{
    (void)s;
#ifdef COVERAGE
    sandbox_let_write(s, COVERAGE);
#endif
}

void
child_exit(int status)
{
#ifdef COVERAGE
    __gcov_dump();
#endif
    _exit(status);
}
