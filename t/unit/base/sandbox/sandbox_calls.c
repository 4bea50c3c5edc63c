/* System calls within the sandbox: those that are the end, and those refused and told. */
#include "base/sandbox/sandbox.h"

#include "t/support/sandbox_kit.h"

#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* --- The end of the process -------------------------------------------------------- */

static int
do_execve(void)
{
    char *none[] = {NULL};
    execve("/bin/true", none, none);
    return 1;
}

static int
do_fork(void)
{
    if (fork() == 0)
        _exit(0);
    return 1;
}

static int
do_fork_plainly(void)
{
#ifdef SYS_fork
    if (syscall(SYS_fork) == 0)
        _exit(0);
#else
    raise(SIGSYS);
#endif
    return 1;
}

static int
do_clone3(void)
{
    syscall(SYS_clone3, NULL, (size_t)0);
    return 1;
}

static int
do_ptrace(void)
{
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    return 1;
}

static int
do_mount(void)
{
    mount("none", "/mnt", "tmpfs", 0, NULL);
    return 1;
}

static int
do_bpf(void)
{
    syscall(SYS_bpf, 0, NULL, (size_t)0);
    return 1;
}

static int
do_keyctl(void)
{
    syscall(SYS_keyctl, 0, 0, 0, 0, 0);
    return 1;
}

static int
do_io_uring(void)
{
    syscall(SYS_io_uring_setup, 1, NULL);
    return 1;
}

static int
do_unshare(void)
{
    syscall(SYS_unshare, 0x10000000);
    return 1;
}

static int
do_chroot(void)
{
    (void)!chroot("/");
    return 1;
}

static int
do_read_another(void)
{
    syscall(SYS_process_vm_readv, getppid(), NULL, 0L, NULL, 0L, 0L);
    return 1;
}

static int
do_setuid(void)
{
    (void)!setuid(0);
    return 1;
}

static int
do_memfd(void)
{
    syscall(SYS_memfd_create, "x", 0);
    return 1;
}

static void
test_deadly(bool nobody)
{
    static const struct {
        const char *name;
        int (*act)(void);
    } rows[] = {
        {"execve",           do_execve      },
        {"fork()",           do_fork        },
        {"fork",             do_fork_plainly},
        {"clone3",           do_clone3      },
        {"ptrace",           do_ptrace      },
        {"mount",            do_mount       },
        {"bpf",              do_bpf         },
        {"keyctl",           do_keyctl      },
        {"io_uring_setup",   do_io_uring    },
        {"unshare",          do_unshare     },
        {"chroot",           do_chroot      },
        {"process_vm_readv", do_read_another},
        {"setuid",           do_setuid      },
        {"memfd_create",     do_memfd       },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char name[80];
        int status = child(nobody, rows[i].act, NULL, 0);
        snprintf(name, sizeof(name), "%s: the end%s", rows[i].name,
                 nobody ? ", of nobody too" : "");
        ok_named(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, name);
    }
}

/* --- Calls that are refused --------------------------------------------------------- */

/* Each: 0 when the call failed with EPERM. */
static int
refused(long result)
{
    return result == -1 && errno == EPERM ? 0 : 1;
}

static int
do_netlink(void)
{
    return refused(socket(AF_NETLINK, SOCK_RAW, 0));
}

static int
do_packet(void)
{
    return refused(socket(AF_PACKET, SOCK_RAW, 0));
}

static int
do_raw(void)
{
    return refused(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
}

static int
do_ping(void)
{
    return refused(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
}

static int
do_vsock(void)
{
    return refused(socket(AF_VSOCK, SOCK_STREAM, 0));
}

static int
do_alg(void)
{
    return refused(socket(AF_ALG, SOCK_SEQPACKET, 0));
}

static int
do_listen(void)
{
    return refused(listen(socket(AF_INET, SOCK_STREAM, 0), 1));
}

static int
do_socketpair(void)
{
    int both[2];
    return refused(socketpair(AF_UNIX, SOCK_STREAM, 0, both));
}

static int
do_kill(void)
{
    return refused(kill(getppid(), 0));
}

static int
do_kill_all(void)
{
    return refused(kill(-1, 0));
}

static int
do_code(void)
{
    void *map =
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED && errno == ENOMEM)
        errno = EPERM; /* which musl makes that */
    return refused(map == MAP_FAILED ? -1 : 0);
}

static int
do_make_code(void)
{
    void *map =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return refused(mprotect(map, 4096, PROT_READ | PROT_EXEC));
}

static int
do_prctl(void)
{
    return refused(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
}

static int
do_mknod(void)
{
    return refused(mknod(in_home("ours/device"), S_IFCHR | 0600, 0));
}

static int
do_chmod(void)
{
    return refused(chmod(in_home("ours"), 0777));
}

static int
do_chown(void)
{
    return refused(chown(in_home("ours"), 0, 0));
}

static int
do_symlink(void)
{
    return refused(symlink("/etc/passwd", in_home("ours/link")));
}

static int
do_limit(void)
{
    return refused(setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1}));
}

static int
do_terminal(void)
{
    return refused(syscall(SYS_ioctl, 0, 0x5412, "x")); /* TIOCSTI: types for others */
}

static void
test_refused(bool nobody)
{
    static const struct {
        const char *name;
        int (*act)(void);
    } rows[] = {
        {"a netlink socket",           do_netlink   },
        {"a packet socket",            do_packet    },
        {"a raw socket",               do_raw       },
        {"a ping socket",              do_ping      },
        {"a vsock socket",             do_vsock     },
        {"a kernel crypto socket",     do_alg       },
        {"listen",                     do_listen    },
        {"socketpair",                 do_socketpair},
        {"kill of another",            do_kill      },
        {"kill of all",                do_kill_all  },
        {"memory with code",           do_code      },
        {"memory that becomes code",   do_make_code },
        {"prctl",                      do_prctl     },
        {"mknod",                      do_mknod     },
        {"chmod",                      do_chmod     },
        {"chown",                      do_chown     },
        {"symlink",                    do_symlink   },
        {"a limit but of descriptors", do_limit     },
        {"input for a terminal",       do_terminal  },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char name[80];
        snprintf(name, sizeof(name), "%s: EPERM%s", rows[i].name,
                 nobody ? ", for nobody too" : "");
        is_number(child(nobody, rows[i].act, NULL, 0), 0, name);
    }
}

static int
do_many(void)
{
    for (int i = 0; i < 100; i++)
        (void)!socket(AF_NETLINK, SOCK_RAW, 0);
    return sandbox_refused() == 100 ? 0 : 1;
}

static void
test_told(void)
{
    char told[8192], line[120];
    int lines = 0;
    snprintf(line, sizeof(line),
             "petrel: sandbox: system call %ld is not on the list: refused\n",
             (long)SYS_socket);
    is_number(child(false, do_netlink, told, sizeof(told)), 0, "a call is refused");
    is_string(told, line, "and told, by its number");
    is_number(child(false, do_many, told, sizeof(told)), 0, "a hundred are counted");
    for (const char *at = told; *at; at++)
        lines += *at == '\n';
    is_number(lines, 20, "of which the first 20 are told");
}

int
main(void)
{
    bool root = geteuid() == 0;
    sandbox_offer(&offer);
    if (!offer.seccomp) {
        puts("1..0 # SKIP no seccomp in this build");
        return 0;
    }
    begin();
    for (int nobody = 0; nobody <= (root ? 1 : 0); nobody++) {
        test_deadly(nobody);
        test_refused(nobody);
    }
    test_told();
    sandbox_finish();
    return done();
}
