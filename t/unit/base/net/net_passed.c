/* Sockets that are passed: taken by name, refused if they are no listening stream sockets, closed if nobody wants them. */
#include "base/net/net_internal.h"

#include "t/support/must.h"
#include "t/support/net_world.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST = 3, KEPT = 100 };

/* A socket at that descriptor, so that the next one may have any. */
static void
put_socket(int at, int type, bool listens)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, type, 0);
    must(fd >= 0 && bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0 && (!listens || listen(fd, 10) == 0));
    must(dup2(fd, at) == at);
    if (fd != at)
        close(fd);
}

static void
say_passed(const char *pid, const char *fds, const char *names)
{
    char own[20];
    snprintf(own, sizeof(own), "%d", (int)getpid());
    setenv("LISTEN_PID", pid != NULL ? pid : own, 1);
    setenv("LISTEN_FDS", fds, 1);
    if (names != NULL)
        setenv("LISTEN_FDNAMES", names, 1);
    else
        unsetenv("LISTEN_FDNAMES");
}

static bool
is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* In a child, which has descriptors of its own; the loop is made after them. */
static void
in_child(const char *what, bool (*try)(void))
{
    fflush(stdout);
    pid_t child = fork();
    int status = 0;
    must(child >= 0);
    if (child == 0) {
        for (int fd = FIRST; fd < KEPT; fd++)
            close(fd);
        _exit(try() ? 0 : 1);
    }
    must(waitpid(child, &status, 0) == child);
    ok_named(status == 0, what);
}

static struct net_listener *
listen_on(struct net *net, const char *where)
{
    struct net_address a;
    char error[300];
    must(net_address_parse_listening(text_from(where), &a));
    return net_listen(net, &a, 0, on_accept, NULL, error, sizeof(error));
}

static bool
by_name(void)
{
    char error[300] = "", names[100];
    for (int i = 0; i < 4; i++)
        put_socket(FIRST + i, SOCK_STREAM, true);
    say_passed(NULL, "4", "a:b:a:");
    struct loop *loop = loop_new();
    struct net *net = net_new(loop);
    bool good = net_take_passed(net, error, sizeof(error)) && getenv("LISTEN_FDS") == NULL && getenv("LISTEN_PID") == NULL &&
                getenv("LISTEN_FDNAMES") == NULL;
    good = good && (fcntl(FIRST, F_GETFD) & FD_CLOEXEC) != 0 && (fcntl(FIRST, F_GETFL) & O_NONBLOCK) != 0;
    good = good && net_passed_left(net, "a") == 2 && net_passed_left(net, "b") == 1 && net_passed_left(net, "c") == 0 &&
           net_passed_left(net, "unknown") == 1;
    struct net_listener *one = listen_on(net, "fd:a"), *two = listen_on(net, "fd:a");
    good = good && one != NULL && two != NULL && net_listener_address(one)->port != net_listener_address(two)->port &&
           net_listener_address(one)->family == NET_IPV4;
    good = good && !net_passed_is_missing(net) && listen_on(net, "fd:a") == NULL && net_passed_is_missing(net);
    good = good && net_is_own(net, net_listener_address(one));
    good = good && net_drop_passed(net, names, sizeof(names)) == 2 && strcmp(names, "b, unknown") == 0;
    good = good && is_open(FIRST) && !is_open(FIRST + 1) && is_open(FIRST + 2) && !is_open(FIRST + 3);
    good = good && net_drop_passed(net, names, sizeof(names)) == 0 && names[0] == '\0';
    net_listener_free(&one);
    net_listener_free(&two);
    net_free(&net);
    loop_free(&loop);
    return good && !is_open(FIRST) && !is_open(FIRST + 2);
}

/* Names that do not fit the space for them. */
static bool
many(void)
{
    char error[300] = "", names[8], list[1000] = "";
    for (int i = 0; i < 20; i++) {
        put_socket(FIRST + i, SOCK_STREAM, true);
        strcat(list, "abcdefgh:");
    }
    say_passed(NULL, "20", list);
    struct loop *loop = loop_new();
    struct net *net = net_new(loop);
    bool good = net_take_passed(net, error, sizeof(error)) && net_drop_passed(net, names, sizeof(names)) == 20 &&
                strcmp(names, "abcdefg") == 0;
    net_free(&net);
    loop_free(&loop);
    return good;
}

