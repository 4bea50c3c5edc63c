/* Fuzz target: what a service manager says in the environment: LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES and
 * NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID. Each passed socket is found once by its name, no other descriptor is
 * touched, and the variables are gone afterwards. One value a line. */
#include "admin/startup/notify.h"
#include "base/net/net.h"
#include "base/net/net_internal.h"

#include "t/support/must.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PASSED = 3, FIRST = 3, SPARE = 300, VALUE_MAX = 300 };

static const char *const variables[] = {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"};
enum { VARIABLES = 6 };

/* A listening socket, out of the way of those that are passed. */
static int
listening(void)
{
    static int made = -1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (made >= 0)
        return made;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    must(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 1) == 0);
    made = fcntl(fd, F_DUPFD, SPARE);
    close(fd);
    must(made >= SPARE);
    return made;
}

/* "P" is this process; a path of the machine is not to be written to. */
static void
set(const char *name, struct text value)
{
    char copied[VALUE_MAX];
    if (value.at == NULL) {
        unsetenv(name);
        return;
    }
    text_copy(copied, sizeof(copied), value);
    if (strcmp(copied, "P") == 0)
        snprintf(copied, sizeof(copied), "%ld", (long)getpid());
    if (strcmp(name, "NOTIFY_SOCKET") == 0 && copied[0] != '@')
        snprintf(copied, sizeof(copied), "/nonexistent/%.*s", (int)(value.length < 200 ? value.length : 200), value.at);
    setenv(name, copied, 1);
}

static void
take_each(struct net *net)
{
    for (size_t i = 0; i < net->passed_count; i++) {
        char name[sizeof(net->passed[0].name)];
        memcpy(name, net->passed[i].name, sizeof(name));
        size_t left = net_passed_left(net, name);
        if (net->passed[i].fd < 0)
            continue;
        must(left > 0 && name[0] != '\0' && strlen(name) < sizeof(name) && strchr(name, ':') == NULL);
        int fd = net_passed_take(net, name);
        must(fd >= FIRST && fd < FIRST + PASSED && net_passed_left(net, name) == left - 1);
        must(fcntl(fd, F_GETFD) == FD_CLOEXEC && (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
        close(fd);
        if (i % 2 == 1)
            break; /* the others are dropped */
    }
}

static void
check_sockets(struct loop *loop)
{
    char error[200] = "", names[100];
    struct net *net = net_new(loop);
    bool good = net_take_passed(net, error, sizeof(error));
    must(good == (error[0] == '\0') && strlen(error) < sizeof(error));
    for (const char *at = error; *at != '\0'; at++)
        must(*at >= ' ' && *at < 127); /* it is printed */
    if (good) {
        take_each(net);
        (void)net_drop_passed(net, names, sizeof(names));
        must(strlen(names) < sizeof(names));
    }
    net_free(&net);
    for (int i = 0; i < PASSED; i++)
        close(FIRST + i);
    must(fcntl(0, F_GETFD) >= 0);
    must(fcntl(listening(), F_GETFD) >= 0);
}

static void
check_notify(struct loop *loop, struct log *log)
{
    struct notify notify;
    notify_open(&notify, loop, log);
    must(notify.watchdog_ms >= 0);
    notify_close(&notify);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text rest = text_of(data, size), value;
    if (fcntl(0, F_GETFD) < 0)
        must(open("/dev/null", O_RDONLY) == 0);
    (void)listening();
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    for (size_t i = 0; i < VARIABLES; i++)
        set(variables[i], text_cut(&rest, '\n', &value) ? value : (struct text){NULL, 0});
    /* Before the loop makes descriptors of its own. */
    for (int i = 0; i < PASSED; i++)
        must(dup2(listening(), FIRST + i) == FIRST + i);
    struct loop *loop = loop_new();
    check_sockets(loop);
    check_notify(loop, log);
    for (size_t i = 0; i < VARIABLES; i++)
        must(getenv(variables[i]) == NULL);
    log_free(&log);
    loop_free(&loop);
    return 0;
}
