/* A group of hosts as its scheduler sees it: which sites ask the bank, what the answers
 * allow, and three schedulers with one bank. */
#include "sched/limits/lease.h"
#include "sched/route/route.h"
#include "sched/route/target.h"
#include "t/support/sched_world.h"
#include "t/support/sites_look.h"

#define SITE "smtp:[h.test]:25"
#define SERVERS "mx:10 h.test"

enum { WISHES_MAX = 8, HOSTS = 3, SITE_MAX = 128, DANE = 7 };

struct wishes {
    size_t count;
    char sites[WISHES_MAX][SITE_MAX];
    struct bank_question questions[WISHES_MAX];
    bool are_accounts[WISHES_MAX];
};

static void
keep_wish(void *context, const struct sched_wish *wish)
{
    struct wishes *all = context;
    world_must(all->count < WISHES_MAX, "few wishes");
    snprintf(all->sites[all->count], SITE_MAX, "%s", wish->site);
    all->questions[all->count] = *wish->question;
    all->are_accounts[all->count++] = wish->is_account;
}

static struct wishes
ask(struct world *w)
{
    struct wishes all = {0};
    world_must(sched_wishes(w->s, WISHES_MAX, keep_wish, &all) == all.count,
               "the number of wishes");
    return all;
}

static const struct sched_group group = {
    .members = 3, .has_bank = true, .shares_addresses = true};

static void
start(struct world *w, const char *target, const struct sched_group *hosts)
{
    struct transport_params base;
    char problem[TARGET_PROBLEM_MAX];
    sched_world_start(w, 1000, 100);
    transport_params_default(&base);
    world_must(target_parse(text_from(target), 25, &base, &w->target, problem),
               problem);
    sched_members(w->s, hosts);
}

static void
add(struct world *w, int count)
{
    for (int i = 0; i < count; i++) {
        unsigned mail = world_add(w, "a.test", 0, 0);
        w->mails[mail].sender = (uint64_t)i % 4;
    }
    world_run(w);
}

static void
answer(struct world *w, const char *site, int tokens, int sessions)
{
    struct bank_grant g = {tokens, sessions, sessions, 0, 4000000};
    sched_granted(w->s, site, &g);
    world_run(w);
}

static void
is_bound(struct world *w, enum sched_bound bound, const char *name)
{
    struct world_site_query q = world_site(w, SITE);
    is_string(sched_bound_word(q.site.bound), sched_bound_word(bound), name);
}

/* Takes and sends what it may now. */
static int
send_all(struct world *w, struct channel *c)
{
    int sent = 0;
    for (; channel_take(w, c); sent++)
        channel_send(w, c);
    return sent;
}

TEST(alone)
{
    FIXTURE(world, w, start, sched_world_end, "smtp://h.test?rate=60/m&concurrency=2", NULL);
    add(&w, 50);
    is_number(w.opens, 2, "without a group it goes on as ever");
    is_number(ask(&w).count, 0, "and asks nobody");
    is_number(world_site(&w, SITE).site.hosts, 0, "nor is a part shown");
    is_number((long)sched_shared_sites(w.s), 0, "or a site counted");
    sched_members(w.s, &group);
    world_run(&w);
    is_number(ask(&w).count, 1, "a group is made");
    sched_members(w.s, NULL);
    world_pass(&w, 1000);
    is_number(ask(&w).count, 0, "and unmade");
    ok(send_all(&w, world_channel(&w, "", 0)) > 0);
}

