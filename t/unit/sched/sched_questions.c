/* The scheduler's answers about messages and sites, from the deciding functions. */
#include "sched/sched_internal.h"
#include "t/support/sched_world.h"

struct id_set {
    unsigned count;
    struct sched_wait wait; /* the last */
    struct sched_site site;
    char reason[OUTCOME_TEXT_MAX];
};

static void
keep_site(void *context, const struct sched_site *site)
{
    struct id_set *seen = context;
    seen->count++;
    seen->site = *site;
    snprintf(seen->reason, sizeof(seen->reason), "%s",
             site->reason ? site->reason->text : "");
}

static void
keep_wait(void *context, const struct sched_wait *wait)
{
    struct id_set *seen = context;
    keep_site(seen, wait->site);
    seen->wait = *wait;
}

static struct id_set
explain(struct world *w, unsigned mail, bool known)
{
    struct id_set seen = {0};
    ok_named(sched_explain(w->s, w->mails[mail].id, keep_wait, &seen) == known,
             known ? "it is known" : "it is not known");
    return seen;
}

static struct id_set
look(struct world *w, const char *domain)
{
    struct id_set seen = {0};
    sched_find_site(w->s, &w->target, text_from(domain), &(size_t){SCHED_BACKLOG_CHECKED}, keep_site, &seen);
    return seen;
}

static struct sched_state
state_of(struct world *w, unsigned mail)
{
    return sched_find(w->s, w->mails[mail].id);
}

static size_t
crowd_of(const struct world *w, unsigned mail)
{
    return sched_crowd(w->s, w->mails[mail].id);
}

static void
is_bound(const struct id_set *seen, enum sched_bound bound)
{
    is_string(sched_bound_word(seen->site.bound), sched_bound_word(bound), "it binds");
}

/* A window of 1: one is delivered, two wait for it. */
TEST(active)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 100);
    w.target.transport.initial_concurrency = w.target.transport.concurrency_limit = 1;
    unsigned first = world_add(&w, "a.test", 0, 0);
    world_run(&w);
    struct id_set seen = explain(&w, first, true);
    is_number(seen.wait.waiting, 1, "it waits");
    is_number(seen.site.greeting, 1, "for a session that greets");
    is_number(seen.site.sessions, 1, "the only one");
    struct channel *c = world_channel(&w, "a.test", 0);
    ok(channel_take(&w, c));
    unsigned second = world_add(&w, "a.test a.test", 0, 0);
    world_pass(&w, 3000);
    seen = explain(&w, first, true);
    is_number(seen.wait.taken, 1, "it is carried");
    is_number(seen.wait.waiting, 0, "and waits no more");
    is_number(seen.site.greeting, 0, "the session has greeted");
    is_number(seen.site.busy, 1, "and carries it");
    ok_named(sched_session_is_at(c->session, &seen.site), "it is of that site");
    struct sched_site other = {.key = "another"};
    ok_named(!sched_session_is_at(c->session, &other), "and of no other");
    is_string(sched_session_site(c->session), seen.site.key, "by its name");
    seen = explain(&w, second, true);
    is_number(seen.count, 1, "one next hop");
    is_number(seen.wait.waiting, 2, "two recipients wait");
    is_bound(&seen, SCHED_BOUND_WINDOW);
    is_number((long)seen.site.waits_s, 3, "since 3 s");
    is_number(seen.site.limit, 1, "the limit of the window");
    is_string(seen.wait.destination, "smtp:a.test", "the next hop");
    is_string(seen.site.members[0], "a.test", "who is there");
    ok(seen.site.members[1] == NULL);
    ok(seen.wait.expires_ms == w.mails[second].birth + w.target.transport.lifetime_ms);
    ok(seen.site.transport->concurrency_limit == 1);
    channel_send(&w, c);
    channel_drain(&w, c);
    seen = explain(&w, first, false);
    is_number(seen.count, 0, "nothing is told of what is over");
}

TEST(expiry)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 100);
    w.target.transport.bounce_lifetime_ms = 1000 * 1000;
    unsigned mail = world_add(&w, "a.test", 0, 0);
    w.mails[mail].null_sender = true;
    world_run(&w);
    ok(explain(&w, mail, true).wait.expires_ms == w.mails[mail].birth + 1000 * 1000);
    channel_drain(&w, world_channel(&w, "a.test", 0));
}

