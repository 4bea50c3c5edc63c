/* base/net/socket: each call of the system, as its users rely on it. */
#include "base/net/socket.h"

#include "t/support/must.h"
#include "t/support/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static struct net_address
address_of(const char *text)
{
    struct net_address a;
    if (!net_address_parse(text_from(text), 0, &a))
        abort();
    return a;
}

static struct net_address
unix_address(const char *name)
{
    struct net_address a = {.family = NET_UNIX};
    snprintf(a.path, sizeof(a.path), "%s/%s", folder, name);
    return a;
}

static int
wait_accepted(int listener, struct net_address *peer)
{
    ok_named(socket_wait_read(listener, 60000), "a connection comes");
    return socket_accept(listener, peer);
}

static bool
wait_text(int socket, const char *want)
{
    char bytes[32];
    if (!socket_wait_read(socket, 60000))
        return false;
    ssize_t got = socket_receive(socket, bytes, sizeof(bytes));
    return got >= 0 && text_equal(text_of(bytes, (size_t)got), text_from(want));
}

static void
streams(const char *where, const char *from)
{
    struct net_address any = address_of(where), at = {0}, peer = {0}, local = {0},
                       source = address_of(from);
    int l = socket_listen(&any, 0, false), c = socket_open(any.family);
    ok_named(socket_local(l, &at) && at.port != 0, "a listener has a port");
    is_number(socket_accept(l, &peer), -EAGAIN, "nobody has come");
    is_number(socket_bind_source(c, &source), 0, "a source");
    int began = socket_connect(c, &at);
    ok_named(began == 0 || began == -EINPROGRESS, "connects");
    int s = wait_accepted(l, &peer);
    ok_named(socket_wait_write(c, 60000) && socket_result(c) == 0, "is connected");
    ok_named(socket_local(c, &local) && net_address_equal(&local, &peer),
             "and is the peer's peer");
    is_number(memcmp(local.ip, source.ip, sizeof(local.ip)), 0, "from its source");
    ok_named(socket_peer(c, &peer) && net_address_equal(&peer, &at), "at the listener");
    is_number(fcntl(c, F_GETFD) & fcntl(s, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC,
              "no other program has them");
    ok_named((fcntl(s, F_GETFL) & fcntl(l, F_GETFL) & O_NONBLOCK) != 0, "none waits");
    char byte;
    is_number(socket_receive(s, &byte, 1), -EAGAIN, "nothing to read");
    is_number(socket_send(c, TEXT("one")), 3, "bytes are sent");
    ok_named(wait_text(s, "one"), "and received");
    is_number(socket_shut(c), 0, "our half ends");
    ok_named(wait_text(s, ""), "which the peer hears");
    ok_named(!socket_is_gone(s), "but its own half is open");
    is_number(socket_send(s, TEXT("two")), 3, "for bytes");
    ok_named(wait_text(c, "two"), "that arrive");
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(s, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    socket_close(s);
    ok_named(socket_wait_read(c, 60000), "a reset comes");
    is_number(socket_receive(c, &byte, 1), -ECONNRESET, "as an error");
    ok_named(socket_is_gone(c), "the peer is gone");
    ok_named(socket_send(c, TEXT("x")) < 0, "sending fails, without a signal");
    socket_close(c);
    is_number(socket_listen(&at, 0, false), -EADDRINUSE, "one listener alone");
    socket_close(l);
    c = socket_open(at.family);
    began = socket_connect(c, &at);
    ok_named(began == -ECONNREFUSED ||
                 (socket_wait_write(c, 60000) && socket_result(c) == -ECONNREFUSED),
             "nobody listens any more");
    socket_close(c);
}

static void
shared(void)
{
    struct net_address any = address_of("127.0.0.1:0"), at = {0};
    int a = socket_listen(&any, 0, true), b = -1;
    ok_named(socket_local(a, &at), "one that is shared");
    b = socket_listen(&at, 0, true);
    ok_named(b >= 0, "has another one at its side");
    ok_named(!socket_is_dual(a), "IPv4 is not dual");
    is_number(socket_adopt_listening(b), 0, "a listening socket can be adopted");
    socket_close(a);
    socket_close(b);
    struct net_address any6 = address_of("[::]:0");
    int c = socket_listen(&any6, 0, false);
    ok_named(c < 0 || !socket_is_dual(c), "nor is ours of IPv6");
    if (c >= 0)
        socket_close(c);
    int d = socket_open(NET_IPV4);
    is_number(socket_adopt_listening(d), -EPROTOTYPE, "one that does not listen");
    socket_close(d);
    is_number(socket_adopt_listening(d), -EBADF, "one that is closed");
}

TEST(local_sockets)
{
    struct net_address at = unix_address("s"), peer;
    struct stat info;
    struct net_credentials who = {0};
    umask(077);
    int l = socket_listen(&at, 0620, false), c = socket_open(NET_UNIX);
    is_number(umask(022), 077, "the umask is as it was");
    ok_named(stat(at.path, &info) == 0 && (info.st_mode & 0777) == 0620,
             "the file has the wanted mode");
    is_number(socket_connect(c, &at), 0, "a Unix socket connects immediately");
    int s = wait_accepted(l, &peer);
    is_number(peer.family, NET_UNIX, "from a Unix socket");
    ok_named(socket_credentials(s, &who) && who.pid == (unsigned)getpid() &&
                 who.uid == getuid() && who.gid == getgid(),
             "of this process");
    is_number(socket_listen(&at, 0, false), -EADDRINUSE, "its name is taken");
    socket_close(s);
    ok_named(socket_is_gone(c), "a closed peer is gone");
    socket_close(c);
    socket_close(l);
    c = socket_open(NET_UNIX);
    is_number(socket_connect(c, &at), -ECONNREFUSED, "a stale one refuses");
    socket_close(c);
    must(unlink(at.path) == 0);
}

TEST(addresses)
{
    struct net_address mine = address_of("127.0.0.1:9"),
                       nobodys = address_of("192.0.2.1:9"), source = {0};
    ok_named(socket_can_bind(&mine), "a local address can be bound");
    ok_named(!socket_can_bind(&nobodys), "another one cannot");
    ok_named(socket_source(&mine, &source), "the way to it is known");
    source.port = mine.port;
    ok_named(net_address_equal(&source, &mine), "it leads to itself");
}

TEST(pipes)
{
    int ends[2];
    char bytes[8], name[100];
    must(pipe(ends) == 0);
    is_number(socket_kind(ends[0]), SOCKET_PIPE, "a pipe");
    ok_named(!socket_wait_read(ends[0], 0), "an empty one would wait");
    ok_named(socket_wait_write(ends[1], 0), "one may be written");
    is_number(socket_write(ends[1], TEXT("abc")), 3, "bytes go in");
    ok_named(socket_wait_read(ends[0], 0), "and are there");
    is_number(socket_read(ends[0], bytes, sizeof(bytes)), 3, "and come out");
    int again = socket_open_again(ends[1]);
    ok_named(again >= 0 && (fcntl(again, F_GETFL) & O_NONBLOCK) != 0 &&
                 (fcntl(ends[1], F_GETFL) & O_NONBLOCK) == 0,
             "the same pipe with flags of its own");
    socket_close(again);
    socket_ignore_broken_pipes();
    socket_close(ends[0]);
    is_number(socket_write(ends[1], TEXT("x")), -EPIPE, "a broken pipe is an error");
    socket_close(ends[1]);
    is_number(socket_kind(ends[1]), SOCKET_NONE, "a closed descriptor");
    is_number(socket_read(ends[1], bytes, 1), -EBADF, "cannot be read");
    int s = socket_datagram_open();
    is_number(socket_kind(s), SOCKET_SOCKET, "a socket");
    snprintf(name, sizeof(name), "%s/none", folder);
    is_number(socket_datagram_connect(s, text_from(name)), -ENOENT, "no service");
    socket_close(s);
    snprintf(name, sizeof(name), "%s/file", folder);
    int file = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    struct stat info;
    is_number(socket_kind(file), SOCKET_FILE, "a file");
    ok_named(fstat(file, &info) == 0 &&
                 socket_is_file(file, info.st_dev, info.st_ino) &&
                 !socket_is_file(file, info.st_dev, info.st_ino + 1),
             "of which two numbers are known");
    socket_close(file);
    must(unlink(name) == 0);
}

int
main(void)
{
    snprintf(folder, sizeof(folder), "/tmp/petrel-socket-XXXXXX");
    must(mkdtemp(folder) != NULL);
    streams("127.0.0.1:0", "127.0.0.3:0");
    shared();
    tap_tests("");
    must(rmdir(folder) == 0);
    ok_named(socket_backlog() >= 1024, "many may wait, with any C library");
    return done();
}
