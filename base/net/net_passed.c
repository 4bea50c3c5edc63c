/* Listening sockets that a service manager has made. It keeps its own copies, so that no
 * connection is refused while the daemon restarts. */
#include "base/net/net_internal.h"
#include "base/net/socket.h"

#include "base/memory.h"
#include "base/printable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_PASSED = 3, PASSED_MAX = 128 };

/* The next of the names; "unknown" without one, as sd_listen_fds_with_names(3) says. */
static void
passed_name(struct text *names, struct net_passed *p)
{
    struct text name;
    if (!text_cut(names, ':', &name) || name.length == 0 ||
        !text_copy(p->name, sizeof(p->name), name))
        memcpy(p->name, "unknown", sizeof("unknown"));
    printable_make(p->name);
}

static bool
passed_take_all(struct net *net, size_t count, struct text names, char *error,
                size_t error_size)
{
    net->passed = memory_array(count, sizeof(*net->passed));
    for (size_t i = 0; i < count; i++) {
        struct net_passed *p = &net->passed[i];
        net->passed_count = i + 1; /* one that is not looked at is not ours to close */
        p->fd = FIRST_PASSED + (int)i;
        passed_name(&names, p);
        if (socket_adopt_listening(p->fd) == 0)
            continue;
        snprintf(
            error, error_size,
            "LISTEN_FDS: descriptor %d (fd:%s) is not a listening stream socket: a "
            "socket unit needs ListenStream= and Accept=no",
            p->fd, p->name);
        return false;
    }
    return true;
}

bool
net_take_passed(struct net *net, char *error, size_t error_size)
{
    const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS"),
               *names = getenv("LISTEN_FDNAMES");
    uint64_t whose, count = 0;
    bool good = true;
    /* Variables of another process were inherited: its sockets were not passed to us. */
    bool ours = pid != NULL && fds != NULL &&
                text_number(text_from(pid), INT32_MAX, &whose) &&
                whose == (uint64_t)getpid();
    if (ours && !text_number(text_from(fds), PASSED_MAX, &count)) {
        snprintf(error, error_size, "LISTEN_FDS: '%.20s': not a number up to %d", fds,
                 PASSED_MAX);
        printable_make(error);
        good = false;
    } else if (ours && count > 0) {
        good =
            passed_take_all(net, (size_t)count, text_from(names != NULL ? names : ""),
                            error, error_size);
    }
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return good;
}

size_t
net_passed_left(const struct net *net, const char *name)
{
    size_t left = 0;
    for (size_t i = 0; i < net->passed_count; i++)
        left += net->passed[i].fd >= 0 && strcmp(net->passed[i].name, name) == 0;
    return left;
}

int
net_passed_take(struct net *net, const char *name)
{
    for (size_t i = 0; i < net->passed_count; i++) {
        struct net_passed *p = &net->passed[i];
        int fd = p->fd;
        if (fd < 0 || strcmp(p->name, name) != 0)
            continue;
        p->fd = -1;
        return fd;
    }
    net->passed_missing = true;
    return -1;
}

bool
net_passed_is_missing(const struct net *net)
{
    return net->passed_missing;
}

size_t
net_drop_passed(struct net *net, char *names, size_t size)
{
    size_t dropped = 0, at = 0;
    names[0] = '\0';
    for (size_t i = 0; i < net->passed_count; i++) {
        struct net_passed *p = &net->passed[i];
        if (p->fd < 0)
            continue;
        if (at < size)
            at += (size_t)snprintf(names + at, size - at, "%s%s",
                                   dropped > 0 ? ", " : "", p->name);
        dropped++;
    }
    net_passed_free(net);
    return dropped;
}

void
net_passed_free(struct net *net)
{
    for (size_t i = 0; i < net->passed_count; i++)
        if (net->passed[i].fd >= 0)
            socket_close(net->passed[i].fd);
    free(net->passed);
    net->passed = NULL;
    net->passed_count = 0;
}
