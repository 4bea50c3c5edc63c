/* queue/group/group_suppression.c in virtual time, with a Redis that says what the test wants: what is told, what is heard, and
 * answers that are odd, late or lost. */
/* link: t/sim/loop.c */
/* link: t/sim/redis.c */
#include "queue/group/group_suppression.h"

#include "queue/suppression/suppression_record.h"
#include "t/sim/redis.h"
#include "t/support/manager_world.h"

struct fixture {
    struct world w;
    struct redis *redis;
    struct group_suppression *g;
};

static void
fixture_begin(struct fixture *f)
{
    manager_world_begin(&f->w, "* smtp://smtp.b.test");
    struct manager_settings settings = f->w.settings;
    settings.suppression = (struct suppression_settings){.is_on = true, .limit = 1000};
    manager_reload(f->w.manager, &settings, f->w.routes);
    f->redis = sim_redis_new();
    f->g = group_suppression_new(f->w.loop, f->w.log, f->w.manager, f->redis, "mail");
    sim_redis_ready(f->redis);
}

static void
fixture_end(struct fixture *f)
{
    group_suppression_free(&f->g);
    sim_redis_free(&f->redis);
    manager_world_end(&f->w);
}

static void
add(struct fixture *f, const char *address)
{
    struct suppression_entry e = {.address = text_from(address), .at_s = loop_now_ms(f->w.loop) / 1000, .class = SUPPRESSION_MANUAL};
    ok(suppression_add(manager_suppression(f->w.manager), &e) == NULL);
}

static bool
knows(struct fixture *f, const char *address)
{
    struct outcome refusal;
    return suppression_refuses(manager_suppression(f->w.manager), TEXT("a@a.test"), text_from(address), &refusal);
}

/* "POSITION NOW", and the address as another host has told of it. */
static void
answer(struct fixture *f, const char *position, const char *address, int64_t age_ms)
{
    char text[1000];
    struct buffer line;
    struct suppression_entry e = {.address = text_from(address), .at_s = 17, .class = SUPPRESSION_HARD, .strikes = 1};
    buffer_init(&line, sizeof(text));
    if (!suppression_record_write(&e, &line))
        abort();
    if (address[0] == '\0')
        snprintf(text, sizeof(text), "%s 5000000", position);
    else
        snprintf(text, sizeof(text), "%s 5000000\n%d %.*s", position, (int)(5000000 - age_ms), (int)line.length - 1, line.at);
    sim_redis_answer(f->redis, REDIS_TEXT, text);
    buffer_free(&line);
}

static unsigned
failures(const struct fixture *f)
{
    const char *why;
    return sim_redis_failures(f->redis, &why);
}

static const struct sim_redis_command *
question(struct fixture *f)
{
    if (sim_redis_pending(f->redis) == 0)
        group_suppression_beat(f->g);
    return sim_redis_command(f->redis, 0);
}

TEST(tells_and_hears)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end);
    add(&f, "old@b.test");
    is_number(sim_redis_pending(f.redis), 1, "the first question");
    is_number(question(&f)->count, 5, "tells nothing before all is heard");
    is_string(question(&f)->words[1], "pd:mail", "the key");
    is_string(question(&f)->words[2], "0", "from the beginning");
    is_string(question(&f)->words[3], "2000", "that many stay");
    answer(&f, "7-0", "x@b.test", 60000);
    ok_named(knows(&f, "x@b.test"), "another host's is known");
    is_string(question(&f)->words[2], "7-0", "it goes on immediately");
    answer(&f, "7-0", "", 0);
    is_number(question(&f)->count, 7, "then it tells of one");
    ok_named(strtoull(question(&f)->words[5], NULL, 10) < 1000, "by its age");
    answer(&f, "8-0", "old@b.test", 0);
    answer(&f, "8-0", "", 0);
    is_number(question(&f)->count, 7, "until it reads itself what it has told: this was a bounce");
    sim_redis_answer(f.redis, REDIS_TEXT, "lost");
    is_string(question(&f)->words[2], "0", "a loss: all is read again");
    answer(&f, "0", "", 0);
    is_number(question(&f)->count, 9, "and told again");
}

