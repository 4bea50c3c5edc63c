/* base/log_writer and base/net_outlet: every kind of descriptor: none makes us wait,
 * and none is changed for others. */
#include "base/log/log_writer.h"

/* link: t/sim/loop.c */
#include "base/crash.h"
#include "base/loop/loop.h"
#include "base/net/net_outlet.h"
#include "base/pace.h"
#include "t/sim/sim.h"
#include "t/support/tap.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE = 100, LINES_MAX = 30000 };

static struct loop *loop;
static struct log_writer *w;
static int drained;
static char told[200];

static void
on_drained(void *context)
{
    const char *why;
    (void)context;
    drained++;
    unsigned long long lost = log_writer_take_lost(w, &why);
    snprintf(told, sizeof(told), "%llu lost: %s\n", lost, why);
    (void)!log_writer_add(w, text_from(told));
    log_writer_flush(w);
}

/* "00000042 xxx...\n" */
static bool
add(int number)
{
    char line[LINE + 16]; /* as far as the compiler knows */
    snprintf(line, sizeof(line), "%08d %0*d\n", number, LINE - 10, 0);
    return log_writer_add(w, text_of(line, LINE));
}

static void
open_on(int descriptor)
{
    drained = 0;
    told[0] = '\0';
    w = log_writer_new(loop, descriptor, on_drained, NULL);
}

/* Says until lines are lost; how many were kept. */
static int
fill(void)
{
    int kept = 0;
    while (kept < LINES_MAX && add(kept)) {
        kept++;
        log_writer_flush(w);
    }
    return kept;
}

/* Everything that is ready, as epoll would tell; then what has come. */
static size_t
drain(int from, char *all, size_t size)
{
    size_t length = 0;
    for (int quiet = 0; quiet < 3; quiet++) {
        ssize_t got;
        while ((got = read(from, all + length, size - length)) > 0) {
            length += (size_t)got;
            quiet = 0;
        }
        for (int d = 0; d < 30; d++)
            sim_loop_ready(loop, d, LOOP_WRITE);
        loop_turn(loop, 0);
    }
    return length;
}

static char all[8 * 1024 * 1024];

/* The other end (given) is read by nobody for a while; is_blocking: for others. */
static void
unread(int given, int other, const char *kind)
{
    int flags = fcntl(given, F_GETFL);
    printf("# %s\n", kind);
    fcntl(other, F_SETFL, fcntl(other, F_GETFL) | O_NONBLOCK);
    open_on(given);
    int kept = fill();
    ok_named(kept * LINE >= LOG_WRITER_MAX && kept < LINES_MAX, "a bounded buffer");
    ok_named(!add(0) && !add(0), "then lines are lost");
    is_number((int64_t)log_writer_waiting(w) <= LOG_WRITER_MAX, true, "its limit");
    is_number(fcntl(given, F_GETFL), flags, "nobody else finds it changed");
    is_number(drained, 0, "nothing is told before it is read");
    size_t length = drain(other, all, sizeof(all));
    is_number(drained, 1, "then it is");
    is_string(told, "3 lost: not read\n", "the number is right");
    is_number((int64_t)log_writer_lost(w), 3, "and stays in the sum");
    ok_named(length == (size_t)kept * LINE + strlen(told) &&
                 memcmp(all + length - strlen(told), told, strlen(told)) == 0,
             "what was kept comes whole, and the rest behind it");
    bool good = true;
    for (int i = 0; i < kept; i++)
        good = good && atoi(all + i * LINE) == i && all[i * LINE + LINE - 1] == '\n';
    ok_named(good, "in order");
    ok_named(add(7), "new lines are taken again");
    log_writer_free(&w);
    length = drain(other, all, sizeof(all));
    is_number((int64_t)length, LINE, "the end writes what is left");
}

TEST(pipes)
{
    int ends[2];
    if (pipe(ends) != 0)
        abort();
    unread(ends[1], ends[0], "a pipe");
    close(ends[0]);
    close(ends[1]);
    /* No description of our own is to be had. */
    struct rlimit before, none;
    if (pipe(ends) != 0 || getrlimit(RLIMIT_NOFILE, &before) != 0)
        abort();
    none = before;
    none.rlim_cur = 3;
    setrlimit(RLIMIT_NOFILE, &none);
    struct net_outlet o;
    net_outlet_open(&o, ends[1]);
    setrlimit(RLIMIT_NOFILE, &before);
    ok_named(o.asks && !o.is_ours, "it is asked before each write");
    int64_t total = 0, wrote;
    while ((wrote = net_outlet_write(&o, text_of(all, 100000))) > 0)
        total += wrote;
    ok_named(wrote == -EAGAIN && total >= 4096 && total < 1 << 20, "and never waits");
    ok(!net_outlet_wait(&o, 0));
    net_outlet_close(&o);
    close(ends[0]);
    close(ends[1]);
}

TEST(sockets)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        abort();
    unread(ends[0], ends[1], "a socket, as journald's is");
    close(ends[0]);
    close(ends[1]);
}

