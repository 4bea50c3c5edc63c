/* The daemon as a library: started and stopped several times in a process, two side by
 * side, reloads good and bad, the order of its parts, and starts that fail at each of them. */
#include "admin/startup/daemon.h"

#include "admin/startup/parts.h"
#include "t/support/folder.h"
#include "t/support/must.h"
#include "t/support/port.h"
#include "t/support/tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sysexits.h>

enum { SETTINGS = 6, SETTING_MAX = 200 };

struct home {
    char folder[100];
    char text[SETTINGS][SETTING_MAX];
    char *overrides[SETTINGS + 1];
    unsigned port;
    struct daemon daemon;
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

/* parts NULL: its own. */
static int
home_start_parts(struct home *h, const struct daemon_part *parts)
{
    h->daemon = (struct daemon){
        .sources = {.file = "/dev/null", .overrides = h->overrides}};
    if (!daemon_read(&h->daemon))
        return EX_CONFIG;
    h->daemon.loop = loop_new();
    if (parts != NULL)
        h->daemon.parts = parts;
    int code = daemon_start(&h->daemon, DAEMON_RUNS);
    if (code == 0)
        loop_turn(h->daemon.loop, 0);
    return code;
}

static int
home_start(struct home *h)
{
    return home_start_parts(h, NULL);
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
        daemon_stop(&h->daemon);
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
    daemon_stop(&a->daemon);
    loop_turn(b->daemon.loop, 0);
    ok_named(listener_sessions(b->daemon.listener) == 0, "the other one goes on");
    daemon_stop(&b->daemon);
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
    daemon_stop(&h->daemon);
}

static void
failures(struct home *h, struct home *other)
{
    is_number(home_start(other), 0, "one that has everything");
    char kept[SETTING_MAX];
    memcpy(kept, h->text[1], SETTING_MAX);
    memcpy(h->text[1], other->text[1], SETTING_MAX);
    is_number(home_start(h), EX_UNAVAILABLE, "the port is taken");
    ok_named(strstr(h->daemon.error, "cannot listen") != NULL, "in words");
    daemon_stop(&h->daemon);
    memcpy(h->text[1], kept, SETTING_MAX);
    memcpy(kept, h->text[2], SETTING_MAX);
    memcpy(h->text[2], other->text[2], SETTING_MAX);
    is_number(home_start(h), EX_CANTCREAT, "the control socket is taken");
    daemon_stop(&h->daemon);
    memcpy(h->text[2], kept, SETTING_MAX);
    memcpy(kept, h->text[0], SETTING_MAX);
    memcpy(h->text[0], other->text[0], SETTING_MAX);
    ok_named(home_start(h) != 0, "the spool is taken");
    daemon_stop(&h->daemon);
    memcpy(h->text[0], kept, SETTING_MAX);
    memcpy(kept, h->text[5], SETTING_MAX);
    snprintf(h->text[5], SETTING_MAX, "dns_servers=nobody");
    ok_named(home_start(h) == EX_CONFIG, "the name server is no address");
    memcpy(h->text[5], kept, SETTING_MAX);
    is_number(home_start(h), 0, "then it starts");
    daemon_stop(&h->daemon);
    daemon_stop(&other->daemon);
}

/* --- The order of the parts ------------------------------------------------------- */

enum { PARTS_MAX = 40, PARTS_TEXT_MAX = 2000, PLANTED = 99 };

/* The table of a daemon with other functions, which note that they are called. */
static struct daemon_part table[PARTS_MAX];
static size_t part_total, fails_at;
static bool fails_late; /* after it has started */
static char said[PARTS_TEXT_MAX];

static void
note(const char *what, size_t part)
{
    size_t used = strlen(said);
    snprintf(said + used, sizeof(said) - used, "%s %s\n", what, daemon_parts[part].name);
}

/* The row that is called: a daemon has counted the row that starts, and no longer counts the one that stops. */
static int
note_start(struct daemon *d)
{
    size_t part = d->part_count - 1;
    note("start", part);
    int code = part != fails_at || fails_late ? daemon_parts[part].start(d) : 0;
    if (part != fails_at)
        return code;
    snprintf(d->error, DAEMON_ERROR_MAX, "planted");
    return PLANTED;
}

static void
note_stop(struct daemon *d)
{
    note("stop", d->part_count);
    daemon_parts[d->part_count].stop(d);
}

static void
make_table(size_t fails)
{
    fails_at = fails;
    said[0] = '\0';
    memset(table, 0, sizeof(table));
    for (part_total = 0; daemon_parts[part_total].name != NULL; part_total++) {
        must(part_total + 1 < PARTS_MAX);
        table[part_total] = daemon_parts[part_total];
        if (table[part_total].start != NULL)
            table[part_total].start = note_start;
        if (table[part_total].stop != NULL)
            table[part_total].stop = note_stop;
    }
}

/* All of them up to count forwards, then backwards. */
static void
expect(size_t count, char out[PARTS_TEXT_MAX])
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < count; i++)
        if (daemon_parts[i].start != NULL)
            used += (size_t)snprintf(out + used, PARTS_TEXT_MAX - used, "start %s\n", daemon_parts[i].name);
    for (size_t i = count; i-- > 0;)
        if (daemon_parts[i].stop != NULL)
            used += (size_t)snprintf(out + used, PARTS_TEXT_MAX - used, "stop %s\n", daemon_parts[i].name);
}