TEST(lease)
{
    FIXTURE(world, w, start, sched_world_end, "smtp://h.test?rate=10/s&concurrency=20", &group);
    add(&w, 50);
    is_number(w.opens, 0, "no session before the answer");
    is_bound(&w, SCHED_BOUND_LEASE_RATE, "which it waits for");
    is_number((long)sched_crowd(w.s, w.mails[0].id), 0, "clients are not slowed");
    struct wishes all = ask(&w);
    is_number(all.count, 1, "a question");
    ok_named(all.questions[0].want == 50 && all.questions[0].weight == 4 &&
                 all.questions[0].limit == 20 && all.questions[0].hosts == 3 &&
                 all.questions[0].need == 5 && all.questions[0].had == -1,
             "for what waits");
    ok_named(strstr(all.sites[0], " " SITE) != NULL && !all.are_accounts[0],
             "in the name of transport and site");
    is_number(ask(&w).count, 0, "once");
    answer(&w, all.sites[0], 4, 2);
    is_number(w.opens, 1, "a session for what may begin in a second");
    struct world_site_query q = world_site(&w, SITE);
    is_number((long)sched_shared_sites(w.s), 1, "one site is shared");
    ok_named(q.site.hosts == 3 && q.site.lease_tokens == 4 &&
                 q.site.lease_sessions == 2 && q.site.shared_tokens == 50,
             "which is reported");
    is_number(send_all(&w, world_channel(&w, "", 0)), 1, "transactions go evenly");
    is_bound(&w, SCHED_BOUND_LEASE_RATE, "which is the bound");
    world_pass(&w, 1250);
    is_number(send_all(&w, world_channel(&w, "", 0)), 1, "a quarter later another");
    all = ask(&w);
    ok_named(all.count == 1 && all.questions[0].again, "it asks again, for more");
}

/* A smaller lease ends sessions, idle ones immediately. */
TEST(over)
{
    FIXTURE(world, w, start, sched_world_end, "smtp://h.test?concurrency=20&shared=yes", &group);
    add(&w, 50);
    struct wishes all = ask(&w);
    answer(&w, all.sites[0], 0, 3);
    is_number(w.opens, 3, "three sessions");
    is_bound(&w, SCHED_BOUND_LEASE, "more are not granted");
    is_string(sched_bound_word(SCHED_BOUND_LEASE), "lease", "the word");
    struct channel *a = world_channel(&w, "", 0), *b = world_channel(&w, "", 1);
    ok(channel_take(&w, a) && channel_take(&w, b));
    world_pass(&w, 5000);
    all = ask(&w);
    is_number(all.questions[0].open, 3, "the next question says that they are open");
    answer(&w, all.sites[0], 0, 1);
    channel_send(&w, a);
    ok_named(!channel_take(&w, a) && sched_session_is_spent(a->session),
             "one ends after its transaction");
    channel_end(&w, a, NULL);
    struct channel *c = world_channel(&w, "", 1);
    ok_named(!channel_take(&w, c) && sched_session_is_spent(c->session),
             "so does one that was not greeted yet");
    channel_end(&w, c, NULL);
    channel_send(&w, b);
    ok_named(channel_take(&w, b), "the third goes on");
    channel_send(&w, b);
    channel_end(&w, b, NULL);
}

TEST(found)
{
    FIXTURE(world, w, start, sched_world_end, "mx?shared=yes", &group);
    add(&w, 3);
    ok_named(w.opens > 0 && ask(&w).count == 0,
             "a domain has no lease, and asks nothing");
    struct channel *c = world_channel(&w, "", 0);
    ok_named(!sched_session_found(w.s, c->session, TEXT(SERVERS)),
             "its servers have: the session waits for the answer");
    struct wishes all = ask(&w);
    ok(all.count == 1 && strstr(all.sites[0], SERVERS) != NULL);
    for (struct channel *open; (open = world_channel(&w, "", 0)) != NULL;)
        channel_end(&w, open, NULL);
    unsigned opens = w.opens;
    world_pass(&w, 10);
    is_number(w.opens, opens, "it ends, and no other is opened");
    answer(&w, all.sites[0], 0, 1);
    is_number(w.opens, opens + 1, "before the grant");
    c = world_channel(&w, "", 0);
    ok(sched_session_found(w.s, c->session, TEXT(SERVERS)));
    is_number(channel_drain(&w, c), 3, "which carries all of it");
}

TEST(own)
{
    struct world w;
    struct sched_group hosts = group;
    start(&w, "smtp://h.test?concurrency=6", &group);
    add(&w, 50);
    struct wishes all = ask(&w);
    sched_granted(w.s, all.sites[0], NULL);
    is_number(w.opens, 0, "no answer");
    world_pass(&w, LEASE_PATIENCE_MS);
    is_number(w.opens, 2, "in a moment our own part");
    hosts.has_bank = false;
    hosts.members = 2;
    sched_members(w.s, &hosts);
    world_run(&w);
    is_number(w.opens, 3, "of fewer hosts a larger one");
    is_number(ask(&w).count, 0, "nobody is asked");
    for (struct channel *c; (c = world_channel(&w, "", 0)) != NULL;)
        channel_drain(&w, c);
    sched_world_end(&w);
    hosts = group;
    hosts.shares_addresses = false;
    start(&w, "smtp://h.test?concurrency=6", &hosts);
    add(&w, 5);
    ok_named(w.opens > 0 && ask(&w).count == 0,
             "hosts with addresses of their own share none");
    sched_world_end(&w);
    start(&w, "submission://joe@h.test?concurrency=6", &hosts);
    add(&w, 5);
    all = ask(&w);
    ok_named(w.opens == 0 && all.count == 1 && all.are_accounts[0], "but their login");
    sched_world_end(&w);
}

