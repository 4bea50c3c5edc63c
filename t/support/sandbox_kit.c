/* Children that enter the sandbox: what the tests of it share. */
#include "t/support/sandbox_kit.h"

char home[] = "/tmp/petrel-sandbox-XXXXXX";

struct sandbox_state offer;

uid_t wanted; /* of the child */

const char *
in_home(const char *name)
{
    static char path[4][NAME_SIZE];
    static unsigned turn;
    char *out = path[turn++ % 4];
    snprintf(out, NAME_SIZE, "%s/%s", home, name);
    return out;
}

void
spit(const char *path, const char *content)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    must(file >= 0 && write(file, content, strlen(content)) >= 0 && close(file) == 0);
}

void
begin(void)
{
    umask(0);
    must(mkdtemp(home) != NULL && chmod(home, 0777) == 0);
    must(mkdir(in_home("ours"), 0777) == 0 && mkdir(in_home("ours/a"), 0777) == 0);
    must(mkdir(in_home("ours/b"), 0777) == 0 && mkdir(in_home("read"), 0777) == 0);
    must(mkdir(in_home("others"), 0777) == 0);
    spit(in_home("ours/a/file"), "ours");
    spit(in_home("read/settings"), "old");
    spit(in_home("read/beside"), "key");
    spit(in_home("others/secret"), "theirs");
}

void
sandbox_finish(void)
{
    char command[NAME_SIZE];
    snprintf(command, sizeof(command), "rm -rf %s", home);
    must(system(command) == 0);
}

struct sandbox *
planned(void)
{
    struct sandbox *s = sandbox_new();
    child_plan(s);
    sandbox_let_write(s, in_home("ours"));
    sandbox_let_read(s, in_home("read/settings"));
    sandbox_let_read(s, "/etc/passwd");
    return s;
}

int
child(bool nobody, int (*act)(void), char *told, size_t told_size)
{
    int status, both[2];
    size_t length = 0;
    ssize_t got;
    fflush(stdout);
    wanted = nobody ? NOBODY : getuid();
    must(pipe(both) == 0);
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        struct identity who = {
            .change = true, .uid = NOBODY, .gid = NOBODY, .name = "nobody"};
        dup2(both[1], STDERR_FILENO);
        close(both[0]);
        if (nobody && !identity_keep(&who))
            _exit(100);
        struct sandbox *s = planned();
        sandbox_enter(s);
        child_exit(act());
    }
    close(both[1]);
    while (told && length < told_size - 1 &&
           (got = read(both[0], told + length, told_size - 1 - length)) > 0)
        length += (size_t)got;
    if (told)
        told[length] = '\0';
    must(waitpid(pid, &status, 0) == pid);
    close(both[0]);
    return status;
}
