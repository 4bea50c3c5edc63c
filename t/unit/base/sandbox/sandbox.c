/* The sandbox from within: files, what must work, the process from outside, plans. */
#include "base/sandbox/sandbox.h"

#include "t/support/sandbox_kit.h"

#include <arpa/inet.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

/* --- Files ------------------------------------------------------------------------- */

/* The errno of an open(), 0 when it can. */
static int
try_open(const char *path, int flags)
{
    int file = open(path, flags, 0600);
    int error = file < 0 ? errno : 0;
    if (file >= 0)
        close(file);
    return error;
}

static int
do_foreign_files(void)
{
    int error = try_open("/etc/passwd", O_WRONLY);
    EXPECT(error == EACCES || error == EROFS);
    EXPECT(try_open("/etc/shadow", O_RDONLY) == EACCES);
    EXPECT(try_open("/root", O_RDONLY | O_DIRECTORY) == EACCES);
    EXPECT(try_open("/", O_RDONLY | O_DIRECTORY) == EACCES);
    EXPECT(try_open("/bin/sh", O_RDONLY) == EACCES);
    EXPECT(try_open("/proc/self/mem", O_RDWR) == EACCES);
    EXPECT(try_open("/proc/1/environ", O_RDONLY) == EACCES);
    EXPECT(try_open("/tmp/petrel-sandbox-new", O_WRONLY | O_CREAT) == EACCES);
    EXPECT(try_open(in_home("others/secret"), O_RDONLY) == EACCES);
    EXPECT(try_open(in_home("others/secret"), O_WRONLY | O_TRUNC) == EACCES);
    EXPECT(try_open(in_home("others/new"), O_WRONLY | O_CREAT) == EACCES);
    EXPECT(try_open(in_home("ours/../others/secret"), O_RDONLY) == EACCES);
    EXPECT(mkdir(in_home("others/dir"), 0700) != 0 && errno == EACCES);
    EXPECT(unlink(in_home("others/secret")) != 0 && errno == EACCES);
    EXPECT(rename(in_home("ours/a/file"), in_home("others/file")) != 0 &&
           (errno == EACCES || errno == EXDEV));
    EXPECT(link(in_home("others/secret"), in_home("ours/secret")) != 0 &&
           (errno == EACCES || errno == EXDEV));
    EXPECT(try_open(in_home("read/settings"), O_WRONLY) == EACCES);
    EXPECT(try_open(in_home("read/new"), O_WRONLY | O_CREAT) == EACCES);
    EXPECT(unlink(in_home("read/settings")) != 0 && errno == EACCES);
    return 0;
}

static int
do_own_files(void)
{
    char bytes[8];
    int file = open(in_home("ours/a/new"), O_RDWR | O_CREAT | O_EXCL, 0600);
    int place = open(in_home("ours/b"), O_RDONLY | O_DIRECTORY);
    EXPECT(file >= 0 && place >= 0);
    EXPECT(pwrite(file, "hello", 5, 0) == 5 && fdatasync(file) == 0);
    EXPECT(fchmod(file, 0640) == 0 && ftruncate(file, 3) == 0);
    EXPECT(posix_fallocate(file, 0, 4096) == 0);
    EXPECT(pread(file, bytes, sizeof(bytes), 0) == sizeof(bytes));
    EXPECT(rename(in_home("ours/a/new"), in_home("ours/b/moved")) == 0);
    EXPECT(link(in_home("ours/b/moved"), in_home("ours/a/linked")) == 0);
    EXPECT(fsync(place) == 0);
    EXPECT(unlink(in_home("ours/b/moved")) == 0 && unlink(in_home("ours/a/linked")) == 0);
    EXPECT(mkdir(in_home("ours/c"), 0700) == 0 && rmdir(in_home("ours/c")) == 0);
    EXPECT(mkfifo(in_home("ours/fifo"), 0600) == 0 && unlink(in_home("ours/fifo")) == 0);
    EXPECT(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) != MAP_FAILED);
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    EXPECT(fcntl(file, F_OFD_SETLK, &range) == 0);
    return 0;
}

