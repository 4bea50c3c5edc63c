/* Random feeds from a seed: small limits, deaths, reloads, clock steps and commands of
 * an operator, then good weather. All mail ends, counts agree with what the owner has
 * seen, and nothing loops.
 *
 *   feed.t [FIRST COUNT]   seeds */
#include "sched/sched.h"

#include "base/memory.h"
#include "sched/limits/retry.h"

#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

enum {
    SEEDS = TAP_ADDRESS_SANITIZER ? 300 : 2000,
    MAILS = 120,
    TO_MAX = 6,
    SESSIONS = 64,
    STEPS = 300,       /* of bad weather */
    GOOD_STEPS = 6000, /* in which all must end */
    LOOP = 20000       /* actions at one time */
};

struct mail {
    struct id id;
    enum { AWAY, KNOWN, LOADING, LOADED, ENDED } place;
    unsigned count, sender, deferred;
    unsigned recipients; /* of its envelope: some have been delivered before */
    unsigned site[TO_MAX];
    bool done[TO_MAX];
};

struct channel {
    struct sched_session *session;
    unsigned site;
    bool greeted, busy;
    struct sched_work work;
};

struct feed {
    struct sched *s;
    uint64_t random;
    int64_t now;
    bool good;
    const char *wrong;
    unsigned sites, added;
    struct target targets[2];
    struct mail mails[MAILS];
    struct channel channels[SESSIONS];
    bool down[8];
    struct sched_settings settings;
};

static unsigned
draw(struct feed *f, unsigned below)
{
    return (unsigned)(retry_random(&f->random) % below);
}

static void
must(struct feed *f, bool good, const char *what)
{
    if (!good && !f->wrong)
        f->wrong = what;
}

static unsigned
domain_site(const char *domain)
{
    return (unsigned)(domain[1] - '0');
}

static void
add(struct feed *f)
{
    if (f->added == MAILS)
        return;
    struct mail *m = &f->mails[f->added];
    *m = (struct mail){
        .id = {(uint64_t)f->now, f->added},
          .place = KNOWN
    };
    m->count = draw(f, 5) ? 1 : 1 + draw(f, TO_MAX);
    m->sender = draw(f, 4);
    m->recipients = m->count + (draw(f, 4) ? 0 : draw(f, 30));
    for (unsigned i = 0; i < m->count; i++)
        m->site[i] = draw(f, 3) ? 0 : draw(f, f->sites);
    f->added++;
    sched_add(f->s, f->now, m->id, f->now, draw(f, 3) ? 0 : 1 + draw(f, 3));
    if (draw(f, 2))
        sched_weigh(f->s, m->id, m->recipients);
}

static void
answer_load(struct feed *f, struct mail *m)
{
    struct sched_recipient to[TO_MAX];
    char domains[TO_MAX][16];
    size_t count = 0;
    if (!sched_admit(f->s, f->now, m->id, m->recipients)) {
        m->place = KNOWN;
        return;
    }
    for (unsigned i = 0; i < m->count; i++) {
        if (m->done[i])
            continue;
        snprintf(domains[count], sizeof(domains[count]), "d%u-%u.example", m->site[i],
                 i % 2);
        to[count] = (struct sched_recipient){i, &f->targets[m->site[i] % 2],
                                             text_from(domains[count]), 0};
        count++;
    }
    struct sched_mail mail = {
        .owner = m, .birth_ms = f->now, .sender = m->sender * 4, .size = 1000};
    m->place = sched_loaded(f->s, f->now, m->id, &mail, to, count) ? LOADED : KNOWN;
}

static void
see_verdict(struct feed *f, struct mail *m, unsigned index, const struct outcome *o)
{
    must(f, m->place == LOADED && !m->done[index], "a verdict for an open recipient");
    m->done[index] = o->verdict != VERDICT_DEFERRED;
}

