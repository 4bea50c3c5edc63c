/* Notifications to the service manager, and their times: READY, signs of life, states; a
 * manager that does not read, and variables that make no sense. */
#include "admin/startup/notify.h"

#include "t/sim/sim.h"
#include "t/support/must.h"
#include "t/support/tap.h"
/* link: t/sim/loop.c */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct world {
    struct loop *loop;
    struct log *log;
    struct notify notify;
    int manager;
    const char *says; /* the status */
};

static void
describe(void *context, char out[NOTIFY_STATUS_MAX])
{
    const struct world *w = context;
    snprintf(out, NOTIFY_STATUS_MAX, "%s", w->says);
}

static void
world_begin(struct world *w, const char *watchdog, const char *pid)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[80];
    snprintf(name, sizeof(name), "@petrel-notify-%d", (int)getpid());
    snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", name + 1);
    *w = (struct world){.loop = sim_loop_new(1), .says = "fine"};
    w->log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    w->manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    must(bind(w->manager, (struct sockaddr *)&address, (socklen_t)(sizeof(address.sun_family) + strlen(name))) == 0);
    must(setenv("NOTIFY_SOCKET", name, 1) == 0);
    must(watchdog == NULL || setenv("WATCHDOG_USEC", watchdog, 1) == 0);
    must(pid == NULL || setenv("WATCHDOG_PID", pid, 1) == 0);
    notify_open(&w->notify, w->loop, w->log);
    ok(getenv("NOTIFY_SOCKET") == NULL && getenv("WATCHDOG_USEC") == NULL && getenv("WATCHDOG_PID") == NULL);
}

static void
world_end(struct world *w)
{
    notify_close(&w->notify);
    notify_close(&w->notify);
    close(w->manager);
    log_free(&w->log);
    loop_free(&w->loop);
}

/* The input since then, a line each; "": none. */
static const char *
heard(struct world *w)
{
    static char out[8192];
    ssize_t got;
    size_t length = 0;
    while ((got = recv(w->manager, out + length, 1000, MSG_DONTWAIT)) > 0) {
        length += (size_t)got;
        out[length++] = '\n';
    }
    out[length] = '\0';
    return out;
}

TEST(states)
{
    FIXTURE(world, w, world_begin, world_end, NULL, NULL);
    notify_reloading(&w.notify);
    notify_reloaded(&w.notify);
    notify_stopping(&w.notify);
    loop_turn(w.loop, 0);
    is_string(heard(&w), "", "nothing before the start");
    notify_start(&w.notify, describe, &w);
    is_string(heard(&w), "", "nor before a turn");
    loop_turn(w.loop, 0);
    is_string(heard(&w), "READY=1\nSTATUS=fine\n", "ready");
    sim_loop_advance(w.loop, 60000);
    is_string(heard(&w), "", "the same state once");
    w.says = "better";
    is_string(heard(&w), "", "a change waits");
    sim_loop_advance(w.loop, 10000);
    is_string(heard(&w), "READY=1\nSTATUS=better\n", "for the next look");
    char want[200];
    snprintf(want, sizeof(want), "RELOADING=1\nMONOTONIC_USEC=%lld\n", (long long)loop_monotonic_ms(w.loop) * 1000 + 999);
    notify_reloading(&w.notify);
    is_string(heard(&w), want, "a reload begins");
    notify_reloaded(&w.notify);
    is_string(heard(&w), "READY=1\nSTATUS=better\n", "and ends");
    w.says = "stops";
    notify_stopping(&w.notify);
    is_string(heard(&w), "STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000\nSTATUS=stops\n", "the end begins");
    notify_reloading(&w.notify);
    notify_reloaded(&w.notify);
    is_string(heard(&w), "", "no reload then");
    sim_loop_advance(w.loop, 20000);
    is_string(heard(&w), "STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000\nSTATUS=stops\nSTOPPING=1\nEXTEND_TIMEOUT_USEC=30000000\nSTATUS=stops\n", "more time, each 10 seconds");
}

TEST(signs_of_life)
{
    static const struct {
        const char *time, *pid;
        int64_t ms;
    } rows[] = {
        {"60000000", NULL, 30000}, {"60000000", "1", 0}, {"60000000", "x", 0}, {"1", NULL, 10}, {"0", NULL, 0},
        {"-1", NULL, 0},           {"", NULL, 0},        {"9223372036854775807", NULL, 0}, {"1s", NULL, 0},
    };
    struct world w;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        world_begin(&w, rows[i].time, rows[i].pid);
        is_number(w.notify.watchdog_ms, rows[i].ms, rows[i].time);
        world_end(&w);
    }
    char own[20];
    snprintf(own, sizeof(own), "%d", (int)getpid());
    world_begin(&w, "4000000", own);
    notify_start(&w.notify, describe, &w);
    loop_turn(w.loop, 0);
    is_string(heard(&w), "READY=1\nSTATUS=fine\nWATCHDOG=1\n", "the first with READY");
    for (int i = 0; i < 3; i++) {
        sim_loop_advance(w.loop, 1999);
        is_string(heard(&w), "", "not yet");
        sim_loop_advance(w.loop, 1);
        is_string(heard(&w), "WATCHDOG=1\n", "at half of the time");
    }
    world_end(&w);
}

/* It hears the state when it reads again. */
TEST(does_not_read)
{
    FIXTURE(world, w, world_begin, world_end, NULL, NULL);
    notify_start(&w.notify, describe, &w);
    while (net_datagram_send(&w.notify.socket, TEXT("x")) == 0)
        ;
    loop_turn(w.loop, 0);
    ok(w.notify.unsent);
    while (heard(&w)[0] != '\0')
        ;
    sim_loop_advance(w.loop, 10000);
    is_string(heard(&w), "READY=1\nSTATUS=fine\n", "later");
    ok(!w.notify.unsent);
}

TEST(no_manager)
{
    static const char *const rows[] = {NULL, "", "relative", "/nowhere/notify", "@nobody-listens-here"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct world w = {.loop = sim_loop_new(1), .says = "fine"};
        w.log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
        must(rows[i] == NULL || setenv("NOTIFY_SOCKET", rows[i], 1) == 0);
        notify_open(&w.notify, w.loop, w.log);
        is_number(w.notify.socket.descriptor, -1, rows[i] != NULL ? rows[i] : "not set");
        notify_start(&w.notify, describe, &w);
        notify_reloading(&w.notify);
        notify_reloaded(&w.notify);
        notify_stopping(&w.notify);
        sim_loop_advance(w.loop, 60000);
        is_number(sim_loop_turns(w.loop) > 0 && w.notify.state == NULL, 1, "nothing is done");
        notify_close(&w.notify);
        log_free(&w.log);
        loop_free(&w.loop);
    }
    struct notify never = {0};
    notify_stopping(&never);
    notify_close(&never);
}
