/* The sandbox: what the running daemon gives up, so that whoever breaks into it has
 * little.
 *
 * No privilege comes back (no_new_privs, no capability), nobody traces it, it leaves no
 * core. Landlock: it reads what it was told of, writes to the spool and the Maildirs,
 * executes nothing, binds no TCP port, signals nobody. seccomp: a list of system calls;
 * to start a program, to fork, to trace and what else it never does is the end (SIGSYS,
 * and a line in the kernel's log); any other call fails with EPERM and is told in our
 * log. Only the files base/sandbox*.c know libseccomp and Landlock. What the system
 * lacks (an old kernel, a container that refuses) is told, the rest is done all the
 * same. Under a sanitizer there is none: its run-time library needs more. */
#ifndef BASE_SANDBOX_H
#define BASE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

struct sandbox;

enum { SANDBOX_MISSING_MAX = 400 };
struct sandbox_state {
    bool entered;
    int landlock; /* the kernel's ABI that is used; 0: not in force */
    bool seccomp;
    char missing[SANDBOX_MISSING_MAX]; /* what cannot be had here, and why; or "" */
};

struct sandbox *sandbox_new(void);
void sandbox_free(struct sandbox **sandbox);

/* The plan, before sandbox_enter(). What is not there is passed over. */

/* A file, and what will take its place: whatever lies in its directory, or below, and
 * beside what it links to. Of directories that hold much else (/, /home, /home/x, for
 * root /etc, ...) this file alone. Or a directory, and all below it, if it is none of
 * those. */
void sandbox_let_read(struct sandbox *s, const char *path);
/* Everything below a directory, for files of our own: read, write, make, remove. */
void sandbox_let_write(struct sandbox *s, const char *directory);
/* To remove a socket of ours at the end, in a directory that is ours. */
void sandbox_let_remove(struct sandbox *s, const char *file);

/* Gives up what can be given up, for good; sandbox_get_state() tells what. */
void sandbox_enter(struct sandbox *s);
const struct sandbox_state *sandbox_get_state(const struct sandbox *s);

/* Whether the plan covers a path. Always, when there is no Landlock; also what is no
 * file or directory, which is not read; a directory to write need not be there. */
bool sandbox_may_read(const struct sandbox *s, const char *path);
bool sandbox_may_write(const struct sandbox *s, const char *directory);

/* What this build on this system could do, without doing it. */
void sandbox_offer(struct sandbox_state *state);
/* "Landlock (ABI 7), seccomp"; "off". */
void sandbox_describe(const struct sandbox_state *state, char *out, size_t size);
/* "libseccomp 2.5.4", or that it is not built in. */
void sandbox_version(char *out, size_t size);

/* How many system calls were refused, by the list, since the start. */
unsigned sandbox_refused(void);

#endif
