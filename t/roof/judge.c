/* The judgement of a run as a whole, and questions to it. */
#include "t/roof/world_internal.h"

#include "t/roof/audit.h"
#include "t/roof/client.h"
#include "t/roof/editor.h"
#include "t/roof/fleet.h"
#include "t/roof/hook.h"
#include "t/roof/hop.h"
#include "t/roof/host.h"
#include "t/roof/model.h"
#include "t/roof/returner.h"
#include "t/roof/roof.h"
#include "t/sim/sim_disk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 64 };

bool
judge_is_empty(void)
{
    if (!host.running || !fleet_is_up() || clients_open() > 0 || returner_open() > 0)
        return false;
    for (const struct host *h = NULL; (h = host_next(h)) != NULL;)
        if (host_mail(h) > 0)
            return false;
    return model_open() == 0;
}

/* The host runs, and clients have ended. */
bool
judge_is_quiet(void)
{
    return host.running && !host.leaves && fleet_is_up() && clients_open() == 0;
}

bool
judge_is_fed(void)
{
    return course.begun == course.messages;
}

bool
judge_has_ended(void)
{
    for (const struct host *h = NULL; (h = host_next(h)) != NULL;)
        if (h->running)
            return false;
    return true;
}

void
judge_drain(int64_t limit_ms)
{
    if (judge_is_empty())
        return;
    struct sched_counts c = {0};
    if (host.running)
        c = sched_count(manager_sched(host.daemon.manager));
    model_print();
    for (const struct host *h = host_next(&host); h != NULL; h = host_next(h))
        printf("%s %s, %zu messages wait\n", h->name,
               !h->running ? "does not run"
               : h->leaves ? "is to end"
                           : "runs",
               host_mail(h));
    roof_break(
        "in time", NULL,
        "after %" PRId64 " s of good weather %zu messages wait (%zu incoming, %zu "
        "active, %zu deferred), and %u recipients are open; the host %s, the others "
        "%s, "
        "and %u clients are at work",
        limit_ms / 1000, c.incoming + c.active + c.deferred, c.incoming, c.active,
        c.deferred, model_open(), host.running ? "runs" : "does not run",
        fleet_is_up() ? "run" : "do not run", clients_open());
}

/* The files left in a folder of its spool; path: the first that has any. */
static size_t
files_left_of(struct host *h, char path[PATH_SIZE])
{
    static const char *const places[] = {"mess",   "info",   "todo", "intd",   "local",
                                         "remote", "bounce", "hold", "corrupt"};
    size_t count = 0;
    host_enter(h);
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        snprintf(path, PATH_SIZE, HOST_SPOOL "/%s", places[i]);
        count = sim_disk_count(path);
        /* remains of mail that was done when the power went (doc/dev/queue.md), and a file that
         * a bad disk has kept when an operator removed its message */
        bool may_remain = strcmp(places[i], "corrupt") == 0 &&
                          (h->cuts > 0 || course.disk_was_bad || audit_has_damaged());
        /* what an injector left under a clock that was ahead is that much younger
         * (petrel-spool(5)) */
        bool is_unfinished =
            strcmp(places[i], "mess") == 0 || strcmp(places[i], "intd") == 0;
        may_remain = may_remain || (is_unfinished && course.large_steps > 0);
        if (count > 0 && !may_remain)
            break;
        count = 0;
    }
    host_leave();
    return count;
}

static size_t
files_left(char path[PATH_SIZE])
{
    size_t count = 0;
    for (struct host *h = NULL; (h = host_next(h)) != NULL && count == 0;)
        if (h->machine == h)
            count = files_left_of(h, path);
    return count;
}

void
judge_spool(void)
{
    char path[PATH_SIZE];
    if (roof_breaks("clean"))
        host_write_file(&host, HOST_SPOOL "/mess", "left", TEXT("of nobody"));
    size_t count = files_left(path);
    if (count > 0)
        roof_break("clean", NULL, "%zu files are left in %s", count, path);
}

/* All clients have gone, and no session is idle for so long. */
void
judge_connections(void)
{
    size_t count = network_streams(host.process);
    if (count > 0 && !course.with[WITH_RELAY] && !course.with[WITH_SLICES] &&
        !course.with[WITH_GROUP] && !course.with[WITH_ENGINE])
        roof_break("clean", NULL, "%zu connections are open, and nothing is to be done",
                   count);
}

/* Files of mail that was never acknowledged are left for 36 h: a host that has none need
 * not be watched for so long. */
void
judge_wait_clean(void)
{
    char path[PATH_SIZE];
    int64_t end_ms = roof_now_ms() + 38 * HOUR_MS;
    while (files_left(path) > 0 && roof_now_ms() < end_ms)
        world_run_until(roof_now_ms() + HOUR_MS, NULL);
    world_run_until(roof_now_ms() + HOUR_MS, NULL);
}

/* Each event is a request when `events_batch` is 1, and one that fails waits: there may be
 * many when mail is done. It goes on as long as an hour, four waits of the longest, brings
 * any. */
void
judge_heard(void)
{
    unsigned before;
    do {
        before = hook_batches();
        world_run_until(roof_now_ms() + HOUR_MS, model_has_heard);
    } while (!model_has_heard() && hook_batches() > before);
    model_judge_heard();
}
