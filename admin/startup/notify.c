/* Datagrams of VARIABLE=VALUE lines to the service manager. */
#include "admin/startup/notify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MESSAGE_MAX = 512,
    REFRESH_MS = 10 * 1000,
    WATCHDOG_LEAST_MS = 10,
    EXTEND_US = 30 * 1000 * 1000 /* at each refresh, while the daemon stops */
};

static const char ready[] = "READY=1";
static const char stopping[] = "STOPPING=1";

static bool
notify_is_open(const struct notify *n)
{
    return n->loop != NULL && n->socket.descriptor >= 0;
}

/* A manager that does not read now hears it at the next refresh. */
static void
notify_send(struct notify *n, const char *state)
{
    char message[MESSAGE_MAX], extend[64] = "";
    n->state = state;
    n->status(n->context, n->shown);
    if (state == stopping)
        snprintf(extend, sizeof(extend), "\nEXTEND_TIMEOUT_USEC=%d", EXTEND_US);
    snprintf(message, sizeof(message), "%s%s\nSTATUS=%s", state, extend, n->shown);
    n->unsent = net_datagram_send(&n->socket, text_from(message)) != 0;
}

static void
notify_on_refresh(void *context)
{
    struct notify *n = context;
    char now[NOTIFY_STATUS_MAX];
    loop_timer_start(n->loop, &n->refresh, REFRESH_MS, notify_on_refresh, n);
    n->status(n->context, now);
    if (n->unsent || n->state == stopping || strcmp(now, n->shown) != 0)
        notify_send(n, n->state);
}

static void
notify_on_watchdog(void *context)
{
    struct notify *n = context;
    loop_timer_start(n->loop, &n->watchdog, n->watchdog_ms, notify_on_watchdog, n);
    (void)!net_datagram_send(&n->socket, TEXT("WATCHDOG=1"));
}

/* Half of the time within which a sign of life is expected; 0: none is, or not of us. */
static int64_t
notify_watchdog_ms(void)
{
    const char *time = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    uint64_t us, whose;
    if (time == NULL || !text_number(text_from(time), INT64_MAX / 2, &us) || us == 0)
        return 0;
    if (pid != NULL && (!text_number(text_from(pid), INT32_MAX, &whose) ||
                        whose != (uint64_t)getpid()))
        return 0;
    int64_t half_ms = (int64_t)(us / 2000);
    return half_ms > WATCHDOG_LEAST_MS ? half_ms : WATCHDOG_LEAST_MS;
}

void
notify_open(struct notify *n, struct loop *loop, struct log *log)
{
    const char *path = getenv("NOTIFY_SOCKET");
    *n = (struct notify){.loop = loop, .socket = {.descriptor = -1}};
    int error =
        path != NULL && path[0] != '\0' ? net_datagram_open(&n->socket, path) : 0;
    if (error != 0) {
        log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                "NOTIFY_SOCKET: '%s': %s: the service manager is not informed", path,
                strerror(-error));
        net_datagram_close(&n->socket);
    }
    n->watchdog_ms = notify_watchdog_ms();
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

/* The loop turns: clients that wait at a port are answered. */
static void
notify_on_first_turn(void *context)
{
    struct notify *n = context;
    notify_send(n, ready);
    loop_timer_start(n->loop, &n->refresh, REFRESH_MS, notify_on_refresh, n);
    if (n->watchdog_ms > 0)
        notify_on_watchdog(n);
}

void
notify_start(struct notify *n,
             void (*status)(void *context, char out[NOTIFY_STATUS_MAX]), void *context)
{
    if (!notify_is_open(n))
        return;
    n->status = status;
    n->context = context;
    loop_timer_start(n->loop, &n->refresh, 0, notify_on_first_turn, n);
}

void
notify_reloading(struct notify *n)
{
    char message[MESSAGE_MAX];
    if (!notify_is_open(n) || n->state != ready)
        return;
    /* The manager compares it with the time of its request: never earlier. */
    snprintf(message, sizeof(message), "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
             loop_monotonic_ms(n->loop) * 1000 + 999);
    n->unsent = net_datagram_send(&n->socket, text_from(message)) != 0;
}

void
notify_reloaded(struct notify *n)
{
    if (notify_is_open(n) && n->state == ready)
        notify_send(n, ready);
}

void
notify_stopping(struct notify *n)
{
    if (notify_is_open(n) && n->state != NULL)
        notify_send(n, stopping);
}

void
notify_close(struct notify *n)
{
    if (!notify_is_open(n))
        return;
    loop_timer_stop(n->loop, &n->refresh);
    loop_timer_stop(n->loop, &n->watchdog);
    net_datagram_close(&n->socket);
}
