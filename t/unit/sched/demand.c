/* Mail with a demand rides only on sessions that have proven it, at a site that stays one. */
#include "sched/lane.h"
#include "sched/sched.h"

#include "t/support/sched_world.h"

#define SITE "mx:10 m"

enum { PLAIN = 0, DANE = 7, STS = 9 };

static void
start(struct world *w, int concurrency)
{
    sched_world_start(w, 5000, 100);
    w->target.transport.adaptive = 1;
    w->target.transport.concurrency_limit = concurrency;
    w->may_be_early = true;
}

static void
add_many(struct world *w, const char *domain, int count)
{
    for (int i = 0; i < count; i++)
        world_add(w, domain, 0, 0);
    world_run(w);
}

enum { VALID_MS = 1800000 };

/* The session has looked up its domain. */
static bool
found(struct world *w, struct channel *c, uint64_t demand)
{
    sched_session_demand(w->s, c->session, demand, VALID_MS);
    return channel_found(w, c, SITE);
}

/* An SMTP client's treatment of an idle session. */
static void
end_spent(struct world *w)
{
    struct channel *next;
    for (struct channel *c = w->channels; c; c = next) {
        next = c->next;
        if (!c->ended && !c->busy && sched_session_is_spent(c->session))
            channel_end(w, c, NULL);
    }
}

/* A domain is known at the site, and a session of it is idle. */
static struct channel *
know(struct world *w, const char *domain, uint64_t demand)
{
    add_many(w, domain, 1);
    struct channel *c = world_channel(w, domain, 0);
    world_must(c && found(w, c, demand), "a session");
    world_must(channel_take(w, c), "its mail");
    channel_send(w, c);
    (void)channel_take(w, c);
    return c;
}

static struct sched_site
site_now(struct world *w)
{
    return world_site(w, SITE).site;
}

TEST(proof)
{
    FIXTURE(world, w, start, sched_world_end, 5);
    struct channel *plain = know(&w, "plain.example", PLAIN);
    struct channel *dane = know(&w, "dane.example", DANE);
    is_number(site_now(&w).sessions, 2, "both are sessions of one site");
    is_number(site_now(&w).destinations, 2, "which both domains have");
    add_many(&w, "dane.example", 1);
    ok_named(!sched_has_work(w.s, plain->session) && !channel_take(&w, plain),
             "mail with a demand does not ride on a session without its proof");
    ok_named(sched_has_work(w.s, dane->session) && channel_take(&w, dane), "but on one with it");
    channel_send(&w, dane);
    ok(!channel_take(&w, dane));
    add_many(&w, "plain.example", 1);
    ok_named(sched_has_work(w.s, dane->session), "mail without a demand rides on any");
    ok(channel_take(&w, dane));
    channel_send(&w, dane);
    struct channel *sts = know(&w, "sts.example", STS);
    add_many(&w, "sts.example", 1);
    ok_named(!channel_take(&w, dane) && !channel_take(&w, plain), "another proof is none");
    ok(channel_take(&w, sts));
    channel_send(&w, sts);
    while (world_channel(&w, "", 0))
        channel_drain(&w, world_channel(&w, "", 0));
    is_number(w.finishes, w.count, "all are delivered");
}

/* A second domain with the same demand needs no session of its own; one that turns out to have another demand does. */
TEST(changed)
{
    FIXTURE(world, w, start, sched_world_end, 5);
    struct channel *a = know(&w, "a.example", DANE), *b = know(&w, "b.example", DANE);
    add_many(&w, "b.example", 1);
    ok_named(channel_take(&w, a), "an equal proof serves both");
    channel_send(&w, a);
    /* Its records change: later it is looked up again. */
    w.now += VALID_MS + 1;
    add_many(&w, "b.example", 2);
    ok_named(!channel_take(&w, a) && !channel_take(&w, b), "until they are known none carries its mail");
    struct channel *c = NULL;
    for (int i = 0; (c = world_channel(&w, "b.example", i)) != NULL && c->greeted; i++)
        continue;
    ok(c && found(&w, c, DANE + 1));
    ok_named(!channel_take(&w, a) && !channel_take(&w, b), "and those of old proofs do not then");
    is_number(channel_drain(&w, c), 2, "only the new one does");
    while (world_channel(&w, "", 0))
        channel_drain(&w, world_channel(&w, "", 0));
    is_number(w.finishes, w.count, "all are delivered");
}

