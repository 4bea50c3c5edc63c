/* The scheduler under load: 30,000 messages, 1,000 destinations, random verdicts and
 * troubles (seeded). Every recipient gets exactly one final verdict, no limit is ever
 * passed. */
#include "sched/sched.h"

#include "t/support/sched_world.h"
#include "t/support/sites_look.h"

#include <malloc.h>

enum {
    MESSAGES = 30000,
    DOMAINS = 1000,
    ACTIVE = 2000,
    SESSIONS = 300,
    KEPT = 2 * SESSIONS
};

struct run {
    struct world w;
    uint64_t random;
    struct channel *open[KEPT]; /* in no order */
    int count, working, working_max;
    int per_domain[DOMAINS];
    uint64_t steps, opens, seconds;
    bool within;
};

static unsigned
chance(struct run *r, unsigned below)
{
    r->random = r->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)((r->random >> 33) % below);
}

static int
domain_number(const char *domain)
{
    return atoi(domain + 1);
}

static void
check_site(void *context, const struct sched_site *site)
{
    struct run *r = context;
    int number = domain_number(site->key + strlen("smtp:"));
    if (site->sessions != r->per_domain[number] || site->window > 20 ||
        (site->dead_until_ms && site->waiting > 0) ||
        (site->dead_until_ms != 0) != (site->reason != NULL))
        r->within = false;
}

struct one_site {
    const char *domain;
    int window;
};

static void
find_site(void *context, const struct sched_site *site)
{
    struct one_site *one = context;
    if (!strcmp(site->key + strlen("smtp:"), one->domain))
        one->window = site->window;
}

static void
opened(struct run *r, const struct sched_action *a)
{
    struct one_site one = {.domain = a->domain};
    world_must(r->count < KEPT, "never more than twice the session limit");
    struct channel *c = memory_new(sizeof(*c));
    *c = (struct channel){.session = a->session, .domain = a->domain};
    r->open[r->count++] = c;
    r->working++;
    if (r->working > r->working_max)
        r->working_max = r->working;
    int sessions = ++r->per_domain[domain_number(a->domain)];
    if (r->opens++ % 64 == 0) {
        sites_look(r->w.s, find_site, &one);
        r->within &= sessions <= one.window;
    }
}

static void
turn(struct run *r)
{
    struct sched_action a;
    while (sched_next(r->w.s, &a)) {
        if (a.verb == SCHED_OPEN)
            opened(r, &a);
        else
            world_act(&r->w, &a);
    }
}

static void
close_channel(struct run *r, int at, const struct outcome *trouble)
{
    struct channel *c = r->open[at];
    r->per_domain[domain_number(c->domain)]--;
    r->open[at] = r->open[--r->count];
    r->working -= !c->idle;
    sched_session_ended(r->w.s, c->session,
                        trouble != NULL ? trouble : &outcome_no_trouble);
    free(c);
}

/* Every seventh domain is in trouble for hours, one in a hundred does not exist. */
static bool
connect_fails(struct run *r, int at)
{
    int number = domain_number(r->open[at]->domain);
    bool bad_hours = r->w.now / 7200000 % 3 == 0;
    struct outcome refused = world_trouble(VERDICT_DEFERRED, "connection refused");
    struct outcome nowhere = world_trouble(VERDICT_FAILED, "no such domain");
    if (number % 100 == 99)
        close_channel(r, at, &nowhere);
    else if ((number % 7 == 0 && bad_hours) || chance(r, 50) == 0)
        close_channel(r, at, &refused);
    else
        return false;
    return true;
}

static void
ask(struct run *r, int at)
{
    struct channel *c = r->open[at];
    bool expected = sched_has_work(r->w.s, c->session), was_idle = c->idle;
    c->busy = sched_take(r->w.s, c->session, &c->work);
    world_must(c->busy || !expected || !c->greeted, "has_work is true");
    c->greeted = true;
    c->idle = !c->busy;
    r->working += was_idle - c->idle;
}

