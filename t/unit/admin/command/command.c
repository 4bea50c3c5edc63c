/* Commands of the operator as a terminal sees them: texts, errors and exit codes, without a
 * daemon and beside one, which is another process. */
#include "admin/command/command.h"

#include "admin/command/queue_command.h"
#include "admin/view/status.h"
#include "t/support/child.h"
#include "t/support/command_world.h"
#include "t/support/control_world.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

enum { PATIENCE = 60 * 1000 };

static struct command_world world;
static struct id released; /* no route holds it again: it is discarded */

static int
queue_line(const char *verb, struct id id)
{
    char line[200];
    snprintf(line, sizeof(line), "%s %s", verb, command_world_name(id));
    return run(command_queue, line);
}

/* --- Without a daemon ---------------------------------------------------------------- */

TEST(usage)
{
    static const char *const wrong[] = {"",     "list", "show",  "cat",    "why --json",
                                        "hold", "rm",   "retry", "bounce", "release"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        is_refused(run(command_queue, wrong[i]), EX_USAGE, "usage: petrel queue ls");
    is_refused(run(command_queue, "wyh 1"), EX_USAGE,
               "petrel queue: wyh: unknown (did you mean 'why'?)\n");
    is_refused(run(command_queue, "relea --all"), EX_USAGE, "did you mean 'release'");
    is_refused(run(command_queue, "ls --colour"), EX_USAGE, "--colour");
    is_refused(run(command_queue, "ls --older soon"), EX_USAGE, "soon");
    is_refused(run(command_queue, "ls --queue lost"), EX_USAGE, "lost");
    is_refused(run(command_queue, "adopt"), EX_USAGE,
               "usage: petrel queue adopt SLICE");
    is_refused(run(status_command, "--short"), EX_USAGE, "usage: petrel status");
    is_refused(run(status_command, "--watch --json"), EX_USAGE, "usage: petrel status");
    is_refused(run(status_command, "--watch"), EX_UNAVAILABLE, "petrel status: ");
}

TEST(nobody)
{
    is_refused(run(status_command, ""), EX_UNAVAILABLE,
               "petrel status: no daemon answers: ");
    is_refused(run(command_queue, "adopt 0"), EX_UNAVAILABLE, "no daemon answers: ");
    struct options o = command_world_options(&world);
    char longer[300];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    o.control = longer;
    command_world_listen(&world);
    int code = status_command(0, NULL, &o);
    command_world_heard(&world);
    is_refused(code, EX_UNAVAILABLE, "the path is too long");
}

static void
quarantine(struct id id, const char *note)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/corrupt/%s.note", world.spool,
             command_world_name(id));
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(note, file) < 0 || fclose(file) != 0)
        abort();
}

TEST(looking)
{
    struct id one = command_world_inject(&world, "one@b.test");
    struct id two = command_world_inject(&world, "two@keep.test");
    struct id bad = {.time_ms = one.time_ms - 1000, .hash = 7};
    quarantine(bad, "1700000000 damaged content\n");
    is_printed(run(command_queue, "ls --to b.test"), 0,
               " <ann@a.test> -> <one@b.test>\n");
    ok(strstr(world.output, command_world_name(one)) != NULL);
    ok_named(strstr(world.output, "two@keep.test") == NULL, "but no other message");
    is_printed(run(command_queue, "ls --json --to two@keep.test"), 0,
               "\"queue_name\":\"maildrop\"");
    is_printed(queue_line("show", two), 0, "to:       <two@keep.test> waiting\n");
    is_printed(queue_line("show --json", two), 0, "\"sender\":\"ann@a.test\"");
    is_printed(queue_line("why", one), 0, command_world_name(one));
    is_printed(queue_line("why --json", one), 0, "\"queue_id\":");
    is_printed(queue_line("cat", one), 0, "A: b\r\n\r\nc\r\n");
    is_printed(run(command_queue, "show --all"), 0, "\n\nid:       ");
    is_refused(queue_line("cat", bad), EX_DATAERR,
               "is damaged: its files are in corrupt/");
    is_printed(queue_line("show", bad), 0, " corrupt  (damaged content) see corrupt/");
    is_printed(run(command_queue, "ls --json --queue corrupt"), 0,
               "\"since\":1700000000,\"reason\":\"damaged content\"");
    is_printed(queue_line("hold", two), 0, " held\n");
    is_printed(queue_line("show", two), 0, "reason:   ");
    is_refused(queue_line("show", (struct id){.time_ms = 1, .hash = 1}), EX_DATAERR,
               ": no such message\n");
    is_printed(queue_line("release", two), 0, " released\n");
    released = two;
}

TEST(no_spool)
{
    struct command_world full = world;
    snprintf(world.spool, sizeof(world.spool), "%s/file", world.folder);
    FILE *file = fopen(world.spool, "w");
    if (file)
        fclose(file);
    ok_named(run(command_queue, "ls") != 0, "a spool that is a file");
    ok_named(strstr(world.errors, "petrel queue: ") != NULL, "is an error");
    memcpy(world.spool, full.spool, sizeof(world.spool));
}

/* --- Beside a daemon ----------------------------------------------------------------- */

/* Keeps the session, and so the message, as long as it lives. */
static void
on_session(void *context, struct sched_session *session, const struct target *target,
           const char *domain)
{
    struct world *w = context;
    (void)target;
    (void)domain;
    w->session = session;
}

static bool
is_discarded(struct id id)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/mess/%s", world.spool, command_world_name(id));
    return access(path, F_OK) != 0;
}