/* The window allows no more: an idle session ends for a new one. */
TEST(idle_ends)
{
    FIXTURE(world, w, start, sched_world_end, 1);
    (void)know(&w, "dane.example", DANE);
    end_spent(&w);
    while (world_channel(&w, "", 0))
        channel_end(&w, world_channel(&w, "", 0), NULL);
    struct channel *plain = know(&w, "plain.example", PLAIN);
    is_number(site_now(&w).sessions, 1, "the window is full");
    add_many(&w, "dane.example", 1);
    ok_named(sched_session_is_spent(plain->session), "the idle session is to end");
    is_number(site_now(&w).bound, SCHED_BOUND_PROOF, "and says why");
    ok(strcmp(sched_bound_word(SCHED_BOUND_PROOF), "proof") == 0);
    end_spent(&w);
    struct channel *c = world_channel(&w, "dane.example", 0);
    ok_named(c && !c->greeted, "for one of the domain");
    ok(found(&w, c, DANE));
    ok(channel_take(&w, c));
    channel_send(&w, c);
    ok(!channel_take(&w, c));
    add_many(&w, "plain.example", 1);
    ok_named(!sched_session_is_spent(c->session) && channel_take(&w, c), "which other mail does not end");
    channel_send(&w, c);
    while (world_channel(&w, "", 0))
        channel_drain(&w, world_channel(&w, "", 0));
}

/* Serves the one session of the site, as fast as it goes, each message taking took_ms. Returns the messages of the
 * session. */
static int
serve(struct world *w, int64_t took_ms, int most)
{
    struct channel *c = world_channel(w, "", 0);
    int works = 0;
    if (!c->greeted && !found(w, c, strcmp(c->domain, "dane.example") == 0  ? DANE
                                    : strcmp(c->domain, "sts.example") == 0 ? STS
                                                                            : PLAIN))
        return 0;
    while (works < most && channel_take(w, c)) {
        w->now += took_ms;
        channel_send(w, c);
        works++;
    }
    if (works < most)
        channel_end(w, c, NULL);
    return works;
}

/* Two demands and a window of one: they alternate, and not for each message. */
TEST(turns)
{
    enum { EACH = 400 };
    FIXTURE(world, w, start, sched_world_end, 1);
    (void)know(&w, "dane.example", DANE);
    while (world_channel(&w, "", 0))
        channel_end(&w, world_channel(&w, "", 0), NULL);
    (void)know(&w, "sts.example", STS);
    while (world_channel(&w, "", 0))
        channel_end(&w, world_channel(&w, "", 0), NULL);
    unsigned before = w.opens;
    add_many(&w, "dane.example", EACH);
    add_many(&w, "sts.example", EACH);
    for (int i = 0; i < 1000 && w.finishes < w.count; i++)
        (void)serve(&w, 10, INT32_MAX);
    is_number(w.finishes, w.count, "all are delivered");
    printf("# %u connections for %d messages\n", w.opens - before, 2 * EACH);
    ok_named(w.opens - before >= 20 && w.opens - before <= 2 * EACH / 20 + 2, "in turns of 20 messages");
    before = w.opens;
    int64_t then = w.now;
    add_many(&w, "dane.example", 20);
    add_many(&w, "sts.example", 20);
    for (int i = 0; i < 1000 && w.finishes < w.count; i++)
        (void)serve(&w, 4000, INT32_MAX);
    is_number(w.finishes, w.count, "all are delivered by a slow server, too");
    ok_named(w.opens - before >= 10 && w.opens - before <= 16, "in turns of ten seconds");
    ok(w.now - then == 160000);
}

