/* Commands without a daemon, from the arguments to the spool: admin/command/queue_command.h,
 * admin/command/offline.h and admin/answer/operation.h, as a process of its own would run them. */
#include "admin/command/queue_command.h"

#include "admin/command/offline.h"
#include "admin/answer/operation.h"
#include "base/loop/loop.h"
#include "queue/queue_operator.h"
#include "base/event/event.h"
#include "t/support/child.h"
#include "t/support/command_world.h"
#include "t/support/tap.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

enum { OWNER = 54321 };

static struct command_world world;

/* One command line; what it prints is heard. */
static int
change(enum manager_verb verb, const char *words)
{
    static struct filter f;
    static char copies[8][60];
    char *arguments[8];
    int count = 0;
    struct options o = command_world_options(&world);
    struct text rest = text_from(words), word;
    while (text_word(&rest, " ", &word)) {
        text_copy(copies[count], sizeof(copies[0]), word);
        arguments[count] = copies[count];
        count++;
    }
    if (!filter_parse(&f, count, arguments))
        abort();
    command_world_listen(&world);
    int code = queue_command_messages(verb, &f, &o);
    command_world_heard(&world);
    return code;
}

static void
printed(const char *want)
{
    is_string(world.output, want, "what is printed");
}

static const char *
line_of(struct id id, const char *text)
{
    static char line[100];
    snprintf(line, sizeof(line), "%s %s\n", command_world_name(id), text);
    return line;
}

TEST(commands)
{
    struct id one = command_world_inject(&world, "one@b.test"),
              two = command_world_inject(&world, "two@b.test");
    is_number(change(MANAGER_HOLD, command_world_name(one)), 0, "hold");
    printed(line_of(one, "held"));
    is_number(change(MANAGER_HOLD, command_world_name(one)), 0, "again");
    printed(line_of(one, "is held already"));
    is_number(change(MANAGER_RETRY, command_world_name(one)), EX_UNAVAILABLE,
              "retry of what is held");
    printed("");
    is_number(change(MANAGER_RETRY, "--to two@b.test"), 0, "retry");
    printed(line_of(two, "is due when the daemon starts"));
    is_number(change(MANAGER_RELEASE, "--all"), 0, "release");
    printed(line_of(one, "released"));
    is_number(change(MANAGER_RELEASE, command_world_name(one)), EX_UNAVAILABLE, "once");
    is_number(change(MANAGER_BOUNCE, "--to one@b.test"), 0, "bounce");
    printed(line_of(one, "returned to its sender"));
    is_number(change(MANAGER_REMOVE, command_world_name(one)), EX_DATAERR,
              "it is gone");
    is_number(change(MANAGER_REMOVE, command_world_name(two)), 0, "rm");
    printed(line_of(two, "removed"));
    is_number(change(MANAGER_REMOVE, "--from nobody@x.test"), 0, "rm of none");
    printed("");
    is_number(change(MANAGER_REMOVE, "--json --from <>"), 0,
              "the bounce is in the queue");
    const char *got = world.output;
    ok(strstr(got, "\"action\":\"rm\"") && strstr(got, "\"ok\":true") &&
       strstr(got, "\"queue_id\":\""));
}

/* The holder of the lock keeps it, and nobody touches its files. */
TEST(busy)
{
    struct options o = command_world_options(&world);
    struct offline *other = NULL, *mine = NULL;
    char error[300] = "";
    struct loop *loop = loop_new();
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    struct event_hub *events = event_hub_new(log);
    is_number(offline_open(&other, loop, events, &o, error, sizeof(error)), 0, "the lock");
    ok(manager_is_offline(offline_manager(other)));
    is_number(offline_open(&mine, loop, events, &o, error, sizeof(error)), EX_TEMPFAIL,
              "is taken");
    ok(mine == NULL && strstr(error, "another petrel"));
    struct id id = command_world_inject(&world, "x@b.test");
    is_number(change(MANAGER_REMOVE, command_world_name(id)), EX_UNAVAILABLE,
              "nobody answers for long");
    offline_close(&other);
    offline_close(&other);
    is_number(change(MANAGER_REMOVE, command_world_name(id)), 0, "then it works");
    event_hub_free(&events);
    log_free(&log);
    loop_free(&loop);
}

/* A command of root works as the owner of the spool: no file of root's stays there. */
static int
hold_as_owner(void)
{
    char path[200];
    struct stat held;
    struct id id = command_world_inject(&world, "owned@b.test");
    snprintf(path, sizeof(path), "chown -R %u %s", (unsigned)OWNER, world.spool);
    if (system(path) != 0 || change(MANAGER_HOLD, "--to owned@b.test") != 0)
        return 1;
    snprintf(path, sizeof(path), "%s/hold/%s", world.spool, command_world_name(id));
    if (geteuid() != OWNER || stat(path, &held) != 0 || held.st_uid != OWNER)
        return 2;
    return change(MANAGER_REMOVE, command_world_name(id)) == 0 ? 0 : 3;
}

TEST(owner)
{
    int status;
    if (geteuid() != 0) {
        ok_named(true, "the spool's owner: # SKIP needs root");
        return;
    }
    if (chmod(world.folder, 0755) != 0)
        abort();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        child_exit(hold_as_owner());
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    is_number(status, 0, "the spool's owner");
}

TEST(no_spool)
{
    struct command_world full = world;
    snprintf(world.spool, sizeof(world.spool), "%s/never", world.folder);
    is_number(change(MANAGER_REMOVE, "--all"), EX_UNAVAILABLE, "there is no spool");
    ok_named(access(world.spool, F_OK) != 0, "none is made");
    struct options o = command_world_options(&world);
    static const struct filter all = {.everything = true, .older_ms = -1};
    is_number(queue_command_flush(&all, true, &o), EX_UNAVAILABLE,
              "nobody is there to flush");
    world = full;
}

/* t/e2e/slices.t has the rest. */
static void
test_adopt(void)
{
    static char nowhere[] = "/nonexistent/petrel/control";
    struct options options = {.control = nowhere, .slices = 2};
    static char one[] = "1", strange[] = "one", far[] = "1024";
    char *good[] = {one, one}, *no_number[] = {strange}, *too_far[] = {far};
    is_number(queue_command_adopt(0, good, &options), EX_USAGE, "no slice");
    is_number(queue_command_adopt(1, no_number, &options), EX_USAGE, "no number");
    is_number(queue_command_adopt(1, too_far, &options), EX_USAGE, "out of any range");
    is_number(queue_command_adopt(2, good, &options), EX_USAGE, "one at a time");
    is_number(queue_command_adopt(1, good, &options), EX_UNAVAILABLE, "no daemon answers");
}

int
main(void)
{
    command_world_begin(&world, "change");
    tap_tests("");
    test_adopt();
    command_world_end(&world);
    return done();
}
