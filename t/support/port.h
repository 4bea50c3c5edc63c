/* A port for a server of this test. */
#ifndef T_SUPPORT_PORT_H
#define T_SUPPORT_PORT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Free for TCP and UDP on 127.0.0.1, and no other test's: the kernel gives away none of
 * these by itself, and a socket named after it is kept as long as this process lives, as
 * in t/e2e/Petrel.pm. */
unsigned free_port(void);

/* A port that refuses connections until port_give(): it is taken, and nobody listens.
 * ip: of 4 bytes, or of 16. */
int port_keep(int family, const unsigned char *ip, unsigned port);

void port_give(int *kept);

#endif