static void
answer(struct run *r, struct channel *c)
{
    static const struct {
        enum verdict verdict;
        enum blame blame;
    } verdicts[] = {
        {VERDICT_DEFERRED,  BLAME_SITE   },
        {VERDICT_DEFERRED,  BLAME_MESSAGE},
        {VERDICT_DEFERRED,  BLAME_MESSAGE},
        {VERDICT_FAILED,    BLAME_MESSAGE},
        {VERDICT_FAILED,    BLAME_SITE   },
        {VERDICT_DELIVERED, BLAME_NONE   }
    };
    for (size_t i = 0; i < c->work.count; i++) {
        unsigned which = chance(r, 30);
        which = which > 5 ? 5 : which;
        struct outcome o = outcome_make(verdicts[which].verdict, verdicts[which].blame,
                                        451, "4.0.0", "reply %u", chance(r, 20));
        channel_settle(&r->w, c, i, &o);
    }
    c->busy = c->has_second;
    c->work = c->second;
    c->has_second = false;
    r->seconds += c->busy;
}

/* The next work while the last has no verdict yet. */
static bool
ask_early(struct run *r, struct channel *c)
{
    if (c->has_second || chance(r, 3) != 0 || !sched_has_work(r->w.s, c->session))
        return false;
    c->has_second = sched_take(r->w.s, c->session, &c->second);
    world_must(c->has_second, "has_work is true with a work under way");
    return true;
}

static void
step(struct run *r)
{
    int at = (int)chance(r, (unsigned)r->count);
    struct channel *c = r->open[at];
    r->steps++;
    if (c->busy && ask_early(r, c))
        ;
    else if (c->busy)
        answer(r, c);
    else if (!c->greeted && connect_fails(r, at))
        ;
    else if (c->idle && !sched_has_work(r->w.s, c->session))
        close_channel(r, at, NULL);
    else
        ask(r, at);
    r->w.now += chance(r, 11);
    turn(r);
    if (r->steps % 4096 == 0)
        sites_look(r->w.s, check_site, r);
}

static void
add_one(struct run *r)
{
    char domains[4 * 24] = "";
    int length = 0, recipients = 1 + (int)chance(r, 3);
    for (int i = 0; i < recipients; i++)
        length += snprintf(domains + length, sizeof(domains) - (size_t)length,
                           "d%u.example ", chance(r, chance(r, 4) ? DOMAINS : 5));
    unsigned wait_ms = chance(r, 4) ? 0 : chance(r, 600000);
    world_add(&r->w, domains, wait_ms, chance(r, 4) == 0);
    r->w.mails[r->w.count - 1].null_sender = chance(r, 10) == 0;
}

static void
clock_back(struct run *r)
{
    const int64_t delta = -3600000;
    for (unsigned i = 0; i < r->w.count; i++)
        if (!r->w.mails[i].loaded && !r->w.mails[i].gone)
            r->w.mails[i].due += delta;
    r->w.now += delta;
    turn(r);
}

static void
run_all(struct run *r)
{
    while (r->w.finishes < MESSAGES) {
        for (int i = 0; i < 3 && r->w.count < MESSAGES; i++)
            add_one(r);
        turn(r);
        if (r->count > 0)
            step(r);
        else if (r->w.count == MESSAGES) {
            int64_t wake = sched_wake_ms(r->w.s);
            world_must(wake != INT64_MAX, "what is left has a time");
            world_must(wake > r->w.now, "in the future");
            r->w.now = wake;
        }
        if (r->steps == 45000) {
            r->steps++;
            clock_back(r);
        }
    }
}

