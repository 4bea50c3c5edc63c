/* The sandbox: the running daemon drops rights, so that an attacker who takes it over
 * gains little.
 *
 * Privileges cannot be regained (no_new_privs, no capabilities); the process cannot be
 * traced and leaves no core file.
 *
 * Landlock: the process reads planned paths, writes to the spool and the Maildirs,
 * executes nothing, binds no TCP port and signals no other process.
 *
 * seccomp: a list of allowed system calls. Starting a program, forking, tracing and
 * other calls that Petrel never makes end the process (SIGSYS, and a line in the
 * kernel's log); any other call fails with EPERM and is logged.
 *
 * No other directory uses libseccomp or Landlock. A missing protection (an old kernel,
 * a restrictive container) is reported, and the others still apply. Sanitizer builds
 * have no sandbox: their run-time library needs more rights. */
#ifndef BASE_SANDBOX_SANDBOX_H
#define BASE_SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

struct sandbox;

enum { SANDBOX_MISSING_MAX = 400 };
struct sandbox_state {
    bool entered;
    int landlock; /* the kernel's ABI that is used; 0: not in force */
    bool seccomp;
    /* the parts missing on this system, and why; or "" */
    char missing[SANDBOX_MISSING_MAX];
};

struct sandbox *sandbox_new(void);
void sandbox_free(struct sandbox **sandbox);

/* The plan, before sandbox_enter(). Paths that do not exist are skipped. */

/* A file and its future replacements: its whole directory, and the directory of the
 * file that it links to. In directories with many files of others (/, /home, /home/x,
 * for root /etc, ...) only this file. Or a directory with everything below it, unless
 * it is one of those. */
void sandbox_let_read(struct sandbox *s, const char *path);
/* Everything below a directory of our own files: read, write, make, remove. */
void sandbox_let_write(struct sandbox *s, const char *directory);
/* As sandbox_let_write(), of a directory that is made or mounted later: a rule holds the
 * directory, not its name, so the directory above is let write, and when that is a mount
 * point the one above it. Not when it is a directory of the system or of several services
 * (/srv, /var/lib). */
void sandbox_let_replace(struct sandbox *s, const char *directory);
/* Allows the removal of our own socket at the end, in a directory that we own. */
void sandbox_let_remove(struct sandbox *s, const char *file);

/* Drops all other rights permanently; sandbox_get_state() reports the protections in
 * force. */
void sandbox_enter(struct sandbox *s);
const struct sandbox_state *sandbox_get_state(const struct sandbox *s);

/* True if the plan covers a path. Always true without Landlock, and for paths that are
 * neither file nor directory. A directory to write need not exist. */
bool sandbox_may_read(const struct sandbox *s, const char *path);
bool sandbox_may_write(const struct sandbox *s, const char *directory);

/* The protections that this build has on this system, without entering them. */
void sandbox_offer(struct sandbox_state *state);
/* "Landlock (ABI 7), seccomp"; "off". */
void sandbox_describe(const struct sandbox_state *state, char *out, size_t size);
/* "libseccomp 2.5.4", in out; "": it is not built in. */
const char *sandbox_version(char *out, size_t size);

/* The number of system calls refused with EPERM since startup. */
unsigned sandbox_refused(void);

#endif
