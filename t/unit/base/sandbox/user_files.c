/* The users of the system's files are found as by the C library. */
#include "base/sandbox/user_files.h"

#include "t/support/tap.h"

#include <grp.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void
is_user(const struct passwd *got, const char *name, uid_t uid, gid_t gid)
{
    ok_named(got != NULL, name);
    is_string(got->pw_name, name, "its name");
    is_number(got->pw_uid, uid, "its uid");
    is_number(got->pw_gid, gid, "its group");
}

static void
test_users(void)
{
    FILE *file = fopen("/etc/passwd", "r");
    const struct passwd *entry;
    ok(file != NULL);
    while ((entry = fgetpwent(file)) != NULL) {
        char *name = strdup(entry->pw_name);
        uid_t uid = entry->pw_uid;
        const struct passwd *want = getpwnam(name);
        gid_t gid = want->pw_gid;
        is_user(user_files_by_name(name), name, uid, gid);
        want = getpwuid(uid); /* the first of several */
        gid = want->pw_gid;
        free(name);
        name = strdup(want->pw_name);
        is_user(user_files_by_id(uid), name, uid, gid);
        free(name);
    }
    fclose(file);
    ok_named(user_files_by_name("no such user") == NULL, "a name that is not there");
    ok_named(user_files_by_name("") == NULL, "none");
    ok_named(user_files_by_id((uid_t)-2) == NULL, "a uid that is not there");
}

static int
compare_groups(const void *a, const void *b)
{
    const gid_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* In a process of its own: the groups that both have set are the same. */
static int
differs(const char *user, gid_t gid)
{
    pid_t child = fork();
    int status = 0;
    if (child == 0) {
        gid_t want[USER_FILES_GROUPS_MAX], got[USER_FILES_GROUPS_MAX];
        if (initgroups(user, gid) != 0)
            _exit(2);
        int wanted = getgroups(USER_FILES_GROUPS_MAX, want);
        if (user_files_take_groups(user, gid) != 0)
            _exit(3);
        int count = getgroups(USER_FILES_GROUPS_MAX, got);
        qsort(want, (size_t)wanted, sizeof(*want), compare_groups);
        qsort(got, (size_t)count, sizeof(*got), compare_groups);
        _exit(count != wanted || memcmp(want, got, (size_t)count * sizeof(*got)) != 0);
    }
    waitpid(child, &status, 0);
    return status;
}

static void
test_groups(void)
{
    FILE *file = fopen("/etc/group", "r");
    const struct group *entry;
    ok(file != NULL);
    is_number(differs("root", 0), 0, "root");
    is_number(differs("no such user", 12345), 0, "a user in no group");
    while ((entry = fgetgrent(file)) != NULL)
        for (char *const *member = entry->gr_mem; *member != NULL; member++)
            is_number(differs(*member, 12345), 0, *member);
    fclose(file);
}

int
main(void)
{
    test_users();
    if (geteuid() == 0)
        test_groups();
    return done();
}
