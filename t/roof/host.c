/* The daemon as a process of its own in virtual time. */
#include "t/roof/host.h"

#include "base/disk/disk.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "queue/spool/slices.h"
#include "t/roof/injector.h"
#include "t/roof/law_log.h"
#include "t/roof/law_metrics.h"
#include "t/roof/network.h"
#include "t/roof/policy.h"
#include "t/roof/roof.h"
#include "t/roof/split.h"
#include "t/roof/upgrade.h"
#include "t/sim/sim.h"
#include "t/sim/disk_world.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    OUTPUT_MAX = 1 << 20,
    /* turns in which nothing is called and no time passes; startup reads in parts */
    IDLE_TURNS_MAX = 10,
    PIECE = 32, /* messages */
    TASK_TURNS_MAX =
        1000 /* of work in memory that is done in pieces, as that on a table */
};

struct host host = {.name = "petrel",
                    .slices = 1,
                    .control = HOST_CONTROL,
                    .process = 1,
                    .machine = &host};
static struct host *hosts[HOSTS_MAX] = {&host};
static unsigned host_count = 1;
static void (*heard_line)(const struct host *h, struct text line);

void
hosts_on_line(void (*heard)(const struct host *h, struct text line))
{
    heard_line = heard;
}

struct host *
host_next(const struct host *h)
{
    unsigned i = 0;
    while (h != NULL && hosts[i++] != h)
        ;
    return i < host_count ? hosts[i] : NULL;
}

unsigned
host_log(const struct host *h)
{
    unsigned i = 0;
    while (hosts[i] != h->machine)
        i++;
    return i;
}

/* Its disk is the current one. */
static bool
is_current(const struct host *h)
{
    return h->machine->disk == NULL;
}

void
host_enter(struct host *h)
{
    if (!is_current(h)) {
        for (unsigned i = 0; i < host_count; i++)
            if (hosts[i]->machine == hosts[i] && is_current(hosts[i])) {
                hosts[i]->disk = sim_disk_exchange(h->machine->disk);
                break;
            }
        h->machine->disk = NULL;
    }
    upgrade_enter(h);
    network_enter(h->process);
    sim_disk_enter(h->process);
    sim_disk_set_time(SIM_WALL_START_MS + roof_now_ms() + h->machine->step_ms);
}

void
host_leave(void)
{
    host_enter(&host);
    network_enter(0);
}

struct host *
host_add(const char *name, uint64_t seed, struct host *machine)
{
    struct host *h = memory_new(sizeof(*h));
    assert(host_count < HOSTS_MAX);
    h->name = name;
    h->seed = seed;
    h->slices = 1;
    snprintf(h->control, sizeof(h->control), HOST_CONTROL ".%s", name);
    h->process = hosts[host_count - 1]->process + 1;
    if (h->process == INJECTOR_PROCESS)
        h->process++;
    h->machine = machine != NULL ? machine : h;
    if (machine == NULL)
        h->disk = world_new();
    hosts[host_count++] = h;
    return h;
}

static struct host *
host_of(unsigned process)
{
    for (unsigned i = 0; i < host_count; i++)
        if (hosts[i]->process == process)
            return hosts[i];
    return NULL;
}

static void
take_output(unsigned process, struct text bytes)
{
    size_t end;
    struct host *h = host_of(process);
    if (h == NULL || !buffer_add(&h->output, bytes))
        return;
    while ((end = text_find(buffer_text(&h->output), '\n')) != TEXT_NONE) {
        struct text line = text_of(h->output.at, end), time;
        roof_note_log(h->name, line);
        h->lines++;
        text_cut(&line, ' ', &time);
        law_log_line(host_log(h), line);
        if (h == &host) {
            law_metrics_line(line);
            policy_line(line);
            split_line(line);
        }
        upgrade_line(line);
        if (heard_line != NULL)
            heard_line(h, line);
        buffer_take(&h->output, end + 1);
    }
}

static bool
disk_is_dead(void)
{
    return sim_disk_is_dead();
}

void
host_write_file(struct host *h, const char *path, const char *name, struct text content)
{
    struct disk *folder;
    host_enter(h);
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
    host_leave();
}

void
host_write_settings(struct host *h, struct text content)
{
    host_write_file(h, HOST_FOLDER, "petrel.conf", content);
}

/* In notes; lines of its log have its name. */
static const char *
word_of(const struct host *h)
{
    return h == &host ? "host" : h->name;
}