TEST(dead)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 100);
    w.target.transport.adaptive = 1;
    is_number(look(&w, "a.test").count, 0, "nothing is known yet");
    unsigned mail = world_add(&w, "a.test", 0, 0);
    world_run(&w);
    ok(!state_of(&w, mail).backlogged);
    int64_t died = w.now;
    ok(look(&w, "a.test").site.window > 0);
    channel_refuse(&w, world_channel(&w, "a.test", 0));
    struct id_set seen = look(&w, "A.TEST");
    is_number(seen.site.window, 0, "a dead site has no window");
    is_number(seen.count, 1, "its site is known");
    is_bound(&seen, SCHED_BOUND_DEAD);
    ok(seen.site.dead_since_ms == died && seen.site.dead_until_ms > died);
    ok(seen.site.bound_until_ms == seen.site.dead_until_ms);
    ok(!seen.site.probing);
    is_number(seen.site.failures, 1, "one connection failed");
    is_number((long)seen.site.backlogged, 1, "one message is backlogged");
    is_string(seen.reason, "connection refused", "why");
    struct sched_state state = state_of(&w, mail);
    is_number(state.place, SCHED_DEFERRED, "it is deferred");
    ok(state.backlogged && !state.excess && state.due_ms > w.now);
    is_number(explain(&w, mail, true).count, 0, "nothing is told of it in memory");
    world_pass(&w, seen.site.dead_until_ms - w.now);
    seen = look(&w, "a.test");
    ok(seen.site.probing && seen.site.dead_until_ms == 0);
    is_bound(&seen, SCHED_BOUND_PROBE);
    ok(seen.site.dead_since_ms == died);
    w.mails[mail].due = w.now; /* backlogged mail may come early */
    struct channel *c = world_channel(&w, "a.test", 0);
    ok(!channel_take(&w, c)); /* greeted: it is woken, and loaded */
    channel_drain(&w, c);
    seen = look(&w, "a.test");
    ok(!seen.site.probing && seen.site.dead_since_ms == 0);
    is_number(seen.site.failures, 0, "it works");
}

TEST(ahead)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 2, 100);
    unsigned mails[8];
    for (int i = 0; i < 6; i++)
        mails[i] = world_add(&w, "a.test", 0, 0);
    world_run(&w);
    mails[6] = world_add(&w, "a.test", 0, 1);
    mails[7] = world_add(&w, "a.test", 60000, 1);
    struct sched_counts counts = sched_count(w.s);
    is_number((long)counts.active, 2, "the active set is full");
    is_number((long)counts.active_limit, 2, "of so many");
    is_number((long)counts.session_limit, 100, "and sessions");
    is_number((long)counts.incoming, 4, "the others are not in it");
    is_number((long)sched_ahead(w.s, w.mails[mails[2]].id), 0, "the next one");
    is_number((long)sched_ahead(w.s, w.mails[mails[5]].id), 3, "the last one");
    is_number((long)sched_ahead(w.s, w.mails[mails[6]].id), 0, "deferred ones apart");
    is_number((long)sched_ahead(w.s, w.mails[mails[7]].id), 1, "due is before not due");
    is_number((long)sched_ahead(w.s, w.mails[mails[0]].id), 0, "an active one");
    is_number((long)sched_ahead(w.s, (struct id){1, 1}), 0, "an unknown one");
    for (struct channel *c; (c = world_channel(&w, "", 0));)
        channel_drain(&w, c);
}

/* Two domains with the same servers. */
TEST(shared)
{
    const char *domains[] = {"a.test", "b.test", "c.test",
                             "d.test", "e.test", "f.test"};
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 100);
    w.target.transport.initial_concurrency = 10;
    for (int i = 0; i < 6; i++) {
        world_add(&w, domains[i], 0, 0);
        world_run(&w);
        struct channel *c = world_channel(&w, domains[i], 0);
        ok(sched_session_found(w.s, c->session, TEXT("mx:one.test")));
        world_run(&w);
    }
    struct id_set seen = look(&w, "f.test"), other = look(&w, "a.test");
    is_string(seen.site.key, "mx:one.test", "one site");
    is_string(other.site.key, "mx:one.test", "of both");
    is_number(seen.site.destinations, 6, "six share it");
    for (int i = 0; i < SCHED_MEMBERS_MAX; i++)
        is_string(seen.site.members[i], domains[i], "by name");
    for (struct channel *c; (c = world_channel(&w, "", 0));)
        channel_drain(&w, c);
}

