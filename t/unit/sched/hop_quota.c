/* The quota of a next hop: mail over it waits, no attempt counts, and it goes on by
 * itself; with any sessions, sites, messages and clocks, no day has more. */
#include "sched/limits/quota.h"
#include "sched/route/target.h"
#include "t/support/sched_world.h"

#define MINUTE INT64_C(60000)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

static void
parse(const char *text, struct target *target)
{
    struct transport_params base;
    char problem[TARGET_PROBLEM_MAX];
    transport_params_default(&base);
    world_must(target_parse(text_from(text), 25, &base, target, problem), problem);
}

static void
start(struct world *w, const char *target)
{
    sched_world_start(w, 100, 100);
    parse(target, &w->target);
}

static unsigned
sent(const struct world *w)
{
    unsigned count = 0;
    for (unsigned i = 0; i < w->count; i++)
        for (unsigned r = 0; r < w->mails[i].count; r++)
            count += w->mails[i].to[r].fate == FATE_SENT;
    return count;
}

static unsigned
attempts(const struct world *w)
{
    unsigned count = 0;
    for (unsigned i = 0; i < w->count; i++)
        count += w->mails[i].attempts + w->mails[i].deferrals;
    return count;
}

/* All that may leave now does. */
static void
serve(struct world *w)
{
    struct channel *c;
    world_run(w);
    while ((c = world_channel(w, "", 0)) != NULL)
        channel_drain(w, c);
}

/* 2026-12-01, noon */
#define NOON (INT64_C(1796083200000) + 12 * HOUR)

/* A ramp: each day has its amount, also within any 24 hours; mail goes on when the day grows, not when the window is empty. */
TEST(ramp)
{
    struct world w;
    start(&w, "smtp://h.test?quota=4/d..64/d+in+4d+since+2026-12-01");
    w.now = NOON;
    for (int i = 0; i < 200; i++)
        world_add(&w, "a.test", 0, 0);
    serve(&w);
    is_number(sent(&w), 4, "day 0");
    struct sched_site site = world_last_site(&w);
    is_string(sched_bound_word(site.bound), "quota", "the others wait");
    is_number(site.quota, 4, "for the quota of today");
    is_number(site.bound_until_ms - w.now, 12 * HOUR, "until midnight, when it grows");
    w.now += 12 * HOUR - 1;
    serve(&w);
    is_number(sent(&w), 4, "not before");
    w.now += 1;
    serve(&w);
    is_number(sent(&w), 8, "day 1: twice as many in 24 hours, with those of yesterday");
    w.now += DAY;
    serve(&w);
    ok_named(sent(&w) >= 20 && sent(&w) <= 24, "at most its amount behind those of the day before");
    unsigned before = sent(&w);
    w.now -= 2 * DAY; /* the clock is set back, to a day with less */
    serve(&w);
    is_number(sent(&w), before, "an earlier day sends nothing more");
    for (int i = 0; i < 40; i++) {
        w.now += 6 * HOUR;
        serve(&w);
    }
    is_number(sent(&w), 200, "all of it in the end");
    sched_world_end(&w);
}

TEST(waits)
{
    struct world w;
    start(&w, "smtp://h.test?quota=5/d");
    for (int i = 0; i < 9; i++)
        world_add(&w, "a.test", 0, 0);
    serve(&w);
    is_number(sent(&w), 5, "five of nine are sent");
    struct sched_site site = world_last_site(&w);
    is_string(sched_bound_word(site.bound), "quota", "the others wait for the quota");
    is_number(site.quota, 5, "which is five");
    is_string(site.quota_period, "day", "a day");
    int64_t until = site.bound_until_ms - w.now;
    ok_named(until >= DAY && until <= 25 * HOUR, "for a day, or a 24th more");
    unsigned opens = w.opens;
    world_pass(&w, 23 * HOUR);
    is_number(w.opens, opens, "no session is opened meanwhile");
    is_number(attempts(&w), 0, "no attempt counts");
    world_pass(&w, 2 * HOUR);
    ok_named(w.opens > opens, "then it goes on by itself");
    serve(&w);
    is_number(sent(&w), 9, "all are sent");
    is_number(world_last_site(&w).quota, 0, "the quota is not used up");
    sched_world_end(&w);
}