static void
on_stop(void *context)
{
    bool *stopped = context;
    *stopped = true;
}

/* `one` is in a session, and `released` gone; either may be another slice's. */
static bool
is_at_work(const struct world *w)
{
    return w->session != NULL && is_discarded(released);
}

/* Until it is told to end. */
static int
serve(int gate, unsigned slices)
{
    struct world w;
    char byte = 'x';
    bool stopped = false;
    control_world_begin_of(&w, world.spool,
                           TEXT("keep.test hold\nb.test smtp://x.test\n* discard"),
                           slices);
    manager_set_channel(w.manager, TARGET_SMTP, on_session, &w);
    loop_on_signal(w.loop, SIGTERM, on_stop, &stopped);
    for (int i = 0; i < PATIENCE && slices == 1 && !is_at_work(&w); i++)
        loop_turn(w.loop, 1);
    if (write(gate, &byte, 1) != 1)
        return 1;
    while (!stopped)
        loop_turn(w.loop, 1000);
    return 0;
}

static pid_t
start_daemon(unsigned slices)
{
    char byte;
    int gate[2];
    fflush(NULL);
    if (pipe(gate) != 0)
        abort();
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* Its assertions are not ours. */
        if (freopen("/dev/null", "w", stdout) == NULL)
            child_exit(1);
        close(gate[0]);
        child_exit(serve(gate[1], slices));
    }
    close(gate[1]);
    ok_named(read(gate[0], &byte, 1) == 1, "a daemon runs");
    close(gate[0]);
    return pid;
}

static void
stop_daemon(pid_t daemon)
{
    int status;
    kill(daemon, SIGTERM);
    waitpid(daemon, &status, 0);
    is_number(status, 0, "it ends when it is told to");
}

static void
test_status(void)
{
    is_printed(run(status_command, ""), 0, "accepting");
    is_printed(run(status_command, "--sites"), 0, "x.test");
    is_printed(run(status_command, "--json"), 0, "\"accepting\": true");
    ok(strstr(world.output, "\"sites\": [") != NULL);
    ok_named(strstr(world.output, "\"ok\"") == NULL,
             "what the protocol needs is not shown");
}

static void
test_with_daemon(void)
{
    struct id three;
    is_printed(run(command_queue, "ls"), 0, " active ");
    is_printed(run(command_queue, "ls --queue active --json"), 0,
               "\"queue_name\":\"active\"");
    is_printed(run(command_queue, "why --to b.test"), 0, "x.test");
    is_printed(run(command_queue, "why --json --to b.test"), 0, "\"why\":{");
    is_refused(run(command_queue, "adopt 0"), EX_UNAVAILABLE, "petrel queue adopt: ");
    three = command_world_inject(&world, "three@keep.test");
    is_printed(queue_line("hold", three), 0, " held\n");
    is_printed(queue_line("hold", three), 0, " is held already\n");
    is_printed(run(command_queue, "ls --queue hold"), 0, "three@keep.test");
    is_refused(queue_line("retry", three), EX_UNAVAILABLE,
               ": is held and cannot be retried");
    is_printed(queue_line("rm --json", three), 0, "\"ok\":true");
    is_refused(queue_line("rm", three), EX_DATAERR, ": no such message");
    is_refused(queue_line("show", released), EX_DATAERR, ": no such message");
    is_number(run(command_queue, "rm --from nobody@x.test"), 0, "rm of none");
    ok(strstr(world.errors, "nothing to do: no message matches") != NULL);
    is_number(run(command_queue, "ls --from nobody@x.test"), 0, "ls of none");
    ok(strcmp(world.errors, "petrel queue: no message matches\n") == 0);
    is_number(run(command_queue, "why --to nowhere.test"), 0, "why of none");
    ok(strcmp(world.errors, "petrel queue: no message matches\n") == 0);
    is_number(run(command_queue, "ls --json --to nowhere.test"), 0, "in JSON");
    ok(strcmp(world.errors, "") == 0);
}

static void
test_slices(void)
{
    is_refused(run(command_queue, "adopt 0"), EX_UNAVAILABLE,
               "petrel queue adopt: slice 0 of 2 is handled here already\n");
    is_refused(run(command_queue, "adopt 2"), EX_UNAVAILABLE, "petrel queue adopt: ");
    is_printed(
        run(command_queue, "adopt 1"), 0,
        " belongs to this daemon until it stops; messages from its journal: 0\n");
    is_refused(run(command_queue, "adopt 1"), EX_UNAVAILABLE,
               " is handled here already\n");
}

static int
version(int count, char **arguments, const struct options *options)
{
    (void)options;
    return command_version(count, arguments, "redis 9.9");
}

TEST(version)
{
    is_printed(run(version, ""), 0, "petrel ");
    ok(strstr(world.output, "c-ares ") && strstr(world.output, "\nredis 9.9\n"));
    is_printed(run(version, "--json"), 0, "\"version\": ");
    ok(strstr(world.output, "\"redis\"") && strstr(world.output, "\"landlock\": "));
    is_refused(run(version, "--long"), EX_USAGE, "usage: petrel version [--json]\n");
    is_refused(run(version, "--json --json"), EX_USAGE,
               "usage: petrel version [--json]\n");
}

int
main(void)
{
    command_world_begin(&world, "command");
    tap_tests("");
    pid_t daemon = start_daemon(1);
    test_status();
    test_with_daemon();
    stop_daemon(daemon);
    daemon = start_daemon(2);
    test_slices();
    stop_daemon(daemon);
    command_world_end(&world);
    return done();
}
