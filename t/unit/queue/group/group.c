/* link: t/sim/loop.c */
/* link: t/sim/redis.c */
/* queue/group/group.c in virtual time, with a Redis that says what the test wants: what is
 * asked and when, and what becomes of mail when the answer is late, odd or an error. */
#include "queue/group/group_internal.h"

#include "queue/queue_operator.h"
#include "sched/sched.h"
#include "t/sim/redis.h"
#include "t/support/manager_world.h"

#define ROUTE "* smtp://smtp.b.test?recipients=1&rate=10/s"

static struct redis *redis;
static struct group *group;
static struct group_settings settings;

static void
group_start(struct world *w, const char *servers, const char *peers)
{
    struct buffer errors;
    buffer_init(&errors, 1000);
    struct group_texts texts = {.cluster = TEXT("mail"),
                                .host = TEXT("host1"),
                                .redis = text_from(servers),
                                .peers = text_from(peers),
                                .egress = TEXT("shared"),
                                .slices = 1};
    if (!group_settings_read(&texts, &settings, &errors))
        abort();
    buffer_free(&errors);
    redis = strcmp(servers, "none") == 0 ? NULL : sim_redis_new();
    group = group_new(&(struct group_setup){.loop = w->loop,
                                            .log = w->log,
                                            .manager = w->manager,
                                            .redis = redis,
                                            .settings = &settings});
}

static void
group_end(struct world *w)
{
    group_free(&group);
    if (redis != NULL)
        sim_redis_free(&redis);
    group_settings_free(&settings);
    manager_world_end(w);
}

/* Ready, with a second host. */
static void
start_ready(struct world *w)
{
    manager_world_begin(w, ROUTE);
    w->all_good = true;
    group_start(w, "redis://a", "");
    sim_redis_ready(redis);
    sim_redis_answer(redis, REDIS_TEXT, "0 host1 0 host2 100");
}

/* The heartbeat is answered, unless it waits behind a question. */
static void
answer_beat(void)
{
    if (sim_redis_pending(redis) == 0)
        return;
    const struct sim_redis_command *c = sim_redis_command(redis, 0);
    if (strcmp(c->words[0], "2") == 0)
        sim_redis_answer(redis, REDIS_TEXT,
                         strcmp(c->words[3], "list") == 0 ? "0 host1 0 host2 100"
                                                          : "0");
}

static void
pass_ms(struct world *w, int64_t ms)
{
    for (; ms > 0; ms -= 10) {
        sim_loop_advance(w->loop, 10);
        answer_beat();
    }
}

/* The oldest question that is none of the heartbeat. */
static const struct sim_redis_command *
next_ask(struct world *w)
{
    for (int i = 0; i < 5000; i++) {
        answer_beat();
        if (sim_redis_pending(redis) > 0)
            return sim_redis_command(redis, 0);
        sim_loop_advance(w->loop, 10);
    }
    abort();
}

TEST(peers)
{
    FIXTURE(world, w, manager_world_begin, group_end, ROUTE);
    w.all_good = true;
    group_start(&w, "none", "host0=10.0.0.1 host2=10.0.0.2");
    struct group_state s = group_state(group);
    ok_named(s.bank == GROUP_BANK_NONE, "no bank");
    is_number(s.members->count, 3, "three hosts");
    world_send(&w, "a@a.test", "1@b.test 2@b.test 3@b.test 4@b.test");
    sim_loop_advance(w.loop, 10000);
    is_number(w.attempts, 4, "mail goes by our own part");
    is_number(group_state(group).fallback_sites, 1, "which is said");
    ok_named(group_forget(group, TEXT("host0")), "one is forgotten");
    is_number(group_state(group).members->count, 2, "two are left");
    char(*names)[GROUP_HOST_MAX + 1] = memory_array(1, sizeof(*names));
    struct group_settings fresh = {.name = "mail", .peers = names, .peer_count = 1};
    snprintf(names[0], sizeof(names[0]), "host9");
    group_reload(group, &fresh);
    is_number(group_state(group).members->count, 2, "a reload has other peers");
    is_string(group_state(group).members->all[1].name, "host9", "by name");
    snprintf(fresh.name, sizeof(fresh.name), "other");
    fresh.peer_count = 0;
    group_reload(group, &fresh);
    is_number(group_state(group).members->count, 2, "another group waits for a restart");
    free(names);
    ok_named(!group_forget(group, TEXT("host1")), "we are not");
}