/* A deferred recipient beside one that is carried. */
TEST(deferred)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 100);
    w.target.transport.recipient_limit = 1;
    w.target.transport.initial_concurrency = w.target.transport.concurrency_limit = 1;
    unsigned mail = world_add(&w, "a.test a.test a.test", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "a.test", 0);
    ok(channel_take(&w, c));
    channel_answer(&w, c, VERDICT_DEFERRED, BLAME_MESSAGE);
    ok(channel_take(&w, c));
    struct id_set seen = explain(&w, mail, true);
    is_number(seen.wait.deferred, 1, "one is deferred");
    is_number(seen.wait.taken, 1, "one is carried");
    is_number(seen.wait.waiting, 1, "one waits");
    channel_send(&w, c);
    channel_drain(&w, c);
}

/* How many wait with a message, if it can leave. */
TEST(crowd)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 3, 100);
    w.target.transport.initial_concurrency = w.target.transport.concurrency_limit = 1;
    w.target.transport.recipient_limit = 1;
    unsigned first = world_add(&w, "a.test a.test", 0, 0);
    unsigned both = world_add(&w, "b.test a.test", 0, 0);
    unsigned other = world_add(&w, "b.test", 0, 0);
    unsigned disk = world_add(&w, "a.test", 0, 0);
    unsigned later = world_add(&w, "a.test", 3600 * 1000, 2);
    world_run(&w);
    is_number(crowd_of(&w, first), 3, "transactions of all messages");
    is_number(crowd_of(&w, both), 3, "the more crowded site");
    is_number(crowd_of(&w, other), 2, "the other site");
    is_number(crowd_of(&w, disk), 1, "new mail on disk");
    is_number(crowd_of(&w, later), 0, "none with what waits for its time");
    struct channel *c = world_channel(&w, "b.test", 0);
    ok(channel_take(&w, c));
    is_number(crowd_of(&w, other), 1, "what a session has does not wait");
    channel_refuse(&w, world_channel(&w, "a.test", 0));
    is_number(crowd_of(&w, first), 0, "nothing waits for a dead site");
    channel_send(&w, c);
    channel_drain(&w, c);
    is_number(sched_crowd(w.s, (struct id){.time_ms = 1}), 0, "nor what is unknown");
}

/* Each client that waits asks every few milliseconds, with up to 50,000 domains. */
TEST(crowd_of_many)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 100);
    w.target.transport.initial_concurrency = w.target.transport.concurrency_limit = 1;
    for (int i = 0; i < 10; i++)
        world_add(&w, "z.test", 0, 0);
    unsigned fourth = world_add(&w, "a.test b.test c.test z.test", 0, 0);
    unsigned fifth = world_add(&w, "a.test b.test c.test d.test z.test", 0, 0);
    world_run(&w);
    is_number(crowd_of(&w, fourth), 12, "four domains are examined");
    is_number(crowd_of(&w, fifth), 2, "and no more");
    while (world_channel(&w, "", 0))
        channel_drain(&w, world_channel(&w, "", 0));
}

/* With a rate more sessions would not help. */
TEST(crowd_rate)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 100);
    w.target.transport.rate_delay_ms = 60 * 1000;
    unsigned first = world_add(&w, "a.test", 0, 0), second = world_add(&w, "a.test", 0, 0);
    unsigned third = world_add(&w, "a.test", 0, 0);
    world_run(&w);
    is_number(crowd_of(&w, third), 3, "before the first one leaves");
    struct channel *c = world_channel(&w, "a.test", 0);
    ok(channel_take(&w, c));
    channel_send(&w, c);
    ok_named(crowd_of(&w, second) == 0 && crowd_of(&w, third) == 0 &&
                 crowd_of(&w, first) == 0,
             "afterwards they wait for time");
}

static void
glance_add(void *context, const struct sched_glance *site)
{
    *(size_t *)context += site->backlogged;
}

static long
glance(struct world *w)
{
    size_t sum = 0;
    sched_glance(w->s, glance_add, &sum);
    return (long)sum;
}

/* A message that an operator removes is counted no more: the site may be dead for
 * days. */
