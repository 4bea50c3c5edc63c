/* Sites: what binds and until when, what is learnt, death, probes, the backlog, the clock.
 */
#include "sched/site.h"

#include "base/memory.h"
#include "sched/destination.h"
#include "sched/session.h"

#include "t/support/tap.h"

static const int64_t NOW = INT64_C(1700000000000);

struct place { /* one destination and its site */
    struct destinations set;
    struct target target;
    struct destination *d;
    struct site *site;
    int64_t until;
};

static void
prepare(struct place *p)
{
    memset(p, 0, sizeof(*p));
    destinations_init(&p->set, 5);
    p->target.kind = TARGET_MX;
    p->target.tls = TARGET_TLS_MAY;
    transport_params_default(&p->target.transport);
    p->target.transport.adaptive = 1;
}

static void
begin(struct place *p)
{
    p->d = destination_get(&p->set, &p->target, TEXT("a.example"), NOW);
    p->site = p->d->site;
}

static void
start(struct place *p)
{
    prepare(p);
    begin(p);
}

static void
finish(struct place *p)
{
    p->site->sessions = p->site->greeted = p->site->carrying = 0;
    destinations_free(&p->set);
}

static enum sched_bound
bound(struct place *p, int64_t now_ms)
{
    p->until = 12345;
    return site_bound(p->site, now_ms, &p->until);
}

static struct outcome
refused(void)
{
    return outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.1", "connection refused");
}

static void
die(struct place *p, int64_t now_ms)
{
    struct outcome outcome = refused();
    site_die(&p->set.sites, p->site, now_ms, &outcome);
}

/* A session opened and greeted, or not. */
static struct sched_session *
open_session(struct place *p, int64_t now_ms, bool greets)
{
    struct sched_session *s = sched_session_new(p->site, p->d, now_ms);
    if (greets) {
        sched_session_greet(s);
        site_greeted(&p->set.sites, p->site, now_ms);
    }
    return s;
}

static void
close_session(struct sched_session *s)
{
    sched_session_leave(s);
    sched_session_free(s);
}

TEST(window_binds)
{
    FIXTURE(place, p, start, finish);
    ok(bound(&p, NOW) == SCHED_BOUND_NONE && p.until == INT64_MAX);
    is_number(site_allows(p.site, NOW), 5, "the initial window");
    p.site->sessions = 4;
    ok(bound(&p, NOW) == SCHED_BOUND_NONE);
    p.site->sessions = 5;
    ok_named(bound(&p, NOW) == SCHED_BOUND_WINDOW, "the window is full");
    ok_named(p.until == INT64_MAX, "until something happens");
}

TEST(dead_binds)
{
    FIXTURE(place, p, start, finish);
    die(&p, NOW);
    ok(bound(&p, NOW) == SCHED_BOUND_DEAD);
    ok_named(p.until == p.site->dead_until_ms &&
                 p.until >= NOW + SITE_PROBE_MIN_MS * 9 / 10 &&
                 p.until <= NOW + SITE_PROBE_MIN_MS,
             "dead until the first probe");
    is_number(p.set.sites.dead_count, 1, "one is dead");
    ok_named(sites_wake_ms(&p.set.sites) == INT64_MAX, "no timer before the update");
    site_update(&p.set.sites, p.site, NOW);
    is_number(sites_wake_ms(&p.set.sites), p.until, "then one");
    int64_t at = p.until;
    sites_tick(&p.set.sites, at - 1);
    ok(p.site->dead);
    sites_tick(&p.set.sites, at);
    ok_named(!p.site->dead && p.site->window.probing, "on probation");
    is_number(p.set.sites.dead_count, 0, "none is dead");
    ok(bound(&p, at) == SCHED_BOUND_NONE);
    p.site->sessions = 1;
    ok_named(bound(&p, at) == SCHED_BOUND_PROBE && p.until == INT64_MAX,
             "one session tries");
}

