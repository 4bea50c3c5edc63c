/* Commands that read a file, standard input or a terminal: mime, passwd. */
#include "admin/command/mime.h"
#include "admin/command/passwd.h"

#include "t/support/command_world.h"
#include "t/support/tap.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <termios.h>
#include <unistd.h>

enum { PATIENCE_MS = 60 * 1000 };

static struct command_world world;

static int
mime(int count, char **arguments, const struct options *options)
{
    (void)options;
    return command_mime(count, arguments);
}

static int
passwd(int count, char **arguments, const struct options *options)
{
    (void)options;
    return command_passwd(count, arguments);
}

/* A command with a file of that content as its last word. */
static int
run_on(int (*command)(int, char **, const struct options *), const char *words,
       const char *content)
{
    char path[100], line[200];
    snprintf(path, sizeof(path), "%s/file", world.folder);
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(content, file) < 0 || fclose(file) != 0)
        abort();
    snprintf(line, sizeof(line), "%s %s", words, path);
    return run(command, line);
}

static void
test_mime(void)
{
    static const char *const wrong[] = {"", "--convert", "a b", "--convert --convert"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        is_refused(run(mime, wrong[i]), EX_USAGE,
                   "usage: petrel mime [--convert] FILE\n");
    is_refused(
        run(mime, "/nonexistent/x"), EX_NOINPUT,
        "petrel mime: cannot read '/nonexistent/x': No such file or directory\n");
    is_printed(run_on(mime, "", "Subject: x\r\n\r\ny\r\n"), 0, "\"to_7bit\": ");
    is_printed(run_on(mime, "--convert", "Subject: x\r\n\r\ny\r\n"), 0,
               "Subject: x\r\n\r\ny\r\n");
    is_printed(run_on(mime, "--convert",
                      "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
                      "Content-Transfer-Encoding: 8bit\r\n\r\n\xc3\xa9\r\n"),
               0, "base64\r\n\r\nw6kNCg==\r\n");
    is_refused(run_on(mime, "--convert", "X: \xe9\r\n"), EX_DATAERR,
               "petrel mime: not converted: a header field has bytes ");
}

static void
test_standard_input(void)
{
    int saved = dup(0), both[2];
    if (saved < 0 || pipe(both) != 0 || write(both[1], "A: b\r\n\r\nc\r\n", 11) != 11)
        abort();
    close(both[1]);
    dup2(both[0], 0);
    is_printed(run(mime, "--convert -"), 0, "A: b\r\n\r\nc\r\n");
    dup2(saved, 0);
    close(both[0]);
    close(saved);
}

/* --- A terminal -------------------------------------------------------------------- */

/* Types each answer when its prompt is there and the terminal shows nothing any more. */
static void
type(int terminal, const char *const *prompts, const char *const *answers)
{
    char seen[1000] = "";
    size_t length = 0;
    struct termios mode;
    for (; *prompts != NULL; prompts++, answers++) {
        struct pollfd readable = {.fd = terminal, .events = POLLIN};
        while (strstr(seen, *prompts) == NULL && poll(&readable, 1, PATIENCE_MS) == 1) {
            ssize_t got = read(terminal, seen + length, sizeof(seen) - 1 - length);
            if (got <= 0)
                _exit(1);
            length += (size_t)got;
            seen[length] = '\0';
        }
        while (tcgetattr(terminal, &mode) == 0 && (mode.c_lflag & ECHO) != 0)
            usleep(1000);
        if (write(terminal, *answers, strlen(*answers)) != (ssize_t)strlen(*answers))
            _exit(1);
    }
    for (;;)
        if (read(terminal, seen, sizeof(seen)) < 0)
            pause();
}

/* `petrel passwd alice` there; standard error is heard beside it, but for the prompts. */
static int
run_there(const char *const *answers)
{
    static const char *const prompts[] = {"Password: ", "Again: ", NULL};
    const char *const *asked =
        answers[1] ? prompts : (const char *[]){prompts[0], NULL};
    int terminal = posix_openpt(O_RDWR | O_NOCTTY), saved = dup(0), errors = dup(2);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0)
        abort();
    int person = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    fflush(NULL);
    pid_t typist = fork();
    if (typist < 0 || person < 0)
        abort();
    if (typist == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        type(terminal, asked, answers);
    }
    char user[] = "alice", *arguments[] = {user, NULL};
    command_world_listen(&world);
    dup2(person, 0);
    dup2(person, 2);
    int code = command_passwd(1, arguments);
    struct termios mode;
    bool restored = tcgetattr(0, &mode) == 0 && (mode.c_lflag & ECHO) != 0;
    dup2(saved, 0);
    dup2(errors, 2);
    command_world_heard(&world);
    ok_named(restored, "the terminal shows again what is typed");
    kill(typist, SIGKILL);
    waitpid(typist, NULL, 0);
    close(person);
    close(terminal);
    close(saved);
    close(errors);
    return code;
}

static void
test_terminal(void)
{
    is_number(run_there((const char *[]){"pencil\n", "pencil\n"}), 0, "twice the same");
    ok(text_starts(text_from(world.output), TEXT("alice:")));
    is_number(run_there((const char *[]){"pencil\n", "pencils\n"}), EX_DATAERR,
              "the two differ");
    is_string(world.output, "", "nothing is printed");
    is_number(run_there((const char *[]){"\x03", NULL}), 130, "^C at the first");
    is_number(run_there((const char *[]){"pencil\n", "pen\x03"}), 130,
              "^C at the second");
    is_string(world.output, "", "nothing is printed");
    is_number(run_there((const char *[]){"\n", NULL}), EX_DATAERR, "none at all");
}

static void
test_names(void)
{
    static const char *const wrong[] = {"a:b", "#a", "a\x07", "a\xff"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        is_refused(run(passwd, wrong[i]), EX_DATAERR, "a user's name ");
    char longest[130];
    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    is_refused(run(passwd, longest), EX_DATAERR, "a user's name has 1 to 128 bytes");
}

int
main(void)
{
    command_world_begin(&world, "files");
    test_mime();
    test_standard_input();
    test_names();
    test_terminal();
    command_world_end(&world);
    return done();
}