static int
do_read_files(void)
{
    EXPECT(try_open(in_home("read/settings"), O_RDONLY) == 0);
    EXPECT(try_open(in_home("read/beside"), O_RDONLY) == 0);
    EXPECT(try_open("/etc/passwd", O_RDONLY) == 0);
    return 0;
}

static void
passes(bool nobody, int (*act)(void), const char *name)
{
    char told[1024], both[120];
    snprintf(both, sizeof(both), "%s%s", name, nobody ? ", as nobody" : "");
    if (!is_number(child(nobody, act, told, sizeof(told)), 0, both))
        printf("# %s", told);
}

/* --- Permitted acts ----------------------------------------------------------------- */

static int
do_network(void)
{
    static const int families[] = {AF_INET, AF_INET6, AF_UNIX};
    for (size_t i = 0; i < 3; i++)
        EXPECT(socket(families[i], SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) >= 0 ||
               errno == EAFNOSUPPORT);
    int udp = socket(AF_INET, SOCK_DGRAM, IPPROTO_UDP);
    int tcp = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP), one = 1;
    struct sockaddr_in here = {.sin_family = AF_INET};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT(udp >= 0 && tcp >= 0);
    EXPECT(setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0);
    EXPECT(bind(tcp, (struct sockaddr *)&here, sizeof(here)) == 0);
    here.sin_port = htons(9);
    EXPECT(connect(udp, (struct sockaddr *)&here, sizeof(here)) == 0);
    EXPECT(send(udp, "x", 1, MSG_NOSIGNAL) == 1);
    struct sockaddr_un control = {.sun_family = AF_UNIX};
    snprintf(control.sun_path, sizeof(control.sun_path), "%s", in_home("ours/socket"));
    int local = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT(bind(local, (struct sockaddr *)&control, sizeof(control)) == 0);
    EXPECT(connect(local, (struct sockaddr *)&control, sizeof(control)) != 0 &&
           errno == ECONNREFUSED);
    EXPECT(unlink(control.sun_path) == 0);
    return 0;
}

static int
do_bind_port(void)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(2525)};
    int tcp = socket(AF_INET, SOCK_STREAM, 0);
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT(bind(tcp, (struct sockaddr *)&here, sizeof(here)) != 0 && errno == EACCES);
    return 0;
}

static int
compare(const void *left, const void *right)
{
    return *(const char *)left - *(const char *)right;
}

static int
do_the_rest(void)
{
    char bytes[32], *large;
    struct timespec now;
    struct epoll_event event = {.events = EPOLLIN};
    struct rlimit files;
    int epoll = epoll_create1(EPOLL_CLOEXEC), signal = eventfd(0, EFD_NONBLOCK);
    EXPECT(epoll >= 0 && signal >= 0);
    EXPECT(epoll_ctl(epoll, EPOLL_CTL_ADD, signal, &event) == 0);
    EXPECT(epoll_wait(epoll, &event, 1, 0) == 0);
    EXPECT(getrandom(bytes, sizeof(bytes), 0) == sizeof(bytes));
    EXPECT(clock_gettime(CLOCK_REALTIME, &now) == 0);
    EXPECT((large = malloc(64 << 20)) != NULL);
    memset(large, 1, 64 << 20);
    EXPECT((large = realloc(large, 96 << 20)) != NULL);
    qsort(large, 1 << 20, 1, compare); /* glibc asks how much memory there is */
    free(large);
    EXPECT(getrlimit(RLIMIT_NOFILE, &files) == 0 && setrlimit(RLIMIT_NOFILE, &files) == 0);
    EXPECT(kill(getpid(), 0) == 0);
    aio_context_t context = 0;
    EXPECT(syscall(SYS_io_setup, 4, &context) == 0 || errno == ENOSYS || errno == EAGAIN);
    if (context)
        EXPECT(syscall(SYS_io_destroy, context) == 0);
    EXPECT(sandbox_refused() == 0);
    return 0;
}

