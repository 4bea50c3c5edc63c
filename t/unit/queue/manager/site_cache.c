/* The learnt state of sites, over a restart: windows, ceilings, rates, dead marks. */
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */
#include "queue/manager/site_cache.h"

#include "t/support/sched_world.h"
#include "t/support/lock_file.h"
#include "t/sim/sim_disk.h"

static const char PATH[] = "lock/sites";

static void
world_open_again(struct world *w)
{
    sched_free(&w->s);
    while (w->channels) {
        struct channel *next = w->channels->next;
        free(w->channels);
        w->channels = next;
    }
    w->s = sched_new(
        &(struct sched_settings){.active_limit = 10, .session_limit = 10, .seed = 7}, &w->now);
}

TEST(window)
{
    struct disk *disk = lock_file_home();
    struct world w;
    sched_world_start(&w, 100, 100);
    is_number(site_cache_write(disk, PATH, w.s, w.now), 0, "nothing is known");
    is_number(sim_disk_count(""), 0, "and no file made");
    for (int i = 0; i < 12; i++)
        world_add(&w, "a.example", 0, 0);
    world_run(&w);
    while (world_channel(&w, "a.example", 0))
        channel_drain(&w, world_channel(&w, "a.example", 0));
    int window = world_site(&w, "smtp:a.example").site.window;
    ok_named(window > 5, "a window has grown");
    is_number(site_cache_write(disk, PATH, w.s, w.now), 0, "written");
    is_number(sim_disk_count(""), 1, "as one file, no draft of it");
    world_open_again(&w);
    is_number(site_cache_read(disk, PATH, w.s, w.now + 1000), 1, "one site");
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    is_number(world_site(&w, "smtp:a.example").site.window, window, "as before");
    is_number(site_cache_write(disk, PATH, w.s, w.now), 0, "again");
    sched_world_end(&w);
    sched_world_start(&w, 100, 100);
    is_number(site_cache_read(disk, PATH, w.s, w.now), 1, "another start");
    is_number(site_cache_write(disk, PATH, w.s, w.now), 0,
              "what no mail has come for is kept");
    is_number(site_cache_read(disk, PATH, w.s, w.now), 1, "over one start more");
    w.target.transport.concurrency_limit = 3;
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    is_number(world_site(&w, "smtp:a.example").site.window, 3,
              "within the settings of today");
    sched_world_end(&w);
    disk_close(&disk);
}

TEST(dead)
{
    struct disk *disk = lock_file_home();
    struct world w;
    sched_world_start(&w, 100, 100);
    w.target.transport.adaptive = 1;
    world_add(&w, "dead.example", 0, 0);
    world_run(&w);
    channel_refuse(&w, world_channel(&w, "", 0));
    int64_t until = world_site(&w, "smtp:dead.example").site.dead_until_ms;
    ok_named(until > w.now, "a site has died");
    is_number(site_cache_write(disk, PATH, w.s, w.now), 0, "written");
    world_open_again(&w);
    w.opens = 0;
    is_number(site_cache_read(disk, PATH, w.s, w.now), 1, "read");
    unsigned late = world_add(&w, "dead.example", 0, 0);
    world_run(&w);
    is_number(w.opens, 0, "it is not tried anew");
    is_number(world_site(&w, "smtp:dead.example").site.dead_until_ms, until,
              "before its time");
    ok_named(w.mails[late].to[0].last &&
                 strstr(w.mails[late].to[0].last->text, "temporarily suspended"),
             "mail is told why");
    sched_world_end(&w);
    disk_close(&disk);
}

static void
put(struct disk *disk, const char *text)
{
    disk_unlink(disk, PATH);
    int file = disk_create(disk, PATH, 0600);
    disk_write(disk, file, text_from(text));
    disk_close_file(disk, file);
}