/* The bank was away: another one may answer now. The clock may be set meanwhile. */
TEST(takeover)
{
    struct sched_group hosts = group;
    FIXTURE(world, w, start, sched_world_end,
            "smtp://h.test?concurrency=12&initial=12&rate=1000/s", &group);
    add(&w, 50);
    answer(&w, ask(&w).sites[0], 100, 5);
    is_number(w.opens, 5, "five sessions");
    hosts.has_bank = false;
    sched_members(w.s, &hosts);
    hosts.has_bank = true;
    hosts.late = 2;
    sched_members(w.s, &hosts);
    hosts.late = 0;
    w.now -= 100000;
    world_pass(&w, LEASE_PERIOD_MS);
    struct wishes all = ask(&w);
    ok_named(all.count == 1 && all.questions[0].need == 5, "are no more for a while");
    is_number(all.questions[0].interval_us, 1000,
              "in which nobody could say that it is there");
    answer(&w, all.sites[0], 0, 5);
    world_pass(&w, LEASE_DOUBT_MS - LEASE_PERIOD_MS);
    all = ask(&w);
    ok_named(all.count == 1 && all.questions[0].need == 12,
             "then it asks for all again");
    answer(&w, all.sites[0], 0, 5);
    hosts.late = 1;
    sched_members(w.s, &hosts);
    world_pass(&w, LEASE_PERIOD_MS);
    all = ask(&w);
    ok_named(all.count == 1 && all.questions[0].need == 5, "unless one may be lost");
}

/* The route's own option comes first. */
TEST(shared)
{
    static const struct {
        const char *target;
        bool shares_addresses, asks;
    } rows[] = {
        {"smtp://h.test?shared=yes",               false, true },
        {"smtp://h.test?rate=10/s&shared=no",      true,  false},
        {"submission://joe@h.test?shared=no",      true,  false},
        {"lmtp://127.0.0.1:24?concurrency=6",      true,  false},
        {"lmtp://127.0.0.1:24?shared=yes",         false, true },
        {"smtp://h.test?concurrency=6",            true,  true },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct sched_group hosts = group;
        hosts.shares_addresses = rows[i].shares_addresses;
        FIXTURE(world, w, start, sched_world_end, rows[i].target, &hosts);
        add(&w, 5);
        struct wishes all = ask(&w);
        ok_named((all.count == 1 && w.opens == 0) == rows[i].asks, rows[i].target);
    }
}

static void
keep_limit(void *context, const struct sched_site *site)
{
    int *limits = context;
    if (strcmp(site->key, SITE) == 0)
        limits[site->transport->rate.amount == 20] = site->hosts;
}

/* Two routes with limits of their own have the same next hop. One may be in the bank by
 * its name; the other must not be without any share of it. */
TEST(siblings)
{
    struct transport_params base;
    char problem[TARGET_PROBLEM_MAX];
    int hosts[2] = {0};
    FIXTURE(world, w, start, sched_world_end, "smtp://h.test?rate=10/s&concurrency=6", &group);
    add(&w, 5);
    transport_params_default(&base);
    world_must(target_parse(TEXT("smtp://h.test?rate=20/s&concurrency=6"), 25, &base,
                            &w.target, problem),
               problem);
    add(&w, 40);
    for (int i = 0; i < 3; i++) {
        sites_look(w.s, keep_limit, hosts);
        ok_named(hosts[0] == 3 && hosts[1] == 3, "both are shared");
        sched_members(w.s, &group);
    }
    struct wishes all = ask(&w);
    is_number(all.count, 1, "one asks");
    is_number((long)all.questions[0].interval_us, 100000, "the first");
    world_pass(&w, 200);
    is_number(w.opens, 2, "the other has the part of this host");
    answer(&w, SITE " " SITE, 30, 2);
    world_pass(&w, 1000);
    is_number(w.opens, 4, "with the answer the first has its own");
    sched_members(w.s, NULL);
}

