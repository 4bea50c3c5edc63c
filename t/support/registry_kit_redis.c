/* A real Redis, for tests of registries. */
#include "t/support/registry_kit_redis.h"

bool
is_listening(unsigned port)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port)};
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool good = connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0;
    close(fd);
    return good;
}

/* One program under several names; Debian's redis-tools lacks some. */
static void
run_server(const struct server *s)
{
    char file[128], name[] = "redis-server";
    char *const arguments[] = {name, file, NULL};
    snprintf(file, sizeof(file), "%s/redis.conf", s->home);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (freopen("/dev/null", "w", stdout) == NULL ||
        freopen("/dev/null", "w", stderr) == NULL)
        _exit(126);
    execvp(name, arguments);
    execv("/usr/bin/redis-check-rdb", arguments);
    _exit(127);
}

bool
registry_redis_server_start(struct server *s, const char *extra)
{
    char file[128];
    snprintf(file, sizeof(file), "%s/redis.conf", s->home);
    FILE *f = fopen(file, "w");
    if (f == NULL ||
        fprintf(f, "port %u\nbind 127.0.0.1\nsave \"\"\ndir %s\n%s", s->port, s->home,
                extra) < 0 ||
        fclose(f) != 0)
        abort();
    fflush(stdout);
    s->pid = fork();
    if (s->pid < 0)
        abort();
    if (s->pid == 0)
        run_server(s);
    for (int i = 0; i < 6000; i++) {
        if (is_listening(s->port))
            return true;
        if (waitpid(s->pid, NULL, WNOHANG) != 0)
            return false;
        usleep(10000);
    }
    return false;
}

void
server_stop(struct server *s)
{
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
}
