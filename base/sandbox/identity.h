/* Who the process is: from root to the user it serves as, and without any privilege.
 *
 * The queue is opened as `user`, ports are bound as root, then root is gone for good.
 * Without root or without a name nothing changes. */
#ifndef BASE_IDENTITY_H
#define BASE_IDENTITY_H

#include <stdbool.h>
#include <sys/types.h>

struct identity {
    bool change;
    uid_t uid;
    gid_t gid;
    const char *name; /* borrowed; NULL: known by number */
};

/* name: of a user, or his number, or UID:GID, which have no other groups and need not
 * be known to the system (the group of a number alone is that user's, or has the same
 * number); may be NULL. False: no such user. */
bool identity_find(struct identity *who, const char *name)
    __attribute__((warn_unused_result));
/* That user by its number, for what is given to it; false: it has no name. */
bool identity_find_number(struct identity *who, uid_t uid)
    __attribute__((warn_unused_result));
enum { IDENTITY_NAME_MAX = 64 };
/* Whose rights the process has: the user's name, or the number where it has none. */
void identity_name(char out[IDENTITY_NAME_MAX]);
/* Becomes that user for now, and root again. False, with errno. */
bool identity_try_on(const struct identity *who) __attribute__((warn_unused_result));
bool identity_take_off(const struct identity *who) __attribute__((warn_unused_result));
/* Becomes that user for good: groups, all user and group ids, no capability, and none
 * that an execve() could give back. False, with errno: part of it failed, or root came
 * back when asked for. */
bool identity_keep(const struct identity *who) __attribute__((warn_unused_result));

/* Gives away all capabilities; root keeps those to pass over the permissions of files:
 * it is root by its operator's options, for Maildirs of several users. False, with errno.
 */
bool identity_shed(void) __attribute__((warn_unused_result));

#endif