TEST(odd_answers)
{
    static const char *const odd[] = {"", "7-0", "7 5", "x-1 5", "7-0 x", "-1 5", "99999999999999999999999999-1 5"};
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        FIXTURE(fixture, f, fixture_begin, fixture_end);
        sim_redis_answer(f.redis, REDIS_TEXT, odd[i]);
        is_number(failures(&f), 1, odd[i]);
    }
}

TEST(damaged_lines)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end);
    sim_redis_answer(f.redis, REDIS_TEXT, "7-0 5000\n\n5000\nx y\n5000 00000000 17 hard 1 * x@b.test \n5000 \n");
    is_number(failures(&f), 0, "are passed over");
    is_number(suppression_count(manager_suppression(f.w.manager)).entries, 0, "they say nothing");
}

TEST(errors)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end);
    for (int i = 0; i < 3; i++) {
        sim_redis_answer(f.redis, REDIS_ERROR, "NOPERM this user has no permissions");
        is_number(sim_redis_pending(f.redis), 0, "it waits for the next beat");
        (void)question(&f);
    }
    ok_named(world_logged(&f.w, "suppressed addresses are not shared: "), "an error is logged");
    sim_redis_answer(f.redis, REDIS_ERROR, "READONLY replica");
    is_number(failures(&f), 1, "a replica is left");
}

TEST(late)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end);
    group_suppression_beat(f.g);
    is_number(sim_redis_pending(f.redis), 1, "one question at a time");
    sim_loop_advance(f.w.loop, REDIS_ANSWER_MS + 1);
    is_number(failures(&f), 1, "no answer in time");
}

TEST(reload)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end);
    struct manager_settings settings = f.w.settings;
    manager_reload(f.w.manager, &settings, f.w.routes);
    answer(&f, "7-0", "x@b.test", 0);
    group_suppression_beat(f.g);
    is_number(sim_redis_pending(f.redis), 0, "without a list nothing is asked");
    settings.suppression = (struct suppression_settings){.is_on = true, .limit = 1000};
    manager_reload(f.w.manager, &settings, f.w.routes);
    is_string(question(&f)->words[2], "0", "a new list begins anew");
}

/* As when it was told in vain: the clock was far ahead, or the entry is one that nobody learns. */
TEST(told_in_vain)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end);
    add(&f, "one@b.test");
    answer(&f, "7-0", "", 0);
    is_number(question(&f)->count, 7, "it is told");
    answer(&f, "8-0", "x@b.test", 0);
    is_number(question(&f)->count, 5, "the rest is read");
    answer(&f, "8-0", "", 0);
    is_number(sim_redis_pending(f.redis), 0, "and not told again at once");
    is_number(question(&f)->count, 7, "but at the next beat");
}

/* A host with a smaller limit must not cut off what the others have told. */
TEST(unequal_limits)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end);
    group_suppression_compare(f.g, "relay2", 500);
    answer(&f, "7-0", "", 0);
    is_string(question(&f)->words[3], "2000", "a smaller one of another changes nothing");
    answer(&f, "7-0", "", 0);
    for (int i = 0; i < 3; i++)
        group_suppression_compare(f.g, "relay2", 5000);
    is_string(question(&f)->words[3], "10000", "a larger one keeps more");
    answer(&f, "7-0", "", 0);
    is_number(world_log_count(&f.w, "suppress_limit is 1000 here, and 5000 at relay2: "), 1, "the log says it once");
    group_suppression_compare(f.g, "relay2", INT64_MAX);
    is_string(question(&f)->words[3], "20000000", "one that is none is cut");
    answer(&f, "7-0", "", 0);
    group_suppression_compare(f.g, "relay1", 1000);
    is_string(question(&f)->words[3], "2000", "until that host has gone");
}