/* The site that has the name wants nothing any more: the other one asks the bank. */
TEST(heir)
{
    struct transport_params base;
    char problem[TARGET_PROBLEM_MAX];
    FIXTURE(world, w, start, sched_world_end, "smtp://h.test?rate=10/s&concurrency=6", &group);
    add(&w, 1);
    is_number(ask(&w).count, 1, "the first asks");
    answer(&w, SITE " " SITE, 30, 2);
    world_pass(&w, 1000);
    struct channel *first = world_channel(&w, "", 0);
    transport_params_default(&base);
    world_must(target_parse(TEXT("smtp://h.test?rate=20/s&concurrency=6"), 25, &base,
                            &w.target, problem),
               problem);
    add(&w, 40);
    is_number(ask(&w).count, 0, "the other does not");
    ok_named(channel_take(&w, first), "its mail goes");
    channel_send(&w, first);
    channel_end(&w, first, NULL);
    double interval_us = 0;
    for (int i = 0; i < 30 && interval_us != 50000; i++) {
        world_pass(&w, 1000);
        struct channel *second = world_channel(&w, "", 0);
        if (second != NULL && channel_take(&w, second))
            channel_send(&w, second);
        struct wishes all = ask(&w);
        interval_us = all.count > 0 ? all.questions[0].interval_us : 0;
        if (all.count > 0)
            answer(&w, all.sites[0], 0, 0);
    }
    is_number((long)interval_us, 50000, "then the other asks");
}

/* As a reload does: new mail has that route, and none leads to the former one. */
static void
reroute(struct world *w, struct route_table **table, const char *relay)
{
    struct route_settings s = {.relay = text_from(relay), .passwords = TEXT("")};
    struct route_table *was = *table;
    struct address address;
    struct buffer errors;
    buffer_init(&errors, 4096);
    transport_params_default(&s.base);
    *table = route_new(&s, &errors);
    world_must(*table != NULL && address_parse(TEXT("x@x.example"), &address), relay);
    memcpy(&w->target, route_find(*table, &address), sizeof(w->target));
    sched_change(w->s, &(struct sched_settings){.active_limit = 1000, .session_limit = 100});
    sched_rerouted(w->s, was, *table);
    route_free(&was);
    buffer_free(&errors);
}

/* All that sessions carry ends, one at a time. The most that were open. */
static int
serve_all(struct world *w)
{
    int most = w->open_now;
    for (int i = 0; i < 1000 && w->open_now > 0; i++) {
        struct channel *c = world_channel(w, "", 0);
        if (c->busy || channel_take(w, c))
            channel_send(w, c);
        else
            channel_end(w, c, NULL);
        world_pass(w, 100);
        most = w->open_now > most ? w->open_now : most;
        struct wishes all = ask(w);
        for (size_t n = 0; n < all.count; n++)
            answer(w, all.sites[n], 0, 4);
    }
    return most;
}

/* Sessions of the former route count, and end in favour of the new one. */
TEST(rerouted)
{
    FIXTURE(world, w, start, sched_world_end, "smtp://[h.test]:25?concurrency=4&shared=yes", &group);
    struct route_table *table = NULL;
    struct wishes all;
    for (int i = 0; i < 3; i++) {
        reroute(&w, &table,
                i == 1 ? "smtp://[h.test]:25?concurrency=4&shared=yes&timeout_scale=2"
                       : "smtp://[h.test]:25?concurrency=4&shared=yes");
        add(&w, 12);
        all = ask(&w);
        ok_named(all.count == (i == 0), "one question for both");
        if (i == 0)
            answer(&w, all.sites[0], 0, 4);
        is_number(w.open_now, 4, "all that the group may have");
        for (int n = 0; n < 4; n++) {
            struct channel *c = world_channel(&w, "", n);
            if (!c->busy)
                (void)channel_take(&w, c);
        }
    }
    world_pass(&w, 5000);
    all = ask(&w);
    ok_named(all.count == 1 && all.questions[0].open == 4, "they are counted");
    answer(&w, all.sites[0], 0, 4);
    is_number(serve_all(&w), 4, "never more are open");
    is_number(w.finishes, 36, "all mail goes");
    route_free(&table);
}