TEST(rates_bind)
{
    struct place p;
    prepare(&p);
    p.target.transport.rate = (struct rate){.amount = 1, .burst = 1, .period_ms = 1000};
    begin(&p);
    site_take(p.site, NOW);
    ok(bound(&p, NOW) == SCHED_BOUND_RATE && p.until == NOW + 1000);
    is_number(site_ready_ms(p.site, NOW), NOW + 1000, "ready then");
    ok_named(bound(&p, NOW + 1000) == SCHED_BOUND_NONE, "and not later");
    finish(&p);
    prepare(&p);
    p.target.transport.rate_delay_ms = 7000;
    begin(&p);
    is_number(p.site->window.limit, 1, "a rate delay: one session");
    ok(!site_served(&p.set.sites, p.site, NOW, FEEDBACK_GOOD, 1, 0));
    ok(bound(&p, NOW) == SCHED_BOUND_RATE_DELAY && p.until == NOW + 7000);
    is_number(site_ready_ms(p.site, NOW), NOW + 7000, "ready then");
    ok(bound(&p, NOW + 7000) == SCHED_BOUND_NONE);
    finish(&p);
}

TEST(transport_delay_binds)
{
    FIXTURE(place, p, prepare, finish);
    p.target.transport.transport_rate_delay_ms = 9000;
    begin(&p);
    struct destination *other =
        destination_get(&p.set, &p.target, TEXT("b.example"), NOW);
    transport_begin(other->transport, NOW);
    ok_named(bound(&p, NOW) == SCHED_BOUND_TRANSPORT_DELAY && p.until == NOW + 9000,
             "another site's delivery pauses this one");
    ok_named(bound(&p, NOW + 9000) == SCHED_BOUND_TRANSPORT_DELAY, "while it runs");
    ok_named(p.until == INT64_MAX, "whose end has no time");
    transport_end(other->transport);
    ok(bound(&p, NOW + 9000) == SCHED_BOUND_NONE);
}

TEST(learnt_rate)
{
    struct place p;
    start(&p);
    int64_t now = NOW;
    for (int i = 0; i < 200; i++, now += 10) {
        site_take(p.site, now);
        (void)!site_served(&p.set.sites, p.site, now, FEEDBACK_GOOD, 1, 0);
    }
    is_number(p.site->learnt.rate, 0, "no rate is learnt from success");
    int before = p.site->window.size;
    site_take(p.site, now);
    ok_named(!site_served(&p.set.sites, p.site, now, FEEDBACK_SLOW, 1, 0),
             "slow down: it is not dead");
    ok_named(bound(&p, now) == SCHED_BOUND_LEARNT_RATE, "a rate is learnt");
    ok(p.until > now && p.until < now + 60000);
    ok_named(p.site->learnt.rate > 0, "and told");
    is_number(p.site->window.size, before, "the window stays");
    finish(&p);
    prepare(&p);
    p.target.transport.adaptive = 0;
    begin(&p);
    ok(!site_served(&p.set.sites, p.site, NOW, FEEDBACK_SLOW, 1, 0));
    ok_named(bound(&p, NOW) == SCHED_BOUND_NONE, "not where nothing is to be learnt");
    finish(&p);
}

TEST(ceiling)
{
    FIXTURE(place, p, start, finish);
    struct sched_session *s[6];
    for (int i = 0; i < 4; i++)
        s[i] = open_session(&p, NOW, true);
    int64_t now = NOW;
    for (int i = 0; i < CEILING_REFUSALS; i++, now += 1000) {
        is_number(p.site->ceiling.sessions, 0, "not known yet");
        s[4] = open_session(&p, now, false);
        close_session(s[4]);
        ok_named(!site_refused(p.site, now, false), "others live: not dead");
    }
    is_number(p.site->window.size, 5, "the window stays as it was");
    now += 1000;
    ok(bound(&p, now) == SCHED_BOUND_CEILING);
    int64_t probe = p.until;
    ok_named(probe > now && probe <= now + CEILING_HOLD_MIN_MS, "for some seconds");
    is_number(site_allows(p.site, now), 4, "four are allowed");
    ok_named(bound(&p, probe) == SCHED_BOUND_NONE, "then one more is tried");
    s[4] = open_session(&p, probe, false);
    ok(bound(&p, probe + 1) == SCHED_BOUND_CEILING || p.site->window.size == 5);
    ok_named(p.until > probe + 1, "a bound has no end in the past");
    close_session(s[4]);
    ok(!site_refused(p.site, probe + 1, false));
    ok(bound(&p, probe + 2000) == SCHED_BOUND_CEILING);
    ok_named(p.until >= probe + 2 * CEILING_HOLD_MIN_MS, "and after twice the time");
    int64_t second = p.until;
    s[4] = open_session(&p, second, true);
    is_number(p.site->ceiling.sessions, 5, "greeted: it bears one more");
    for (int i = 0; i < 5; i++)
        close_session(s[i]);
}

