/* Plans the rights of the process, and drops all others in the right order.
 *
 * A Landlock rule belongs to a file or directory, not to its name. So a rule for a
 * certificate would not cover the renewed one that replaces it; the plan has its
 * directory instead, unless many files of others are there (is_wide()). */
#include "base/sandbox/sandbox.h"

#include "base/memory.h"
#include "base/sandbox/identity.h"
#include "base/sandbox/sandbox_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utlist.h>

enum sandbox_right { SANDBOX_READ, SANDBOX_WRITE, SANDBOX_REMOVE };

struct sandbox_path {
    struct sandbox_path *next;
    enum sandbox_right right;
    char *path; /* absolute, without links */
};

/* --- Landlock ----------------------------------------------------------------------- */

/* The struct of a rule set grows with the ABI. A kernel gets only the part that it knows:
 * it refuses larger ones, and rights that it does not know. */

/* The kernel's numbers: the headers of Debian 12 have only those of ABI 1 and 2. They
 * are the same on every architecture. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif

enum { RULE_PATH = 1, RULE_PORT = 2, ASK_VERSION = 1 };
enum {
    EXECUTE = 1 << 0,
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIRECTORY = 1 << 3,
    REMOVE_DIRECTORY = 1 << 4,
    REMOVE_FILE = 1 << 5,
    MAKE_DEVICE = 1 << 6,
    MAKE_DIRECTORY = 1 << 7,
    MAKE_FILE = 1 << 8,
    MAKE_SOCKET = 1 << 9,
    MAKE_FIFO = 1 << 10,
    MAKE_BLOCK_DEVICE = 1 << 11,
    MAKE_LINK = 1 << 12,      /* a symbolic one */
    REFER = 1 << 13,          /* link and rename into another directory: ABI 2 */
    TRUNCATE = 1 << 14,       /* ABI 3 */
    CONTROL_DEVICE = 1 << 15, /* ABI 5 */
    ALL_FIRST = REFER - 1,
    READING = READ_FILE | READ_DIRECTORY,
    WRITING = READING | WRITE_FILE | REMOVE_DIRECTORY | REMOVE_FILE | MAKE_DIRECTORY |
              MAKE_FILE | MAKE_SOCKET | MAKE_FIFO | REFER | TRUNCATE,
    OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | CONTROL_DEVICE
};
enum { BIND_TCP = 1, OTHERS_ABSTRACT_SOCKETS = 1, OTHERS_SIGNALS = 2 };
enum {
    ABI_REFER = 2,
    ABI_TRUNCATE = 3,
    ABI_PORTS = 4,
    ABI_DEVICES = 5,
    ABI_SCOPES = 6
};

struct ruleset {
    uint64_t files, ports, scopes;
};

struct path_rule {
    uint64_t rights;
    int32_t parent;
} __attribute__((packed));

struct port_rule {
    uint64_t rights, port;
};

/* The kernel's Landlock ABI; 0: none, turned off, or refused. */
static int
sandbox_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, ASK_VERSION);
    return abi < 0 ? 0 : (int)abi;
}

static uint64_t
known_rights(int abi)
{
    uint64_t known = ALL_FIRST | REFER;
    if (abi >= ABI_TRUNCATE)
        known |= TRUNCATE;
    if (abi >= ABI_DEVICES)
        known |= CONTROL_DEVICE;
    return known;
}

static uint64_t
rights_of(enum sandbox_right right)
{
    switch (right) {
    case SANDBOX_READ:
        return READING;
    case SANDBOX_WRITE:
        return WRITING;
    case SANDBOX_REMOVE:
        return REMOVE_FILE;
    }
    return 0;
}

/* 0 or an errno. A path that was removed meanwhile needs no rule. */
static int
allow_path(int ruleset, const struct sandbox_path *path, uint64_t known)
{
    struct path_rule rule = {.rights = rights_of(path->right) & known};
    struct stat status;
    int result = 0, place = open(path->path, O_PATH | O_CLOEXEC);
    if (place < 0)
        return 0;
    if (fstat(place, &status) == 0 && !S_ISDIR(status.st_mode))
        /* The kernel refuses rights on directories for a file. */
        rule.rights &= OF_A_FILE;
    rule.parent = place;
    if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH, &rule, 0) != 0)
        result = errno;
    close(place);
    return result;
}