static int
do_abort(void)
{
    abort();
}

static int
do_look_at_self(void)
{
    struct rlimit none;
    EXPECT(getuid() == wanted && geteuid() == wanted);
    EXPECT(getrlimit(RLIMIT_NOFILE, &none) == 0);
    return 0;
}

static void
test_works(bool nobody)
{
    passes(nobody, do_own_files, "the spool is ours");
    passes(nobody, do_read_files, "settings are read, and what lies beside them");
    passes(nobody, do_network, "sockets for mail and names");
    passes(nobody, do_the_rest, "waiting, time, chance, memory");
    passes(nobody, do_look_at_self, "it is who it should be");
    if (offer.landlock)
        passes(nobody, do_foreign_files, "other files are out of reach");
    if (offer.landlock >= 4)
        passes(nobody, do_bind_port, "a port cannot be bound any more");
    int status = child(nobody, do_abort, NULL, 0);
    ok_named(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "a bug still aborts");
}

/* --- The process, from outside ------------------------------------------------------- */

static int
do_wait(void)
{
    char byte;
    return (int)read(STDIN_FILENO, &byte, 1);
}

/* The value behind name in /proc/PID/FILE, blanks made one; "" when it is not there. */
static const char *
field(pid_t pid, const char *file, const char *name)
{
    static char all[8192], value[80];
    char path[64];
    size_t used = 0;
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    int from = open(path, O_RDONLY);
    ssize_t length = from < 0 ? 0 : read(from, all, sizeof(all) - 1);
    if (from >= 0)
        close(from);
    all[length > 0 ? length : 0] = '\0';
    const char *at = strstr(all, name);
    for (at = at ? at + strlen(name) : ""; *at && *at != '\n'; at++) {
        bool blank = *at == ' ' || *at == '\t';
        if (!blank || (used > 0 && value[used - 1] != ' '))
            value[used++] = blank ? ' ' : *at;
    }
    while (used > 0 && value[used - 1] == ' ')
        used--;
    value[used] = '\0';
    return value;
}

static void
look_at(bool nobody)
{
    int gate[2], status, tries = 0;
    must(pipe(gate) == 0);
    fflush(stdout);
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        struct identity who = {
            .change = true, .uid = NOBODY, .gid = NOBODY, .name = "nobody"};
        dup2(gate[0], STDIN_FILENO);
        close(gate[1]);
        if (nobody && !identity_keep(&who))
            _exit(100);
        struct sandbox *s = planned();
        sandbox_enter(s);
        child_exit(do_wait());
    }
    while (strcmp(field(pid, "status", "Seccomp:"), "2") != 0 && tries++ < 500)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    is_string(field(pid, "status", "NoNewPrivs:"), "1", "no_new_privs");
    is_string(field(pid, "status", "CapPrm:"), nobody ? "0000000000000000" : "0000000000000006",
              nobody ? "no capability" : "root keeps those for files alone");
    is_string(field(pid, "status", "CapBnd:"), nobody ? "0000000000000000" : "0000000000000006",
              "nor could a program give others back");
    is_string(field(pid, "status", "CapAmb:"), "0000000000000000", "nor inherit them");
    if (nobody)
        is_string(field(pid, "status", "Uid:"), "65534 65534 65534 65534", "all four user ids");
    is_string(field(pid, "limits", "Max core file size "), "0 0 bytes", "no core");
    is_string(field(pid, "limits", "Max processes "), "0 0 processes", "no process");
    close(gate[1]);
    close(gate[0]);
    must(waitpid(pid, &status, 0) == pid);
}

/* --- Old kernels, and containers that refuse ---------------------------------------- */

