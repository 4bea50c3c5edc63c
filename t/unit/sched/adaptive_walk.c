/* The scheduler with all that it learns, on random walks: every event in any order,
 * with reloads, operators, sites that share servers, and a clock that is set back.
 * Every recipient gets one verdict a round and one final one, counts agree, nothing is
 * stuck or forgotten, and mail with a demand is given to sessions with its proof alone. */
#include "sched/sched.h"

#include "t/support/sched_world.h"

enum {
    STEPS = 40000,
    WALKS = 4,
    MAILS = 4000,
    OPEN_MAX = 200,
    DOMAINS = 30,
    LATE = 50
};

struct walk {
    struct world w;
    uint64_t random;
    struct channel *open[OPEN_MAX];
    int count;
    struct id late[LATE]; /* loads not yet answered */
    int late_count, limit;
    unsigned seen[MAILS]; /* recipients with a verdict in this round */
    unsigned removed, reloads;
    struct {
        uint64_t now, known; /* known: as found last, or perhaps not (unsure) */
        bool unsure;
    } demands[DOMAINS];
    unsigned proven, unproven; /* works with a demand; sessions that did not prove it */
    int trouble; /* hosts in trouble: percent */
    bool good;
};

static unsigned
chance(struct walk *k, unsigned below)
{
    k->random = k->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)((k->random >> 33) % below);
}

static void
note_verdict(struct walk *k, const struct mail *m, unsigned index, bool expired)
{
    unsigned *seen = &k->seen[m - k->w.mails], bit = 1u << index;
    world_must(!(*seen & bit) == !expired, "one verdict a round, then it may expire");
    *seen |= bit;
}

static void
end_round(struct walk *k, const struct mail *m)
{
    unsigned *seen = &k->seen[m - k->w.mails];
    for (unsigned i = 0; i < m->count; i++)
        world_must(m->to[i].fate != FATE_OPEN || (*seen & 1u << i),
                   "a round ends with a verdict for each");
    *seen = 0;
}

static void
opened(struct walk *k, const struct sched_action *a)
{
    world_must(k->count < 2 * k->limit && k->count < OPEN_MAX, "sessions in bounds");
    struct channel *c = memory_new(sizeof(*c));
    *c = (struct channel){.session = a->session, .domain = a->domain, .target = a->target};
    k->open[k->count++] = c;
    k->w.opens++;
}

/* One in fifty is gone when it is to be loaded. */
static void
load(struct walk *k, struct id id)
{
    struct mail *m = &k->w.mails[id.hash];
    if (chance(k, 50) > 0) {
        world_load(&k->w, id);
        return;
    }
    sched_unloaded(k->w.s, k->w.now, id);
    m->gone = true;
    k->removed++;
}

static void
turn(struct walk *k)
{
    struct sched_action a;
    unsigned actions = 0;
    while (sched_next(k->w.s, k->w.now, &a)) {
        struct mail *m = &k->w.mails[a.id.hash];
        world_must(++actions < 200000, "an end of actions");
        if (a.verb == SCHED_OPEN)
            opened(k, &a);
        else if (a.verb == SCHED_LOAD && k->late_count < LATE && chance(k, 4) == 0)
            k->late[k->late_count++] = a.id;
        else if (a.verb == SCHED_LOAD)
            load(k, a.id);
        else {
            if (a.verb == SCHED_SETTLE)
                note_verdict(k, m, a.index, a.expired);
            else
                end_round(k, m);
            world_act(&k->w, &a);
        }
    }
}

static void
close_channel(struct walk *k, int at, const struct outcome *trouble)
{
    struct channel *c = k->open[at];
    k->open[at] = k->open[--k->count];
    sched_session_ended(k->w.s, k->w.now, c->session,
                        trouble != NULL ? trouble : &outcome_no_trouble);
    free(c);
}

static int
host_of(const char *domain)
{
    return atoi(domain + 1) / 3;
}

/* Some domains have servers of their own. The lessons from a session of obsolete
 * settings count or not. */
static bool
find_servers(struct walk *k, struct channel *c)
{
    char key[32];
    int number = atoi(c->domain + 1);
    if (number % 10 == 9 || c->found)
        return true;
    c->found = true;
    c->proof = k->demands[number].now;
    snprintf(key, sizeof(key), "mx:10 s%d", host_of(c->domain));
    sched_session_demand(k->w.s, k->w.now, c->session, c->proof, chance(k, 3600000));
    bool found = sched_session_found(k->w.s, k->w.now, c->session, text_from(key));
    k->demands[number].known = c->proof;
    k->demands[number].unsure = !found && memcmp(c->target, &k->w.target, sizeof(*c->target)) != 0;
    return found;
}