/* A message with more recipients than are left goes in parts. */
TEST(parts)
{
    struct world w;
    start(&w, "smtp://h.test?quota=3/d,100/h");
    world_add(&w, "a.test a.test a.test a.test a.test", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    world_must(c != NULL && channel_take(&w, c), "a session takes mail");
    is_number(c->work.count, 3, "three of five recipients");
    ok_named(!sched_has_work(w.s, c->session), "no more");
    channel_send(&w, c);
    ok_named(!channel_take(&w, c), "nor behind them");
    channel_end(&w, c, NULL);
    world_pass(&w, 26 * HOUR);
    serve(&w);
    is_number(sent(&w), 5, "the others a day later");
    sched_world_end(&w);
}

/* Recipients that were not sent are given back. */
TEST(given_back)
{
    struct world w;
    start(&w, "smtp://h.test?quota=2/d&minimal_backoff=60s&maximal_backoff=60s");
    world_add(&w, "a.test a.test", 0, 0);
    world_add(&w, "b.test", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    world_must(c != NULL && channel_take(&w, c), "a session takes mail");
    is_string(sched_bound_word(world_last_site(&w).bound), "quota", "two are reserved");
    channel_answer(&w, c, VERDICT_DEFERRED, BLAME_MESSAGE);
    ok_named(sched_bound_word(world_last_site(&w).bound)[0] != 'q', "and given back");
    world_must(channel_take(&w, c), "it takes the next");
    is_number(c->work.count, 1, "of one recipient");
    channel_send(&w, c);
    channel_end(&w, c, NULL);
    world_pass(&w, 10 * MINUTE);
    serve(&w);
    is_number(sent(&w), 2, "one of the two others fits");
    sched_world_end(&w);
}

/* A next hop that does not say whether it has the mail may have sent it. */
TEST(kept_when_lost)
{
    FIXTURE(world, w, start, sched_world_end,
            "smtp://h.test?quota=2/d&minimal_backoff=60s&maximal_backoff=60s");
    world_add(&w, "a.test", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    world_must(c != NULL && channel_take(&w, c), "a session takes mail");
    struct outcome lost = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.2", "lost");
    lost.may_be_sent = true;
    channel_settle(&w, c, 0, &lost);
    c->busy = false;
    world_run(&w);
    channel_end(&w, c, &lost);
    world_add(&w, "b.test b.test", 0, 0);
    world_pass(&w, 10 * MINUTE);
    serve(&w);
    is_number(sent(&w), 1, "one of the quota is left");
}

/* All sites of the target have one quota, and so have all targets of an account. */
TEST(shared)
{
    struct world w;
    struct target first, second;
    start(&w, "smtp://h.test?quota=4/d");
    first = w.target;
    parse("smtp://h.test?quota=4/d&concurrency=3", &second);
    for (int i = 0; i < 3; i++) {
        w.target = i % 2 != 0 ? first : second;
        world_add(&w, "a.test", 0, 0);
        world_add(&w, "b.test", 0, 0);
    }
    serve(&w);
    is_number(sent(&w), 4, "two targets have one quota");
    parse("smtp://h.test?quota=5/d", &w.target);
    world_add(&w, "c.test", 0, 0);
    serve(&w);
    is_number(sent(&w), 5, "a larger one has one more");
    parse("smtp://other.test?quota=5/d", &w.target);
    world_add(&w, "c.test", 0, 0);
    serve(&w);
    is_number(sent(&w), 6, "another host has its own");
    parse("smtp://h.test", &w.target);
    world_add(&w, "c.test", 0, 0);
    serve(&w);
    is_number(sent(&w), 7, "without a quota there is none");
    sched_world_end(&w);
}

/* The use is known when nothing waits any more, and when the clock is set. */
TEST(remembered)
{
    struct world w;
    start(&w, "smtp://h.test?quota=3/d");
    for (int i = 0; i < 3; i++)
        world_add(&w, "a.test", 0, 0);
    serve(&w);
    is_number(sent(&w), 3, "three");
    world_pass(&w, 5 * HOUR);
    is_number(sched_count(w.s).sites, 0, "the site is forgotten");
    world_add(&w, "a.test", 0, 0);
    serve(&w);
    is_number(sent(&w), 3, "its quota is not");
    int64_t until = world_last_site(&w).bound_until_ms - w.now;
    w.now -= 7 * DAY;
    world_run(&w);
    ok_named(world_last_site(&w).bound_until_ms - w.now == until, "the clock is set back");
    world_pass(&w, until - MINUTE);
    serve(&w);
    is_number(sent(&w), 3, "that frees nothing");
    world_pass(&w, 2 * MINUTE);
    serve(&w);
    is_number(sent(&w), 4, "nor does it take longer");
    sched_world_end(&w);
}

TEST(reset)
{
    struct world w;
    start(&w, "smtp://h.test:25?quota=1/h");
    world_add(&w, "a.test", 0, 0);
    world_add(&w, "a.test", 0, 0);
    serve(&w);
    is_number(sent(&w), 1, "one");
    ok(!sched_quota_reset(w.s, TEXT("smtp:[other.test]:25")));
    ok(sched_quota_reset(w.s, TEXT("smtp:[h.test]:25")));
    serve(&w);
    is_number(sent(&w), 2, "after a reset the other");
    sched_world_end(&w);
}

/* With a clock that nobody sets, one that is set forward is no time that passes. */
static int64_t steady_offset_ms;

static int64_t
steady(void *context)
{
    const struct world *w = context;
    return w->now - steady_offset_ms;
}

TEST(clock_set_forward)
{
    struct world w;
    start(&w, "smtp://h.test?quota=3/d");
    steady_offset_ms = w.now - 5000; /* it has run for five seconds */
    sched_quota_clock(w.s, steady, &w);
    for (int i = 0; i < 4; i++)
        world_add(&w, "a.test", 0, 0);
    serve(&w);
    is_number(sent(&w), 3, "three");
    int64_t until = world_last_site(&w).bound_until_ms - w.now;
    for (int i = 0; i < 3; i++) {
        w.now += 2 * DAY;
        steady_offset_ms += 2 * DAY;
        serve(&w);
        is_number(sent(&w), 3, "the clock is set forward: that frees nothing");
        ok_named(llabs(world_last_site(&w).bound_until_ms - w.now - until) < 2000, "and takes as long");
        w.now -= 3 * DAY;
        steady_offset_ms -= 3 * DAY;
        serve(&w);
        is_number(sent(&w), 3, "and back");
        ok_named(llabs(world_last_site(&w).bound_until_ms - w.now - until) < 2000, "as long again");
    }
    world_pass(&w, until - MINUTE);
    serve(&w);
    is_number(sent(&w), 3, "not before");
    world_pass(&w, 2 * MINUTE);
    serve(&w);
    is_number(sent(&w), 4, "then it goes");
    sched_world_end(&w);
}

/* A ramp and a clock that is set by any time, also around midnight: whatever leaves is within the amount of the day in which it
 * does, by a clock that nobody sets. */
TEST(ramp_with_any_clock)
{
    enum { MOST = 2000 };
    static int64_t times[MOST];
    struct world w;
    struct quota q;
    unsigned known = 0, over = 0, days = 0;
    uint64_t random = 7;
    start(&w, "smtp://h.test?quota=3/d..300/d+in+9d+since+2026-12-01");
    ok(quota_parse_ramp(TEXT("3/d..300/d in 9d since 2026-12-01"), &q));
    w.now = NOON;
    w.may_be_early = true;
    steady_offset_ms = w.now - 5000;
    sched_quota_clock(w.s, steady, &w);
    for (int i = 0; i < MOST; i++)
        world_add(&w, "a.test", 0, 0);
    for (int i = 0; i < 1500 && known < MOST; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        static const int64_t set[] = {-700, -1500, 900, -DAY, DAY, -3 * HOUR, 2 * DAY, -2 * DAY};
        unsigned kind = (unsigned)(random >> 60);
        int64_t by = kind < 8 && i % 3 == 0 ? set[kind] : 0, passes = (int64_t)(random >> 33) % (kind < 12 ? 2 * HOUR : 20 * HOUR);
        if (kind == 9) { /* to midnight, or a moment around it */
            passes = DAY - w.now % DAY + (int64_t)(random >> 50) % 3 - 1;
        }
        w.now += passes + by;
        steady_offset_ms += by;
        serve(&w);
        unsigned within = 0, now = sent(&w);
        for (unsigned n = known; n < now && n < MOST; n++)
            times[n] = steady(&w);
        for (unsigned n = 0; n < now; n++)
            within += times[n] > steady(&w) - DAY;
        over += now > known && within > quota_on(&q, w.now).amounts[QUOTA_DAY];
        days += now > known;
        known = now;
    }
    is_number(over, 0, "no day has more");
    ok_named(known == MOST && days > 15, "and all of it leaves, on many days");
    sched_world_end(&w);
}

/* After a reload what waits in memory has the new quota. */
TEST(reload)
{
    struct world w;
    start(&w, "smtp://[h.test]:25?quota=2/d");
    for (int i = 0; i < 5; i++)
        world_add(&w, "a.test", 0, 0);
    serve(&w);
    is_number(sent(&w), 2, "two");
    static const char *const relays[] = {"smtp://[h.test]:25?quota=2/d", "smtp://[h.test]:25?quota=3/d",
                                         "smtp://[other.test]:25?quota=9/d", "smtp://[h.test]:25"};
    static const unsigned want[] = {2, 3, 3, 5};
    struct route_table *was = NULL;
    for (int i = 0; i < 4; i++) {
        struct buffer errors;
        char routes[100];
        buffer_init(&errors, 1000);
        snprintf(routes, sizeof(routes), "* %s", relays[i]);
        struct route_settings settings = {.routes = text_from(routes)};
        transport_params_default(&settings.base);
        struct route_table *table = route_new(&settings, &errors);
        world_must(table != NULL, "routes");
        sched_change(w.s, &(struct sched_settings){.active_limit = 100, .session_limit = 100});
        sched_rerouted(w.s, was, table);
        serve(&w);
        is_number(sent(&w), want[i], relays[i]);
        route_free(&was);
        was = table;
        buffer_free(&errors);
    }
    route_free(&was);
    sched_world_end(&w);
}

struct kept {
    char key[100];
    uint32_t used, quota;
    int64_t now;
};

static void
keep(void *context, const struct sched_quota *quota)
{
    struct kept *kept = context;
    snprintf(kept->key, sizeof(kept->key), "%s", quota->key);
    kept->quota = quota->quota != NULL ? quota->quota->amounts[QUOTA_DAY] : 0;
    kept->used = quota_used(quota->use, QUOTA_DAY, kept->now);
}

TEST(restart)
{
    struct world w;
    struct kept kept = {.used = 99};
    start(&w, "smtp://h.test:25?quota=3/d");
    uint32_t counts[QUOTA_SLOTS] = {1, 1};
    struct quota_use *use = sched_quota_recall(w.s, TEXT("smtp:[h.test]:25"));
    quota_restore(use, QUOTA_DAY, w.now, counts, w.now);
    for (int i = 0; i < 4; i++)
        world_add(&w, "a.test", 0, 0);
    serve(&w);
    is_number(sent(&w), 1, "what an earlier process has sent counts");
    kept.now = w.now - sched_quota_ahead_ms(w.s);
    sched_quotas(w.s, keep, &kept);
    is_string(kept.key, "smtp:[h.test]:25", "the key");
    is_number(kept.used, 3, "three are used");
    is_number(kept.quota, 3, "of three");
    sched_world_end(&w);
}

/* Sessions of many sites, some mail refused, some sent, in any order. */
TEST(random)
{
    struct world w;
    uint64_t random = 88172645463325252u;
    int64_t *when = calloc(20000, sizeof(*when));
    size_t count = 0;
    start(&w, "smtp://h.test?quota=40/h,200/d&minimal_backoff=60s&maximal_backoff=300s");
    for (int step = 0; step < 6000 && count < 20000 - 8; step++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if (random % 3 == 0)
            world_add(&w, random % 2 ? "a.test b.test a.test" : "c.test", 0, 0);
        world_pass(&w, (int64_t)(random >> 20) % (4 * MINUTE));
        struct channel *c = world_channel(&w, "", 0);
        if (c == NULL || !channel_take(&w, c)) {
            if (c != NULL)
                channel_end(&w, c, NULL);
            continue;
        }
        bool good = (random >> 40) % 4 != 0;
        for (size_t i = 0; good && i < c->work.count; i++)
            when[count++] = w.now;
        channel_answer(&w, c, good ? VERDICT_DELIVERED : VERDICT_DEFERRED,
                       good ? BLAME_NONE : BLAME_MESSAGE);
    }
    size_t hour = 0, day = 0, h = 0, d = 0;
    for (size_t i = 0; i < count; i++) {
        while (when[i] - when[h] >= HOUR)
            h++;
        while (when[i] - when[d] >= DAY)
            d++;
        hour = i + 1 - h > hour ? i + 1 - h : hour;
        day = i + 1 - d > day ? i + 1 - d : day;
    }
    ok_named(count > 500, "much is sent");
    ok_named(hour <= 40 && hour > 20, "no hour has more than 40");
    is_number(day, 200, "no day more than 200, and some have all of them");
    struct channel *c;
    while ((c = world_channel(&w, "", 0)) != NULL)
        channel_end(&w, c, NULL);
    free(when);
    sched_world_end(&w);
}