TEST(question)
{
    FIXTURE(world, w, start_ready, group_end);
    ok_named(world_logged(&w, "host2 came"), "another host is there");
    world_send(&w, "a@a.test", "1@b.test 2@b.test 3@b.test");
    const struct sim_redis_command *c = next_ask(&w);
    is_number(c->count, 1 + 1 + 4 + 12, "a question for one site");
    is_string(c->words[0], "1", "one key");
    ok_named(strncmp(c->words[1], "ps:", 3) == 0 && strlen(c->words[1]) == 35,
             "half a digest, which names no domain");
    is_string(c->words[2], "5000000", "the period");
    is_string(c->words[4], "2", "hosts");
    is_string(c->words[5], "0", "the time is that of Redis");
    is_string(c->words[6], "100000", "ten in a second");
    is_number(w.attempts, 0, "mail waits for the answer");
    sim_loop_advance(w.loop, 100);
    is_number(sim_redis_pending(redis), 1, "no second question is under way");
    sim_redis_answer(redis, REDIS_TEXT, "30 2 2 0 4000000");
    pass_ms(&w, 1000);
    is_number(w.attempts, 3, "with the grant it goes");
    struct group_state s = group_state(group);
    ok_named(s.bank == GROUP_BANK_UP && s.asks >= 1 && s.failures == 0, "counted");
}

TEST(late)
{
    const char *why;
    FIXTURE(world, w, start_ready, group_end);
    world_send(&w, "a@a.test", "1@b.test 2@b.test");
    next_ask(&w);
    sim_loop_advance(w.loop, 200);
    is_number(sim_redis_failures(redis, &why), 0, "an answer has a quarter of a second");
    sim_loop_advance(w.loop, 60);
    is_number(sim_redis_failures(redis, &why), 1, "then the connection ends");
    is_string(why, "no answer in time", "and says why");
    sim_loop_advance(w.loop, 5000);
    is_number(w.attempts, 2, "mail goes by our own part");
    ok_named(!world_logged(&w, "bank away"), "one failure is no news");
    sim_redis_down(redis, "refused", false);
    ok_named(world_logged(&w, "bank away (refused), 1 sites at our part (1/2)"),
             "three are");
    is_number(group_state(group).fallback_sites, 1, "the site is counted");
    sim_loop_advance(w.loop, 3000);
    sim_redis_ready(redis);
    sim_redis_answer(redis, REDIS_TEXT, "0 host1 0 host2 100");
    ok_named(world_logged(&w, "bank back after 3 s"), "it is back");
    is_number(group_state(group).fallback_sites, 0, "no part of our own any more");
}

TEST(odd)
{
    static const char *const answers[] = {"",
                                          "1 0 0 0",
                                          "1 0 0 0 4000000 1",
                                          "x 0 0 0 4000000",
                                          "-1 0 0 0 4000000",
                                          "1000001 0 0 0 4000000",
                                          "1 0 0 0 99000000"};
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        const char *why;
        FIXTURE(world, w, start_ready, group_end);
        world_send(&w, "a@a.test", "1@b.test");
        next_ask(&w);
        sim_redis_answer(redis, REDIS_TEXT, answers[i]);
        is_number(sim_redis_failures(redis, &why), 1, answers[i]);
        sim_loop_advance(w.loop, 5000);
        is_number(w.attempts, 1, "mail goes nevertheless");
    }
}

