/* Refusals of petrel page; t/e2e/page_command.t has the rest. */
#include "admin/tool/page_command.h"

#include "t/support/tap.h"

#include <sysexits.h>

static int
page(const char *one, const char *two)
{
    struct options options = {.control = (char *)(uintptr_t) "/nonexistent/control"};
    char *arguments[] = {(char *)(uintptr_t)one, (char *)(uintptr_t)two};
    return page_command(two != NULL ? 2 : one != NULL ? 1 : 0, arguments, &options);
}

int
main(void)
{
    is_number(page("now", NULL), EX_USAGE, "a word that is not known");
    is_number(page("--port", NULL), EX_USAGE, "no number");
    is_number(page("--port", "0"), EX_USAGE, "no port");
    is_number(page("--port", "65536"), EX_USAGE, "beyond all ports");
    is_number(page("--port", "x"), EX_USAGE, "not a number");
    is_number(page(NULL, NULL), EX_UNAVAILABLE, "no daemon");
    is_number(page("--read", NULL), EX_UNAVAILABLE, "nor with less access");
    return done();
}