/* Its time has passed while nobody ran: the first message tries it. */
TEST(dead_before)
{
    struct disk *disk = lock_file_home();
    struct world w;
    sched_world_start(&w, 100, 100);
    w.target.transport.adaptive = 1;
    world_add(&w, "dead.example", 0, 0);
    world_run(&w);
    channel_refuse(&w, world_channel(&w, "", 0));
    is_number(site_cache_write(disk, PATH, w.s, w.now), 0, "written");
    int64_t until = world_site(&w, "smtp:dead.example").site.dead_until_ms;
    world_open_again(&w);
    w.opens = 0;
    w.now = until + 1000;
    is_number(site_cache_read(disk, PATH, w.s, w.now), 1, "read");
    unsigned first = world_add(&w, "dead.example", 0, 0);
    world_run(&w);
    ok_named(w.mails[first].to[0].last == NULL, "the first message is not put off");
    is_number(w.opens, 1, "but tried");
    sched_world_end(&w);
    disk_close(&disk);
}

/* A site without mail since startup does not get younger by being written again. */
TEST(age)
{
    enum { HALF = SITE_CACHE_AGE_MAX_MS / 2 + 1 };
    struct disk *disk = lock_file_home();
    struct world w;
    sched_world_start(&w, 10, 10);
    world_add(&w, "dead.example", 0, 0);
    world_run(&w);
    channel_refuse(&w, world_channel(&w, "", 0));
    is_number(site_cache_write(disk, PATH, w.s, w.now), 0, "written");
    world_open_again(&w);
    is_number(site_cache_read(disk, PATH, w.s, w.now + HALF), 1,
              "read half a day later");
    is_number(site_cache_write(disk, PATH, w.s, w.now + HALF), 0, "and written again");
    world_open_again(&w);
    is_number(site_cache_read(disk, PATH, w.s, w.now + HALF), 1, "still known then");
    world_open_again(&w);
    is_number(site_cache_read(disk, PATH, w.s, w.now + 2 * HALF), 0, "not a day later");
    sched_world_end(&w);
    disk_close(&disk);
}

TEST(nonsense)
{
    static const char *const pages[] = {
        "",
        "\n\n",
        "no JSON\n",
        "[]\n",
        "{}\n",
        "{\"version\":1}\n",
        "{\"version\":2,\"at_ms\":1700000000000,\"site\":\"smtp: smtp:a\"}\n",
        "{\"version\":1,\"at_ms\":1700000000001,\"site\":\"smtp: smtp:a\"}\n",
        "{\"version\":1,\"at_ms\":1699913600000,\"site\":\"smtp: smtp:a\"}\n",
        "{\"version\":1,\"at_ms\":1700000000000,\"site\":7}\n",
    };
    struct disk *disk = lock_file_home();
    struct world w;
    sched_world_start(&w, 10, 10);
    is_number(site_cache_read(disk, PATH, w.s, w.now), 0, "no file");
    for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++) {
        put(disk, pages[i]);
        is_number(site_cache_read(disk, PATH, w.s, w.now), 0, pages[i]);
    }
    put(disk,
        "{\"version\":1,\"at_ms\":1700000000000,\"site\":\"smtp: smtp:a.example\","
        "\"window\":-5,\"full_at_us\":9e18,\"pause_until_ms\":1800000000000,"
        "\"ceiling\":{\"sessions\":-1,\"hold_ms\":-7},\"rate\":{\"phase\":99},"
        "\"dead\":{\"until_ms\":99999999999999,\"text\":7}}\nrubbish\n");
    is_number(site_cache_read(disk, PATH, w.s, w.now), 1, "nonsense in a good line");
    unsigned mail = world_add(&w, "a.example", 0, 0);
    world_run(&w);
    world_pass(&w, 4000000);
    channel_drain(&w, world_channel(&w, "", 0));
    ok_named(w.mails[mail].gone, "hurts nobody for long");
    sched_world_end(&w);
    disk_close(&disk);
}

