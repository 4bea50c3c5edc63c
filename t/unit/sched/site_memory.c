/* Lessons of sites that are not there yet: added, replaced, taken once, bounded. */
#include "sched/site_memory.h"

#include "t/support/tap.h"

TEST(one)
{
    struct site_state_set set = {0};
    char key[] = "smtp: mx:10 a";
    struct site_state r = {.key = key, .window = 7, .dead = true, .probe_ms = 9};
    snprintf(r.reason.text, sizeof(r.reason.text), "refused");
    ok(site_state_add(&set, &r));
    key[0] = 'x'; /* the key is copied */
    struct site_state *got = site_state_take(&set, "smtp: mx:10 a");
    ok(got && got->window == 7 && got->dead && got->probe_ms == 9);
    is_string(got->reason.text, "refused", "all of it");
    is_string(got->key, "smtp: mx:10 a", "under its name");
    site_state_free(&got);
    ok(!got);
    ok_named(!site_state_take(&set, "smtp: mx:10 a"), "once");
    site_state_free(&got); /* nothing */
    site_state_clear(&set);
}

TEST(replaced)
{
    struct site_state_set set = {0};
    struct site_state r = {.key = "a b", .window = 1};
    ok(site_state_add(&set, &r));
    r.window = 2;
    ok(site_state_add(&set, &r));
    is_number(HASH_COUNT(set.by_key), 1, "one of a name");
    struct site_state *got = site_state_take(&set, "a b");
    is_number(got->window, 2, "the later one");
    site_state_free(&got);
    site_state_clear(&set);
}

TEST(bound)
{
    struct site_state_set set = {0};
    char key[32];
    struct site_state r = {.key = key};
    bool good = true;
    for (int i = 0; i < SITE_STATE_MAX; i++) {
        snprintf(key, sizeof(key), "site %d", i);
        good &= site_state_add(&set, &r);
    }
    ok_named(good, "so many");
    snprintf(key, sizeof(key), "one more");
    ok_named(!site_state_add(&set, &r), "and no more");
    snprintf(key, sizeof(key), "site 5");
    ok_named(site_state_add(&set, &r), "but one again");
    is_number(HASH_COUNT(set.by_key), SITE_STATE_MAX, "as many");
    site_state_clear(&set);
    ok(set.by_key == NULL);
}