/* Whichever has much mail, the other is served in its turn. */
static void
test_starve(uint64_t many, uint64_t one)
{
    static const char *const names[] = {[PLAIN] = "plain.example", [DANE] = "dane.example", [STS] = "sts.example"};
    int until = 0;
    FIXTURE(world, w, start, sched_world_end, 1);
    (void)know(&w, names[one], one);
    while (world_channel(&w, "", 0))
        channel_end(&w, world_channel(&w, "", 0), NULL);
    (void)know(&w, names[many], many);
    add_many(&w, names[many], 1000);
    (void)serve(&w, 10, 5);
    unsigned single = world_add(&w, names[one], 0, 0);
    world_run(&w);
    while (!w.mails[single].gone && until < 1000)
        until += serve(&w, 10, 1) + (world_channel(&w, "", 0) == NULL);
    printf("# served after %d\n", until);
    ok_named(until <= 25, "one message among many of another demand has its turn soon");
    while (world_channel(&w, "", 0))
        (void)serve(&w, 10, INT32_MAX);
    is_number(w.finishes, w.count, "all are delivered");
}

/* Wide windows: sessions go where mail waits, without a connection for each message. */
static void
test_balance(void)
{
    FIXTURE(world, w, start, sched_world_end, 10);
    (void)know(&w, "dane.example", DANE);
    (void)know(&w, "plain.example", PLAIN);
    while (world_channel(&w, "", 0))
        channel_end(&w, world_channel(&w, "", 0), NULL);
    add_many(&w, "plain.example", 2000);
    unsigned before = w.opens;
    for (int round = 0; round < 3000 && w.finishes < w.count; round++) {
        if (round == 50)
            add_many(&w, "dane.example", 1000);
        w.now += 10;
        struct channel *next;
        for (struct channel *c = w.channels; c; c = next) {
            next = c->next;
            if (c->ended)
                continue;
            if (!c->greeted && !found(&w, c, c->domain[0] == 'd' ? DANE : PLAIN))
                continue;
            if (channel_take(&w, c))
                channel_send(&w, c);
            else
                channel_end(&w, c, NULL);
        }
    }
    is_number(w.finishes, w.count, "all are delivered");
    printf("# %u connections\n", w.opens - before);
    ok_named(w.opens - before <= 40, "over few connections");
}

/* A demand that no host can prove concerns no other mail of the site. */
static void
test_unproven(void)
{
    struct outcome trouble =
        outcome_make(VERDICT_DEFERRED, BLAME_DEMAND, 0, "4.7.5", "its certificate is of another name");
    FIXTURE(world, w, start, sched_world_end, 5);
    struct channel *plain = know(&w, "plain.example", PLAIN);
    add_many(&w, "dane.example", 3);
    struct channel *c = world_channel(&w, "dane.example", 0);
    ok(found(&w, c, DANE));
    int window = site_now(&w).window;
    channel_end(&w, c, &trouble);
    while ((c = world_channel(&w, "dane.example", 0)) != NULL)
        ok_named(!found(&w, c, DANE), "sessions that look it up later do not connect");
    is_number(w.waits, 3, "its mail is deferred");
    ok_named(strcmp(w.mails[w.count - 1].to[0].last->text, trouble.text) == 0, "with the reason");
    ok_named(site_now(&w).dead_until_ms == 0 && site_now(&w).window == window && site_now(&w).failures == 0,
             "the site lives");
    add_many(&w, "plain.example", 1);
    ok_named(channel_take(&w, plain), "and other mail goes");
    channel_send(&w, plain);
    add_many(&w, "dane.example", 1);
    is_number(world_channels(&w, "dane.example"), 0, "for a minute no session tries again");
    is_number(w.waits, 4, "mail that comes is deferred");
    ok(strstr(w.mails[w.count - 1].to[0].last->text, "suspended: its certificate") != NULL);
    /* Another domain with that demand is concerned, too. */
    add_many(&w, "other.example", 1);
    ok_named(!found(&w, world_channel(&w, "other.example", 0), DANE), "an equal demand would fail, too");
    is_number(w.waits, 5, "its mail is deferred");
    w.now += LANE_SUSPEND_MS;
    add_many(&w, "dane.example", 5);
    is_number(world_channels(&w, "dane.example") + world_channels(&w, "other.example"), 1, "then one session tries");
    c = world_channel(&w, "dane.example", 0);
    ok(c && found(&w, c, DANE));
    channel_end(&w, c, &trouble);
    is_number(world_channels(&w, "dane.example"), 0, "in vain");
    w.now += LANE_SUSPEND_MS;
    add_many(&w, "dane.example", 1);
    is_number(world_channels(&w, "dane.example"), 0, "the pause is longer then");
    w.now += LANE_SUSPEND_MS;
    add_many(&w, "dane.example", 1);
    c = world_channel(&w, "dane.example", 0);
    ok(c && found(&w, c, DANE) && channel_take(&w, c));
    channel_send(&w, c);
    add_many(&w, "other.example", 3);
    ok_named(channel_take(&w, c), "a session that proves it ends that");
    channel_send(&w, c);
    while (world_channel(&w, "", 0))
        channel_drain(&w, world_channel(&w, "", 0));
}

