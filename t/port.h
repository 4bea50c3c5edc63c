/* A port for a server of this test. */
#ifndef T_PORT_H
#define T_PORT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static inline bool
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

/* Free for TCP and UDP on 127.0.0.1, and no other test's: the kernel gives away none of
 * these by itself, and a socket named after it is kept as long as this process lives, as
 * in t/e2e/Petrel.pm. */
static inline unsigned
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

#endif