/* With a window above the ceiling a probe that is under way is bound by the ceiling. */
TEST(ceiling_probe_out)
{
    FIXTURE(place, p, prepare, finish);
    p.target.transport.initial_concurrency = 20;
    begin(&p);
    struct sched_session *s = open_session(&p, NOW, true);
    for (int i = 0; i < CEILING_REFUSALS; i++)
        ok(!site_refused(p.site, NOW, false));
    int64_t probe = ceiling_wake_ms(&p.site->ceiling);
    struct sched_session *probing = open_session(&p, probe, false);
    ok(bound(&p, probe + 100) == SCHED_BOUND_CEILING);
    ok_named(p.until == INT64_MAX, "until something happens");
    close_session(probing);
    close_session(s);
}

TEST(congested)
{
    FIXTURE(place, p, start, finish);
    struct sched_session *a = open_session(&p, NOW, false);
    ok_named(bound(&p, NOW + 60000) == SCHED_BOUND_NONE,
             "with none greeted it is no line");
    struct sched_session *b = open_session(&p, NOW + 1000, true);
    ok_named(bound(&p, NOW + 2000) == SCHED_BOUND_NONE, "two seconds are no line");
    ok_named(bound(&p, NOW + 2001) == SCHED_BOUND_CONGESTED && p.until == INT64_MAX,
             "more are, while another talks");
    sched_session_greet(a);
    ok_named(bound(&p, NOW + 2001) == SCHED_BOUND_NONE, "until it is greeted");
    struct sched_session *c = open_session(&p, NOW + 3000, false);
    latency_note(&p.site->latency, 1000);
    ok_named(bound(&p, NOW + 7000) == SCHED_BOUND_NONE, "a slow site has longer lines");
    ok(bound(&p, NOW + 7001) == SCHED_BOUND_CONGESTED);
    close_session(a);
    close_session(b);
    close_session(c);
}

TEST(pause)
{
    FIXTURE(place, p, start, finish);
    site_pause(p.site, NOW);
    ok(bound(&p, NOW) == SCHED_BOUND_PAUSE && p.until == NOW + SITE_OPEN_PAUSE_MS);
    ok(bound(&p, p.until) == SCHED_BOUND_NONE);
    struct sched_session *s = open_session(&p, NOW, true);
    ok(!site_refused(p.site, NOW, false));
    ok_named(bound(&p, NOW) != SCHED_BOUND_PAUSE, "one slip while another is served");
    ok(!site_refused(p.site, NOW, false));
    ok_named(bound(&p, NOW) == SCHED_BOUND_PAUSE && p.until < NOW + SITE_OPEN_PAUSE_MS,
             "then a short one");
    for (int i = 0; i < 100; i++)
        (void)!site_refused(p.site, NOW, false);
    ok_named(p.site->open_after_ms == NOW + SITE_OPEN_PAUSE_MS,
             "longer with each that fails, up to a second");
    close_session(s);
}

TEST(latency)
{
    FIXTURE(place, p, start, finish);
    for (int i = 0; i < 100; i++)
        (void)!site_served(&p.set.sites, p.site, NOW, FEEDBACK_GOOD, 20, 100);
    is_number(p.site->window.size, 20, "a fast site's window grows to the limit");
    int size = 20;
    for (int i = 0; i < 30; i++)
        (void)!site_served(&p.set.sites, p.site, NOW, FEEDBACK_GOOD, 20, 300);
    p.site->window.size = 10;
    for (int i = 0; i < 50; i++)
        (void)!site_served(&p.set.sites, p.site, NOW, FEEDBACK_GOOD, 20, 300);
    is_number(p.site->window.size, 10, "three times as slow: it does not grow");
    for (int i = 0; i < 35; i++)
        (void)!site_served(&p.set.sites, p.site, NOW, FEEDBACK_GOOD, 20, 900);
    size = p.site->window.size;
    ok_named(size == 7 || size == 6, "nine times: one less a cohort");
    for (int i = 0; i < 1000; i++)
        (void)!site_served(&p.set.sites, p.site, NOW, FEEDBACK_GOOD, 20, 900);
    ok_named(p.site->window.size >= 1, "never less than one");
    for (int i = 0; i < 400; i++)
        (void)!site_served(&p.set.sites, p.site, NOW, FEEDBACK_GOOD, 20, 50);
    is_number(p.site->window.size, 20, "fast again: it grows again");
}

