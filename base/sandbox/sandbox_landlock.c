/* Landlock: limits the files that the process may use, and forbids binding ports.
 *
 * The struct of a rule set grows with the ABI. A kernel gets only the part that it
 * knows: it refuses larger ones, and rights that it does not know. */
#include "base/sandbox/sandbox_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

int
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

int
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