/* A session of the domain has looked it up. */
static struct channel *
find(struct world *w, const char *domain, uint64_t demand)
{
    world_add(w, domain, 0, 0);
    world_run(w);
    struct channel *c = world_channel(w, domain, 0);
    world_must(c != NULL, "a session");
    sched_session_demand(w->s, c->session, demand, 1800000);
    if (sched_session_found(w->s, c->session, TEXT(SERVERS)))
        return c;
    channel_end(w, c, NULL);
    return NULL;
}

static void
keep_bound(void *context, const struct sched_wait *wait)
{
    *(enum sched_bound *)context = wait->site->bound;
}

/* The lease allows no more sessions: an idle one ends for mail that cannot use it. */
TEST(demand)
{
    enum sched_bound bound = SCHED_BOUNDS;
    FIXTURE(world, w, start, sched_world_end, "mx?shared=yes", &group);
    w.may_be_early = true;
    ok(find(&w, "dane.test", DANE) == NULL);
    answer(&w, ask(&w).sites[0], 0, 1);
    struct channel *c = find(&w, "dane.test", DANE);
    ok(c != NULL && channel_drain(&w, c) == 2);
    c = find(&w, "plain.test", 0);
    ok(c != NULL && channel_take(&w, c));
    channel_send(&w, c);
    ok_named(!channel_take(&w, c) && !sched_session_is_spent(c->session),
             "the only session of the lease is idle, and has proven nothing");
    unsigned mail = world_add(&w, "dane.test", 0, 0);
    world_run(&w);
    ok_named(sched_session_is_spent(c->session), "it ends for mail with a demand");
    ok(sched_explain(w.s, w.mails[mail].id, keep_bound, &bound));
    is_string(sched_bound_word(bound), "proof", "which says why it waits");
    channel_end(&w, c, NULL);
    c = world_channel(&w, "dane.test", 0);
    world_must(c != NULL, "a session for it");
    sched_session_demand(w.s, c->session, DANE, 1800000);
    ok(sched_session_found(w.s, c->session, TEXT(SERVERS)));
    is_number(channel_drain(&w, c), 1, "which has a session then");
}

/* --- Three hosts and a bank ------------------------------------------------------- */

static void
host_ask(struct world *w, struct bank *bank)
{
    struct wishes all = ask(w);
    for (size_t i = 0; i < all.count; i++) {
        struct bank_grant g =
            bank_ask(bank, text_from(all.sites[i]), w->now * 1000, &all.questions[i]);
        sched_granted(w->s, all.sites[i], &g);
    }
    world_run(w);
}

/* Each transaction takes 100 ms; a session without mail ends. */
static int
host_serve(struct world *w)
{
    int sent = 0;
    for (int i = 0; world_channel(w, "", i) != NULL; i++) {
        struct channel *c = world_channel(w, "", i);
        if (c->busy) {
            channel_send(w, c);
            sent++;
        }
        (void)channel_take(w, c);
        if (sched_session_is_spent(c->session))
            channel_end(w, c, NULL);
    }
    return sent;
}

TEST(three)
{
    static struct world hosts[HOSTS];
    struct bank *bank = bank_new();
    struct sched_group mine = group;
    long sent = 0, over = 0, used = 0;
    for (int i = 0; i < HOSTS; i++) {
        mine.index = i;
        start(&hosts[i], "smtp://h.test?rate=600/m&concurrency=4", &mine);
        add(&hosts[i], 900);
    }
    for (int turn = 0; turn < 700; turn++) {
        int open = 0;
        for (int i = 0; i < HOSTS; i++) {
            world_pass(&hosts[i], 100);
            host_ask(&hosts[i], bank);
            int served = host_serve(&hosts[i]);
            sent += turn >= 100 ? served : 0;
            open += world_channels(&hosts[i], "");
        }
        over += open > 4;
        used += turn >= 100 ? open : 0;
    }
    printf("# %ld of 600 in a minute, sessions %ld %%\n", sent, used * 100 / 600 / 4);
    ok_named(sent >= 540 && sent <= 600 * 102 / 100 + 10,
             "three hosts keep a rate together");
    is_number(over, 0, "and a limit of sessions");
    for (int i = 0; i < HOSTS; i++)
        sched_world_end(&hosts[i]);
    bank_free(&bank);
}