/* Half the domains sometimes demand something, of three things. */
static void
change_demand(struct walk *k)
{
    unsigned number = chance(k, DOMAINS);
    k->demands[number].now = number % 2 == 0 ? 0 : chance(k, 4);
}

static bool
walk_take(struct walk *k, struct channel *c, struct sched_work *work)
{
    if (!c->greeted && !c->found) {
        int number = atoi(c->domain + 1);
        k->demands[number].known = 0;
        k->demands[number].unsure = false;
    }
    c->greeted = true;
    if (!sched_take(k->w.s, k->w.now, c->session, work))
        return false;
    const struct mail *m = &k->w.mails[(uintptr_t)work->owner - 1];
    for (size_t i = 0; i < work->count; i++) {
        int number = atoi(m->to[work->indexes[i]].domain + 1);
        uint64_t known = k->demands[number].known;
        if (known == 0 || k->demands[number].unsure)
            continue;
        world_must(c->proof == known, "mail with a demand is given to a session with its proof");
        k->proven++;
    }
    return true;
}

static void
start_session(struct walk *k, int at)
{
    struct channel *c = k->open[at];
    struct outcome refused = world_trouble(VERDICT_DEFERRED, "connection refused");
    struct outcome insecure =
        outcome_make(VERDICT_DEFERRED, BLAME_DEMAND, 0, "4.7.5", "not the certificate");
    struct outcome nobody = world_trouble(VERDICT_FAILED, "no such domain");
    bool bad_host = (k->w.now / 600000 + host_of(c->domain)) % 3 == 0;
    unsigned what = chance(k, 100);
    if (what < 2)
        close_channel(k, at, &nobody);
    else if (what < 5)
        close_channel(k, at, NULL);
    else if (!c->found && chance(k, 4) > 0) {
        if (!find_servers(k, c))
            close_channel(k, at, NULL);
    }
    else if (what < (bad_host ? 70u : 33u) && k->trouble > 0)
        close_channel(k, at, &refused);
    else if (what >= 60 && k->trouble > 0 && c->proof != 0 && chance(k, 4) == 0) {
        k->unproven++;
        close_channel(k, at, &insecure);
    } else if (what >= 60)
        c->busy = walk_take(k, c, &c->work);
}

static struct outcome
answer(struct walk *k)
{
    unsigned what = chance(k, 60);
    if (k->trouble == 0 || what > 8)
        return outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "ok");
    if (what < 2)
        return outcome_make(VERDICT_DEFERRED, BLAME_SITE, 421, "4.7.28",
                            "rate limit exceeded, slow down");
    if (what < 4)
        return outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 451, "4.7.1",
                            "greylisted");
    if (what < 7)
        return world_trouble(VERDICT_DEFERRED, "lost connection");
    return outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "unknown");
}

static void
settle_work(struct walk *k, struct channel *c)
{
    for (size_t i = 0; i < c->work.count; i++) {
        struct outcome o = answer(k);
        struct mail *m = channel_mail(&k->w, c);
        unsigned index = c->work.indexes[i];
        note_verdict(k, m, index, false);
        world_verdict(&k->w, m, index, &o, false);
        sched_settled(k->w.s, k->w.now, c->session, index, &o);
    }
    c->work = c->second;
    c->busy = c->has_second;
    c->has_second = false;
}

static void
waive_second(struct walk *k, struct channel *c)
{
    struct outcome o = world_trouble(VERDICT_DEFERRED, "lost connection");
    struct mail *m = &k->w.mails[(uintptr_t)c->second.owner - 1];
    for (size_t i = 0; i < c->second.count; i++) {
        note_verdict(k, m, c->second.indexes[i], false);
        world_verdict(&k->w, m, c->second.indexes[i], &o, false);
    }
    sched_waive(k->w.s, k->w.now, c->session, &o);
    c->has_second = false;
}

static void
step_session(struct walk *k)
{
    int at = (int)chance(k, (unsigned)k->count);
    struct channel *c = k->open[at];
    if (!c->greeted)
        start_session(k, at);
    else if (c->busy && !c->has_second && chance(k, 3) == 0)
        c->has_second = walk_take(k, c, &c->second);
    else if (c->has_second && chance(k, 4) == 0)
        waive_second(k, c);
    else if (c->busy)
        settle_work(k, c);
    else if (chance(k, 10) == 0 || !sched_has_work(k->w.s, c->session))
        close_channel(k, at, NULL);
    else
        c->busy = walk_take(k, c, &c->work);
}

