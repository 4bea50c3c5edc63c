/* seccomp: the system calls that the process may still make, by libseccomp.
 *
 * There are three kinds of calls. Those in `allowed`, or in add_conditions() with these
 * arguments, work. Those in `deadly` are never made by Petrel, and end the process. All
 * others raise SIGSYS, whose handler logs the number and returns EPERM: a call that was
 * overlooked costs a line in the log, not the daemon. */
#include "base/sandbox/sandbox_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A signal handler has no context: the only such static value of the program. */
static volatile sig_atomic_t *
refusals(void)
{
    static volatile sig_atomic_t count;
    return &count;
}

unsigned
sandbox_refused(void)
{
    return (unsigned)*refusals();
}

#ifndef HAVE_LIBSECCOMP

void
sandbox_version(char *out, size_t size)
{
    snprintf(out, size, "no libseccomp");
}

const char *
sandbox_seccomp_lack(void)
{
    return "seccomp (built without libseccomp)";
}

int
sandbox_seccomp_enter(void)
{
    return ENOSYS;
}

#else

#include <netinet/in.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <ucontext.h>

enum { TOLD_MAX = 20, TYPE_MASK = 0xf /* of a socket, without its flags */ };

/* The calls that glibc and musl make for the loop, the four doors and the C library;
 * names that an architecture lacks are skipped. */
static const char *const allowed[] = {
    /* files */
    "read", "readv", "pread64", "preadv", "preadv2", "readahead", "write", "writev",
    "pwrite64", "pwritev", "close", "lseek", "open", "openat", "openat2", "stat",
    "fstat", "lstat", "newfstatat", "fstatat64", "fstat64", "stat64", "lstat64",
    "statx", "statfs", "fstatfs", "statfs64", "fstatfs64", "access", "faccessat",
    "faccessat2", "readlink", "readlinkat", "getcwd", "getdents64", "mkdir", "mkdirat",
    "unlink", "unlinkat", "rmdir", "link", "linkat", "rename", "renameat", "renameat2",
    "fsync", "fdatasync", "ftruncate", "ftruncate64", "fallocate", "fchmod", "fcntl",
    "fcntl64", "_llseek", "io_submit", "io_getevents", "io_setup", "io_destroy",
    "io_cancel",
    /* waiting */
    "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "poll",
    "ppoll", "select", "pselect6", "_newselect", "eventfd2", "timerfd_create",
    "timerfd_settime", "timerfd_gettime", "restart_syscall",
    /* sockets; not listen(): all listeners exist already */
    "connect", "bind", "accept", "accept4", "sendto", "sendmsg", "sendmmsg", "recvfrom",
    "recvmsg", "recvmmsg", "send", "recv", "getsockopt", "setsockopt", "getsockname",
    "getpeername", "shutdown",
    /* time, chance, memory, ourselves */
    "clock_gettime", "clock_gettime64", "clock_getres", "clock_nanosleep", "nanosleep",
    "gettimeofday", "time", "getrandom", "brk", "munmap", "mremap", "madvise", "getpid",
    "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getresuid",
    "getresgid", "sysinfo" /* for qsort() */, "sched_getaffinity", "uname", "getrusage",
    "sched_yield", "futex", "set_robust_list", "rseq", "rt_sigaction", "rt_sigprocmask",
    "rt_sigreturn", "rt_sigtimedwait", "sigreturn", "sigaltstack", "exit",
    "exit_group"};

