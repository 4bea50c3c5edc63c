/* An argument list finds its subcommand; what is none is refused, and the daemon is not run by mistake. */
#include "admin/dispatch/dispatch.h"
#include "t/support/tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

enum { RAN = 42 };
static int runs;
static char *environment[] = {NULL};

static int
run(const struct options_sources *sources)
{
    runs += sources != NULL && sources->file != NULL; /* said later: standard output is away */
    return RAN;
}

/* Its output goes to a file: said. */
static char said[4000];

static int
dispatched(const char *words)
{
    char *arguments[8] = {NULL}, copy[200], path[] = "/tmp/dispatch.XXXXXX";
    int count = 0, file = mkstemp(path), standard[3] = {-1, dup(1), dup(2)};
    struct options_sources sources = {.file = "/nonexistent/petrel.conf", .environment = environment};
    snprintf(copy, sizeof(copy), "%s", words);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        arguments[count++] = word;
    fflush(NULL);
    dup2(file, 1);
    dup2(file, 2);
    int code = dispatch_command(&sources, count, arguments, run);
    fflush(NULL);
    for (int i = 1; i < 3; i++) {
        dup2(standard[i], i);
        close(standard[i]);
    }
    ssize_t got = pread(file, said, sizeof(said) - 1, 0);
    said[got > 0 ? got : 0] = '\0';
    close(file);
    unlink(path);
    return code;
}

static void
says(const char *words, int code, const char *part)
{
    is_number(dispatched(words), code, words);
    ok_named(strstr(said, part) != NULL, part);
    if (strstr(said, part) == NULL)
        fprintf(stderr, "# %s\n", said);
}

int
main(void)
{
    is_number(dispatched(""), RAN, "nothing is the daemon");
    is_number(dispatched("run"), RAN, "as is its name");
    is_number(runs, 2, "twice");
    says("run now", EX_USAGE, "usage");
    says("rnu", EX_USAGE, "run");
    says("no-such-thing", EX_USAGE, "no-such-thing");
    says("run --help", 0, "petrel run");
    says("help", 0, "status");
    says("help check", 0, "petrel check");
    says("version", 0, "petrel ");
    says("check", EX_CONFIG, "/nonexistent/petrel.conf");
    says("status", EX_CONFIG, "/nonexistent/petrel.conf");
    says("mime", EX_USAGE, "petrel: mime: no longer a command; ");
    says("simulate", EX_USAGE, "petrel: simulate: no longer a command; ");
    says("sendmail", EX_CONFIG, "/nonexistent/petrel.conf");
    says("doctor", EX_CONFIG, "/nonexistent/petrel.conf");
    says("init --surely", EX_USAGE, "init");
    is_number(runs, 2, "and the daemon no more");
    char name[] = "sendmail", *arguments[] = {name, NULL};
    struct options_sources sources = {.file = "/nonexistent/petrel.conf", .environment = environment};
    is_number(dispatch_sendmail(&sources, 1, arguments), EX_CONFIG, "by its own name");
    return done();
}