/* With one recipient a transaction small mail passes large mail as often as it can. */
static void
test_many(bool passing)
{
    static struct run r;
    unsigned fates[4] = {0}, rounds = 0;
    bool once = true;
    memset(&r, 0, sizeof(r));
    r.random = 20;
    r.within = true;
    sched_world_start(&r.w, ACTIVE, SESSIONS);
    r.w.keep_outcomes = false;
    r.w.may_be_early = true; /* when a dead site lives */
    r.w.target.transport.lifetime_ms = 4 * 3600000;
    r.w.target.transport.bounce_lifetime_ms = 60000;
    if (passing) {
        r.w.target.transport.recipient_limit = 1;
        r.w.target.transport.slot_cost = 2;
        r.w.target.transport.minimum_slots = 1;
    }
    run_all(&r);
    for (unsigned i = 0; i < MESSAGES; i++) {
        const struct mail *m = &r.w.mails[i];
        once &= m->gone && m->finals == m->count;
        rounds = m->rounds > rounds ? m->rounds : rounds;
        for (unsigned j = 0; j < m->count; j++)
            fates[m->to[j].fate]++;
    }
    ok_named(once, "every recipient has exactly one final verdict");
    is_number(fates[FATE_OPEN], 0, "nobody is left");
    ok_named(r.seconds > MESSAGES / 100, "many works were taken behind another");
    ok_named(fates[FATE_SENT] > MESSAGES && fates[FATE_FAILED] > 1000,
             "most were sent");
    ok_named(fates[FATE_EXPIRED] > 100, "some expired");
    ok_named(r.within, "no session above a window, all the time");
    ok_named(r.w.active_max <= ACTIVE, "no message above the active limit");
    is_number(r.w.active_max, ACTIVE, "which was reached");
    is_number(r.working_max, SESSIONS, "sessions at work: up to the limit");
    printf("# %u sent, %u failed, %u expired; %" PRIu64 " steps, %u rounds at most\n",
           fates[FATE_SENT], fates[FATE_FAILED], fates[FATE_EXPIRED], r.steps, rounds);
    while (r.count > 0)
        close_channel(&r, 0, NULL);
    turn(&r);
    r.w.now += INT64_C(30) * 86400000;
    turn(&r);
    struct sched_counts n = sched_count(r.w.s);
    ok_named(n.incoming + n.active + n.deferred + n.sessions + n.destinations == 0,
             "and nothing stays behind");
    sched_world_end(&r.w);
}

TEST(memory)
{
    int64_t now = 1000;
    struct sched *s = sched_new(&(struct sched_settings){.active_limit = 1, .session_limit = 1, .seed = 1}, &now);
    size_t before = mallinfo2().uordblks;
    for (unsigned i = 0; i < MESSAGES; i++)
        sched_add(s, (struct id){1000 + i / 4, i}, 5000 + i, 1);
    double each = (double)(mallinfo2().uordblks - before) / MESSAGES;
    printf("# %.1f bytes for each message that is known and not loaded\n", each);
    ok_named(each < 40, "a known message costs less than 40 bytes");
    sched_free(&s);
}

/* Mail of a site whose idle session finds no free place. */
TEST(idle_beside_busy)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 2);
    world_add(&w, "b.example", 0, 0);
    world_run(&w);
    struct channel *idle = world_channel(&w, "b.example", 0), *busy[2];
    ok(channel_take(&w, idle));
    channel_send(&w, idle);
    ok(!channel_take(&w, idle));
    for (unsigned i = 0; i < 10; i++)
        world_add(&w, "a.example", 0, 0);
    world_run(&w);
    for (int i = 0; i < 2; i++) {
        busy[i] = world_channel(&w, "a.example", i);
        ok(busy[i] && channel_take(&w, busy[i]));
    }
    world_add(&w, "b.example", 0, 0);
    world_run(&w);
    ok_named(!sched_has_work(w.s, idle->session), "all sessions are in use");
    channel_send(&w, busy[0]);
    ok_named(!channel_take(&w, busy[0]), "one gives way");
    ok_named(!sched_has_work(w.s, busy[0]->session), "and does not take it back");
    ok_named(channel_take(&w, idle), "but leaves the place to the idle one");
    channel_send(&w, busy[1]);
    ok_named(channel_take(&w, busy[1]), "the other goes on");
    channel_send(&w, idle);
    ok(!channel_take(&w, idle));
    ok_named(channel_take(&w, busy[0]), "and when nobody waits, the first, too");
    channel_send(&w, busy[0]);
    channel_send(&w, busy[1]);
    channel_drain(&w, busy[0]);
    is_number(w.finishes, 12, "all are sent");
}

int
main(void)
{
    tap_tests("");
    test_many(false);
    test_many(true);
    return done();
}