static void
terminals(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        ok_named(true, "terminals # SKIP there are none here");
        return;
    }
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    struct net_outlet o;
    net_outlet_open(&o, slave);
    ok_named(o.is_ours, "a terminal is opened again");
    int64_t total = 0, wrote;
    while ((wrote = net_outlet_write(&o, text_of(all, 10000))) > 0 && total < 1 << 24)
        total += wrote;
    ok_named(wrote == -EAGAIN, "one that is stopped takes no more, at once");
    ok_named((fcntl(slave, F_GETFL) & O_NONBLOCK) == 0, "as it was for others");
    net_outlet_close(&o);
    close(slave);
    close(master);
}

static void
files(void)
{
    char name[] = "/tmp/log_writer-XXXXXX";
    int file = mkstemp(name);
    struct rlimit before, small;
    open_on(file);
    int kept = fill();
    is_number(kept, LINES_MAX, "a file takes everything");
    log_writer_free(&w);
    is_number((int64_t)lseek(file, 0, SEEK_END), (int64_t)LINES_MAX * LINE, "really");
    /* A full disk, as a limit of the file's size. */
    if (ftruncate(file, 0) != 0 || getrlimit(RLIMIT_FSIZE, &before) != 0)
        abort();
    lseek(file, 0, SEEK_SET);
    small = before;
    small.rlim_cur = 10 * LINE + 50;
    setrlimit(RLIMIT_FSIZE, &small);
    open_on(file);
    for (int i = 0; i < 20; i++)
        ok(add(i));
    log_writer_flush(w);
    ok_named(!add(20), "a full disk loses lines");
    loop_turn(loop, 0);
    log_writer_flush(w);
    log_writer_flush(w);
    setrlimit(RLIMIT_FSIZE, &before);
    log_writer_flush(w);
    is_string(told, "11 lost: File too large\n", "all told, when there is room");
    is_number((int64_t)log_writer_lost(w), 11, "none of them twice in the sum");
    ok_named(add(21), "and it goes on");
    log_writer_free(&w);
    lseek(file, 0, SEEK_SET);
    ssize_t length = read(file, all, sizeof(all) - 1);
    all[length > 0 ? length : 0] = '\0';
    ok_named(length == 10 * LINE + 50 + 1 + (ssize_t)strlen(told) + LINE &&
                 all[10 * LINE + 50] == '\n',
             "the line that was cut is ended");
    close(file);
    unlink(name);
}

/* The reader is gone; then nobody is there at the end. */
static void
gone(void)
{
    int ends[2];
    if (pipe(ends) != 0)
        abort();
    open_on(ends[1]);
    ok(add(1));
    close(ends[0]);
    log_writer_flush(w);
    ok_named(!add(2), "a broken pipe loses lines");
    for (int i = 0; i < 5; i++)
        log_writer_flush(w);
    const char *why;
    is_number((int64_t)log_writer_take_lost(w, &why), 2, "each counts once");
    is_string(why, "Broken pipe", "why");
    log_writer_free(&w);
    close(ends[1]);
    if (pipe(ends) != 0)
        abort();
    open_on(ends[1]);
    fill();
    int64_t before = loop_clock_us();
    log_writer_free(&w);
    ok_named(w == NULL && loop_clock_us() > before, "the end waits for nobody for ever");
    close(ends[0]);
    close(ends[1]);
}

/* An assert says its words on the same descriptor, and nothing of ours swallows them. */
static void
crash(void)
{
    int ends[2];
    if (pipe(ends) != 0)
        abort();
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        dup2(ends[1], 2);
        open_on(2);
        (void)!add(1);
        log_writer_flush(w);
        assert(drained == 1);
        _exit(0);
    }
    close(ends[1]);
    waitpid(pid, NULL, 0);
    ssize_t length = read(ends[0], all, sizeof(all)), more;
    while (length > 0 && (more = read(ends[0], all + length, 1000)) > 0)
        length += more;
    ok_named(length > LINE && memmem(all, (size_t)length, "drained == 1", 12) != NULL,
             "a crash says why");
    close(ends[0]);
}

/* The bytes that can be read now. */
static int64_t
read_now(int from)
{
    ssize_t got = read(from, all, sizeof(all));
    return got > 0 ? got : 0;
}