/* Any port that the system chooses, as for outgoing connections. */
static int
allow_no_port(int ruleset)
{
    struct port_rule rule = {.rights = BIND_TCP, .port = 0};
    return syscall(SYS_landlock_add_rule, ruleset, RULE_PORT, &rule, 0) == 0 ? 0
                                                                             : errno;
}

/* 0 or an errno. */
static int
sandbox_landlock_enter(const struct sandbox_path *paths, int abi)
{
    struct ruleset handled = {.files = known_rights(abi)};
    size_t size = sizeof(handled.files);
    if (abi < ABI_REFER)
        return EOPNOTSUPP; /* files could not move within the spool */
    if (abi >= ABI_PORTS) {
        handled.ports = BIND_TCP;
        size += sizeof(handled.ports);
    }
    if (abi >= ABI_SCOPES) {
        handled.scopes = OTHERS_ABSTRACT_SOCKETS | OTHERS_SIGNALS;
        size += sizeof(handled.scopes);
    }
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &handled, size, 0);
    if (ruleset < 0)
        return errno;
    int result = abi >= ABI_PORTS ? allow_no_port(ruleset) : 0;
    for (; paths && result == 0; paths = paths->next)
        result = allow_path(ruleset, paths, handled.files);
    if (result == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) != 0)
        result = errno;
    close(ruleset);
    return result;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) ||             \
    __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

struct sandbox {
    struct sandbox_path *paths;
    struct sandbox_state state;
};

/* --- The plan --------------------------------------------------------------------- */

struct sandbox *
sandbox_new(void)
{
    return memory_new(sizeof(struct sandbox));
}

void
sandbox_free(struct sandbox **sandbox)
{
    struct sandbox_path *path, *next;
    if (*sandbox == NULL)
        return;
    LL_FOREACH_SAFE ((*sandbox)->paths, path, next) {
        free(path->path);
        free(path);
    }
    free(*sandbox);
    *sandbox = NULL;
}

/* path without links. The caller frees; NULL: not there. */
static char *
resolve(const char *path)
{
    char *real = memory_new(PATH_MAX);
    if (realpath(path, real) != NULL)
        return real;
    free(real);
    return NULL;
}

/* Takes path. */
static void
sandbox_add(struct sandbox *s, enum sandbox_right right, char *path)
{
    struct sandbox_path *each, *added;
    LL_FOREACH (s->paths, each)
        if (each->right == right && strcmp(each->path, path) == 0) {
            free(path);
            return;
        }
    added = memory_new(sizeof(*added));
    added->right = right;
    added->path = path;
    LL_APPEND(s->paths, added);
}

/* The directory that path lies in, without links. The caller frees; NULL: not there. */
static char *
parent_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return resolve(".");
    char *name = memory_string(path);
    name[slash - path + (slash == path)] = '\0';
    char *real = resolve(name);
    free(name);
    return real;
}

/* /var/spool2 is not below /var/spool. */
static bool
is_below(const char *path, const char *directory)
{
    size_t length = strlen(directory);
    if (strcmp(directory, "/") == 0)
        return true;
    return strncmp(path, directory, length) == 0 &&
           (path[length] == '\0' || path[length] == '/');
}

/* Directories with many files of others; /home/NAME too. */
static bool
is_wide(const char *directory)
{
    static const char *const shared[] = {"/",    "/home", "/root", "/tmp",     "/var",
                                         "/usr", "/run",  "/opt",  "/srv",     "/mnt",
                                         "/dev", "/proc", "/sys",  "/var/tmp", NULL};
    static const char homes[] = "/home/";
    for (const char *const *each = shared; *each; each++)
        if (strcmp(*each, directory) == 0)
            return true;
    /* For other users /etc has only public files; this one could read secrets. */
    if (strcmp("/etc", directory) == 0)
        return access("/etc/shadow", R_OK) == 0;
    return is_below(directory, "/home") &&
           strchr(directory + sizeof(homes) - 1, '/') == NULL;
}

