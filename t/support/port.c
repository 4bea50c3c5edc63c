/* A port for a server of this test. */
#include "t/support/port.h"

static bool
port_bind(int type, unsigned port)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1, fd = socket(AF_INET, type, 0);
    bool good = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
                bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0;
    close(fd);
    return good;
}

unsigned
free_port(void)
{
    enum { FIRST = 10000, COUNT = 20000 };
    static unsigned next;
    for (unsigned i = 0; i < COUNT; i++) {
        unsigned port = FIRST + ((unsigned)getpid() * 101 + next++) % COUNT;
        struct sockaddr_un lock = {.sun_family = AF_UNIX};
        int length = snprintf(lock.sun_path + 1, sizeof(lock.sun_path) - 1,
                              "petrel-test-port-%u", port);
        socklen_t size =
            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(fd, (struct sockaddr *)&lock, size) == 0 &&
            port_bind(SOCK_STREAM, port) && port_bind(SOCK_DGRAM, port))
            return port;
        close(fd);
    }
    abort();
}

int
port_keep(int family, const unsigned char *ip, unsigned port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6,
                               .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in four = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port)};
    bool is_six = family == AF_INET6;
    int one = 1, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(&six.sin6_addr, ip, is_six ? 16 : 0);
    memcpy(&four.sin_addr, ip, 4);
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        bind(fd, is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four,
             is_six ? sizeof(six) : sizeof(four)) != 0)
        abort();
    return fd;
}

void
port_give(int *kept)
{
    if (*kept > 0)
        close(*kept);
    *kept = 0;
}
