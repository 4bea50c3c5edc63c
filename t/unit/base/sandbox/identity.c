/* The user of the process: how it is named in settings, tried on, and kept for good. */
#include "base/sandbox/identity.h"

#include "t/support/child.h"
#include "t/support/tap.h"

#include <errno.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNNAMED = 54321 };

/* Runs act() in a child: the user of a process changes for good. 0 is success. */
static void
in_child(int (*act)(void), const char *name)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0)
        child_exit(act());
    if (waitpid(pid, &status, 0) != pid)
        abort();
    is_number(status, 0, name);
}

#define EXPECT(condition)                                                              \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "# line %d: %s\n", __LINE__, #condition);                  \
            return 1;                                                                  \
        }                                                                              \
    } while (0)

static void
is_found(const char *name, uid_t uid, gid_t gid)
{
    struct identity who;
    ok_named(identity_find(&who, name) && who.change, name);
    is_number(who.uid, uid, "with this uid");
    is_number(who.gid, gid, "and this gid");
}

/* As `user` may say it, to a daemon that root has started. */
static void
test_names(void)
{
    static const char *const wrong[] = {"",
                                        "no such user",
                                        "-1",
                                        "1x",
                                        "1:",
                                        "1:x",
                                        ":1",
                                        "1:2:3",
                                        "4294967295",
                                        "1:4294967295",
                                        "99999999999999999999"};
    const struct passwd *nobody = getpwnam("nobody");
    struct identity who;
    if (nobody) {
        char number[20];
        is_found("nobody", nobody->pw_uid, nobody->pw_gid);
        snprintf(number, sizeof(number), "%u", (unsigned)nobody->pw_uid);
        is_found(number, nobody->pw_uid, nobody->pw_gid);
    }
    is_found("54321", UNNAMED, UNNAMED);
    is_found("54321:12", UNNAMED, 12);
    is_found("0:0", 0, 0);
    is_found("4294967294:4294967294", 4294967294U, 4294967294U);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        ok_named(!identity_find(&who, wrong[i]), wrong[i]);
}

static void
test_unchanged(void)
{
    struct identity who;
    ok_named(identity_find(&who, NULL) && !who.change, "no name: as it was started");
    ok(identity_try_on(&who) && identity_take_off(&who) && identity_keep(&who));
    ok_named(!identity_find_number(&who, UNNAMED), "a uid without a name");
    ok_named(identity_find_number(&who, 0) && who.uid == 0 && who.gid == 0,
             "root has one");
}

static int
try_on(void)
{
    struct identity who;
    char name[IDENTITY_NAME_MAX];
    EXPECT(identity_find(&who, "54321:12"));
    EXPECT(identity_try_on(&who) && geteuid() == UNNAMED && getegid() == 12);
    EXPECT(getgroups(0, NULL) == 0);
    identity_name(name);
    EXPECT(strcmp(name, "54321") == 0);
    EXPECT(identity_take_off(&who) && geteuid() == 0 && getegid() == 0);
    identity_name(name);
    EXPECT(strcmp(name, "root") == 0);
    return 0;
}

static int
keep(void)
{
    struct identity who, other;
    EXPECT(identity_find(&who, "54321:12") && identity_find(&other, "54322"));
    EXPECT(identity_keep(&who));
    EXPECT(getuid() == UNNAMED && geteuid() == UNNAMED && getegid() == 12);
    EXPECT(setuid(0) != 0 && seteuid(0) != 0 && setgid(0) != 0);
    EXPECT(!identity_take_off(&who) && errno == EPERM);
    EXPECT(!identity_keep(&other) && errno == EPERM);
    EXPECT(identity_find(&other, "no such user") && !other.change);
    return 0;
}

int
main(void)
{
    test_unchanged();
    if (geteuid() == 0) {
        test_names();
        in_child(try_on, "a user is tried on, and root is back");
        in_child(keep, "one that is kept is kept for good");
    }
    return done();
}