/* Too many files of others to write to. */
static bool
is_shared(const char *directory)
{
    static const char *const system[] = {"/boot", "/dev", "/etc", "/proc",
                                         "/sys",  "/usr", NULL};
    size_t name = (size_t)(strrchr(directory, '/') - directory);
    for (const char *const *each = system; *each; each++)
        if (is_below(directory, *each))
            return true;
    return is_wide(directory) || name == 0 ||
           (name == 4 && strncmp(directory, "/var", name) == 0);
}

/* Takes path. */
static void
add_narrow(struct sandbox *s, char *path)
{
    if (path && !is_wide(path))
        sandbox_add(s, SANDBOX_READ, path);
    else
        free(path);
}

/* S_IFREG, S_IFDIR, S_IFCHR, or 0: nothing to read. */
static mode_t
sandbox_kind_of(const char *path)
{
    struct stat status;
    mode_t kind = stat(path, &status) == 0 ? status.st_mode & S_IFMT : 0;
    return kind == S_IFREG || kind == S_IFDIR || kind == S_IFCHR ? kind : 0;
}

void
sandbox_let_read(struct sandbox *s, const char *path)
{
    mode_t kind = sandbox_kind_of(path);
    char *real = kind ? resolve(path) : NULL;
    assert(!s->state.entered);
    if (real == NULL)
        return;
    if (kind == S_IFDIR) {
        add_narrow(s, real);
        return;
    }
    /* Both: a certificate is often a link whose target changes, in either directory. */
    add_narrow(s, parent_of(path));
    add_narrow(s, parent_of(real));
    sandbox_add(s, SANDBOX_READ, real);
}

void
sandbox_let_write(struct sandbox *s, const char *directory)
{
    char *real = resolve(directory);
    assert(!s->state.entered);
    if (real)
        sandbox_add(s, SANDBOX_WRITE, real);
}

static bool
is_mount_point(const char *directory, const char *above)
{
    struct stat below, beyond;
    return stat(directory, &below) == 0 && stat(above, &beyond) == 0 &&
           below.st_dev != beyond.st_dev;
}

/* A missing path may be in a file system that is not yet mounted. */
void
sandbox_let_replace(struct sandbox *s, const char *directory)
{
    char *real = resolve(directory), *above = parent_of(real ? real : directory);
    char *beyond = above ? parent_of(above) : NULL;
    assert(!s->state.entered);
    if (beyond && (!real || is_mount_point(above, beyond)) && !is_shared(beyond))
        sandbox_add(s, SANDBOX_WRITE, memory_string(beyond));
    if (above && !is_shared(above))
        sandbox_add(s, SANDBOX_WRITE, memory_string(above));
    free(real);
    free(above);
    free(beyond);
}

void
sandbox_let_remove(struct sandbox *s, const char *file)
{
    struct stat status;
    char *beside = parent_of(file);
    assert(!s->state.entered);
    if (beside && stat(beside, &status) == 0 && status.st_uid == geteuid() &&
        !is_wide(beside))
        sandbox_add(s, SANDBOX_REMOVE, beside);
    else
        free(beside);
}

/* --- Asking ----------------------------------------------------------------------- */

/* The right to write includes the right to read. */
static bool
covers(const struct sandbox *s, enum sandbox_right right, const char *real)
{
    const struct sandbox_path *each;
    LL_FOREACH (s->paths, each)
        if ((each->right == right || each->right == SANDBOX_WRITE) &&
            is_below(real, each->path))
            return true;
    return false;
}

/* For a missing path the nearest existing directory above decides. */
static bool
may(const struct sandbox *s, enum sandbox_right right, const char *path)
{
    if (s->state.landlock == 0)
        return true;
    char *at = memory_string(path), *real;
    while ((real = resolve(*at ? at : ".")) == NULL && *at) {
        char *slash = strrchr(at, '/');
        if (slash == NULL || slash == at)
            at[slash != NULL] = '\0';
        else
            *slash = '\0';
    }
    bool good = real && covers(s, right, real);
    free(real);
    free(at);
    return good;
}

