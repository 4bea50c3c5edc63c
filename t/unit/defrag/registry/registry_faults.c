/* defrag/registry/registry_dir.c on a disk that fails and in a time that can be told: failures
 * at every call, what expires, what is swept away. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "t/sim/sim_disk.h"

#include "t/support/registry_kit.h"
#include "t/sim/sim.h"

#include <errno.h>

enum { HOUR_MS = 3600000 };

static void
begin(struct world *w)
{
    struct disk *disk;
    sim_disk_reset();
    sim_disk_set_time(SIM_WALL_START_MS);
    if (disk_open(&disk, "/shared", true) != 0)
        abort();
    disk_close(&disk);
    registry_world_start(w, "a.example", "dir:/shared");
}

/* In both clocks, in steps, since the sweep looks at the disk's. */
static void
pass(struct world *w, int64_t ms)
{
    for (; ms > 0; ms -= 1000) {
        sim_loop_advance(w->loop, ms < 1000 ? ms : 1000);
        sim_disk_set_time(loop_now_ms(w->loop));
    }
}

static const char *
claim_as(struct world *w, const char *host, unsigned key)
{
    char error[256];
    struct registry *mine = w->registry;
    w->registry = registry_of(w, host, "dir:/shared", error);
    const char *told = claim(w, key);
    registry_free(&w->registry);
    w->registry = mine;
    return told;
}

TEST(expiry)
{
    FIXTURE(world, w, begin, registry_world_end);
    is_string(claim_for(&w, 1, HOUR_MS), "own", "a claim for an hour");
    pass(&w, HOUR_MS / 2);
    is_string(claim_for(&w, 1, HOUR_MS), "own", "repeated after half of it");
    pass(&w, HOUR_MS / 2 - 1000);
    is_string(claim_as(&w, "b.example", 1), "a.example", "stands to its end");
    pass(&w, 2000);
    is_string(claim_as(&w, "b.example", 1), "own", "and no longer");
    /* Our own clock has nothing to do with it. */
    sim_loop_step_wall(w.loop, -10 * (int64_t)HOUR_MS);
    is_string(claim(&w, 1), "b.example", "when our clock is late");
    sim_loop_step_wall(w.loop, 20 * (int64_t)HOUR_MS);
    is_string(claim(&w, 1), "b.example", "when it is early");
}

TEST(sweep)
{
    struct disk *disk;
    FIXTURE(world, w, begin, registry_world_end);
    for (unsigned i = 0; i < 50; i++)
        claim_for(&w, i, i % 2 ? 600000 : 10 * (int64_t)HOUR_MS);
    if (disk_open(&disk, "/shared", false) != 0)
        abort();
    const char *const left[] = {"00/t0123456789abcdef", "ff/x0123456789abcdef",
                                "00/notes.txt", "00/tooshort", "README"};
    (void)disk_make_directory(disk, "00", 0700);
    (void)disk_make_directory(disk, "ff", 0700);
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
        disk_close_file(disk, disk_create(disk, left[i], 0600));
    is_number(sim_disk_count("/shared"), 56, "claims, our name, and what is no claim");
    pass(&w, HOUR_MS / 2);
    ok_named(sim_disk_count("/shared") < 56, "some of the expired ones are gone");
    ok_named(sim_disk_count("/shared") >= 31, "and nothing else");
    pass(&w, 2 * HOUR_MS);
    is_number(sim_disk_count("/shared"), 29,
              "then all, and what claims have left; what is not ours stays");
    is_string(claim_as(&w, "b.example", 48), "a.example", "as does what stands");
    is_number(registry_counts(w.registry).failures, 0, "nothing has failed");
    disk_close(&disk);
}

TEST(down_and_up)
{
    FIXTURE(world, w, begin, registry_world_end);
    claim(&w, 1);
    sim_disk_die_at(sim_disk_calls() + 1);
    is_string(claim(&w, 1), "unavailable", "a disk that fails");
    ok_named(!registry_is_up(w.registry), "is down");
    uint64_t calls = sim_disk_calls();
    is_string(claim(&w, 1), "unavailable", "others do not wait for it");
    is_number(sim_disk_calls() - calls, 0, "nor is it asked");
    pass(&w, 4000);
    is_number(sim_disk_calls() - calls, 0, "for five seconds");
    pass(&w, 2000);
    ok_named(sim_disk_calls() > calls, "then it is tried");
    pass(&w, 60000);
    calls = sim_disk_calls();
    pass(&w, 290000);
    ok_named(sim_disk_calls() - calls <= 5, "seldom and more seldom");
    is_number(w.recovered, 0, "nothing is better");
    sim_disk_restart();
    pass(&w, 301000);
    ok_named(registry_is_up(w.registry), "it is up once it works");
    is_number(w.recovered, 1, "who asked meanwhile is told so, once");
    is_string(claim(&w, 1), "own", "and all is as it was");
    pass(&w, HOUR_MS);
    is_number(w.recovered, 1, "once");
}

/* The n-th call fails, for all n: an answer comes, and no file is left that would stand
 * for ever. */
static void
test_every_call(int error)
{
    bool done_all = false;
    uint64_t calls = 0, unknown = 0, own = 0, other = 0;
    unsigned lies = 0;
    while (!done_all) {
        FIXTURE(world, w, begin, registry_world_end);
        is_string(claim_as(&w, "b.example", 1), "own", "of another");
        claim_for(&w, 2, 1000);
        pass(&w, 2000);
        sim_disk_count_anew();
        sim_disk_fail_at(++calls, error);
        const char *one = claim(&w, 1);
        unknown += strcmp(one, "unavailable") == 0;
        other += strcmp(one, "b.example") == 0;
        lies += strcmp(one, "own") == 0;
        const char *two = claim(&w, 2);
        unknown += strcmp(two, "unavailable") == 0;
        own += strcmp(two, "own") == 0;
        close_key(&w, 2, 1000);
        loop_turn(w.loop, 5);
        done_all = !sim_disk_has_failed();
        sim_disk_fail_at(0, 0);
        pass(&w, 6000);
        if (strcmp(claim(&w, 1), "b.example") != 0 || strcmp(claim(&w, 2), "own") != 0)
            lies++;
        pass(&w, 3 * HOUR_MS);
        if (sim_disk_count("/shared") > 3)
            lies++;
    }
    is_number(lies, 0, "no failure makes two owners, or leaves anything for ever");
    ok_named(unknown > 0 && own > 0 && other > 0, "each kind of answer was there");
    printf("# %" PRIu64 " calls, %" PRIu64 " answers unavailable\n", calls, unknown);
}

int
main(void)
{
    tap_tests("");
    test_every_call(EIO);
    test_every_call(ESTALE);
    return done();
}