/* Trouble before the servers are known is of the domain alone. */
static void
test_not_found(void)
{
    struct outcome trouble =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.7.5", "TLSA records cannot be looked up");
    FIXTURE(world, w, start, sched_world_end, 20);
    (void)know(&w, "a.example", DANE);
    (void)know(&w, "b.example", DANE);
    while (world_channel(&w, "", 0))
        channel_end(&w, world_channel(&w, "", 0), NULL);
    add_many(&w, "b.example", 1);
    struct channel *c = world_channel(&w, "b.example", 0);
    channel_end(&w, c, &trouble);
    is_number(w.waits, 1, "its mail is deferred");
    ok_named(site_now(&w).dead_until_ms == 0 && site_now(&w).failures == 0, "the site of the others lives");
    ok_named(world_site(&w, "smtp:b.example").site.dead_until_ms > 0, "its own is dead");
    add_many(&w, "a.example", 1);
    c = world_channel(&w, "a.example", 0);
    ok(c && found(&w, c, DANE) && channel_take(&w, c));
    channel_send(&w, c);
    channel_end(&w, c, NULL);
    world_pass(&w, 20000);
    c = world_channel(&w, "b.example", 0);
    ok_named(c && found(&w, c, DANE), "a probe looks it up again");
    ok(channel_take(&w, c));
    channel_send(&w, c);
    is_number(w.finishes, w.count, "all are delivered");
    while (world_channel(&w, "", 0))
        channel_drain(&w, world_channel(&w, "", 0));
}

/* The learnt state of the site of one domain survives a new look-up of the domain. */
static void
test_learnt(void)
{
    FIXTURE(world, w, start, sched_world_end, 20);
    struct channel *c = know(&w, "a.example", DANE);
    add_many(&w, "a.example", 60);
    while (site_now(&w).window < 8) {
        while ((c = world_channel(&w, "a.example", 0)) != NULL && !c->greeted)
            (void)found(&w, c, DANE);
        add_many(&w, "a.example", 10);
        for (c = w.channels; c; c = c->next)
            if (!c->ended && (c->greeted || found(&w, c, DANE)))
                (void)channel_take(&w, c);
        for (c = w.channels; c; c = c->next)
            if (c->busy)
                channel_send(&w, c);
    }
    int window = site_now(&w).window;
    while (world_channel(&w, "", 0))
        channel_drain(&w, world_channel(&w, "", 0));
    w.now += VALID_MS + 1;
    add_many(&w, "a.example", 1);
    ok_named(world_site(&w, SITE).site.key == NULL || site_now(&w).destinations == 0, "it has left its site");
    c = world_channel(&w, "a.example", 0);
    ok(c && found(&w, c, STS));
    is_number(site_now(&w).window, window, "which has its window when it comes back");
    while (world_channel(&w, "", 0))
        channel_drain(&w, world_channel(&w, "", 0));
    /* Settings change what counts. */
    sched_ask_again(w.s);
    add_many(&w, "a.example", 1);
    c = world_channel(&w, "a.example", 0);
    ok(c && found(&w, c, PLAIN));
    is_number(site_now(&w).window, window, "and after a change of the settings, too");
    while (world_channel(&w, "", 0))
        channel_drain(&w, world_channel(&w, "", 0));
}

int
main(void)
{
    tap_tests("");
    test_starve(PLAIN, DANE);
    test_starve(DANE, PLAIN);
    test_starve(DANE, STS);
    test_balance();
    test_unproven();
    test_not_found();
    test_learnt();
    return done();
}
