/* The user of the process: from root to `user`, then without any privilege.
 *
 * The queue is opened as `user` and ports are bound as root; then root is given up for
 * good. Without root or without a name nothing changes. */
#ifndef BASE_SANDBOX_IDENTITY_H
#define BASE_SANDBOX_IDENTITY_H

#include <stdbool.h>
#include <sys/types.h>

struct identity {
    bool change;
    uid_t uid;
    gid_t gid;
    const char *name; /* borrowed; NULL: known by number */
};

/* name: a user's name, a uid, or UID:GID; may be NULL. A uid need not be known to the
 * system and has no supplementary groups; its group is that of the user with this uid,
 * else the gid of the same number. False: no such user. */
bool identity_find(struct identity *who, const char *name)
    __attribute__((warn_unused_result));
/* The user with this uid, to give files to; false: the uid has no name. Its name stays
 * until the next user is looked up. */
bool identity_find_number(struct identity *who, uid_t uid)
    __attribute__((warn_unused_result));
enum { IDENTITY_NAME_MAX = 64 };
/* The user whose rights the process has: the name, or the uid if it has none. */
void identity_name(char out[IDENTITY_NAME_MAX]);
/* Becomes that user temporarily, and root again. False, with errno. */
bool identity_try_on(const struct identity *who) __attribute__((warn_unused_result));
bool identity_take_off(const struct identity *who) __attribute__((warn_unused_result));
/* Becomes that user for good: groups, all user and group ids, no capabilities, none
 * that execve() could restore. False, with errno: a step failed, or root could be
 * regained. */
bool identity_keep(const struct identity *who) __attribute__((warn_unused_result));

/* Gives up all capabilities. Root keeps those that override file permissions: it runs
 * as root by its operator's choice, for Maildirs of several users. False, with
 * errno. */
bool identity_shed(void) __attribute__((warn_unused_result));

#endif