/* From now on Landlock is not known, and a filter (seccomp, prctl) is refused. */
static void
pretend_old(bool landlock_too)
{
#define CALL(number, error)                                                              \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                                 \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        CALL(landlock_too ? 444U : 0xffffffffU, ENOSYS),
        CALL(SYS_seccomp, EPERM),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        CALL(PR_SET_SECCOMP, EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(*code), .filter = code};
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static int
enter_old(bool landlock_too)
{
    struct sandbox *s = planned();
    const struct sandbox_state *state = sandbox_get_state(s);
    pretend_old(landlock_too);
    sandbox_enter(s);
    EXPECT(state->entered && !state->seccomp && strstr(state->missing, "seccomp ("));
    EXPECT(!landlock_too == (state->landlock > 0));
    EXPECT(landlock_too == (strstr(state->missing, "Landlock (not in") != NULL));
    EXPECT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
    EXPECT(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
    EXPECT(sandbox_may_write(s, "/etc") == landlock_too);
    EXPECT(try_open("/bin/sh", O_RDONLY) == (landlock_too ? 0 : EACCES));
    return 0;
}

static void
test_old(bool landlock_too, const char *name)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0)
        child_exit(enter_old(landlock_too));
    must(waitpid(pid, &status, 0) == pid);
    is_number(status, 0, name);
}

/* --- Plans ------------------------------------------------------------------------- */

TEST(questions)
{
    struct sandbox *s = planned();
    ok_named(sandbox_may_write(s, "/etc") && sandbox_may_read(s, "/etc/shadow"),
             "outside of it there are no bounds");
    ok(!sandbox_get_state(s)->entered);
    sandbox_free(&s);
    ok(s == NULL);
    sandbox_free(&s);
}

static int
do_questions(void)
{
    struct sandbox *s = planned();
    must(symlink(in_home("read/settings"), in_home("ours/to")) == 0);
    must(symlink(in_home("ours"), in_home("way")) == 0);
    sandbox_let_write(s, in_home("missing"));
    sandbox_let_read(s, in_home("missing/x"));
    sandbox_let_write(s, in_home("ours"));
    sandbox_enter(s);
    EXPECT(sandbox_may_write(s, in_home("ours")));
    EXPECT(sandbox_may_write(s, in_home("ours/x/y/z")));
    EXPECT(sandbox_may_write(s, in_home("ours/")));
    EXPECT(sandbox_may_write(s, in_home("way/x")));
    EXPECT(sandbox_may_read(s, in_home("ours/a/file")));
    EXPECT(!sandbox_may_write(s, in_home("oursx")));
    EXPECT(!sandbox_may_write(s, in_home("our")));
    EXPECT(!sandbox_may_write(s, home));
    EXPECT(!sandbox_may_write(s, in_home("read")));
    EXPECT(!sandbox_may_write(s, in_home("missing")));
    EXPECT(!sandbox_may_write(s, "/"));
    EXPECT(!sandbox_may_write(s, ""));
    EXPECT(!sandbox_may_write(s, "relative/x"));
    EXPECT(sandbox_may_read(s, in_home("read/settings")));
    EXPECT(sandbox_may_read(s, in_home("read/beside")));
    EXPECT(sandbox_may_read(s, in_home("ours/to")));
    EXPECT(!sandbox_may_read(s, in_home("others/secret")));
    EXPECT(!sandbox_may_read(s, in_home("others")));
    EXPECT(sandbox_may_read(s, in_home("others/none"))); /* is nothing to read */
    EXPECT(sandbox_may_read(s, "/etc/passwd"));
    EXPECT(sandbox_get_state(s)->entered && sandbox_get_state(s)->missing[0] == '\0');
    return 0;
}

/* As do_questions(), which enters by itself. */
static void
test_entered_questions(void)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0)
        child_exit(do_questions());
    must(waitpid(pid, &status, 0) == pid);
    is_number(status, 0, "the plan answers for paths, links and what is not there");
}

/* A file that is replaced is read again, links or not; a wide directory stays shut. */
static int
do_replaced(void)
{
    EXPECT(try_open(in_home("live/cert"), O_RDONLY) == 0);
    EXPECT(try_open(in_home("archive/cert2"), O_RDONLY) == 0);
    EXPECT(try_open(in_home("lone"), O_RDONLY) == EACCES);
    return 0;
}