TEST(backlogged_removed)
{
    struct outcome no = world_trouble(VERDICT_DEFERRED, "no route");
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 100);
    for (unsigned i = 0; i < 30; i++)
        world_add(&w, "a.example", 0, 0);
    world_run(&w);
    for (int i = 0; i < 1000 && !world_site(&w, "smtp:a.example").site.dead_since_ms; i++) {
        while (world_channel(&w, "", 0))
            channel_end(&w, world_channel(&w, "", 0), &no);
        world_run(&w);
    }
    world_run(&w);
    is_number(world_site(&w, "smtp:a.example").site.backlogged, 30, "mail of a dead site");
    for (unsigned i = 0; i < 30; i++)
        if (i % 10 != 5) {
            ok(sched_forget(w.s, w.mails[i].id));
            w.mails[i].gone = true;
        }
    is_number(world_site(&w, "smtp:a.example").site.backlogged, 3, "what is left of it");
    is_number(glance(&w), 3, "also in sums");
    for (unsigned i = 5; i < 30; i += 10) {
        ok(sched_forget(w.s, w.mails[i].id));
        w.mails[i].gone = true;
    }
    is_number(glance(&w), 0, "nothing is left");
    is_number(world_site(&w, "smtp:a.example").site.backlogged, 0, "nothing at all");
}

static void
visit_add(void *context, const struct sched_site *site)
{
    *(size_t *)context += site->backlogged;
}

enum { MANY_SITES = 12, MANY_MESSAGES = 1000 };

/* Many sites that are dead, whose mail is removed afterwards. */
static void
begin_removed(struct world *w)
{
    char domain[20];
    sched_world_start(w, MANY_SITES * MANY_MESSAGES, 100);
    for (int i = 0; i < MANY_SITES; i++) {
        snprintf(domain, sizeof(domain), "a%d.example", i);
        for (int j = 0; j < MANY_MESSAGES; j++)
            world_add(w, domain, 0, 0);
    }
    world_run(w);
    while (world_channel(w, "", 0))
        channel_refuse(w, world_channel(w, "", 0));
    is_number(glance(w), MANY_SITES * MANY_MESSAGES, "all are backlogged");
    for (unsigned i = 0; i < w->count; i++)
        if (sched_forget(w->s, w->mails[i].id))
            w->mails[i].gone = true;
}

/* For all sites together: a step may show 500 of them. */
TEST(removed_in_steps)
{
    FIXTURE(world, w, begin_removed, sched_world_end);
    size_t before = MANY_SITES * MANY_MESSAGES, least = before, sum = 0, passed = 0;
    for (int round = 0; round < MANY_SITES; round++) {
        struct sched_walk *walk = sched_walk_begin(w.s);
        sum = 0;
        ok(!sched_walk_step(walk, MANY_SITES + 1, visit_add, &sum));
        sched_walk_end(&walk);
        least = before - sum < least ? before - sum : least;
        ok_named(before - sum <= 1000, "so many ids are looked up in a step");
        before = sum;
    }
    is_number((long)least, 1000, "in each");
    is_number((long)sum, 0, "and at last all");
    struct sched_walk *walk = sched_walk_begin(w.s);
    ok(sched_walk_pass(walk, 5, &passed) && passed == 5);
    ok(!sched_walk_pass(walk, 100, &passed) && passed == MANY_SITES);
    sched_walk_end(&walk);
}

struct look_sum {
    const struct world *w;
    size_t sum;
};

static void
glance_and_look(void *context, const struct sched_glance *site)
{
    struct look_sum *l = context;
    sched_look(l->w->s, site->site, visit_add, &l->sum);
}

TEST(removed_looked_at)
{
    FIXTURE(world, w, begin_removed, sched_world_end);
    struct look_sum first = {.w = &w}, second = {.w = &w};
    sched_glance(w.s, glance_and_look, &first);
    is_number((long)first.sum, MANY_SITES * MANY_MESSAGES - 10000,
              "what is shown is counted with all others");
    sched_glance(w.s, glance_and_look, &second);
    is_number((long)second.sum, 0, "the rest later");
}

static struct destination *
destination_of(struct world *w, const char *key)
{
    struct destination *d;
    HASH_FIND_STR(w->s->destinations.by_key, key, d);
    world_must(d != NULL, "it is known");
    return d;
}

enum { HUGE_BACKLOG = 25000 };

/* One dead site with more mail than a question may look up; one message in a hundred is
 * left, among them the oldest. */
