/* Which files are waited for: a program that begins takes its settings from a command, a
 * daemon that runs waits for nobody, and what a value names is a regular file. */
#include "base/settings/settings.h"

#include "t/support/tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct target {
    char *password;
};

static const struct setting rows[] = {
    {"password", SETTING_STRING, offsetof(struct target, password), NULL,             0,        0, true,
     "It.", 0, NULL},
    {NULL,          SETTING_STRING,                     0,                    NULL,        0, 0, false, NULL, 0, NULL},
};

static void
is_refused(bool runs, const char *file, const char *argument, const char *expected)
{
    struct target target = {0};
    struct settings *s = settings_new(rows, "PETREL", &target);
    if (runs)
        settings_never_wait(s);
    if (file != NULL)
        settings_read_file(s, file);
    else
        settings_read_argument(s, argument);
    is_number(settings_apply(s), 1, "one error");
    is_text(settings_errors(s), text_from(expected), expected);
    settings_free(&s);
}

TEST(fifo)
{
    char folder[] = "/tmp/petrel-wait-XXXXXX", path[100], argument[120], expected[300];
    ok(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/fifo", folder);
    ok(mkfifo(path, 0600) == 0);
    int fifo = open(path, O_RDWR); /* a writer that says nothing */
    snprintf(expected, sizeof(expected), "%s: cannot read: it is not a regular file\n",
             path);
    is_refused(true, path, NULL, expected);
    snprintf(argument, sizeof(argument), "password_file=%s", path);
    snprintf(
        expected, sizeof(expected),
        "command line: password_file: cannot read '%s': it is not a regular file\n",
        path);
    is_refused(true, NULL, argument, expected);
    is_refused(false, NULL, argument, expected);
    close(fifo);
    unlink(path);
    rmdir(folder);
}

TEST(pipe)
{
    struct target target = {0};
    char path[40];
    int ends[2];
    ok(pipe(ends) == 0 && write(ends[1], "password = x\n", 13) == 13);
    close(ends[1]);
    snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
    struct settings *s = settings_new(rows, "PETREL", &target);
    settings_read_file(s, path);
    is_number(settings_apply(s), 0,
              "what a program begins with may come from a command");
    is_string(target.password, "x", "all of it");
    settings_free(&s);
    close(ends[0]);
    /* A reload of -c /dev/null. */
    s = settings_new(rows, "PETREL", &target);
    settings_never_wait(s);
    settings_read_file(s, "/dev/null");
    is_number(settings_apply(s), 0, "/dev/null is an empty file");
    settings_free(&s);
}

int
main(void)
{
    alarm(60); /* SIGALRM would end the test */
    tap_tests("");
    return done();
}