static void
test_replaced(void)
{
    int status, gate[2];
    char byte;
    must(mkdir(in_home("live"), 0777) == 0 && mkdir(in_home("archive"), 0777) == 0);
    spit(in_home("archive/cert1"), "1");
    spit(in_home("archive/cert2"), "2");
    spit(in_home("lone"), "x");
    must(symlink("../archive/cert1", in_home("live/cert")) == 0 && pipe(gate) == 0);
    fflush(stdout);
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        struct sandbox *s = sandbox_new();
        child_plan(s);
        sandbox_let_read(s, in_home("live/cert"));
        sandbox_enter(s);
        must(read(gate[0], &byte, 1) == 1);
        child_exit(do_replaced());
    }
    must(symlink("../archive/cert2", in_home("live/next")) == 0);
    must(rename(in_home("live/next"), in_home("live/cert")) == 0);
    must(write(gate[1], "x", 1) == 1);
    must(waitpid(pid, &status, 0) == pid);
    is_number(status, 0, "a renewed certificate behind a link is read again");
}

/* --- A directory that is made or mounted anew --------------------------------------- */

#define REGISTRY "services/mount/registry"

/* Within the sandbox: writes to each file that it is asked for by a letter. */
static int
write_asked(int asked, int said)
{
    for (char what; read(asked, &what, 1) == 1;) {
        const char *path = what == 'r'   ? REGISTRY "/file"
                           : what == 's' ? "services/secret"
                                         : "others/secret";
        char error = (char)try_open(in_home(path), O_WRONLY | O_CREAT);
        must(write(said, &error, 1) == 1);
    }
    return 0;
}

static int to_child, from_child;

static int
answer_for(char what)
{
    char error;
    must(write(to_child, &what, 1) == 1 && read(from_child, &error, 1) == 1);
    return error;
}

static int
replace_directory(bool mounts)
{
    EXPECT(answer_for('r') == 0);
    must(rename(in_home(REGISTRY), in_home("services/mount/away")) == 0);
    EXPECT(answer_for('r') == ENOENT);
    must(mkdir(in_home(REGISTRY), 0777) == 0);
    EXPECT(answer_for('r') == 0);
    EXPECT(answer_for('o') == EACCES);
    EXPECT(answer_for('s') == (mounts ? 0 : EACCES)); /* above a mount point alone */
    if (!mounts)
        return 0;
    must(umount(in_home("services/mount")) == 0);
    EXPECT(answer_for('r') == ENOENT);
    must(mount("none", in_home("services/mount"), "tmpfs", 0, "") == 0);
    must(mkdir(in_home(REGISTRY), 0777) == 0);
    EXPECT(answer_for('r') == 0);
    return 0;
}

/* In a process of its own, whose mounts no other has. is_late: nothing is mounted when
 * the sandbox is entered. */
static int
replaces(bool mounts, bool is_late)
{
    int asks[2], says[2];
    must(pipe(asks) == 0 && pipe(says) == 0);
    if (mounts && !is_late)
        must(mount("none", in_home("services/mount"), "tmpfs", 0, "") == 0);
    if (!is_late)
        must(mkdir(in_home(REGISTRY), 0777) == 0);
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        struct sandbox *s = sandbox_new();
        close(asks[1]);
        child_plan(s);
        sandbox_let_write(s, in_home(REGISTRY));
        sandbox_let_replace(s, in_home(REGISTRY));
        sandbox_enter(s);
        child_exit(write_asked(asks[0], says[1]));
    }
    if (is_late)
        must(mount("none", in_home("services/mount"), "tmpfs", 0, "") == 0 &&
             mkdir(in_home(REGISTRY), 0777) == 0);
    to_child = asks[1];
    from_child = says[0];
    return replace_directory(mounts);
}

