/* Users and groups of /etc/passwd and /etc/group, for the static program: the C library
 * would look for modules of other services, and the program would need a loader for
 * them. */
#ifndef BASE_SANDBOX_USER_FILES_H
#define BASE_SANDBOX_USER_FILES_H

#include <pwd.h>
#include <sys/types.h>

enum { USER_FILES_GROUPS_MAX = 1024 };

/* As getpwnam() and getpwuid(): valid until the next call; NULL: there is none. */
struct passwd *user_files_by_name(const char *name);
struct passwd *user_files_by_id(uid_t uid);

/* As initgroups(): group, and those that /etc/group says the user is in. 0, or -1 with
 * errno; E2BIG: more than USER_FILES_GROUPS_MAX. */
int user_files_take_groups(const char *user, gid_t group);

#endif