/* The first is wrong: the others were not looked at, and nothing else is closed. */
static bool
leaves_others(void)
{
    char error[300] = "";
    put_socket(FIRST, SOCK_DGRAM, false);
    put_socket(FIRST + 1, SOCK_STREAM, true);
    int null = open("/dev/null", O_RDONLY);
    must(null >= 0 && dup2(null, 0) == 0);
    say_passed(NULL, "3", NULL);
    struct loop *loop = loop_new();
    struct net *net = net_new(loop);
    bool good = !net_take_passed(net, error, sizeof(error)) && error[0] != '\0' && net_passed_left(net, "") == 0;
    net_free(&net);
    loop_free(&loop);
    return good && is_open(0) && is_open(FIRST + 1);
}

static const struct wrong {
    const char *what, *pid, *fds, *error; /* NULL: not ours */
    int type;
    bool listens;
} wrongs[] = {
    {"of another process", "1", "1", NULL, SOCK_STREAM, true},
    {"of no process", "x", "1", NULL, SOCK_STREAM, true},
    {"no number", NULL, "1x", "not a number up to 128", SOCK_STREAM, true},
    {"too many", NULL, "129", "not a number up to 128", SOCK_STREAM, true},
    {"negative", NULL, "-1", "not a number up to 128", SOCK_STREAM, true},
    {"a datagram socket", NULL, "1", "descriptor 3 (fd:unknown) is not a listening stream socket", SOCK_DGRAM, false},
    {"that does not listen", NULL, "1", "descriptor 3 (fd:unknown) is not a listening stream socket", SOCK_STREAM, false},
    {"that is not open", NULL, "2", "descriptor 4 (fd:unknown) is not a listening stream socket", SOCK_STREAM, true},
};
static const struct wrong *tried;

static bool
is_refused(void)
{
    char error[300] = "";
    put_socket(FIRST, tried->type, tried->listens);
    say_passed(tried->pid, tried->fds, NULL);
    int fd = dup2(FIRST, KEPT); /* the loop's descriptors come behind it */
    struct loop *loop = tried->fds[0] == '2' ? NULL : loop_new();
    struct net net = {.loop = loop};
    bool good = net_take_passed(&net, error, sizeof(error));
    bool left = net_passed_left(&net, "unknown") > 0 && good;
    net_passed_free(&net);
    if (loop != NULL)
        loop_free(&loop);
    return fd == KEPT && !left && (tried->error == NULL ? good : !good && strstr(error, tried->error) != NULL);
}

static void
names(void)
{
    struct net_address a, b;
    char text[NET_ADDRESS_TEXT_MAX], error[300];
    ok(net_address_parse_listening(TEXT("fd:smtp"), &a) && a.family == NET_PASSED);
    net_address_format(&a, text);
    is_string(text, "fd:smtp", "as it was written");
    ok(!net_address_is_loopback(&a) && !net_address_is_wildcard(&a));
    ok(net_address_parse_listening(TEXT("fd:smtps"), &b) && !net_address_equal(&a, &b));
    ok(net_address_parse_listening(TEXT("127.0.0.1:25"), &b) && b.family == NET_IPV4 && !net_address_equal(&a, &b));
    ok(!net_address_parse_listening(TEXT("fd:"), &a) && !net_address_parse_listening(TEXT("fd:a\nb"), &a));
    ok_named(!net_address_parse(TEXT("fd:smtp"), 0, &a), "nowhere else");
    struct loop *loop = loop_new();
    struct net *net = net_new(loop);
    ok(net_take_passed(net, error, sizeof(error)) && net_passed_left(net, "smtp") == 0);
    net_free(&net);
    loop_free(&loop);
}

int
main(void)
{
    names();
    in_child("by name", by_name);
    in_child("descriptors that were not passed", leaves_others);
    in_child("many", many);
    for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
        tried = &wrongs[i];
        in_child(tried->what, is_refused);
    }
    return done();
}