static void
add_one(struct walk *k)
{
    char domains[8 * 16] = "";
    size_t length = 0;
    unsigned recipients = 1 + chance(k, chance(k, 5) ? 2 : 8);
    for (unsigned i = 0; i < recipients; i++)
        length += (size_t)snprintf(domains + length, sizeof(domains) - length, "d%u.x ",
                                   chance(k, chance(k, 3) ? 3 : DOMAINS));
    world_add(&k->w, domains, chance(k, 3) ? 0 : chance(k, 300000), chance(k, 4) == 0);
    /* It is not loaded before the next turn. */
    struct mail *m = &k->w.mails[k->w.count - 1];
    m->sender = chance(k, 6);
    m->class = chance(k, SCHED_CLASSES);
    m->size = chance(k, 4) ? 1000 : 5u << 20;
    m->null_sender = chance(k, 10) == 0;
}

static void
reload(struct walk *k)
{
    struct transport_params *t = &k->w.target.transport;
    static const int shares[] = {0, 5, 20, 50};
    k->reloads++;
    if (chance(k, 2))
        sched_ask_again(k->w.s);
    k->limit = 10 + (int)chance(k, 40);
    sched_change(k->w.s,
                 &(struct sched_settings){.active_limit = 50 + (int)chance(k, 200),
                                          .session_limit = k->limit,
                                          .site_share = shares[chance(k, 4)]});
    if (k->limit * 2 < k->count)
        k->limit = (k->count + 1) / 2;
    t->adaptive = chance(k, 5) > 0;
    t->concurrency_limit = chance(k, 4) ? 1 + (int)chance(k, 20) : 0;
    t->initial_concurrency = 1 + (int)chance(k, 8);
    t->recipient_limit = (int)chance(k, 5);
    t->reuse_limit = chance(k, 2) ? 0 : 5;
    t->failed_cohort_limit = (int)chance(k, 4);
    t->rate_delay_ms = chance(k, 6) ? 0 : 3000;
    t->transport_rate_delay_ms = chance(k, 6) ? 0 : 2000;
    t->rate = (struct rate){
        .amount = chance(k, 4) ? 0 : 60, .burst = 1 + chance(k, 9), .period_ms = 60000};
}

static bool
waits(const struct mail *m)
{
    return !m->loaded && !m->gone;
}

static void
clock_back(struct walk *k)
{
    int64_t delta = -(int64_t)chance(k, 7200000) - 1000;
    for (unsigned i = 0; i < k->w.count; i++)
        if (waits(&k->w.mails[i]))
            k->w.mails[i].due += delta;
    k->w.now += delta;
}

static void
operate(struct walk *k)
{
    if (k->w.count == 0)
        return;
    struct mail *m = &k->w.mails[chance(k, k->w.count)];
    switch (chance(k, 60)) {
    case 0:
        sched_retry_all(k->w.s, k->w.now);
        break;
    case 1:
        reload(k);
        break;
    case 2:
        clock_back(k);
        break;
    case 3: /* held, and released as new */
        if (sched_forget(k->w.s, m->id)) {
            m->due = k->w.now;
            sched_add(k->w.s, k->w.now, m->id, m->due, m->attempts);
        }
        break;
    case 4:
        if (chance(k, 5) == 0 && sched_forget(k->w.s, m->id)) {
            m->gone = true;
            k->removed++;
        }
        break;
    default:
        world_must(sched_retry(k->w.s, k->w.now, m->id) == !m->gone, "it is known");
    }
}

struct sums {
    struct walk *k;
    size_t sites, dead, waiting;
    int sessions, destinations;
    unsigned recipients, mail;
};

static void
sum_site(void *context, const struct sched_site *site)
{
    struct sums *sums = context;
    int64_t now = sums->k->w.now;
    sums->sites++;
    sums->dead += site->dead_until_ms != 0;
    sums->sessions += site->sessions;
    sums->destinations += site->destinations;
    sums->waiting += site->waiting;
    world_must((site->dead_until_ms != 0) == (site->bound == SCHED_BOUND_DEAD) &&
                   (site->dead_until_ms != 0) == (site->reason != NULL),
               "the dead are told");
    world_must(site->dead_until_ms == 0 || site->waiting == 0, "nothing waits there");
    world_must(site->bound == SCHED_BOUND_NONE || site->bound_until_ms > now,
               "a bound ends in the future");
    world_must(site->busy <= site->sessions && site->busy >= 0, "busy sessions");
    world_must(strcmp(sched_bound_word(site->bound), "unknown") != 0, "a word for it");
}

