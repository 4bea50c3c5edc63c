/* Listeners accept in bursts, survive exhaustion, and know what is our own. */
#include "base/net/net_internal.h"
#include "base/net/socket.h"

#include "t/support/net_world.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

TEST(burst)
{
    enum { CLIENTS = 300 };
    struct world *w = start("127.0.0.1:0");
    int fds[CLIENTS], first;

    w->server.refuses = true;
    for (int i = 0; i < CLIENTS; i++)
        fds[i] = raw_connect(w);
    loop_turn(w->loop, 1000);
    first = w->accepted;
    ok_named(first > 0 && first < CLIENTS, "one turn accepts some of 300, not all");
    until(w, w->accepted == CLIENTS);
    is_number(w->accepted, CLIENTS, "a few turns accept all");
    is_number(net_connections(w->net), 0, "aborted in on_accept, all are gone");
    for (int i = 0; i < CLIENTS; i++)
        close(fds[i]);
    net_finish(w);
}

TEST(exhaustion)
{
    struct world *w = start("127.0.0.1:0");
    int fd = raw_connect(w), turns = 0, next = dup(fd);
    struct rlimit before, few;
    int64_t started_ms;

    close(next);
    getrlimit(RLIMIT_NOFILE, &before);
    few = (struct rlimit){(rlim_t)next, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    started_ms = net_now_ms();
    for (; net_now_ms() - started_ms < 250; turns++)
        loop_turn(w->loop, 1000);
    setrlimit(RLIMIT_NOFILE, &before);
    printf("# %d turns in 250 ms without descriptors\n", turns);
    ok_named(turns < 20, "a listener without descriptors does not spin");
    is_number(w->accepted, 0, "nor accept");
    until(w, w->accepted);
    is_number(w->accepted, 1, "but goes on when there are some again");
    close(fd);
    net_finish(w);
}

TEST(is_own)
{
    struct world *w = start("127.0.0.1:0"), *any = start("0.0.0.0:0");
    struct world *any6 = start("[::]:0");
    struct net_address a = *net_where(w), b = *net_where(any), c = *net_where(any6);
    struct net_address loopback = address("127.0.0.1:1"), six = address("[::1]:1");
    struct net_address mapped = address("[::ffff:127.0.0.1]:1");
    struct net_address far = address("192.0.2.1:1"), zero = address("0.0.0.0:1");

    ok_named(net_is_own(w->net, &a), "a listener's own address");
    a.port++;
    ok_named(!net_is_own(w->net, &a), "another port");
    loopback.port = zero.port = mapped.port = net_where(w)->port;
    ok_named(net_is_own(w->net, &mapped), "in IPv6's clothes");
    ok_named(net_is_own(w->net, &zero), "0.0.0.0 leads to it");
    loopback.ip[3] = 2;
    ok_named(!net_is_own(w->net, &loopback), "127.0.0.2 does not");
    loopback.port = far.port = six.port = b.port;
    ok_named(net_is_own(any->net, &loopback), "but all of 127/8 leads to 0.0.0.0");
    ok_named(net_is_own(any->net, &b), "and itself");
    ok_named(!net_is_own(any->net, &far), "a far address does not");
    ok_named(!net_is_own(any->net, &six), "nor does ::1");
    six.port = c.port;
    ok_named(net_is_own(any6->net, &six), "which leads to ::");
    loopback.port = c.port;
    ok_named(!net_is_own(any6->net, &loopback), "127.0.0.1 does not");
    net_listener_free(&w->listener);
    a.port--;
    ok_named(!net_is_own(w->net, &a), "a listener that is gone");
    net_finish(w);
    net_finish(any);
    net_finish(any6);
}

/* The address by which others reach this machine, when it has one. */
TEST(is_own_elsewhere)
{
    struct world *any = start("0.0.0.0:0"), *any6 = start("[::]:0");
    struct ifaddrs *list = NULL, *each;
    unsigned own = 0, next = 0, seen = 0;
    if (getifaddrs(&list) != 0)
        return;
    for (each = list; each; each = each->ifa_next) {
        int family = each->ifa_addr ? each->ifa_addr->sa_family : AF_UNSPEC;
        struct net_address a = {0};
        bool six = family == AF_INET6;
        if ((!six && family != AF_INET) || each->ifa_flags & IFF_LOOPBACK)
            continue;
        a.family = six ? NET_IPV6 : NET_IPV4;
        memcpy(a.ip, six ? (void *)&((struct sockaddr_in6 *)(void *)each->ifa_addr)->sin6_addr : &((struct sockaddr_in *)(void *)each->ifa_addr)->sin_addr, six ? 16 : 4);
        if (six && a.ip[0] == 0xfe) /* nothing without its interface */
            continue;
        a.port = net_where(six ? any6 : any)->port;
        seen++;
        own += net_is_own((six ? any6 : any)->net, &a);
        a.ip[six ? 15 : 3] ^= 0x55;
        next += net_is_own((six ? any6 : any)->net, &a);
    }
    freeifaddrs(list);
    is_number(own, seen, "every address of every interface");
    is_number(next, 0, "and none of its neighbours");
    net_finish(any);
    net_finish(any6);
}

static struct net_listener *
listen_again(struct world *w, const struct net_address *at, unsigned mode, char *error)
{
    error[0] = '\0';
    return net_listen(w->net, at, mode, on_accept, w, error, 200);
}

TEST(listen_errors)
{
    struct world *w = start("127.0.0.1:0");
    struct net_address far = address("192.0.2.1:0");
    char error[200], want[200], text[NET_ADDRESS_TEXT_MAX];

    ok_named(net_where(w)->port != 0, "port 0 becomes a real one");
    ok_named(!listen_again(w, net_where(w), 0, error), "an address in use");
    net_address_format(net_where(w), text);
    snprintf(want, sizeof(want),
             "cannot listen on %s: %s (`ss -ltnp` shows which program listens there)",
             text, strerror(EADDRINUSE)); /* the words of the C library */
    is_string(error, want, "is one clear line");
    ok_named(!listen_again(w, &far, 0, error), "an address that is not ours");
    snprintf(want, sizeof(want), "cannot listen on 192.0.2.1:0: %s",
             strerror(EADDRNOTAVAIL));
    is_string(error, want, "says so");
    ok_named(!strstr(error, "1024"), "that is no question of rights");
    ok_named(!net_listen(w->net, &far, 0, on_accept, w, error, 10), "a short error");
    is_number(strlen(error), 9, "is cut");
    net_finish(w);
}

/* Leaves a socket behind, as a crash does. */
static void
leave_socket(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    text_copy(name.sun_path, sizeof(name.sun_path), text_from(path));
    if (bind(fd, (struct sockaddr *)&name, sizeof(name)) < 0)
        abort();
    close(fd);
}

/* Nobody answers at these, either; they are no sockets that a crash left. */
static void
leave_other(struct world *w, const struct net_address *at, const char *path, int made,
            const char *what)
{
    struct stat before, after;
    char error[200];
    if (made < 0 || lstat(path, &before) < 0)
        abort();
    struct net_listener *listener = listen_again(w, at, 0, error);
    ok_named(listener == NULL, what);
    ok_named(lstat(path, &after) == 0 &&
                 (after.st_mode & S_IFMT) == (before.st_mode & S_IFMT),
             "is not replaced");
    net_listener_free(&listener);
    unlink(path);
}

TEST(unix_listener)
{
    struct world *w = start(NULL), *other = start(NULL);
    char directory[] = "/tmp/petrel-net-XXXXXX", path[64], target[64], error[200];
    struct net_address at = {.family = NET_UNIX};
    struct net_credentials who;
    struct net_listener *second;
    struct stat status;

    if (!mkdtemp(directory))
        abort();
    snprintf(path, sizeof(path), "%s/s", directory);
    text_copy(at.path, sizeof(at.path), text_from(path));
    umask(077);
    w->listener = listen_again(w, &at, 0, error);
    ok_named(w->listener, "a Unix socket");
    ok_named(stat(path, &status) == 0 && (status.st_mode & 07777) == 0666,
             "of mode 0666");
    ok_named(!listen_again(other, &at, 0, error), "that somebody answers");
    ok_named(strstr(error, strerror(EADDRINUSE)), "is in use");
    connect_client(w);
    until(w, w->server.connection && w->client.told[0]);
    is_string(w->client.told, "C", "and can be used");
    ok_named(net_peer_credentials(w->server.connection, &who) &&
                 who.pid == (unsigned)getpid() && who.uid == geteuid() &&
                 who.gid == getegid(),
             "the kernel says who is there");
    net_listener_free(&w->listener);
    ok_named(stat(path, &status) < 0, "it goes with its listener");

    leave_socket(path);
    second = listen_again(other, &at, 0600, error);
    ok_named(second, "one left over is replaced");
    ok_named(stat(path, &status) == 0 && (status.st_mode & 07777) == 0600, "mode 0600");
    net_listener_free(&second);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    ok_named(!listen_again(other, &at, 0, error), "a file is not");
    ok_named(stat(path, &status) == 0, "and stays");
    unlink(path);
    leave_other(other, &at, path, mkfifo(path, 0600), "a FIFO");
    snprintf(target, sizeof(target), "%s/t", directory);
    close(open(target, O_CREAT | O_WRONLY, 0600));
    leave_other(other, &at, path, symlink(target, path), "a link to a file");
    unlink(target);
    leave_socket(target);
    leave_other(other, &at, path, symlink(target, path), "a link to a socket");
    unlink(target);
    leave_other(other, &at, path, symlink(target, path), "a link to nothing");
    rmdir(directory);
    net_finish(w);
    net_finish(other);
}

static void
on_accept_free(void *context, struct net_connection *connection)
{
    struct world *w = context;

    w->accepted++;
    net_abort(&connection);
    net_listener_free(&w->listener);
}

TEST(listener_freed)
{
    struct world *w = start(NULL);
    struct net_address at = address("127.0.0.1:0");
    char error[200];
    int one, two;

    w->listener = net_listen(w->net, &at, 0, on_accept_free, w, error, sizeof(error));
    one = raw_connect(w);
    two = raw_connect(w);
    until(w, w->accepted);
    for (int i = 0; i < 3; i++)
        loop_turn(w->loop, 1);
    is_number(w->accepted, 1, "a listener freed in on_accept accepts no more");
    close(one);
    close(two);
    net_finish(w);
}

/* As one turns away a client that is one too many. */
static void
on_accept_close(void *context, struct net_connection *c)
{
    struct world *w = context;

    w->accepted++;
    net_attach(c, on_event, &w->server);
    net_send(c, TEXT("421 no\r\n"));
    net_close(&c);
}

TEST(closed_at_once)
{
    struct world *w = start(NULL);
    struct net_address at = address("127.0.0.1:0");
    char error[200], said[32];
    int fd;

    w->listener = net_listen(w->net, &at, 0, on_accept_close, w, error, sizeof(error));
    fd = raw_connect(w);
    until(w, is_readable(fd));
    raw_read(fd, said, sizeof(said));
    is_string(said, "421 no\r\n", "closed in on_accept, it still hears why");
    close(fd);
    until(w, net_connections(w->net) == 0);
    is_number(net_connections(w->net), 0, "and is gone when it hangs up");
    net_finish(w);
}

static struct net_listener *
share(struct world *w, const struct net_address *at, char error[200])
{
    error[0] = '\0';
    return net_listen_shared(w->net, at, on_accept, w, error, 200);
}

TEST(shared)
{
    struct world *one = start(NULL), *two = start(NULL), *alone = start("127.0.0.1:0");
    struct net_address at = address("127.0.0.1:0");
    char error[200];
    one->listener = share(one, &at, error);
    at = *net_listener_address(one->listener);
    two->listener = share(two, &at, error);
    ok_named(two->listener, "two listen on one port");
    is_string(error, "", "without an error");
    ok_named(!listen_again(alone, &at, 0, error), "who does not share it is refused");
    char told[200];
    snprintf(told, sizeof(told), "%s (`ss", strerror(EADDRINUSE));
    ok_named(strstr(error, told), "and told");
    ok_named(!share(one, net_where(alone), error), "a port that is not shared");
    snprintf(told, sizeof(told),
             "%s (a program listens there without ?share, or as another user: "
             "`ss -ltnp` shows it)",
             strerror(EADDRINUSE));
    ok_named(strstr(error, told), "says so");
    net_listener_free(&one->listener);
    int fd = raw_connect(two);
    until(two, two->accepted);
    ok_named(two->accepted == 1, "one goes: the other has all clients");
    close(fd);
    net_finish(one);
    net_finish(two);
    net_finish(alone);
}

/* The rest of a listener that ends. */
TEST(rest)
{
    enum { CLIENTS = 100 }; /* more than in a turn */
    struct world *w = start(NULL);
    struct net_address at = address("127.0.0.1:0");
    char error[200], said[32];
    int fds[CLIENTS], heard = 0;
    w->listener = net_listen(w->net, &at, 0, on_accept_close, w, error, sizeof(error));
    for (int i = 0; i < CLIENTS; i++)
        fds[i] = raw_connect(w);
    net_listener_accept_rest(w->listener);
    is_number(w->accepted, CLIENTS, "all that wait are accepted");
    net_listener_accept_rest(w->listener);
    is_number(w->accepted, CLIENTS, "once");
    net_listener_free(&w->listener);
    for (int i = 0; i < CLIENTS; i++) {
        until(w, is_readable(fds[i]));
        raw_read(fds[i], said, sizeof(said));
        heard += strcmp(said, "421 no\r\n") == 0;
        close(fds[i]);
    }
    is_number(heard, CLIENTS, "and get an answer");
    w->listener = net_listen(w->net, &at, 0, on_accept_free, w, error, sizeof(error));
    fds[0] = raw_connect(w);
    fds[1] = raw_connect(w);
    w->accepted = 0;
    net_listener_accept_rest(w->listener);
    is_number(w->accepted, 1, "a listener freed meanwhile accepts no more");
    close(fds[0]);
    close(fds[1]);
    net_finish(w);
}
