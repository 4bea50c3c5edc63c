/* lock/quotas that can be neither read nor written: one line in the log, mail goes on, the counts of
 * this life hold, and as soon as it can be written nothing is missing in it. */
/* link: t/sim/loop.c */
#include "queue/manager/manager_internal.h"
#include "t/support/manager_world.h"

#include <sys/stat.h>

enum { MINUTE_MS = 60 * 1000 };

static const char *
faults_path(const struct world *w, const char *name)
{
    static char path[300];
    snprintf(path, sizeof(path), "%s/lock/%s", w->settings.queue.spool, name);
    return path;
}

/* Takes one of the five a day of alice. */
static bool
take(struct world *w)
{
    struct quotas_refusal refusal;
    struct quotas_claim claim = {.parts = {{NULL, 0}}};
    struct quotas *q = manager_quotas(w->manager);
    struct quotas_sender who = {.user = TEXT("alice"), .uid = QUOTAS_NO_UID};
    if (!quotas_take(q, &who, 1, loop_monotonic_ms(w->loop), &claim, &refusal))
        return false;
    quotas_settle(q, &claim, 1, loop_monotonic_ms(w->loop));
    manager_note_quotas(w->manager);
    return true;
}

static unsigned
used(const struct world *w)
{
    struct quota_use *use =
        quotas_recall(manager_quotas(w->manager), TEXT("user:alice"));
    return use != NULL ? quota_used(use, QUOTA_DAY, loop_monotonic_ms(w->loop)) : 0;
}

/* A directory in its place, with something in it. */
static void
block(const char *path)
{
    char inner[320];
    snprintf(inner, sizeof(inner), "%s/x", path);
    if (mkdir(path, 0700) != 0 || mkdir(inner, 0700) != 0)
        abort();
}

static void
unblock(const char *path)
{
    char inner[320];
    snprintf(inner, sizeof(inner), "%s/x", path);
    if (rmdir(inner) != 0 || rmdir(path) != 0)
        abort();
}

static void
test_writes(const char *blocked, const char *name)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://x");
    w.settings.quotas = TEXT("user:* 5/d");
    world_restart(&w);
    block(faults_path(&w, blocked));
    for (int i = 0; i < 3; i++) {
        ok_named(take(&w), name);
        sim_loop_advance(w.loop, 5 * MINUTE_MS);
    }
    is_number(world_log_count(&w, "lock/quotas: cannot be written: "), 1,
              "one line, whatever changes");
    is_number(used(&w), 3, "what is used counts");
    unblock(faults_path(&w, blocked));
    sim_loop_advance(w.loop, MINUTE_MS);
    is_number(world_log_count(&w, "lock/quotas: written again"), 1,
              "it is tried again without a change");
    world_restart(&w);
    is_number(used(&w), 3, "a restart has all of it");
    ok(take(&w) && take(&w));
    ok_named(!take(&w), "five a day");
    block(faults_path(&w, "quotas.new"));
    world_restart(&w);
    is_number(world_log_count(&w, "lock/quotas: cannot be written: "), 2, "also when it ends");
    is_number(used(&w), 3, "the old file is whole");
    unblock(faults_path(&w, "quotas.new"));
}

static void
test_reads(void)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://x");
    w.settings.quotas = TEXT("user:* 5/d");
    world_restart(&w);
    world_stop(&w);
    FILE *f = fopen(faults_path(&w, "quotas"), "w");
    if (f == NULL || fputs("petrel quotas 1\nd x y z\nd 1 \n\n\xff\n", f) < 0 ||
        fclose(f) != 0)
        abort();
    manager_world_start(&w);
    is_number(world_log_count(&w, "lock/quotas: damaged, or not written by Petrel"), 1,
              "one line for a file of garbage");
    ok_named(take(&w), "mail goes on");
    sim_loop_advance(w.loop, MINUTE_MS);
    world_restart(&w);
    is_number(world_log_count(&w, "lock/quotas: damaged"), 1, "it was replaced");
    is_number(used(&w), 1, "and counts");
    world_stop(&w);
    if (unlink(faults_path(&w, "quotas")) != 0)
        abort();
    block(faults_path(&w, "quotas"));
    manager_world_start(&w);
    is_number(world_log_count(&w, "is unknown"), 2, "one line for a directory");
    ok_named(take(&w), "mail goes on");
    unblock(faults_path(&w, "quotas"));
}

int
main(void)
{
    test_writes("quotas.new", "its draft cannot be made");
    test_writes("quotas", "it cannot be renamed");
    test_reads();
    return done();
}
