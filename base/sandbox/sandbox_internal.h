/* Shared by the files of base/sandbox/; no other file includes this header.
 *
 * sandbox.c: the plan, the order, and files. sandbox_seccomp.c: system calls. */
#ifndef BASE_SANDBOX_SANDBOX_INTERNAL_H
#define BASE_SANDBOX_SANDBOX_INTERNAL_H

#include "base/sandbox/sandbox.h"

/* NULL, or the reason why seccomp cannot be used. */
const char *sandbox_seccomp_lack(void);
/* 0 or an errno. */
int sandbox_seccomp_enter(void);
/* The number of the call seccomp(), which libseccomp asks for by its name; -1 for any
 * other. In the static program it stands in the place of the library's 100 KB of names;
 * architecture: the library's. */
int sandbox_seccomp_number(const void *architecture, const char *name);

#endif
