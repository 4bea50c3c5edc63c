/* Reads /etc/passwd and /etc/group. */
#include "base/sandbox/user_files.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* By uid without a name. */
static struct passwd *
user_files_find(const char *name, uid_t uid)
{
    FILE *file = fopen("/etc/passwd", "re");
    struct passwd *entry;
    if (file == NULL)
        return NULL;
    do
        entry = fgetpwent(file);
    while (entry != NULL &&
           (name != NULL ? strcmp(entry->pw_name, name) != 0 : entry->pw_uid != uid));
    fclose(file);
    return entry;
}

struct passwd *
user_files_by_name(const char *name)
{
    return user_files_find(name, 0);
}

struct passwd *
user_files_by_id(uid_t uid)
{
    return user_files_find(NULL, uid);
}

static bool
is_member(const struct group *group, const char *user)
{
    for (char *const *member = group->gr_mem; *member != NULL; member++)
        if (strcmp(*member, user) == 0)
            return true;
    return false;
}

int
user_files_take_groups(const char *user, gid_t group)
{
    gid_t groups[USER_FILES_GROUPS_MAX + 1] = {group};
    size_t count = 1;
    FILE *file = fopen("/etc/group", "re");
    const struct group *entry;
    while (file != NULL && count <= USER_FILES_GROUPS_MAX &&
           (entry = fgetgrent(file)) != NULL)
        if (entry->gr_gid != group && is_member(entry, user))
            groups[count++] = entry->gr_gid;
    if (file != NULL)
        fclose(file);
    if (count <= USER_FILES_GROUPS_MAX)
        return setgroups(count, groups);
    errno = E2BIG;
    return -1;
}