static void
test_replaced_directory(bool mounts, bool is_late, const char *name)
{
    int status;
    char command[NAME_SIZE];
    must(mkdir(in_home("services"), 0777) == 0);
    must(mkdir(in_home("services/mount"), 0777) == 0);
    spit(in_home("services/secret"), "theirs");
    fflush(stdout);
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        if (mounts && (unshare(CLONE_NEWNS) != 0 ||
                       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0))
            _exit(77);
        _exit(replaces(mounts, is_late));
    }
    must(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        printf("# no mounts here: not tested: %s\n", name);
    else
        is_number(status, 0, name);
    snprintf(command, sizeof(command), "rm -rf %s", in_home("services"));
    must(system(command) == 0);
}

/* Directories of the system, or of several services, are not opened for that. */
static int
do_shared_directories(void)
{
    static const char *const registries[] = {
        "/registry", "/srv/registry", "/var/lib/registry", "/var/registry",
        "/usr/local/share/registry", "/etc/petrel/registry", "/tmp/registry",
        "/home/somebody/registry", "/none/at/all"};
    struct sandbox *s = planned();
    for (size_t i = 0; i < sizeof(registries) / sizeof(*registries); i++)
        sandbox_let_replace(s, registries[i]);
    sandbox_enter(s);
    for (size_t i = 0; i < sizeof(registries) / sizeof(*registries); i++)
        EXPECT(!sandbox_may_write(s, registries[i]));
    return 0;
}

static void
test_shared_directories(void)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0)
        child_exit(do_shared_directories());
    must(waitpid(pid, &status, 0) == pid);
    is_number(status, 0, "directories of others are not opened for one that is made anew");
}

TEST(words)
{
    char out[80];
    struct sandbox_state state = {.landlock = 7, .seccomp = true};
    sandbox_describe(&state, out, sizeof(out));
    is_string(out, "Landlock (ABI 7), seccomp", "both");
    state.seccomp = false;
    sandbox_describe(&state, out, sizeof(out));
    is_string(out, "Landlock (ABI 7)", "one");
    state.landlock = 0;
    sandbox_describe(&state, out, sizeof(out));
    is_string(out, "off", "none");
    state.seccomp = true;
    sandbox_describe(&state, out, sizeof(out));
    is_string(out, "seccomp", "the other");
    const char *version = sandbox_version(out, sizeof(out));
    ok(version[0] == '\0' || strncmp(version, "libseccomp ", 11) == 0);
}

TEST(identity)
{
    struct identity who;
    ok(identity_find(&who, NULL) && !who.change);
    ok(identity_try_on(&who) && identity_take_off(&who) && identity_keep(&who));
    if (geteuid() != 0)
        return;
    ok_named(!identity_find(&who, "nobody-there"), "no such user");
    ok(identity_find(&who, "nobody") && who.change && who.uid == NOBODY);
    ok_named(identity_try_on(&who) && geteuid() == NOBODY && getuid() == 0, "tried on");
    ok_named(identity_take_off(&who) && geteuid() == 0, "and taken off");
}

int
main(void)
{
    sandbox_offer(&offer);
    begin();
    tap_tests("");
    if (TAP_ADDRESS_SANITIZER) {
        struct sandbox *s = planned();
        sandbox_enter(s);
        ok_named(strstr(sandbox_get_state(s)->missing, "sanitizer") != NULL &&
                     sandbox_get_state(s)->landlock == 0,
                 "a sanitizer needs more, and the state says so");
        sandbox_free(&s);
        sandbox_finish();
        return done();
    }
    bool root = geteuid() == 0;
    for (int nobody = 0; nobody <= (root ? 1 : 0); nobody++) {
        test_works(nobody);
        if (offer.seccomp && root)
            look_at(nobody);
    }
    test_old(true, "neither: the rest is done, and what lacks is said");
    if (offer.landlock)
        test_old(false, "no seccomp: Landlock all the same");
    if (offer.landlock) {
        test_replaced();
        test_replaced_directory(false, false, "a directory that is made anew");
        test_replaced_directory(true, false, "one in a file system that is mounted anew");
        test_replaced_directory(true, true, "one in a file system that is mounted late");
        test_shared_directories();
    }
    if (offer.landlock && offer.seccomp)
        test_entered_questions();
    sandbox_finish();
    return done();
}
