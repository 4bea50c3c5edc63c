/* Lessons of sites that are not there yet: added, replaced, taken once, bounded. */
#include "sched/limits/remembered.h"

#include "t/support/tap.h"

static void
test_one(void)
{
    struct remembered_set set = {0};
    char key[] = "smtp: mx:10 a";
    struct remembered r = {.key = key, .window = 7, .dead = true, .probe_ms = 9};
    snprintf(r.reason.text, sizeof r.reason.text, "refused");
    ok(remembered_add(&set, &r));
    key[0] = 'x'; /* the key is copied */
    struct remembered *got = remembered_take(&set, "smtp: mx:10 a");
    ok(got && got->window == 7 && got->dead && got->probe_ms == 9);
    is_string(got->reason.text, "refused", "all of it");
    is_string(got->key, "smtp: mx:10 a", "under its name");
    remembered_free(&got);
    ok(!got);
    ok_named(!remembered_take(&set, "smtp: mx:10 a"), "once");
    remembered_free(&got); /* nothing */
    remembered_clear(&set);
}

static void
test_replaced(void)
{
    struct remembered_set set = {0};
    struct remembered r = {.key = "a b", .window = 1};
    ok(remembered_add(&set, &r));
    r.window = 2;
    ok(remembered_add(&set, &r));
    is_number(HASH_COUNT(set.by_key), 1, "one of a name");
    struct remembered *got = remembered_take(&set, "a b");
    is_number(got->window, 2, "the later one");
    remembered_free(&got);
    remembered_clear(&set);
}

static void
test_bound(void)
{
    struct remembered_set set = {0};
    char key[32];
    struct remembered r = {.key = key};
    bool good = true;
    for (int i = 0; i < REMEMBERED_MAX; i++) {
        snprintf(key, sizeof key, "site %d", i);
        good &= remembered_add(&set, &r);
    }
    ok_named(good, "so many");
    snprintf(key, sizeof key, "one more");
    ok_named(!remembered_add(&set, &r), "and no more");
    snprintf(key, sizeof key, "site 5");
    ok_named(remembered_add(&set, &r), "but one again");
    is_number(HASH_COUNT(set.by_key), REMEMBERED_MAX, "as many");
    remembered_clear(&set);
    ok(set.by_key == NULL);
}

int
main(void)
{
    test_one();
    test_replaced();
    test_bound();
    return done();
}