/* A host that has become slow for good: its sessions come back after ten minutes, though
 * its best time is that of long ago. */
TEST(slow_for_good)
{
    int64_t now = NOW, until = NOW + 11 * 60000;
    FIXTURE(place, p, start, finish);
    for (int i = 0; i < 100; i++)
        (void)!site_served(&p.set.sites, p.site, now, FEEDBACK_GOOD, 20, 50);
    for (; p.site->window.size > 2; now += 3000, until = now + 11 * 60000)
        (void)!site_served(&p.set.sites, p.site, now, FEEDBACK_GOOD, 20, 3000);
    for (; now < until - 3 * 60000; now += 3000)
        (void)!site_served(&p.set.sites, p.site, now, FEEDBACK_GOOD, 20, 3000);
    ok_named(p.site->window.size <= 2, "two at most for some minutes");
    for (; now < until; now += 3000)
        (void)!site_served(&p.set.sites, p.site, now, FEEDBACK_GOOD, 20, 3000);
    is_number(p.site->window.size, 20, "then as many as before");
}

TEST(death)
{
    struct place p;
    start(&p);
    struct sched_session *a = open_session(&p, NOW, true),
                         *b = open_session(&p, NOW, true);
    bool died = false;
    for (int i = 0; i < 50; i++)
        died |= site_served(&p.set.sites, p.site, NOW, FEEDBACK_BAD, 1, 0);
    ok_named(!died, "with two sessions that live a site does not die");
    close_session(b);
    ok_named(site_served(&p.set.sites, p.site, NOW, FEEDBACK_BAD, 1, 0),
             "with only the one that reports it does");
    close_session(a);
    finish(&p);
    start(&p);
    a = open_session(&p, NOW, false);
    b = open_session(&p, NOW, false);
    close_session(a);
    ok_named(!site_refused(p.site, NOW, false), "one refused, another may still greet");
    close_session(b);
    ok_named(site_refused(p.site, NOW, false), "the last is refused, too: dead");
    die(&p, NOW);
    ok_named(!site_refused(p.site, NOW, false), "and only once");
    site_greeted(&p.set.sites, p.site, NOW);
    ok_named(!p.site->dead && p.site->window.probing, "a late greeting is life");
    site_revive(&p.set.sites, p.site);
    is_number(p.set.sites.dead_count, 0, "who lives is not revived");
    finish(&p);
}

TEST(probe_times)
{
    struct place p;
    start(&p);
    int64_t now = NOW, longest = 0;
    static const int64_t want[] = {10000, 20000, 40000, 45000, 45000, 45000};
    for (int i = 0; now < NOW + INT64_C(7) * 86400000; i++) {
        die(&p, now);
        int64_t wait = p.site->dead_until_ms - now;
        if (i < 6)
            ok_named(wait >= want[i] * 9 / 10 && wait <= want[i],
                     "10 s, doubled to 45 s");
        longest = wait > longest ? wait : longest;
        now += wait;
        site_update(&p.set.sites, p.site, now);
        if (p.site->dead)
            break;
        if (i == 200)
            ok_named(wait > 60000, "longer when dead for hours");
    }
    ok_named(longest >= SITE_PROBE_LONG_MS * 9 / 10 && longest <= SITE_PROBE_LONG_MS,
             "at most a quarter of an hour");
    ok(!site_served(&p.set.sites, p.site, now, FEEDBACK_GOOD, 1, 0));
    die(&p, now);
    ok_named(p.site->dead_until_ms <= now + 11000, "after a success as at first");
    finish(&p);
    prepare(&p);
    p.target.transport.adaptive = 0;
    begin(&p);
    die(&p, NOW);
    is_number(p.site->dead_until_ms, NOW + 300000, "Postfix: minimal_backoff_time");
    finish(&p);
}

