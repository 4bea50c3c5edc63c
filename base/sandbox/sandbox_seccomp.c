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
#include <sys/syscall.h>
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

int
sandbox_seccomp_number(const void *architecture, const char *name)
{
    (void)architecture;
    return strcmp(name, "seccomp") == 0 ? SYS_seccomp : -1;
}

#ifndef HAVE_LIBSECCOMP

const char *
sandbox_version(char *out, size_t size)
{
    (void)out, (void)size;
    return "";
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
 * those that an architecture lacks have negative numbers, and are skipped. */
#define CALL SCMP_SYS
static const int allowed[] = {
    /* files */
    CALL(read), CALL(readv), CALL(pread64), CALL(preadv), CALL(preadv2),
    CALL(readahead), CALL(write), CALL(writev), CALL(pwrite64), CALL(pwritev),
    CALL(close), CALL(lseek), CALL(open), CALL(openat), CALL(openat2), CALL(stat),
    CALL(fstat), CALL(lstat), CALL(newfstatat), CALL(fstatat64), CALL(fstat64),
    CALL(stat64), CALL(lstat64), CALL(statx), CALL(statfs), CALL(fstatfs),
    CALL(statfs64), CALL(fstatfs64), CALL(access), CALL(faccessat), CALL(faccessat2),
    CALL(readlink), CALL(readlinkat), CALL(getcwd), CALL(getdents64), CALL(mkdir),
    CALL(mkdirat), CALL(unlink), CALL(unlinkat), CALL(rmdir), CALL(link), CALL(linkat),
    CALL(rename), CALL(renameat), CALL(renameat2), CALL(fsync), CALL(fdatasync),
    CALL(ftruncate), CALL(ftruncate64), CALL(fallocate), CALL(fchmod), CALL(fcntl),
    CALL(fcntl64), CALL(_llseek), CALL(io_submit), CALL(io_getevents), CALL(io_setup),
    CALL(io_destroy), CALL(io_cancel),
    /* waiting */
    CALL(epoll_create1), CALL(epoll_ctl), CALL(epoll_wait), CALL(epoll_pwait),
    CALL(epoll_pwait2), CALL(poll), CALL(ppoll), CALL(ppoll_time64), CALL(select),
    CALL(pselect6), CALL(pselect6_time64), CALL(_newselect), CALL(eventfd2),
    CALL(timerfd_create), CALL(timerfd_settime), CALL(timerfd_settime64),
    CALL(timerfd_gettime), CALL(timerfd_gettime64), CALL(restart_syscall),
    /* sockets; not listen(): all listeners exist already */
    CALL(connect), CALL(bind), CALL(accept), CALL(accept4), CALL(sendto), CALL(sendmsg),
    CALL(sendmmsg), CALL(recvfrom), CALL(recvmsg), CALL(recvmmsg),
    CALL(recvmmsg_time64), CALL(send), CALL(recv), CALL(getsockopt), CALL(setsockopt),
    CALL(getsockname), CALL(getpeername), CALL(shutdown),
    /* time, chance, memory, ourselves */
    CALL(clock_gettime), CALL(clock_gettime64), CALL(clock_getres),
    CALL(clock_getres_time64), CALL(clock_nanosleep), CALL(clock_nanosleep_time64),
    CALL(nanosleep), CALL(gettimeofday), CALL(time), CALL(getrandom), CALL(brk),
    CALL(munmap), CALL(mremap), CALL(madvise), CALL(getpid), CALL(gettid),
    CALL(getppid), CALL(getuid), CALL(geteuid), CALL(getgid), CALL(getegid),
    CALL(getresuid), CALL(getresgid), CALL(sysinfo) /* for qsort() */,
    CALL(sched_getaffinity), CALL(uname), CALL(getrusage), CALL(sched_yield),
    CALL(futex), CALL(futex_time64), CALL(set_robust_list), CALL(rseq),
    CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(rt_sigtimedwait),
    CALL(rt_sigtimedwait_time64), CALL(sigreturn), CALL(sigaltstack), CALL(exit),
    CALL(exit_group)};

/* Calls that only an intruder would make. */
static const int deadly[] = {CALL(execve),
                             CALL(execveat),
                             CALL(fork),
                             CALL(vfork),
                             CALL(clone),
                             CALL(clone3),
                             CALL(ptrace),
                             CALL(process_vm_readv),
                             CALL(process_vm_writev),
                             CALL(process_madvise),
                             CALL(kcmp),
                             CALL(pidfd_getfd),
                             CALL(pidfd_open),
                             CALL(pidfd_send_signal),
                             CALL(mount),
                             CALL(umount),
                             CALL(umount2),
                             CALL(move_mount),
                             CALL(open_tree),
                             CALL(fsopen),
                             CALL(fsmount),
                             CALL(fsconfig),
                             CALL(fspick),
                             CALL(mount_setattr),
                             CALL(pivot_root),
                             CALL(chroot),
                             CALL(unshare),
                             CALL(setns),
                             CALL(bpf),
                             CALL(perf_event_open),
                             CALL(userfaultfd),
                             CALL(keyctl),
                             CALL(add_key),
                             CALL(request_key),
                             CALL(io_uring_setup),
                             CALL(io_uring_enter),
                             CALL(io_uring_register),
                             CALL(init_module),
                             CALL(finit_module),
                             CALL(delete_module),
                             CALL(kexec_load),
                             CALL(kexec_file_load),
                             CALL(open_by_handle_at),
                             CALL(reboot),
                             CALL(swapon),
                             CALL(swapoff),
                             CALL(acct),
                             CALL(quotactl),
                             CALL(settimeofday),
                             CALL(clock_settime),
                             CALL(adjtimex),
                             CALL(clock_adjtime),
                             CALL(iopl),
                             CALL(ioperm),
                             CALL(modify_ldt),
                             CALL(memfd_create),
                             CALL(memfd_secret),
                             CALL(vmsplice),
                             CALL(setuid),
                             CALL(setgid),
                             CALL(setreuid),
                             CALL(setregid),
                             CALL(setresuid),
                             CALL(setresgid),
                             CALL(setgroups),
                             CALL(capset),
                             CALL(personality),
                             CALL(seccomp)};

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

const char *
sandbox_version(char *out, size_t size)
{
    const struct scmp_version *v = seccomp_version();
    snprintf(out, size, "libseccomp %u.%u.%u", v->major, v->minor, v->micro);
    return out;
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
#elif defined(__arm__)
    context->uc_mcontext.arm_r0 = (unsigned long)-error;
#elif defined(__riscv)
    context->uc_mcontext.__gregs[REG_A0] = (unsigned long)-error;
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
add_calls(scmp_filter_ctx filter, uint32_t action, const int *calls, size_t count)
{
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++)
        if (calls[i] >= 0) /* else not of this architecture */
            result = seccomp_rule_add(filter, action, calls[i], 0);
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
        result = add_calls(filter, SCMP_ACT_ALLOW, allowed,
                           sizeof(allowed) / sizeof(*allowed));
    if (result == 0)
        result = add_calls(filter, SCMP_ACT_KILL_PROCESS, deadly,
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