bool
sandbox_may_read(const struct sandbox *s, const char *path)
{
    return sandbox_kind_of(path) == 0 || may(s, SANDBOX_READ, path);
}

bool
sandbox_may_write(const struct sandbox *s, const char *directory)
{
    return may(s, SANDBOX_WRITE, directory);
}

/* --- Giving up -------------------------------------------------------------------- */

static void __attribute__((format(printf, 2, 3)))
lacks(struct sandbox_state *state, const char *format, ...)
{
    size_t length = strlen(state->missing);
    va_list list;
    if (length > 0 && length + 2 < sizeof(state->missing)) {
        memcpy(state->missing + length, "; ", 3);
        length += 2;
    }
    va_start(list, format);
    vsnprintf(state->missing + length, sizeof(state->missing) - length, format, list);
    va_end(list);
}

/* In every kernel. no_new_privs comes first: without it the kernel refuses Landlock and
 * seccomp to a process that has no capabilities. */
static void
give_up_privileges(struct sandbox_state *state)
{
    const struct rlimit none = {0, 0};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        lacks(state, "no_new_privs (%s)", strerror(errno));
    if (!identity_shed())
        lacks(state, "dropping capabilities (%s)", strerror(errno));
    /* Not traced, no core file, no new process, also in kernels without the rest. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || setrlimit(RLIMIT_CORE, &none) != 0 ||
        setrlimit(RLIMIT_NPROC, &none) != 0)
        lacks(state, "limits (%s)", strerror(errno));
}

static bool
can_landlock(struct sandbox_state *state, int abi)
{
    if (abi == 0)
        lacks(state,
              "Landlock (not in this kernel, or off: Linux 5.19 and newer, lsm=)");
    else if (abi == 1)
        lacks(state, "Landlock (too old in this kernel: 5.19 and newer)");
    return abi > 1;
}

void
sandbox_enter(struct sandbox *s)
{
    struct sandbox_state *state = &s->state;
    int abi, error;
    assert(!state->entered);
    state->entered = true;
    if (SANITIZED) {
        lacks(state, "everything (built with a sanitizer)");
        return;
    }
    give_up_privileges(state);
    abi = sandbox_landlock_abi();
    if (can_landlock(state, abi)) {
        error = sandbox_landlock_enter(s->paths, abi);
        state->landlock = error == 0 ? abi : 0;
        if (error != 0)
            lacks(state, "Landlock (%s)", strerror(error));
    }
    /* The last step: the list has none of the calls that the steps above make. */
    if (sandbox_seccomp_lack() != NULL) {
        lacks(state, "%s", sandbox_seccomp_lack());
        return;
    }
    error = sandbox_seccomp_enter();
    state->seccomp = error == 0;
    if (error != 0)
        lacks(state, "seccomp (%s)", strerror(error));
}

const struct sandbox_state *
sandbox_get_state(const struct sandbox *s)
{
    return &s->state;
}

void
sandbox_offer(struct sandbox_state *state)
{
    *state = (struct sandbox_state){0};
    if (SANITIZED) {
        lacks(state, "everything (built with a sanitizer)");
        return;
    }
    int abi = sandbox_landlock_abi();
    state->landlock = can_landlock(state, abi) ? abi : 0;
    state->seccomp = sandbox_seccomp_lack() == NULL;
    if (!state->seccomp)
        lacks(state, "%s", sandbox_seccomp_lack());
}

void
sandbox_describe(const struct sandbox_state *state, char *out, size_t size)
{
    char landlock[40] = "";
    if (state->landlock > 0)
        snprintf(landlock, sizeof(landlock), "Landlock (ABI %d)%s", state->landlock,
                 state->seccomp ? ", " : "");
    snprintf(out, size, "%s%s%s", landlock, state->seccomp ? "seccomp" : "",
             state->landlock > 0 || state->seccomp ? "" : "off");
}