TEST(errors)
{
    struct world w;
    const char *why;
    start_ready(&w);
    world_send(&w, "a@a.test", "1@b.test");
    next_ask(&w);
    sim_redis_answer(redis, REDIS_ERROR, "NOPERM this user has no permissions");
    ok_named(world_logged(&w, "bank away (grant: NOPERM this user has no permissions)"),
             "an error of a script: the bank is away");
    is_number(sim_redis_failures(redis, &why), 0, "but the connection stays");
    pass_ms(&w, 20000);
    is_number(w.attempts, 1, "mail goes by our own part");
    ok_named(!world_logged(&w, "bank back"), "a heartbeat does not bring it back");
    world_send(&w, "a@a.test", "2@b.test");
    next_ask(&w);
    sim_redis_answer(redis, REDIS_TEXT, "5 2 2 0 4000000");
    ok_named(world_logged(&w, "bank back after 3"), "an answer does");
    group_end(&w);
    start_ready(&w);
    world_send(&w, "a@a.test", "1@b.test");
    next_ask(&w);
    sim_redis_answer(redis, REDIS_ERROR, "NOPERM this user has no permissions");
    const struct sim_redis_command *c = next_ask(&w);
    is_number(c->count, 1 + 1 + 4 + 12, "without more mail it is asked for nothing");
    sim_redis_answer(redis, REDIS_ERROR, "NOPERM this user has no permissions");
    ok_named(!world_logged(&w, "bank back"), "another error is none");
    next_ask(&w);
    sim_redis_answer(redis, REDIS_TEXT, "0 0 0 0 4000000");
    ok_named(world_logged(&w, "bank back after 6"), "an answer brings it back");
    is_number(group_state(group).bank, GROUP_BANK_UP, "also in the status");
    group_end(&w);
    start_ready(&w);
    world_send(&w, "a@a.test", "1@b.test");
    next_ask(&w);
    sim_redis_answer(redis, REDIS_ERROR, "READONLY You can't write");
    is_number(sim_redis_failures(redis, &why), 1, "of a replica it does not");
    is_string(why, "grant: READONLY You can't write", "which is why");
    group_end(&w);
}

/* Heartbeats are answered, questions are not. */
TEST(deaf)
{
    const char *why;
    FIXTURE(world, w, start_ready, group_end);
    for (unsigned i = 1; i <= 3; i++) {
        ok_named(!world_logged(&w, "bank away"), "it is no news yet");
        world_send(&w, "a@a.test", i == 1 ? "1@b.test" : "2@b.test");
        next_ask(&w);
        sim_loop_advance(w.loop, 260);
        is_number(sim_redis_failures(redis, &why), i, "a question without an answer");
        sim_redis_down(redis, "no answer in time", true);
        is_number(group_state(group).bank, GROUP_BANK_AWAY, "the status has it at once");
        is_string(group_state(group).why, "no answer in time", "and why");
        sim_redis_ready(redis);
        answer_beat();
        is_string(group_state(group).why, i < 3 ? "" : "no answer in time", "until it answers");
    }
    ok_named(world_logged(&w, "bank away (no answer in time), 1 sites at our part (1/2)"),
             "three in a row: the bank is away");
    pass_ms(&w, 20000);
    ok_named(!world_logged(&w, "bank back"), "heartbeats do not bring it back");
    world_send(&w, "a@a.test", "3@b.test");
    next_ask(&w);
    sim_redis_answer(redis, REDIS_TEXT, "5 2 2 0 4000000");
    ok_named(world_logged(&w, "bank back after 3"), "an answer does");
}

/* A heartbeat, and what is sent with it. */
static size_t
next_beat(struct world *w)
{
    while (sim_redis_pending(redis) == 0)
        sim_loop_advance(w->loop, 10);
    return sim_redis_pending(redis);
}

/* While the bank is away: it hears of it later, and does not bring the host back. */
TEST(forgotten)
{
    FIXTURE(world, w, start_ready, group_end);
    sim_redis_down(redis, "refused", false);
    ok_named(group_forget(group, TEXT("Host2")), "a host is forgotten");
    is_number(group_state(group).members->count, 1, "it is gone");
    group_free(&group);
    sim_redis_free(&redis);
    group_settings_free(&settings);
    group_start(&w, "redis://a", "");
    is_number(group_state(group).members->count, 1, "a restart does not know it");
    sim_redis_ready(redis);
    const struct sim_redis_command *c = sim_redis_command(redis, 1);
    is_string(c->words[3], "bye", "the bank is told behind the first heartbeat");
    is_string(c->words[4], "host2", "its name");
    sim_redis_answer(redis, REDIS_TEXT, "0 host1 0 host2 100");
    is_number(group_state(group).members->count, 1, "whose list does not bring it back");
    sim_redis_answer(redis, REDIS_ERROR, "ERR not now");
    is_number(next_beat(&w), 2, "it is told again");
    is_string(sim_redis_command(redis, 1)->words[3], "bye", "until it knows");
    sim_redis_answer(redis, REDIS_TEXT, "0");
    sim_redis_answer(redis, REDIS_TEXT, "0");
    is_number(next_beat(&w), 1, "then no more");
    pass_ms(&w, 10000);
    is_number(group_state(group).members->count, 2, "if it is alive it comes back");
}

