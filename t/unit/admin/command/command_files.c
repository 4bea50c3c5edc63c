/* A command that reads a terminal: passwd. */
#include "admin/tool/passwd.h"

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
passwd(int count, char **arguments, const struct options *options)
{
    (void)options;
    return passwd_command(count, arguments);
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
    int code = passwd_command(1, arguments);
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

TEST(terminal)
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

TEST(names)
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
    tap_tests("");
    command_world_end(&world);
    return done();
}
