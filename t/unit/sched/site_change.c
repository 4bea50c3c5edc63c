/* Changes of sites: in order, bounded, cut names; and those that the scheduler makes. */
#include "sched/site.h"

#include "sched/sched.h"
#include "t/support/sched_world.h"
#include "t/support/tap.h"

#include <string.h>

TEST(ring)
{
    struct site_changes *all = NULL;
    struct site_change c;
    struct outcome why = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.1", "Connection refused");
    char name[600], number[20];
    ok(!site_changes_take(all, &c));
    site_changes_free(&all);
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    site_changes_add(&all, name, 0, &why);
    site_changes_add(&all, "b.test", 5000, NULL);
    ok(site_changes_take(all, &c) && c.is_dead && strlen(c.site) == SITE_CHANGE_NAME_MAX - 1);
    is_string(c.why.text, "Connection refused", "why");
    ok(site_changes_take(all, &c) && !c.is_dead && c.dead_ms == 5000);
    is_string(c.site, "b.test", "the second");
    ok(!site_changes_take(all, &c));
    for (int i = 0; i < SITE_CHANGES_MAX + 10; i++) {
        snprintf(number, sizeof(number), "%d", i);
        site_changes_add(&all, number, i, NULL);
    }
    for (int i = 0; i < SITE_CHANGES_MAX; i++) {
        snprintf(number, sizeof(number), "%d", i);
        if (!site_changes_take(all, &c) || strcmp(c.site, number) != 0)
            ok_named(false, number);
    }
    ok_named(!site_changes_take(all, &c), "in their order");
    site_changes_free(&all);
    ok(all == NULL);
}

TEST(by_scheduler)
{
    struct site_change c;
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 100);
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    ok_named(!sched_site_change(w.s, &c), "none");
    struct outcome refused = world_trouble(VERDICT_DEFERRED, "connect: refused");
    channel_end(&w, world_channel(&w, "a.example", 0), &refused);
    world_run(&w);
    ok(sched_site_change(w.s, &c) && c.is_dead);
    ok_named(strstr(c.site, "a.example") != NULL, c.site);
    is_string(c.why.text, "connect: refused", "why");
    ok_named(!sched_site_change(w.s, &c), "once");
    /* A probe that fails is no change; one that delivers is. */
    for (int i = 0; i < 20 && world_channels(&w, "a.example") == 0; i++)
        world_pass(&w, 60 * 1000);
    channel_end(&w, world_channel(&w, "a.example", 0), &refused);
    world_run(&w);
    ok_named(!sched_site_change(w.s, &c), "dead as before");
    for (int i = 0; i < 60 && world_channels(&w, "a.example") == 0; i++)
        world_pass(&w, 60 * 1000);
    struct channel *probe = world_channel(&w, "a.example", 0);
    ok(probe != NULL && channel_take(&w, probe));
    channel_send(&w, probe);
    ok(sched_site_change(w.s, &c) && !c.is_dead && c.dead_ms > 0);
    channel_end(&w, probe, NULL);
}