TEST(backlog)
{
    struct id id;
    FIXTURE(place, p, start, finish);
    ok(!backlog_waits(p.site) && !backlog_take(p.site, FLOW_NEW, &id));
    uint64_t in = 0, out = 0;
    bool in_order = true;
    for (int i = 0; i < 100000; i++) {
        backlog_add(p.site, FLOW_NEW, (struct id){++in, 1});
        backlog_add(p.site, FLOW_NEW, (struct id){++in, 1});
        in_order &= backlog_take(p.site, FLOW_NEW, &id) && id.time_ms == ++out;
        if (in - out > 500)
            while (backlog_take(p.site, FLOW_NEW, &id))
                in_order &= id.time_ms == ++out;
    }
    ok_named(in_order, "in the order they came");
    for (uint64_t i = 0; i < 500; i++)
        backlog_add(p.site, FLOW_OLD, (struct id){1 + i * 7919 % 500, i});
    for (uint64_t i = 1; i <= 500; i++)
        in_order &= backlog_take(p.site, FLOW_OLD, &id) && id.time_ms == i;
    ok_named(in_order && !backlog_take(p.site, FLOW_OLD, &id),
             "or oldest first, if they came back in another");
    for (uint64_t i = 0; i < 500; i++)
        backlog_add(p.site, FLOW_NEW, (struct id){7, 500 - i});
    for (uint64_t i = 0; i < 500; i++)
        in_order &= backlog_take(p.site, FLOW_NEW, &id) && id.hash == 500 - i;
    ok_named(in_order, "those of one millisecond as they came");
    ok_named(id_queue_memory(&p.site->backlog[FLOW_NEW].ids) <= 24 * 2048,
             "and room for no more than are backlogged");
    while (backlog_take(p.site, FLOW_NEW, &id))
        out++;
    ok(in == out && !backlog_waits(p.site));
    for (int i = 0; i < 1000; i++)
        backlog_add(p.site, FLOW_NEW, (struct id){++in, 1});
    for (int i = 0; i < 100000; i++) {
        backlog_add(p.site, FLOW_NEW, (struct id){++in, 1});
        in_order &= backlog_take(p.site, FLOW_NEW, &id) && id.time_ms == ++out;
    }
    ok_named(in_order && id_queue_memory(&p.site->backlog[FLOW_NEW].ids) <= 24 * 4096,
             "with many there all the time");
}

/* Ids that are added again and again take no more space, and keep their order. */
TEST(backlog_repeated)
{
    enum { IDS = 1000, ROUNDS = 50 };
    struct id id;
    uint64_t wrong = 0;
    FIXTURE(place, p, start, finish);
    for (int round = 0; round < ROUNDS; round++)
        for (uint64_t i = 1; i <= IDS; i++) {
            /* Three to a millisecond, their hashes in no order. */
            struct id one = {i / 3, i * 7919 % IDS};
            if (round == 0)
                backlog_add(p.site, FLOW_OLD, one);
            else
                backlog_repeat(p.site, FLOW_OLD, one);
        }
    is_number((long long)backlog_count(p.site), IDS, "each counts once");
    ok_named(id_queue_memory(&p.site->backlog[FLOW_OLD].ids) <= 24 * 4 * IDS,
             "in bounded space");
    static bool seen[IDS];
    for (uint64_t i = 1; backlog_take(p.site, FLOW_OLD, &id);) {
        if (seen[id.hash])
            continue;
        seen[id.hash] = true;
        wrong += id.time_ms != i / 3 || id.hash != i * 7919 % IDS;
        i++;
    }
    is_number((long long)wrong, 0, "in the order of their first addition");
    backlog_drop(p.site, FLOW_OLD); /* nothing */
    ok(backlog_count(p.site) == 0 && !backlog_waits(p.site));
}

