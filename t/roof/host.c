/* The daemon as a process of its own in virtual time. */
#include "t/roof/host.h"

#include "base/disk/disk.h"
#include "t/roof/law_log.h"
#include "t/roof/network.h"
#include "t/roof/roof.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    OUTPUT_MAX = 1 << 20,
    /* turns in which nothing is called and no time passes; startup reads in parts */
    IDLE_TURNS_MAX = 300
};

struct host host;

static void
take_output(unsigned process, struct text bytes)
{
    size_t end;
    if (process != HOST_PROCESS || !buffer_add(&host.output, bytes))
        return;
    while ((end = text_find(buffer_text(&host.output), '\n')) != TEXT_NONE) {
        struct text line = text_of(host.output.at, end), time;
        roof_note_log("petrel", line);
        text_cut(&line, ' ', &time);
        law_log_line(line);
        buffer_take(&host.output, end + 1);
    }
}

static bool
disk_is_dead(void)
{
    return sim_disk_is_dead();
}

void
host_write_file(const char *path, const char *name, struct text content)
{
    struct disk *folder;
    sim_disk_set_time(SIM_WALL_START_MS + roof_now_ms());
    int result = disk_open(&folder, path, true);
    assert(result == 0);
    (void)!disk_unlink(folder, "new");
    int file = disk_create(folder, "new", 0600);
    if (file < 0 || disk_write(folder, file, content) < 0 ||
        disk_sync(folder, file) < 0)
        abort();
    disk_close_file(folder, file);
    if (disk_rename(folder, "new", name) < 0 || disk_sync_directory(folder, ".") < 0)
        abort();
    disk_close(&folder);
}

void
host_write_settings(struct text content)
{
    host_write_file(HOST_FOLDER, "petrel.conf", content);
}

static void
enter(void)
{
    network_enter(HOST_PROCESS);
    sim_disk_set_time(SIM_WALL_START_MS + roof_now_ms() + host.step_ms);
}

bool
host_start(void)
{
    char error[DAEMON_ERROR_MAX] = "";
    struct daemon *d = &host.daemon;
    if (host.output.limit == 0)
        buffer_init(&host.output, OUTPUT_MAX);
    network_on_output(take_output);
    network_on_dead(disk_is_dead);
    sim_loop_on_ask(network_ask);
    enter();
    *d = (struct daemon){.sources = {.file = HOST_FILE}};
    host.starts++;
    law_log_start();
    roof_note("host: starts");
    if (!daemon_read(d))
        roof_break("start", NULL, "the settings have errors");
    d->loop = sim_loop_new_at(host.seed + host.starts, roof_now_ms(), host.step_ms);
    int code = daemon_open(d, error);
    if (code == 0)
        code = daemon_start_queue(d, error);
    if (code == 0)
        code = daemon_start_doors(d, error);
    if (code == 0) {
        daemon_prepare(d);
        daemon_begin(d);
        host.fill_dns(d->dns);
        host.running = true;
        host.leaves = false;
    } else if (!sim_disk_is_dead()) {
        roof_note("host: does not start: %s", error);
        daemon_stop(d, false);
    }
    network_enter(0);
    return host.running;
}

void
host_reload(void)
{
    if (!host.running || host.leaves)
        return;
    enter();
    host.reloads++;
    roof_note("host: reloads");
    daemon_reload(&host.daemon);
    network_enter(0);
}

void
host_terminate(void)
{
    if (!host.running || host.leaves)
        return;
    enter();
    host.leaves = true;
    roof_note("host: is to end");
    daemon_terminate(&host.daemon);
    network_enter(0);
}

/* Its memory is thrown away: the next start has a process of its own. */
void
host_kill(bool power_cut)
{
    if (!host.running)
        return;
    roof_note("host: %s", power_cut ? "loses its power" : "is killed");
    host.kills += !power_cut;
    host.cuts += power_cut;
    host.running = false;
    host.dies_after = 0;
    law_log_excuse();
    buffer_clear(&host.output);
    network_end_process(HOST_PROCESS, !power_cut);
    if (power_cut)
        sim_disk_cut(
            (struct sim_cut){.kind = SIM_CUT_RANDOM, .item = (size_t)roof_random()});
    else
        sim_disk_restart();
}

int64_t
host_due_ms(void)
{
    return host.running ? sim_loop_due_ms(host.daemon.loop) : INT64_MAX;
}

static void
end_in_order(void)
{
    daemon_stop(&host.daemon, true);
    host.running = false;
    roof_note("host: has ended");
    size_t files = sim_disk_open_files(), sockets = network_open(HOST_PROCESS);
    if ((files > 0 && host.is_idle) || sockets > 0)
        roof_break("clean", NULL,
                   "an orderly stop left %zu files (%s) and %zu sockets open", files,
                   sim_disk_open_file(), sockets);
    sim_disk_restart(); /* as the end of a process does */
}

static void
judge_idleness(int64_t before_ms, uint64_t calls)
{
    static int64_t last_ms;
    bool idle = before_ms == last_ms && network_calls() + sim_disk_calls() == calls;
    last_ms = before_ms;
    host.idle_turns = idle ? host.idle_turns + 1 : 0;
    if (host.idle_turns > IDLE_TURNS_MAX)
        roof_break("in time", NULL, "the loop turns without work");
}

static void
arm_disk(void)
{
    uint64_t calls = sim_disk_calls();
    sim_disk_die_at(host.dies_after > 0 ? calls + host.dies_after : 0);
    sim_disk_fail_at(host.fails_after > 0 ? calls + host.fails_after : 0,
                     host.fails_with);
}

static void
disarm_disk(uint64_t made)
{
    host.dies_after = host.dies_after > made ? host.dies_after - made : 0;
    host.fails_after = host.fails_after > made ? host.fails_after - made : 0;
    if (sim_disk_is_dead())
        return;
    sim_disk_die_at(0);
    sim_disk_fail_at(0, 0);
}

void
host_turn(void)
{
    enter();
    uint64_t disk_calls = sim_disk_calls(), calls = network_calls() + disk_calls;
    arm_disk();
    sim_loop_turn_at(host.daemon.loop, roof_now_ms());
    disarm_disk(sim_disk_calls() - disk_calls);
    host.turns++;
    if (sim_disk_is_dead()) {
        network_enter(0);
        host_kill(false);
        host.stopped();
        return;
    }
    if (sim_loop_is_stopped(host.daemon.loop)) {
        end_in_order();
        network_enter(0);
        host.stopped();
        return;
    }
    network_enter(0);
    judge_idleness(roof_now_ms(), calls);
}