static void
act(struct feed *f, const struct sched_action *a)
{
    struct mail *m = &f->mails[a->id.hash];
    switch (a->verb) {
    case SCHED_LOAD:
        must(f, m->place == KNOWN, "only known mail is loaded");
        m->place = LOADING;
        if (f->good || draw(f, 2))
            answer_load(f, m);
        return;
    case SCHED_OPEN:
        for (int i = 0; i < SESSIONS; i++) {
            if (f->channels[i].session)
                continue;
            f->channels[i] =
                (struct channel){.session = a->session, .site = domain_site(a->domain)};
            return;
        }
        must(f, false, "few sessions");
        return;
    case SCHED_SETTLE:
        see_verdict(f, m, a->index, a->outcome);
        return;
    case SCHED_WAIT:
        must(f, m->place == LOADED, "only loaded mail waits");
        m->place = KNOWN;
        return;
    case SCHED_FINISH:
        must(f, m->place == LOADED, "only loaded mail ends");
        m->place = ENDED;
        return;
    }
}

static void
recount(struct feed *f)
{
    struct sched_counts c = sched_count(f->s);
    size_t known = 0, active = 0, sessions = 0, recipients = 0, loading = 0;
    for (unsigned i = 0; i < f->added; i++) {
        known += f->mails[i].place == KNOWN;
        active += f->mails[i].place == LOADING || f->mails[i].place == LOADED;
        loading += f->mails[i].place == LOADING ? f->mails[i].recipients : 0;
        recipients += f->mails[i].place == LOADED ? f->mails[i].recipients : 0;
    }
    for (int i = 0; i < SESSIONS; i++)
        sessions += f->channels[i].session != NULL;
    must(f, c.incoming + c.deferred == known, "waiting mail is counted");
    must(f, c.active == active, "active mail is counted");
    must(f, c.sessions == sessions, "sessions are counted");
    must(f, c.recipients >= recipients && c.recipients <= recipients + loading,
         "recipients in memory are counted");
}

static void
turn(struct feed *f)
{
    struct sched_action a;
    unsigned actions = 0;
    while (sched_work(f->s, f->now))
        continue;
    while (!f->wrong && sched_next(f->s, f->now, &a)) {
        act(f, &a);
        must(f, ++actions < LOOP, "the actions of a turn end");
    }
    must(f, f->wrong || sched_wake_ms(f->s) > f->now, "no wake-up is overdue");
    recount(f);
}

/* --- Sessions --------------------------------------------------------------------- */

static void
end(struct feed *f, struct channel *c, const struct outcome *trouble)
{
    struct sched_session *session = c->session;
    c->session = NULL;
    sched_session_ended(f->s, f->now, session,
                        trouble != NULL ? trouble : &outcome_no_trouble);
}

static void
greet(struct feed *f, struct channel *c)
{
    struct outcome no =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.1", "refused");
    char key[16];
    snprintf(key, sizeof(key), "k%u", c->site);
    if (draw(f, 3) && !sched_session_found(f->s, f->now, c->session, text_from(key)))
        end(f, c, NULL);
    else if (f->down[c->site])
        end(f, c, &no);
    else
        c->greeted = true;
}

static void
settle(struct feed *f, struct channel *c)
{
    bool fails = !f->good && (f->down[c->site] || draw(f, 6) == 0);
    struct outcome o =
        fails ? outcome_make(VERDICT_DEFERRED, draw(f, 2) ? BLAME_SITE : BLAME_MESSAGE,
                             451, "4.3.0", "later")
              : outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "sent");
    for (size_t i = 0; i < c->work.count; i++) {
        unsigned index = c->work.indexes[i];
        see_verdict(f, c->work.owner, index, &o);
    }
    unsigned indexes[TO_MAX];
    size_t count = c->work.count;
    memcpy(indexes, c->work.indexes, count * sizeof(*indexes));
    for (size_t i = 0; i < count; i++)
        sched_settled(f->s, f->now, c->session, indexes[i], &o);
    c->busy = false;
}

static void
progress(struct feed *f, struct channel *c)
{
    if (!c->session)
        return;
    if (!c->greeted) {
        greet(f, c);
    } else if (c->busy) {
        settle(f, c);
    } else if (!sched_take(f->s, f->now, c->session, &c->work)) {
        if (sched_session_is_spent(c->session) || draw(f, 3) == 0)
            end(f, c, NULL);
    } else {
        c->busy = true;
    }
}

/* --- A run ------------------------------------------------------------------------ */