/* The file of a clock that was ahead by half a day delays no mail for that time. */
TEST(ahead)
{
    struct disk *disk = lock_file_home();
    struct world w;
    sched_world_start(&w, 10, 10);
    w.target.transport.adaptive = true;
    put(disk,
        "{\"version\":1,\"at_ms\":1700000000000,\"site\":\"smtp: smtp:a.example\","
        "\"pause_until_ms\":1700040000000,\"ceiling\":{\"sessions\":1,\"found\":1,"
        "\"hold_ms\":40000000,\"probe_at_ms\":1700040000000},\"rate\":{\"phase\":3,"
        "\"rate\":17,\"known\":17,\"next_at_ms\":1700040000000,\"hold_ms\":40000000,"
        "\"refused_at_ms\":1700040000000}}\n"
        "{\"version\":1,\"at_ms\":1700000000000,\"site\":\"smtp: smtp:b.example\","
        "\"dead\":{\"since_ms\":1700040000000,\"until_ms\":1700040000000,"
        "\"probe_ms\":40000000,\"code\":0,\"enhanced\":\"4.4.1\",\"text\":\"x\"}}\n");
    is_number(site_cache_read(disk, PATH, w.s, w.now), 2, "two sites");
    world_add(&w, "a.example b.example", 0, 0);
    world_run(&w);
    struct sched_site a = world_site(&w, "smtp:a.example").site,
                      b = world_site(&w, "smtp:b.example").site;
    is_number(a.rate, 17, "a learnt rate");
    ok_named(world_channel(&w, "a.example", 0) != NULL, "but no pause");
    ok_named(a.ceiling_probe_ms <= w.now + 600000,
             "the ceiling is tried in ten minutes");
    ok_named(b.dead_until_ms > w.now && b.dead_until_ms <= w.now + 900000,
             "and the dead site in 15");
    world_pass(&w, 600000);
    is_number(world_site(&w, "smtp:a.example").site.rate, 0, "the rate is forgotten");
    sched_world_end(&w);
    disk_close(&disk);
}

/* A rate that was never measured, or whose steps are endless, is one that may be learnt. */
TEST(unmeasured)
{
    struct disk *disk = lock_file_home();
    for (int phase = 1; phase <= 4; phase++) {
        char page[400];
        FIXTURE(world, w, sched_world_start, sched_world_end, 10, 10);
        w.target.transport.adaptive = true;
        snprintf(
            page, sizeof(page),
            "{\"version\":1,\"at_ms\":1700000000000,\"site\":\"smtp: smtp:a.example\","
            "\"rate\":{\"phase\":%d,\"rate\":17,\"known\":0,\"step\":99999,"
            "\"refused_at_ms\":1700000000000}}\n",
            phase);
        put(disk, page);
        is_number(site_cache_read(disk, PATH, w.s, w.now), 1, "it is read");
        for (int i = 0; i < 10; i++) {
            world_add(&w, "a.example", 0, 0);
            world_run(&w);
            world_pass(&w, 30000);
            struct channel *c = world_channel(&w, "", 0);
            if (c)
                channel_drain(&w, c);
        }
        ok_named(world_site(&w, "smtp:a.example").site.rate < 100000000,
                 "and grows in steps");
    }
    disk_close(&disk);
}

TEST(trouble)
{
    struct disk *disk = lock_file_home();
    struct world w;
    sched_world_start(&w, 10, 10);
    world_add(&w, "dead.example", 0, 0);
    world_run(&w);
    channel_refuse(&w, world_channel(&w, "", 0));
    is_number(site_cache_write(disk, PATH, w.s, w.now), 0, "written");
    size_t length = sim_disk_content(PATH).length;
    for (uint64_t call = 1; call <= 4; call++) {
        sim_disk_count_anew();
        sim_disk_fail_at(call, 28);
        int result = site_cache_write(disk, PATH, w.s, w.now);
        ok_named(result == 0 || result == -28, "a full disk is told");
        sim_disk_fail_at(0, 0);
        ok_named(sim_disk_content(PATH).length == length, "and the old file stays");
    }
    is_number(site_cache_read(disk, PATH, w.s, w.now), 1, "whole");
    sched_world_end(&w);
    disk_close(&disk);
}