static void
begin_huge(struct world *w)
{
    sched_world_start(w, HUGE_BACKLOG, 100);
    for (int i = 0; i < HUGE_BACKLOG; i++)
        world_add(w, "a.example", 0, 0);
    world_run(w);
    while (world_channel(w, "", 0))
        channel_refuse(w, world_channel(w, "", 0));
    is_number(glance(w), HUGE_BACKLOG, "all are backlogged");
    for (unsigned i = 0; i < w->count; i++)
        if (i % 100 != 0 && sched_forget(w->s, w->mails[i].id))
            w->mails[i].gone = true;
}

/* Questions that are repeated come to the end of it. */
TEST(removed_of_many)
{
    FIXTURE(world, w, begin_huge, sched_world_end);
    long sum = HUGE_BACKLOG;
    for (int i = 0; i < HUGE_BACKLOG / 9000; i++) {
        long now = glance(&w);
        ok_named(now < sum && sum - now <= 10000, "a part is looked up");
        sum = now;
    }
    is_number(glance(&w), HUGE_BACKLOG / 100, "at last all");
    ok(sched_forget(w.s, w.mails[100].id));
    w.mails[100].gone = true;
    is_number(glance(&w) > HUGE_BACKLOG / 100, 0, "never more again");
    is_number((long)look(&w, "a.example").site.backlogged, HUGE_BACKLOG / 100 - 1, "also for a message that waits");
}

/* And a sweep does without a question. */
TEST(removed_swept)
{
    FIXTURE(world, w, begin_huge, sched_world_end);
    const struct site *site = destination_of(&w, "smtp:a.example")->site;
    ok(!sched_backlog_is_swept(w.s));
    size_t before = backlog_count(site), steps = 0;
    bool goes_on = true;
    while (goes_on && steps < HUGE_BACKLOG) {
        goes_on = sched_backlog_sweep(w.s);
        ok_named(before - backlog_count(site) <= SCHED_BACKLOG_CHECKED, "a step");
        before = backlog_count(site);
        steps++;
    }
    is_number((long)before, HUGE_BACKLOG / 100, "all are swept");
    ok(steps > HUGE_BACKLOG / SCHED_BACKLOG_CHECKED && sched_backlog_is_swept(w.s));
    ok_named(sched_forget(w.s, w.mails[200].id) && !sched_backlog_is_swept(w.s), "one more");
    w.mails[200].gone = true;
    ok(!sched_backlog_sweep(w.s) && sched_backlog_is_swept(w.s));
    is_number((long)backlog_count(site), HUGE_BACKLOG / 100 - 1, "in one step");
    ok(sched_forget(w.s, w.mails[300].id) && sched_forget(w.s, w.mails[400].id));
    w.mails[300].gone = w.mails[400].gone = true;
}

/* Messages of two dead sites. */
static void
begin_two_sites(struct world *w, int first, int second)
{
    sched_world_start(w, 100, 100);
    for (int i = 0; i < first + second; i++)
        world_add(w, i < first ? "a.example" : "b.example", 0, 0);
    world_run(w);
    while (world_channel(w, "", 0))
        channel_refuse(w, world_channel(w, "", 0));
    is_number(glance(w), first + second, "all are backlogged");
}

/* The backlog moves to a site that was checked since. */
TEST(removed_then_moved)
{
    FIXTURE(world, w, begin_two_sites, sched_world_end, 5, 1);
    for (int i = 0; i < 3; i++) {
        ok(sched_forget(w.s, w.mails[i].id));
        w.mails[i].gone = true;
    }
    struct destination *a = destination_of(&w, "smtp:a.example");
    struct site *b = destination_of(&w, "smtp:b.example")->site;
    ok_named(a->site->checked != w.s->removed && b->checked != w.s->removed, "asked without a count");
    sched_backlog_check(w.s, b, &(size_t){100});
    destination_move(&w.s->destinations, a, b->transport, text_from(b->key), w.now);
    is_number(glance(&w), 3, "what was removed is not counted there");
}

/* A site that has it too forgets it; the first one must still hear of its removal. */
TEST(removed_at_two_sites)
{
    FIXTURE(world, w, begin_two_sites, sched_world_end, 1, 1);
    struct site *a = destination_of(&w, "smtp:a.example")->site;
    backlog_repeat(a, FLOW_OLD, w.mails[1].id);
    sched_site_wake(w.s, a);
    ok(sched_forget(w.s, w.mails[1].id));
    w.mails[1].gone = true;
    is_number(glance(&w), 0, "no site counts it");
    w.mails[0].due = w.now;
    world_run(&w);
}
