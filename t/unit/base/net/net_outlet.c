/* base/net/net_datagram: paths good and bad, a service that is slow, gone and back. */
#include "base/net/net_outlet.h"

#include "t/support/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char folder[64], path[100];

static int
listen_at(const char *where)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t length = sizeof(address);
    int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", where);
    if (where[0] == '@') {
        address.sun_path[0] = '\0';
        length = (socklen_t)(sizeof(address.sun_family) + strlen(where));
    }
    if (s < 0 || bind(s, (struct sockaddr *)&address, length) != 0)
        abort();
    return s;
}

static void
paths(void)
{
    struct net_datagram d;
    char name[40], longest[200];
    memset(longest, '/', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    is_number(net_datagram_open(&d, "dev/log"), -EINVAL, "a path is absolute");
    is_number(net_datagram_open(&d, ""), -EINVAL, "nor empty");
    is_number(net_datagram_open(&d, "@"), -EINVAL, "nor a name without letters");
    is_number(net_datagram_open(&d, longest), -EINVAL, "nor too long");
    net_datagram_close(&d);
    is_number(net_datagram_open(&d, path), -ENOENT, "nobody is there");
    ok_named(net_datagram_is_gone(-ENOENT), "which is known as such");
    net_datagram_close(&d);
    snprintf(name, sizeof(name), "@petrel-%ld", (long)getpid());
    int service = listen_at(name);
    is_number(net_datagram_open(&d, name), 0, "an abstract name");
    net_datagram_close(&d);
    close(service);
}

static void
service(void)
{
    struct net_datagram d;
    char got[100];
    int s = listen_at(path), sent = 0, error = 0;
    is_number(net_datagram_open(&d, path), 0, "a service");
    is_number(net_datagram_send(&d, TEXT("one")), 0, "takes a message");
    is_number(recv(s, got, sizeof(got), 0), 3, "whole");
    while (sent < 100000 && (error = net_datagram_send(&d, TEXT("more"))) == 0)
        sent++;
    is_number(error, -EAGAIN, "one that does not read fills up, and nobody waits");
    ok_named(!net_datagram_is_gone(error), "which is not gone");
    close(s);
    ok_named(net_datagram_is_gone(net_datagram_send(&d, TEXT("x"))), "gone");
    ok_named(net_datagram_is_gone(net_datagram_connect(&d)), "still gone");
    unlink(path);
    ok_named(net_datagram_is_gone(net_datagram_connect(&d)), "without its socket, too");
    s = listen_at(path);
    is_number(net_datagram_connect(&d), 0, "the same socket finds the next one");
    is_number(net_datagram_send(&d, TEXT("again")), 0, "which takes a message");
    is_number(recv(s, got, sizeof(got), 0), 5, "whole");
    net_datagram_close(&d);
    is_number(d.descriptor, -1, "closed");
    close(s);
    unlink(path);
}

int
main(void)
{
    snprintf(folder, sizeof(folder), "/tmp/datagram-XXXXXX");
    if (mkdtemp(folder) == NULL)
        abort();
    snprintf(path, sizeof(path), "%s/log", folder);
    paths();
    service();
    rmdir(folder);
    return done();
}
