/* A real Redis, for tests of registries. */
#ifndef T_SUPPORT_REGISTRY_KIT_REDIS_H
#define T_SUPPORT_REGISTRY_KIT_REDIS_H

#include "t/support/port.h"
#include "t/support/registry_kit.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

struct server {
    char home[64];
    unsigned port;
    pid_t pid;
};

bool is_listening(unsigned port);

/* extra: lines of its configuration. False: there is no Redis here. */
bool registry_redis_server_start(struct server *s, const char *extra);

void server_stop(struct server *s);

#endif