/* Texts of another machine go to JSON and to terminals. */
TEST(reasons)
{
    static const struct {
        enum redis_kind kind;
        const char *text, *why;
    } rows[] = {
        {REDIS_ERROR,  "ERR \033[2J \377\342\202", "grant: ERR ?[2J ???"       },
        {REDIS_NUMBER, "",                        "an odd reply to grant"    },
        {REDIS_TEXT,   "1 0 0",                   "an odd answer of the bank"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        FIXTURE(world, w, start_ready, group_end);
        world_send(&w, "a@a.test", "1@b.test");
        next_ask(&w);
        sim_redis_answer(redis, rows[i].kind, rows[i].text);
        is_string(group_state(group).why, rows[i].why, rows[i].why);
        ok_named(world_logged(&w, "bank away ("), "which is said");
    }
    char text[1000] = "ERR ";
    memset(text + 4, 'x', sizeof(text) - 5);
    FIXTURE(world, w, start_ready, group_end);
    world_send(&w, "a@a.test", "1@b.test");
    next_ask(&w);
    sim_redis_answer(redis, REDIS_ERROR, text);
    is_number((long)strlen(group_state(group).why), 207, "a long one is cut");
}

TEST(namesake)
{
    FIXTURE(world, w, manager_world_begin, group_end, ROUTE);
    group_start(&w, "redis://a", "");
    sim_redis_ready(redis);
    sim_redis_answer(redis, REDIS_TEXT, "1 host1 0");
    ok_named(!world_logged(&w, "has the name"), "a run of ours that was killed");
    sim_loop_advance(w.loop, 100);
    is_string(sim_redis_command(redis, 0)->words[3], "beat", "the next heartbeat");
    sim_redis_answer(redis, REDIS_TEXT, "1");
    ok_named(world_logged(&w, "another host of the group has the name host1"),
             "one that is there again lives");
    is_number(group_state(group).namesakes, 1, "which is counted");
}

TEST(file)
{
    FIXTURE(world, w, start_ready, group_end);
    is_number(group_state(group).members->count, 2, "two hosts");
    group_free(&group);
    is_string(sim_redis_command(redis, sim_redis_pending(redis) - 1)->words[3], "bye",
              "a stop says goodbye");
    sim_redis_free(&redis);
    group_settings_free(&settings);
    group_start(&w, "redis://a", "host3=10.0.0.3");
    is_number(group_state(group).members->count, 3,
              "the next start knows them, and the peers");
    ok_named(group_forget(group, TEXT("HOST2")), "one is forgotten");
    ok_named(world_logged(&w, "host2 forgotten"), "which is said");
}

/* The verb of the next heartbeat; questions get nothing. */
static const char *
next_verb(struct world *w)
{
    for (;;) {
        next_beat(w);
        const struct sim_redis_command *c = sim_redis_command(redis, 0);
        if (strcmp(c->words[0], "1") != 0)
            return c->words[3];
        sim_redis_answer(redis, REDIS_TEXT, "0 0 0 0 4000000");
    }
}

/* A heartbeat says that a host was not seen for a while: a list says which. */
TEST(late_host)
{
    char list[64];
    FIXTURE(world, w, start_ready, group_end);
    pass_ms(&w, 3000);
    is_number(next_beat(&w), 1, "a heartbeat");
    const struct sim_redis_command *c = sim_redis_command(redis, 0);
    is_string(c->words[3], "beat", "without the list");
    is_string(c->words[8], "3000", "the age of old hosts");
    sim_redis_answer(redis, REDIS_TEXT, "0 1");
    sim_loop_advance(w.loop, 1);
    is_string(sim_redis_command(redis, 0)->words[3], "list", "one is old: a list follows");
    sim_redis_answer(redis, REDIS_TEXT, "0 host1 0 host2 4200");
    is_number(group_members_late(&group->members), 1, "of which one is late");
    world_send(&w, "a@a.test", "1@b.test");
    is_string(next_ask(&w)->words[6], "200000", "its part of the rate is left to it");
    sim_redis_answer(redis, REDIS_TEXT, "1 2 2 0 4000000");
    for (int age_ms = 6200; group_members_lost(&group->members) == 0; age_ms += 2000) {
        is_string(next_verb(&w), "list", "each heartbeat has the list");
        snprintf(list, sizeof(list), "0 host1 0 host2 %d", age_ms);
        sim_redis_answer(redis, REDIS_TEXT, list);
    }
    is_number(group_members_late(&group->members), 0, "until it is lost");
    while (strcmp(next_verb(&w), "beat") != 0)
        sim_redis_answer(redis, REDIS_TEXT, "0 host1 0 host2 20000");
    sim_redis_answer(redis, REDIS_TEXT, "0 1");
    sim_loop_advance(w.loop, 100);
    is_number(sim_redis_pending(redis), 0, "nor when the number is the same");
}

static char found[2000];

static bool
note_sibling(void *context, const struct sibling *s)
{
    size_t *left = context;
    size_t used = strlen(found);
    snprintf(found + used, sizeof(found) - used, "%s|%s|%s|%s|%s|%d\n", s->host, s->address, s->state, s->version, s->spool, s->is_lost);
    return --*left > 0;
}

static const char *
all_siblings(size_t most)
{
    found[0] = '\0';
    group_siblings(group, note_sibling, &most);
    return found;
}

static void
describe(void *context, struct group_self *self)
{
    snprintf(self->address, sizeof(self->address), "10.0.0.1:4650");
    snprintf(self->state, sizeof(self->state), "%s", (const char *)context);
    self->waiting = 12;
}

/* Descriptions of hosts in Redis, and addresses of hosts without one. */
TEST(siblings)
{
    char state[] = "leaving";
    FIXTURE(world, w, manager_world_begin, group_end, ROUTE);
    group_start(&w, "redis://a", "host2=10.0.0.2:4650 host3=c.example:7");
    is_string(all_siblings(9), "host2|10.0.0.2:4650||||0\nhost3|c.example:7||||0\n", "without Redis");
    group_describe(group, describe, state);
    sim_redis_ready(redis);
    const struct sim_redis_command *c = sim_redis_command(redis, 0);
    ok_named(strstr(c->words[5], "\"address\":\"10.0.0.1:4650\"") != NULL && strstr(c->words[5], "\"state\":\"leaving\"") != NULL && strstr(c->words[5], "\"waiting\":12") != NULL,
             "what this host says");
    sim_redis_answer(redis, REDIS_TEXT,
                     "0 host1 0 host2 100 host4 100 host5 gone\n"
                     "host1 {\"address\":\"10.0.0.1:4650\"}\n"
                     "host2 {\"address\":\"10.0.9.9:1\",\"state\":\"running\",\"version\":\"0.2\",\"spool\":\"aa\"}\n"
                     "host4 {\"state\":\"giving\"}");
    is_string(all_siblings(9), "host2|10.0.9.9:1|running|0.2|aa|0\nhost3|c.example:7||||0\nhost4||giving|||0\n", "what the others say");
    struct group_settings fresh = {.name = "mail", .peer_count = 1};
    fresh.peers = memory_array(1, sizeof(*fresh.peers));
    fresh.addresses = memory_array(1, sizeof(*fresh.addresses));
    snprintf(fresh.peers[0], sizeof(fresh.peers[0]), "host3");
    snprintf(fresh.addresses[0], sizeof(fresh.addresses[0]), "10.0.0.3:8");
    group_reload(group, &fresh);
    group_settings_free(&fresh);
    is_string(all_siblings(9), "host2|10.0.9.9:1|running|0.2|aa|0\nhost3|10.0.0.3:8||||0\nhost4||giving|||0\n", "a reload has other addresses");
    is_string(all_siblings(1), "host2|10.0.9.9:1|running|0.2|aa|0\n", "until one is enough");
    sim_loop_advance(w.loop, 20000);
}