static void
fill_overrides(struct host *h)
{
    unsigned count = 0;
    snprintf(h->overrides[0], HOST_OVERRIDE_SIZE, "control = %s", h->control);
    snprintf(h->overrides[1], HOST_OVERRIDE_SIZE, "slices = %u", h->slices);
    snprintf(h->overrides[2], HOST_OVERRIDE_SIZE, "slice = %u", h->slice);
    for (unsigned i = 0; i < HOST_OVERRIDES_MAX; i++)
        if (h->overrides[i][0] != '\0')
            h->override_list[count++] = h->overrides[i];
    h->override_list[count] = NULL;
}

bool
host_start(struct host *h)
{
    struct daemon *d = &h->daemon;
    if (h->output.limit == 0)
        buffer_init(&h->output, OUTPUT_MAX);
    network_on_output(take_output);
    network_on_dead(disk_is_dead);
    sim_loop_on_ask(network_ask);
    host_enter(h);
    fill_overrides(h);
    *d = (struct daemon){
        .sources = {.file = HOST_FILE, .overrides = h->override_list}
    };
    h->starts++;
    h->started_ms = roof_now_ms();
    h->lines_before = h->lines;
    law_log_start(host_log(h));
    if (h == &host)
        policy_start();
    roof_note("%s: starts", word_of(h));
    if (!daemon_read(d))
        roof_break("start", NULL, "the settings have errors");
    d->loop = sim_loop_new_at(h->seed + h->starts, roof_now_ms(), h->machine->step_ms);
    upgrade_starts(h);
    int code = daemon_start(d, DAEMON_QUEUE);
    if (h == &host) /* the ends that recovery makes up for are logged, not counted */
        law_metrics_start();
    if (code == 0)
        code = daemon_start(d, DAEMON_RUNS);
    upgrade_started(h, code);
    if (code == 0) {
        h->fill_dns(d->dns);
        h->running = true;
        h->leaves = false;
    } else if (!sim_disk_is_dead()) {
        roof_note("%s: does not start: %s", word_of(h), d->error);
        daemon_stop(d);
    }
    host_leave();
    return h->running;
}

void
host_reload(struct host *h)
{
    if (!h->running || h->leaves)
        return;
    host_enter(h);
    h->reloads++;
    roof_note("%s: reloads", word_of(h));
    daemon_reload(&h->daemon);
    host_leave();
}

void
host_terminate(struct host *h)
{
    if (!h->running || h->leaves)
        return;
    host_enter(h);
    h->leaves = true;
    roof_note("%s: is to end", word_of(h));
    daemon_terminate(&h->daemon);
    host_leave();
}

static void
forget_process(struct host *h, bool with_word)
{
    h->running = h->in_order = false;
    h->dies_after = 0;
    h->dies_by_cut = false;
    buffer_clear(&h->output);
    network_end_process(h->process, with_word);
}

static void
end_others(struct host *h)
{
    for (unsigned i = 0; i < host_count; i++) {
        struct host *other = hosts[i];
        if (other == h || other->machine != h->machine || !other->running)
            continue;
        other->cuts++;
        forget_process(other, false);
        other->stopped(other);
    }
}

/* Its memory is thrown away: the next start has a process of its own. */
void
host_kill(struct host *h, bool power_cut)
{
    if (!h->running)
        return;
    roof_note("%s: %s", word_of(h), power_cut ? "loses its power" : "is killed");
    h->kills += !power_cut;
    h->cuts += power_cut;
    law_log_excuse(host_log(h));
    host_enter(h);
    forget_process(h, !power_cut);
    if (power_cut) {
        sim_disk_cut(
            (struct sim_cut){.kind = SIM_CUT_RANDOM, .item = (size_t)roof_random()});
        end_others(h);
    } else {
        sim_disk_end_process(h->process);
    }
    host_leave();
}

static int64_t
host_due_ms(const struct host *h)
{
    return h->running ? sim_loop_due_ms(h->daemon.loop) : INT64_MAX;
}

static struct host *
first_due(void)
{
    struct host *first = &host;
    int64_t at_ms = host_due_ms(first);
    for (unsigned i = 1; i < host_count; i++) {
        int64_t due_ms = host_due_ms(hosts[i]);
        bool is_tie = due_ms == at_ms && due_ms != INT64_MAX &&
                      hosts[i]->turns < first->turns; /* nobody is starved */
        if (due_ms >= at_ms && !is_tie)
            continue;
        first = hosts[i];
        at_ms = due_ms;
    }
    return first;
}