/* Calls that only an intruder would make. */
static const char *const deadly[] = {"execve",
                                     "execveat",
                                     "fork",
                                     "vfork",
                                     "clone",
                                     "clone3",
                                     "ptrace",
                                     "process_vm_readv",
                                     "process_vm_writev",
                                     "process_madvise",
                                     "kcmp",
                                     "pidfd_getfd",
                                     "pidfd_open",
                                     "pidfd_send_signal",
                                     "mount",
                                     "umount",
                                     "umount2",
                                     "move_mount",
                                     "open_tree",
                                     "fsopen",
                                     "fsmount",
                                     "fsconfig",
                                     "fspick",
                                     "mount_setattr",
                                     "pivot_root",
                                     "chroot",
                                     "unshare",
                                     "setns",
                                     "bpf",
                                     "perf_event_open",
                                     "userfaultfd",
                                     "keyctl",
                                     "add_key",
                                     "request_key",
                                     "io_uring_setup",
                                     "io_uring_enter",
                                     "io_uring_register",
                                     "init_module",
                                     "finit_module",
                                     "delete_module",
                                     "kexec_load",
                                     "kexec_file_load",
                                     "open_by_handle_at",
                                     "reboot",
                                     "swapon",
                                     "swapoff",
                                     "acct",
                                     "quotactl",
                                     "settimeofday",
                                     "clock_settime",
                                     "adjtimex",
                                     "clock_adjtime",
                                     "iopl",
                                     "ioperm",
                                     "modify_ldt",
                                     "memfd_create",
                                     "memfd_secret",
                                     "vmsplice",
                                     "setuid",
                                     "setgid",
                                     "setreuid",
                                     "setregid",
                                     "setresuid",
                                     "setresgid",
                                     "setgroups",
                                     "capset",
                                     "personality",
                                     "seccomp"};

/* Streams for mail, UDP for DNS; no netlink, raw or packet sockets. */
static const struct {
    int family, type, protocol;
} sockets[] = {
    {AF_UNIX,  SOCK_STREAM, 0          },
    {AF_INET,  SOCK_STREAM, 0          },
    {AF_INET,  SOCK_STREAM, IPPROTO_TCP},
    {AF_INET,  SOCK_DGRAM,  0          },
    {AF_INET,  SOCK_DGRAM,  IPPROTO_UDP},
    {AF_INET6, SOCK_STREAM, 0          },
    {AF_INET6, SOCK_STREAM, IPPROTO_TCP},
    {AF_INET6, SOCK_DGRAM,  0          },
    {AF_INET6, SOCK_DGRAM,  IPPROTO_UDP},
};

void
sandbox_version(char *out, size_t size)
{
    const struct scmp_version *v = seccomp_version();
    snprintf(out, size, "libseccomp %u.%u.%u", v->major, v->minor, v->micro);
}

const char *
sandbox_seccomp_lack(void)
{
    return NULL;
}

/* --- A call that is not on the list -------------------------------------------- */

/* snprintf() may not be called in a handler. */
static size_t
sandbox_seccomp_put_number(char *out, unsigned number)
{
    char digits[12];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    for (size_t i = 0; i < count; i++)
        out[i] = digits[count - 1 - i];
    return count;
}

/* The kernel leaves the register of the result to us; on an unknown architecture the
 * result is ENOSYS or the number of the call. */
static void
sandbox_seccomp_answer(ucontext_t *context, int error)
{
#if defined(__x86_64__)
    context->uc_mcontext.gregs[REG_RAX] = -error;
#elif defined(__aarch64__)
    context->uc_mcontext.regs[0] = (unsigned long long)-error;
#else
    (void)context;
    (void)error;
#endif
}

static void
on_refused(int signal_number, siginfo_t *info, void *context)
{
    static const char before[] = "petrel: sandbox: system call ";
    static const char after[] = " is not on the list: refused\n";
    char line[sizeof(before) + sizeof(after) + 12];
    size_t length = sizeof(before) - 1;
    int saved = errno;
    (void)signal_number;
    /* Straight to standard error, past the limits of the log: hence a limit here. */
    if (*refusals() < TOLD_MAX) {
        memcpy(line, before, length);
        length += sandbox_seccomp_put_number(line + length, (unsigned)info->si_syscall);
        memcpy(line + length, after, sizeof(after) - 1);
        (void)!write(STDERR_FILENO, line, length + sizeof(after) - 1);
    }
    *refusals() = *refusals() + (*refusals() < SIG_ATOMIC_MAX);
    errno = saved;
    sandbox_seccomp_answer(context, EPERM);
}

static int
watch_refusals(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO};
    action.sa_sigaction = on_refused;
    return sigaction(SIGSYS, &action, NULL) == 0 ? 0 : -errno;
}