/* The order as a user of the table reads it. A change here is a change of the daemon. */
static void
order(void)
{
    static const char known[] =
        "base names anchors (alias table) (event files) queue group identity copies fragments (token store) "
        "delivery tokens control history events listener answers smarthosts peer door adoption cluster drain http passed "
        "findings rights aliases tls files route files run ";
    static const char reloads[] =
        "base names queue group fragments delivery tokens control history events listener smarthosts peer door adoption http "
        "findings rights aliases route files ";
    char names[PARTS_TEXT_MAX] = "", reloaded[PARTS_TEXT_MAX] = "";
    enum daemon_phase phase = DAEMON_OPEN;
    for (const struct daemon_part *part = daemon_parts; part->name != NULL; part++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, part->start != NULL ? "%s " : "(%s) ", part->name);
        used = strlen(reloaded);
        if (part->reload != NULL)
            snprintf(reloaded + used, sizeof(reloaded) - used, "%s ", part->name);
        ok_named(part->phase >= phase, "phases follow each other");
        phase = part->phase;
    }
    is_string(names, known, "the order of starts; in brackets, those that only end");
    is_string(reloaded, reloads, "the order of a reload");
}

static void
all_parts(struct home *h)
{
    char want[PARTS_TEXT_MAX];
    make_table(PARTS_MAX);
    is_number(home_start_parts(h, table), 0, "all parts start");
    daemon_terminate(&h->daemon);
    loop_run(h->daemon.loop);
    daemon_stop(&h->daemon);
    expect(part_total, want);
    is_string(said, want, "forwards, and stop backwards");
}

static unsigned
open_descriptors(void)
{
    unsigned count = 0;
    for (int i = 0; i < 1000; i++)
        count += fcntl(i, F_GETFD) != -1;
    return count;
}

/* A part fails: those before it, and itself, are stopped, and nothing is left behind. */
static void
each_fails(struct home *h)
{
    char want[PARTS_TEXT_MAX];
    unsigned before = open_descriptors();
    make_table(PARTS_MAX);
    for (size_t at = 0; at < 2 * part_total; at++) {
        size_t i = at / 2;
        if (daemon_parts[i].start == NULL)
            continue;
        fails_late = at % 2 == 1;
        make_table(i);
        is_number(home_start_parts(h, table), PLANTED, daemon_parts[i].name);
        is_string(h->daemon.error, "planted", "its sentence");
        daemon_stop(&h->daemon);
        expect(i + 1, want);
        is_string(said, want, "is undone");
        is_number(open_descriptors(), before, "no descriptor is left");
    }
    is_number(home_start(h), 0, "and then it starts");
    daemon_stop(&h->daemon);
}

/* The manager may turn the loop while it ends. */
static void
stop_amid_signals(struct daemon *d)
{
    daemon_reload(d);
    daemon_terminate(d);
    daemon_interrupt(d);
    ok_named(daemon_leaves(d) != NULL, "it still stops");
    part_manager_stop(d);
}

static void
signals_at_the_end(struct home *h)
{
    make_table(PARTS_MAX);
    for (size_t i = 0; i < part_total; i++)
        if (table[i].stop != NULL && strcmp(table[i].name, "queue") == 0)
            table[i].stop = stop_amid_signals;
    is_number(home_start_parts(h, table), 0, "one that hears signals to its end");
    daemon_terminate(&h->daemon);
    loop_run(h->daemon.loop);
    daemon_stop(&h->daemon);
    ok_named(h->daemon.loop == NULL, "which change nothing");
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
    order();
    all_parts(&b);
    each_fails(&b);
    signals_at_the_end(&b);
    folder_remove(a.folder);
    folder_remove(b.folder);
    return done();
}