static void
sum_wait(void *context, const struct sched_wait *wait)
{
    struct sums *sums = context;
    sums->mail += wait->waiting + wait->taken;
    sums->recipients += wait->waiting;
}

static void
check(struct walk *k)
{
    struct sums sums = {.k = k};
    struct sched_counts n = sched_count(k->w.s);
    size_t waiting = 0;
    sched_sites(k->w.s, sum_site, &sums);
    for (unsigned i = 0; i < k->w.count; i++) {
        struct mail *m = &k->w.mails[i];
        unsigned open = 0;
        waiting += waits(m);
        for (unsigned j = 0; j < m->count && m->loaded; j++)
            open += m->to[j].fate == FATE_OPEN && !(k->seen[i] & 1u << j);
        sums.mail = 0;
        if (m->loaded)
            world_must(sched_explain(k->w.s, m->id, sum_wait, &sums),
                       "it is explained");
        world_must(sums.mail == open, "what is open waits or is taken");
    }
    world_must(sums.recipients == sums.waiting, "sites have what waits");
    world_must(n.active == (size_t)(k->w.active + k->late_count), "active");
    world_must(n.incoming + n.deferred == waiting - (size_t)k->late_count, "waiting");
    world_must(n.sessions == (size_t)k->count && sums.sessions == k->count, "sessions");
    world_must(n.sites == sums.sites && n.dead == sums.dead, "sites");
    world_must(n.destinations == (size_t)sums.destinations, "destinations");
}

static void
step(struct walk *k)
{
    unsigned what = chance(k, 100);
    if (what < 15 && k->w.count < MAILS)
        add_one(k);
    else if (what < 70 && k->count > 0)
        step_session(k);
    else if (what < 80 && k->late_count > 0)
        load(k, k->late[--k->late_count]);
    else if (what < 90)
        k->w.now += chance(k, chance(k, 10) ? 200 : 60000);
    else if (what < 93)
        operate(k);
    else if (what < 95)
        change_demand(k);
    turn(k);
}

/* Now all answer well: everything ends. */
static void
end_well(struct walk *k)
{
    k->trouble = 0;
    for (int i = 0; i < 2000000 && k->w.finishes + k->removed < k->w.count; i++) {
        turn(k);
        while (k->late_count > 0) {
            load(k, k->late[--k->late_count]);
            turn(k);
        }
        int64_t wake = sched_wake_ms(k->w.s);
        if (k->count > 0 && (wake == INT64_MAX || i % 16))
            step_session(k);
        else if (k->w.finishes + k->removed < k->w.count) {
            world_must(wake != INT64_MAX, "what is left has a time");
            world_must(wake > k->w.now, "in the future");
            k->w.now = wake;
        }
    }
    is_number(k->w.finishes + k->removed, k->w.count, "every message ends");
    turn(k);
    while (k->count > 0)
        close_channel(k, 0, NULL);
    turn(k);
    for (int i = 0; i < 100; i++) {
        k->w.now += 3600000;
        turn(k);
    }
    struct sched_counts n = sched_count(k->w.s);
    is_number(n.incoming + n.active + n.deferred + n.sessions, 0, "nothing is left");
    is_number(n.destinations + n.sites, 0, "no destination is remembered for ever");
}

static void
walk(uint64_t seed)
{
    static struct walk k;
    memset(&k, 0, sizeof(k));
    k.random = seed;
    k.limit = 30;
    k.trouble = 1;
    sched_world_start(&k.w, 100, k.limit);
    k.w.keep_outcomes = false;
    k.w.may_be_early = true;
    k.w.target.transport.adaptive = 1;
    for (unsigned i = 0; i < STEPS; i++) {
        step(&k);
        if (i % 64 == 0)
            check(&k);
    }
    check(&k);
    printf("# %u recipients with a demand, %u sessions without its proof\n", k.proven, k.unproven);
    ok_named(k.proven > 100 && k.unproven > 10, "demands have been met, and not");
    ok_named(k.w.opens > 1000 && k.w.backlogged > 0 && k.reloads > 0,
             "the promises of check() hold on a walk of all kinds");
    printf("# seed %u: %u mails, %u opens, %u loads, %u backlogged, %u reloads\n",
           (unsigned)seed, k.w.count, k.w.opens, k.w.loads, k.w.backlogged, k.reloads);
    end_well(&k);
    sched_world_end(&k.w);
}

/* adaptive_walk.t [SEED [WALKS]] */
int
main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    unsigned walks = argc > 2 ? (unsigned)atoi(argv[2]) : WALKS;
    for (unsigned i = 0; i < walks; i++)
        walk(seed + i);
    return done();
}