static void
many(void)
{
    int ends[2];
    if (pipe(ends) != 0)
        abort();
    fcntl(ends[0], F_SETFL, fcntl(ends[0], F_GETFL) | O_NONBLOCK);
    open_on(ends[1]);
    sim_loop_advance(loop, 1000);
    bool at_once = true;
    for (int i = 0; i * LINE < LOG_WRITER_NOW; i++) {
        ok(add(i));
        log_writer_flush_soon(w);
        at_once = at_once && read_now(ends[0]) == LINE;
    }
    ok_named(at_once, "few lines are written at once");
    for (int i = 0; i < 20; i++) {
        ok(add(i));
        log_writer_flush_soon(w);
    }
    is_number(read_now(ends[0]), 0, "many wait");
    sim_loop_advance(loop, LOG_WRITER_SOON_MS - 1);
    log_writer_flush_soon(w);
    is_number(read_now(ends[0]), 0, "some ms");
    uint64_t turns = sim_loop_turns(loop);
    sim_loop_advance(loop, 1);
    ok_named(sim_loop_turns(loop) > turns, "the end of which makes a turn");
    log_writer_flush_soon(w);
    is_number(read_now(ends[0]), 20 * LINE, "and are written then, in one piece");
    int64_t got = 0;
    fcntl(ends[1], F_SETPIPE_SZ, 4 * LOG_WRITER_SOON);
    for (int i = 0; i < (LOG_WRITER_NOW + LOG_WRITER_SOON) / LINE + 1; i++) {
        ok(add(i));
        log_writer_flush_soon(w);
        got += read_now(ends[0]);
    }
    ok_named(got >= LOG_WRITER_SOON && log_writer_waiting(w) < LOG_WRITER_SOON, "or when they are many");
    ok(add(1));
    log_writer_flush_soon(w);
    ok(log_writer_waiting(w) > 0);
    log_writer_flush(w);
    is_number(log_writer_waiting(w), 0, "a warning has them written");
    log_writer_free(&w);
    close(ends[0]);
    close(ends[1]);
}

/* The lines that explain a crash are those that wait when it comes. */
static void
rescue(void)
{
    int ends[2], status;
    if (pipe(ends) != 0)
        abort();
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL);
        open_on(ends[1]);
        (void)!add(0);
        log_writer_flush(w);
        (void)!(add(1) && add(2));
        crash_call(log_writer_rescue, w);
        abort();
    }
    close(ends[1]);
    waitpid(pid, &status, 0);
    ssize_t length = read(ends[0], all, sizeof(all)), more;
    while (length > 0 && (more = read(ends[0], all + length, 1000)) > 0)
        length += more;
    ok_named(WIFSIGNALED(status) && length == 3 * LINE && atoi(all + LINE) == 1 && atoi(all + 2 * LINE) == 2,
             "a crash writes the lines that wait");
    close(ends[0]);
}

/* A syslog service: one datagram a line, kept while it is away. */
static void
datagrams(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct net_datagram to;
    char got[200];
    snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/writer-%ld",
             (long)getpid());
    unlink(address.sun_path);
    int service = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(service, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        net_datagram_open(&to, address.sun_path) != 0)
        abort();
    open_on(STDERR_FILENO);
    log_writer_use(w, &to);
    ok(add(1) && add(2));
    log_writer_rescue(w);
    ok_named(recv(service, got, sizeof(got), 0) == LINE - 1 && recv(service, got, sizeof(got), 0) == LINE - 1 &&
                 recv(service, got, sizeof(got), 0) < 0,
             "a crash sends those that wait");
    log_writer_flush(w);
    is_number(recv(service, got, sizeof(got), 0), LINE - 1, "a line without its LF");
    is_number(recv(service, got, sizeof(got), 0), LINE - 1, "and the next");
    is_number(log_writer_waiting(w), 0, "none waits");
    bool soon = true;
    for (int i = 0; i < 3 * LOG_WRITER_NOW / LINE; i++) {
        soon = soon && add(i);
        log_writer_flush_soon(w);
        soon = soon && recv(service, got, sizeof(got), 0) == LINE - 1;
    }
    ok_named(soon, "many are not collected");
    close(service);
    ok(add(3));
    log_writer_flush(w);
    ok(add(4));
    log_writer_flush(w);
    is_number(log_writer_waiting(w), 2 * LINE, "those for a service that is gone wait");
    sim_loop_advance(loop, LOG_WRITER_CONNECT_MS);
    is_number(log_writer_waiting(w), 2 * LINE, "as long as it is");
    unlink(address.sun_path);
    service = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(service, (struct sockaddr *)&address, sizeof(address)) != 0)
        abort();
    sim_loop_advance(loop, LOG_WRITER_CONNECT_MS);
    is_number(log_writer_waiting(w), 0, "and come when it is back");
    is_number(recv(service, got, sizeof(got), 0), LINE - 1, "the third line");
    ok_named(strncmp(got, "00000003", 8) == 0, "none is lost");
    is_number(drained, 0, "so nothing is reported");
    for (int i = 0; i < LINES_MAX; i++)
        (void)!add(i);
    log_writer_flush(w);
    ok_named(log_writer_waiting(w) > 0, "a slow one makes lines wait");
    while (recv(service, got, sizeof(got), 0) > 0 || log_writer_waiting(w) > 0)
        sim_loop_advance(loop, LOG_WRITER_SLOW_MS);
    ok_named(drained == 1 && strstr(told, "lost: not read"), "the rest is counted");
    log_writer_free(&w);
    net_datagram_close(&to);
    close(service);
    unlink(address.sun_path);
}

int
main(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    loop = sim_loop_new(1);
    tap_tests("");
    terminals();
    files();
    gone();
    many();
    crash();
    rescue();
    datagrams();
    loop_turn(loop, 0);
    loop_free(&loop);
    return done();
}