static void
change(struct feed *f)
{
    f->settings.active_limit = 1 + (int)draw(f, 30);
    f->settings.site_share = (int)draw(f, 5) * 25;
    if (draw(f, 3) == 0)
        f->settings.site_share = (int)draw(f, 101);
    f->settings.session_limit = 1 + (int)draw(f, 10);
    f->settings.recipient_limit = draw(f, 3) ? 1 + (int)draw(f, 60) : 0;
}

static void
command(struct feed *f)
{
    if (f->added == 0)
        return;
    struct mail *m = &f->mails[draw(f, f->added)];
    switch (draw(f, 9)) {
    case 0:
        sched_retry_all(f->s, f->now);
        return;
    case 1:
        sched_retry(f->s, f->now, m->id);
        return;
    case 2:
        if (m->place == KNOWN && draw(f, 3) == 0) {
            must(f, sched_forget(f->s, m->id), "waiting mail may be forgotten");
            m->place = AWAY;
        }
        return;
    case 3:
        if (m->place == AWAY) {
            m->place = KNOWN;
            sched_add(f->s, f->now, m->id, f->now, draw(f, 2));
        }
        return;
    case 4:
        change(f);
        if (draw(f, 2))
            f->targets[draw(f, 2)].transport.recipient_limit = 1 + (int)draw(f, 4);
        sched_change(f->s, &f->settings);
        return;
    case 5:
        if (draw(f, 10) == 0)
            f->now += draw(f, 2) ? -3600000 : 3600000;
        return;
    default:
        f->down[draw(f, f->sites)] = draw(f, 2);
    }
}

static void
step(struct feed *f)
{
    for (int i = 0; i < SESSIONS; i++)
        if (f->good || draw(f, 3))
            progress(f, &f->channels[i]);
    for (unsigned i = 0; i < f->added; i++)
        if (f->mails[i].place == LOADING && (f->good || draw(f, 2)))
            answer_load(f, &f->mails[i]);
    turn(f);
    int64_t wake = sched_wake_ms(f->s);
    f->now += draw(f, 2000);
    if (f->good && wake != INT64_MAX && wake > f->now && draw(f, 4) == 0)
        f->now = wake;
}

static size_t
left(const struct feed *f)
{
    struct sched_counts c = sched_count(f->s);
    return c.incoming + c.active + c.deferred;
}

static void
start(struct feed *f, uint64_t seed)
{
    f->random = seed;
    f->now = INT64_C(1700000000000);
    f->sites = 1 + draw(f, 6);
    change(f);
    f->settings.seed = seed;
    f->s = sched_new(&f->settings);
    for (unsigned i = 0; i < 2; i++) {
        struct target *t = &f->targets[i];
        t->kind = TARGET_MX;
        t->look_up_mx = true;
        transport_params_default(&t->transport);
        t->transport.adaptive = draw(f, 3) > 0;
        t->transport.minimal_backoff_ms = 5000 + i;
        t->transport.maximal_backoff_ms = 60000;
        t->transport.failed_cohort_limit = (int)draw(f, 3);
    }
}

static bool
run(uint64_t seed)
{
    struct feed *f = memory_new(sizeof(*f));
    start(f, seed);
    for (int i = 0; i < STEPS && !f->wrong; i++) {
        for (unsigned j = draw(f, 4); j > 0; j--)
            add(f);
        if (draw(f, 4) == 0)
            command(f);
        step(f);
    }
    f->good = true;
    memset(f->down, 0, sizeof(f->down));
    for (int i = 0; i < GOOD_STEPS && !f->wrong && left(f) > 0; i++)
        step(f);
    must(f, left(f) == 0, "all mail ends");
    const char *wrong = f->wrong;
    if (wrong)
        printf("# seed %llu: does not hold: %s; %zu left, active_limit %d, share %d\n",
               (unsigned long long)seed, wrong, left(f), f->settings.active_limit,
               f->settings.site_share);
    sched_free(&f->s);
    free(f);
    return !wrong;
}

int
main(int argc, char **argv)
{
    unsigned first = argc > 2 ? (unsigned)atoi(argv[1]) : 1,
             count = argc > 2 ? (unsigned)atoi(argv[2]) : SEEDS, bad = 0;
    for (unsigned i = 0; i < count && bad < 10; i++)
        bad += !run(first + i);
    ok_named(bad == 0, "all mail ends, whatever the weather was");
    return done();
}