TEST(clock)
{
    FIXTURE(place, p, prepare, finish);
    p.target.transport.rate =
        (struct rate){.amount = 1, .burst = 1, .period_ms = 60000};
    p.target.transport.transport_rate_delay_ms = 1000;
    begin(&p);
    const int64_t back = -3600000;
    struct sched_session *s = open_session(&p, NOW, true);
    struct sched_session *waiting = open_session(&p, NOW, false);
    site_take(p.site, NOW);
    site_pause(p.site, NOW);
    transport_begin(p.site->transport, NOW);
    transport_end(p.site->transport);
    uint32_t job_s = sites_job_s(&p.set.sites, NOW);
    sites_shift(&p.set.sites, back);
    is_number(sites_job_s(&p.set.sites, NOW + back), job_s, "jobs do not see it");
    is_number(p.site->open_after_ms, NOW + back + 1000, "the pause moves along");
    is_number(p.site->transport->pause_until_ms, NOW + back + 1000,
              "the transport's, too");
    is_number(site_ready_ms(p.site, NOW + back), NOW + back + 60000, "and the rate");
    is_number(waiting->opened_ms, NOW + back, "and who waits for a greeting");
    close_session(waiting);
    close_session(s);
    die(&p, NOW);
    site_update(&p.set.sites, p.site, NOW);
    int64_t until = p.site->dead_until_ms;
    sites_shift(&p.set.sites, back);
    is_number(p.site->dead_until_ms, until + back, "and the dead");
    is_number(sites_wake_ms(&p.set.sites), until + back, "and timers");
    is_number(p.site->dead_since_ms, NOW + back, "since when");
}

/* State that a restart has left for a site that does not exist yet moves along, too. */
TEST(clock_restored)
{
    struct place p;
    struct site_state state;
    char key[SITE_STATE_KEY_MAX];
    const int64_t back = -3600000;
    start(&p);
    site_pause(p.site, NOW);
    p.site->ceiling.sessions = p.site->ceiling.found = 7;
    p.site->ceiling.probe_at_ms = NOW + 5000;
    die(&p, NOW);
    int64_t until = p.site->dead_until_ms;
    ok(site_remember(p.site, &state, key));
    state.at_ms = NOW;
    finish(&p);
    prepare(&p);
    ok(site_state_add(&p.set.sites.states, &state));
    sites_shift(&p.set.sites, back);
    is_number(p.set.sites.states.by_key->at_ms, NOW + back, "its time");
    begin(&p);
    ok(p.site->dead);
    is_number(p.site->dead_until_ms, until + back, "its probe");
    is_number(p.site->dead_since_ms, NOW + back, "its death");
    is_number(p.site->pause_until_ms, state.pause_until_ms + back, "its pause");
    is_number(p.site->ceiling.probe_at_ms, NOW + 5000 + back, "what it has learnt");
    finish(&p);
}

TEST(inherit)
{
    FIXTURE(place, p, start, finish);
    struct destination *old = p.d;
    p.site->window.size = 15;
    p.site->ceiling.sessions = p.site->ceiling.found = 7;
    latency_note(&p.site->latency, 80);
    p.target.transport.concurrency_limit = 10;
    destinations_reload(&p.set);
    struct destination *d = destination_get(&p.set, &p.target, TEXT("a.example"), NOW);
    ok_named(d == old && d->site->window.size == 10,
             "the window, within the new limit");
    is_number(d->site->window.limit, 10, "which counts");
    is_number(d->site->ceiling.sessions, 7, "the ceiling");
    is_number(latency_short_ms(&d->site->latency), 80, "the latency");
    is_number(p.set.sites.count, 1, "the old one is gone");
    p.site = d->site;
}

/* Two domains at a site on probation, with a rate: all are freed. */
TEST(free_probing)
{
    FIXTURE(place, p, prepare, finish);
    p.target.transport.rate =
        (struct rate){.amount = 1, .burst = 1, .period_ms = 60000};
    begin(&p);
    struct destination *b = destination_get(&p.set, &p.target, TEXT("b.example"), NOW);
    destination_move(&p.set, p.d, p.d->transport, TEXT("mx:10 m"), NOW);
    destination_move(&p.set, b, b->transport, TEXT("mx:10 m"), NOW);
    ok(p.d->site == b->site && b->site->destinations == 2);
    p.site = b->site;
    die(&p, NOW);
    site_revive(&p.set.sites, p.site);
    backlog_add(p.site, FLOW_NEW, (struct id){1, 1});
    site_update(&p.set.sites, p.site, NOW);
    ok_named(p.site->is_ready, "backlogged mail wants a probe");
    p.site->transport->target.transport.adaptive = 0;
    site_update(&p.set.sites, p.site, NOW);
    ok_named(!p.site->is_ready, "by Postfix's rules not before it is due");
    p.site->is_due = true;
    site_update(&p.set.sites, p.site, NOW);
    ok(p.site->is_ready);
    p.site->transport->target.transport.adaptive = 1;
}