int64_t
hosts_due_ms(struct host **first)
{
    *first = first_due();
    return host_due_ms(*first);
}

void
hosts_pull_trigger(void)
{
    char suffix[SLICES_SUFFIX_MAX], path[128];
    for (unsigned i = 0; i < host_count; i++) {
        struct host *h = hosts[i];
        if (!h->running || h->machine != &host)
            continue;
        slices_suffix(h->slices, h->slice, suffix);
        snprintf(path, sizeof(path), HOST_SPOOL "/lock/trigger%s", suffix);
        int fifo = sim_disk_fifo_reader(path);
        if (fifo >= 0)
            sim_loop_ready(h->daemon.loop, fifo, LOOP_READ);
    }
}

size_t
host_mail(const struct host *h)
{
    if (!h->running)
        return 0;
    struct sched_counts c = sched_count(manager_sched(h->daemon.manager));
    return c.incoming + c.active + c.deferred;
}

static void
end_in_order(struct host *h)
{
    daemon_stop(&h->daemon);
    h->running = false;
    h->in_order = true;
    roof_note("%s: has ended", word_of(h));
    size_t files = sim_disk_open_files(), sockets = network_open(h->process);
    if ((files > 0 && h->is_idle) || sockets > 0)
        roof_break("clean", NULL,
                   "an orderly stop of %s left %zu files (%s) and %zu sockets open",
                   h->name, files, sim_disk_open_file(), sockets);
    sim_disk_end_process(h->process); /* as the kernel does */
}

/* Changes with each call of the system, line of the log and message that moves. */
static uint64_t
work_of(const struct host *h)
{
    struct sched_counts c = sched_count(manager_sched(h->daemon.manager));
    return network_calls() + sim_disk_calls() + h->lines + ((uint64_t)c.active << 32) +
           ((uint64_t)c.deferred << 48);
}

static void
judge_idleness(struct host *h, uint64_t calls, bool has_task)
{
    bool idle = roof_now_ms() == h->turned_ms && work_of(h) == calls;
    h->turned_ms = roof_now_ms();
    h->idle_turns = idle ? h->idle_turns + !has_task : 0;
    h->task_turns = idle ? h->task_turns + has_task : 0;
    /* the scheduler walks through its mail in pieces */
    if (h->idle_turns > IDLE_TURNS_MAX + host_mail(h) / PIECE ||
        h->task_turns > TASK_TURNS_MAX)
        roof_break("in time", NULL, "the loop of %s turns without work", h->name);
}

static void
arm_disk(const struct host *h)
{
    uint64_t calls = sim_disk_calls();
    sim_disk_die_at(h->dies_after > 0 ? calls + h->dies_after : 0);
    sim_disk_fail_at(h->fails_after > 0 ? calls + h->fails_after : 0, h->fails_with);
}

static void
disarm_disk(struct host *h, uint64_t made)
{
    h->dies_after = h->dies_after > made ? h->dies_after - made : 0;
    h->fails_after = h->fails_after > made ? h->fails_after - made : 0;
    if (sim_disk_is_dead())
        return;
    sim_disk_die_at(0);
    sim_disk_fail_at(0, 0);
}

void
host_turn(struct host *h)
{
    host_enter(h);
    uint64_t disk_calls = sim_disk_calls();
    uint64_t calls = work_of(h);
    bool has_task = sim_loop_has_task(h->daemon.loop);
    arm_disk(h);
    sim_loop_turn_at(h->daemon.loop, roof_now_ms());
    disarm_disk(h, sim_disk_calls() - disk_calls);
    h->turns++;
    if (sim_disk_is_dead()) {
        network_enter(0);
        host_kill(h, h->dies_by_cut);
        h->stopped(h);
        return;
    }
    if (sim_loop_is_stopped(h->daemon.loop)) {
        end_in_order(h);
        host_leave();
        h->stopped(h);
        return;
    }
    judge_idleness(h, calls, has_task);
    host_leave();
}

bool
host_has_unwritten(const struct host *h)
{
    uint64_t said = 0;
    const struct log_counts *c = log_counts(h->daemon.log);
    for (size_t i = 0; i < sizeof(c->lines) / sizeof(*c->lines); i++)
        said += c->lines[i];
    return h->running && said - c->lost != h->lines - h->lines_before;
}
