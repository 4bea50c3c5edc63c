/* `petrel passwd` with its standard input and output taken over: the line, refusals. */
#include "admin/tool/passwd.h"

#include "base/crypto/verifier.h"
#include "t/support/tap.h"

#include <sysexits.h>
#include <unistd.h>

/* Its output for a user and a given input; code is its exit code. */
static struct text
run(char *user, const char *input, int *code)
{
    static char printed[1024];
    char *arguments[] = {user, NULL};
    int in[2], out[2], old_in = dup(0), old_out = dup(1);
    if (pipe(in) != 0 || pipe(out) != 0)
        abort();
    if (write(in[1], input, strlen(input)) != (ssize_t)strlen(input))
        abort();
    close(in[1]);
    fflush(stdout);
    dup2(in[0], 0);
    dup2(out[1], 1);
    *code = passwd_command(user ? 1 : 0, arguments);
    fflush(stdout);
    dup2(old_in, 0);
    dup2(old_out, 1);
    close(out[1]);
    ssize_t length = read(out[0], printed, sizeof(printed));
    close(in[0]);
    close(out[0]);
    close(old_in);
    close(old_out);
    return text_of(printed, length > 0 ? (size_t)length : 0);
}

static void
is_refused(const char *user, const char *input, int want)
{
    char name[200];
    int code;
    snprintf(name, sizeof(name), "%s", user ? user : "");
    is_number(run(user ? name : NULL, input, &code).length, 0, "nothing is printed");
    is_number(code, want, "refused");
}

static bool
fits(const struct verifier *v, struct text password)
{
    struct verifier_check c;
    enum verifier_finding finding = verifier_check_start(&c, v, password);
    while (finding == VERIFIER_UNFINISHED)
        finding = verifier_check_go(&c);
    return finding == VERIFIER_RIGHT;
}

int
main(void)
{
    char user[] = "alice";
    struct verifier v;
    int code;
    struct text line = run(user, "pencil\n", &code);
    is_number(code, 0, "a line");
    ok(text_starts(line, TEXT("alice:")));
    ok(verifier_parse(&v, text_trim(text_after(line, 6))) == NULL);
    ok(v.iterations == VERIFIER_ITERATIONS && fits(&v, TEXT("pencil")) &&
       !fits(&v, TEXT("pencil\n")));
    is_refused(NULL, "pencil\n", EX_USAGE);
    is_refused("-x", "pencil\n", EX_USAGE);
    is_refused("a:b", "pencil\n", EX_DATAERR);
    is_refused("#a", "pencil\n", EX_DATAERR);
    is_refused("", "pencil\n", EX_DATAERR);
    is_refused("a", "", EX_DATAERR);
    is_refused("a", "\n", EX_DATAERR);
    is_refused("a", "a\033b\n", EX_DATAERR);
    return done();
}