/* --- The list ------------------------------------------------------------------ */

/* 0 or a negative errno, as libseccomp has it. */
static int
add_names(scmp_filter_ctx filter, uint32_t action, const char *const *names,
          size_t count)
{
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        int number = seccomp_syscall_resolve_name(names[i]);
        if (number >= 0) /* else unknown to this architecture or library */
            result = seccomp_rule_add(filter, action, number, 0);
    }
    return result;
}

static struct scmp_arg_cmp
masked(unsigned argument, uint32_t mask, int value)
{
    return (struct scmp_arg_cmp){argument, SCMP_CMP_MASKED_EQ, mask, (uint32_t)value};
}

/* Arguments are ints: the other half of the register is undefined. */
static struct scmp_arg_cmp
exact(unsigned argument, int value)
{
    return masked(argument, UINT32_MAX, value);
}

static int
add_sockets(scmp_filter_ctx filter)
{
    int result = 0;
    for (size_t i = 0; i < sizeof(sockets) / sizeof(*sockets) && result == 0; i++) {
        const struct scmp_arg_cmp arguments[] = {exact(0, sockets[i].family),
                                                 masked(1, TYPE_MASK, sockets[i].type),
                                                 exact(2, sockets[i].protocol)};
        result = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 3,
                                        arguments);
    }
    return result;
}

/* Calls that are allowed with some arguments only. */
static int
add_conditions(scmp_filter_ctx filter)
{
    /* abort() signals ourselves: we have one thread, with the number of the process. */
    const struct scmp_arg_cmp self = exact(0, getpid());
    /* No memory becomes executable. */
    const struct scmp_arg_cmp data = masked(2, PROT_EXEC, 0);
    const struct scmp_arg_cmp unblock = exact(1, FIONBIO);
    /* An adopted slice may lack its trigger. */
    const struct scmp_arg_cmp fifo = masked(1, S_IFMT, S_IFIFO);
    const struct scmp_arg_cmp fifo_at = masked(2, S_IFMT, S_IFIFO);
    const struct scmp_arg_cmp descriptors[] = {exact(0, 0), exact(1, RLIMIT_NOFILE)};
    const struct {
        int call;
        unsigned count;
        const struct scmp_arg_cmp *arguments;
    } conditions[] = {
        {SCMP_SYS(mmap),      1, &data      },
        {SCMP_SYS(mmap2),     1, &data      },
        {SCMP_SYS(mprotect),  1, &data      },
        {SCMP_SYS(tgkill),    1, &self      },
        {SCMP_SYS(tkill),     1, &self      },
        {SCMP_SYS(kill),      1, &self      },
        {SCMP_SYS(prlimit64), 2, descriptors},
        {SCMP_SYS(ioctl),     1, &unblock   },
        {SCMP_SYS(mknod),     1, &fifo      },
        {SCMP_SYS(mknodat),   1, &fifo_at   },
    };
    int result = 0;
    for (size_t i = 0; i < sizeof(conditions) / sizeof(*conditions) && result == 0; i++)
        if (conditions[i].call >= 0) /* else not of this architecture */
            result =
                seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, conditions[i].call,
                                       conditions[i].count, conditions[i].arguments);
    return result;
}

int
sandbox_seccomp_enter(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_TRAP);
    if (filter == NULL)
        return ENOMEM;
    int result =
        seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (result == 0)
        result = add_names(filter, SCMP_ACT_ALLOW, allowed,
                           sizeof(allowed) / sizeof(*allowed));
    if (result == 0)
        result = add_names(filter, SCMP_ACT_KILL_PROCESS, deadly,
                           sizeof(deadly) / sizeof(*deadly));
    if (result == 0)
        result = add_sockets(filter);
    if (result == 0)
        result = add_conditions(filter);
    if (result == 0)
        (void)!seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree */
    if (result == 0)
        /* Before the filter: without a handler SIGSYS would end the process. */
        result = watch_refusals();
    if (result == 0)
        result = seccomp_load(filter);
    seccomp_release(filter);
    return -result;
}

#endif
