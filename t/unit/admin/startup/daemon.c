/* The daemon as a library: started and stopped several times in a process, two side by
 * side, reloads good and bad, and starts that fail at each part. */
#include "admin/startup/daemon.h"

#include "t/support/folder.h"
#include "t/support/must.h"
#include "t/support/port.h"
#include "t/support/tap.h"

#include <sys/stat.h>
#include <sysexits.h>

enum { SETTINGS = 6, SETTING_MAX = 200 };

struct home {
    char folder[100];
    char text[SETTINGS][SETTING_MAX];
    char *overrides[SETTINGS + 1];
    unsigned port;
    struct daemon daemon;
    char error[DAEMON_ERROR_MAX];
};

static void
home_make(struct home *h, const char *name)
{
    folder_make(h->folder, sizeof(h->folder), name);
    h->port = free_port();
    snprintf(h->text[0], SETTING_MAX, "spool=%s/spool", h->folder);
    snprintf(h->text[1], SETTING_MAX, "listen=127.0.0.1:%u", h->port);
    snprintf(h->text[2], SETTING_MAX, "control=%s/control", h->folder);
    snprintf(h->text[3], SETTING_MAX, "hostname=%s.test", name);
    snprintf(h->text[4], SETTING_MAX, "log_level=error");
    snprintf(h->text[5], SETTING_MAX, "dns_servers=127.0.0.1:9");
    for (int i = 0; i < SETTINGS; i++)
        h->overrides[i] = h->text[i];
}

static int
home_start(struct home *h)
{
    h->daemon = (struct daemon){
        .sources = {.file = "/dev/null", .overrides = h->overrides}};
    if (!daemon_read(&h->daemon))
        return EX_CONFIG;
    h->daemon.loop = loop_new();
    int code = daemon_open(&h->daemon, h->error);
    if (code == 0)
        code = daemon_start_queue(&h->daemon, h->error);
    if (code == 0)
        code = daemon_start_doors(&h->daemon, h->error);
    if (code == 0) {
        daemon_prepare(&h->daemon);
        daemon_begin(&h->daemon);
        loop_turn(h->daemon.loop, 0);
    }
    return code;
}

static void
many_times(struct home *h)
{
    for (int i = 0; i < 3; i++) {
        is_number(home_start(h), 0, "a daemon starts");
        daemon_terminate(&h->daemon);
        ok_named(h->daemon.draining > 0, "ends open work");
        loop_run(h->daemon.loop);
        is_number(h->daemon.draining, 0, "has ended it");
        daemon_stop(&h->daemon, true);
        ok_named(h->daemon.loop == NULL && h->daemon.configuration == NULL,
                 "leaves nothing");
    }
}

static void
side_by_side(struct home *a, struct home *b)
{
    is_number(home_start(a), 0, "one");
    is_number(home_start(b), 0, "and another one");
    ok_named(a->daemon.manager != b->daemon.manager, "share nothing");
    daemon_interrupt(&a->daemon);
    daemon_interrupt(&a->daemon);
    loop_run(a->daemon.loop);
    daemon_stop(&a->daemon, true);
    loop_turn(b->daemon.loop, 0);
    ok_named(listener_sessions(b->daemon.listener) == 0, "the other one goes on");
    daemon_stop(&b->daemon, true);
}

static void
reloads(struct home *h)
{
    is_number(home_start(h), 0, "one to be reloaded");
    snprintf(h->text[3], SETTING_MAX, "hostname=other.test");
    daemon_reload(&h->daemon);
    is_string(h->daemon.configuration->options.hostname, "other.test",
              "new settings are in force");
    ok_named(h->daemon.started != h->daemon.configuration, "beside those of the start");
    snprintf(h->text[3], SETTING_MAX, "hostname=");
    snprintf(h->text[4], SETTING_MAX, "log_level=loud");
    daemon_reload(&h->daemon);
    is_string(h->daemon.configuration->options.hostname, "other.test",
              "settings with errors change nothing");
    snprintf(h->text[3], SETTING_MAX, "hostname=third.test");
    snprintf(h->text[4], SETTING_MAX, "log_level=error");
    daemon_terminate(&h->daemon);
    daemon_reload(&h->daemon);
    is_string(h->daemon.configuration->options.hostname, "other.test",
              "nor do those at the end");
    loop_run(h->daemon.loop);
    daemon_stop(&h->daemon, true);
}

static void
failures(struct home *h, struct home *other)
{
    is_number(home_start(other), 0, "one that has everything");
    char kept[SETTING_MAX];
    memcpy(kept, h->text[1], SETTING_MAX);
    memcpy(h->text[1], other->text[1], SETTING_MAX);
    is_number(home_start(h), EX_UNAVAILABLE, "the port is taken");
    ok_named(strstr(h->error, "cannot listen") != NULL, "in words");
    daemon_stop(&h->daemon, false);
    memcpy(h->text[1], kept, SETTING_MAX);
    memcpy(kept, h->text[2], SETTING_MAX);
    memcpy(h->text[2], other->text[2], SETTING_MAX);
    is_number(home_start(h), EX_CANTCREAT, "the control socket is taken");
    daemon_stop(&h->daemon, false);
    memcpy(h->text[2], kept, SETTING_MAX);
    memcpy(kept, h->text[0], SETTING_MAX);
    memcpy(h->text[0], other->text[0], SETTING_MAX);
    ok_named(home_start(h) != 0, "the spool is taken");
    daemon_stop(&h->daemon, false);
    memcpy(h->text[0], kept, SETTING_MAX);
    memcpy(kept, h->text[5], SETTING_MAX);
    snprintf(h->text[5], SETTING_MAX, "dns_servers=nobody");
    ok_named(home_start(h) == EX_CONFIG, "the name server is no address");
    memcpy(h->text[5], kept, SETTING_MAX);
    is_number(home_start(h), 0, "then it starts");
    daemon_stop(&h->daemon, true);
    daemon_stop(&other->daemon, true);
}

int
main(void)
{
    struct home a = {0}, b = {0};
    home_make(&a, "one");
    home_make(&b, "two");
    many_times(&a);
    side_by_side(&a, &b);
    failures(&a, &b);
    reloads(&a);
    folder_remove(a.folder);
    folder_remove(b.folder);
    return done();
}
