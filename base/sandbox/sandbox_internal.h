/* What the files of sandbox.h share; nobody else includes it.
 *
 * sandbox.c: the plan, and the order. sandbox_landlock.c: files. sandbox_seccomp.c:
 * system calls. */
#ifndef BASE_SANDBOX_INTERNAL_H
#define BASE_SANDBOX_INTERNAL_H

#include "base/sandbox/sandbox.h"

enum sandbox_right { SANDBOX_READ, SANDBOX_WRITE, SANDBOX_REMOVE };

struct sandbox_path {
    struct sandbox_path *next;
    enum sandbox_right right;
    char *path; /* absolute, without links */
};

/* Of the kernel; 0: it has none, or it is turned off, or refused. */
int sandbox_landlock_abi(void);
/* 0 or an errno. */
int sandbox_landlock_enter(const struct sandbox_path *paths, int abi);

/* What no library is there for: NULL, or why not. */
const char *sandbox_seccomp_lack(void);
/* 0 or an errno. */
int sandbox_seccomp_enter(void);

#endif
