/* A process with a queue, upon the simulated loop and disk. */
#include "t/crash/daemon.h"

#include "t/crash/shadow.h"

#include "base/log/log.h"
#include "base/log/log_internal.h"
#include "base/memory.h"
#include "queue/spool/guard_internal.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <stdio.h>
#include <stdlib.h>

const char crash_spool[] = "/spool";

enum { LINES_MAX = 1024 * 1024 };

static void
on_found(void *context, const struct queue_entry *entry)
{
    struct daemon *d = context;
    if (d->found_count == d->found_capacity) {
        d->found_capacity = d->found_capacity > 0 ? d->found_capacity * 2 : 16;
        d->found = memory_resize(d->found, d->found_capacity * sizeof(*d->found));
    }
    if (d->found_count > 0 && d->listed == 0 &&
        id_compare(d->found[d->found_count - 1].id, entry->id) > 0)
        d->disordered = true;
    d->found[d->found_count++] = *entry;
}

static struct envelope *
daemon_in_use(void *context, struct id id)
{
    const struct daemon *d = context;
    for (unsigned i = 0; d->envelopes != NULL && i < MESSAGES_MAX; i++)
        if (d->envelopes[i] != NULL && id_compare(d->envelopes[i]->id, id) == 0)
            return d->envelopes[i];
    return NULL;
}

static struct queue_settings
settings_of(const struct setup *setup)
{
    return (struct queue_settings){.spool = crash_spool,
                                   .is_local = shadow_is_local,
                                   .in_use = daemon_in_use,
                                   .slices = 1,
                                   .message_size_limit = 10 * 1000 * 1000,
                                   .journal_size = setup->journal_size,
                                   .journal_message_max = setup->journal_message_max,
                                   .journal_segment = setup->journal_segment};
}

static void
start(struct daemon *d, uint64_t seed)
{
    const char *level = getenv("CRASH_LOG");
    *d = (struct daemon){.loop = sim_loop_new(seed)};
    d->log = log_new(d->loop, LOG_STYLE_PETREL,
                     level != NULL ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR);
    buffer_init(&d->lines, LINES_MAX);
    log_capture(d->log, &d->lines);
}

int
daemon_open(struct daemon *d, const struct setup *setup, unsigned slices,
            unsigned slice, uint64_t seed, int64_t step_ms)
{
    struct queue_settings settings = settings_of(setup);
    settings.slices = slices;
    settings.slice = slice;
    start(d, seed);
    sim_loop_step_wall(d->loop, step_ms);
    loop_turn(d->loop, 0);
    return queue_open(&d->queue, d->loop, d->log, &settings, on_found, d, d->error,
                      sizeof(d->error));
}

int
daemon_open_injector(struct daemon *d, const struct setup *setup, uint64_t seed)
{
    struct queue_settings settings = settings_of(setup);
    start(d, seed);
    return queue_open_injector(&d->queue, d->log, &settings, d->error,
                               sizeof(d->error));
}

/* A death is one by a signal of its own, which the guard counts in full; ends that came
 * from outside are fewer (t/unit/queue/spool/guard.c). */
static void
note_death(struct daemon *d)
{
    if (sim_disk_is_dead() && d->queue != NULL && queue_guard(d->queue)->page != NULL)
        queue_guard(d->queue)->page->crashed = 1;
}

void
daemon_close(struct daemon *d)
{
    if (d->loop == NULL)
        return;
    note_death(d);
    queue_close(&d->queue);
    if (getenv("CRASH_LOG") != NULL && d->lines.length > 0)
        fprintf(stderr, "%.*s--\n", (int)d->lines.length, d->lines.at);
    log_free(&d->log);
    buffer_free(&d->lines);
    loop_free(&d->loop);
    free(d->found);
    *d = (struct daemon){0};
}

void
daemon_advance(struct daemon *d, int64_t ms)
{
    sim_loop_advance(d->loop, ms);
}
