/* A reload of the routes with mail in each state: each parameter of a transport, raised,
 * lowered, added and removed. Nothing that was counted before stays as it was, all mail goes,
 * and each recipient has one final verdict. */
#include "sched/sched_internal.h"

#include "t/support/sched_world.h"

#define HOUR (INT64_C(3600) * 1000)

/* Two values of each parameter, with which mail leaves within days. */
static const struct pair {
    const char *name, *low, *high;
} pairs[] = {
    {"concurrency",          "1",    "7"            },
    {"initial",              "1",    "9"            },
    {"recipients",           "1",    "50"           },
    {"cohort",               "0",    "3"            },
    {"positive",             "0.25", "1/concurrency"},
    {"negative",             "0",    "1"            },
    {"rate_delay",           "1s",   "1h"           },
    {"transport_rate_delay", "1s",   "1h"           },
    {"rate",                 "1/h",  "100/s"        },
    {"quota",                "1/h",  "900/h"        },
    {"verp",                 "no",   "yes"          },
    {"adaptive",             "no",   "yes"          },
    {"shared",               "no",   "yes"          },
    {"reuse",                "1",    "100"          },
    {"minimal_backoff",      "60s",  "1h"           },
    {"maximal_backoff",      "600s", "8h"           },
    {"lifetime",             "3d",   "9d"           },
    {"bounce_lifetime",      "3d",   "9d"           },
    {"delay_warning",        "1h",   "9h"           },
    {"slot_cost",            "0",    "3"            },
    {"slot_loan",            "0",    "9"            },
    {"slot_discount",        "0",    "100"          },
    {"minimum_slots",        "0",    "9"            },
};

enum way { UP, DOWN, ADDED, REMOVED, WAYS };
static const char *const ways[] = {"raised", "lowered", "added", "removed"};

enum state { WAITING, OPENING, TAKEN, HALF, SENT, DEAD, DUE, LOADING, STATES };
static const char *const states[] = {
    [WAITING] = "waiting, in many transactions",
    [OPENING] = "before the greeting",
    [TAKEN] = "in sessions",
    [HALF] = "between two verdicts of one transaction",
    [SENT] = "behind mail that was sent",
    [DEAD] = "deferred, as the site is dead",
    [DUE] = "due again",
    [LOADING] = "in part loaded",
};

static struct route_table *
table_of(const char *relay)
{
    struct route_settings s = {.relay = text_from(relay), .passwords = TEXT("")};
    struct buffer errors;
    buffer_init(&errors, 4096);
    transport_params_default(&s.base);
    struct route_table *t = route_new(&s, &errors);
    if (!t)
        printf("# %.*s", TEXT_ARGS(buffer_text(&errors)));
    buffer_free(&errors);
    world_must(t != NULL, relay);
    return t;
}

static void
world_route(struct world *w, struct route_table **table, const char *relay)
{
    struct address address;
    struct route_table *was = *table;
    *table = table_of(relay);
    world_must(address_parse(TEXT("x@x.example"), &address), "an address");
    memcpy(&w->target, route_find(*table, &address), sizeof(w->target));
    if (!was)
        return;
    sched_change(w->s, &(struct sched_settings){.active_limit = 100, .session_limit = 20, .seed = 7});
    sched_rerouted(w->s, was, *table);
    route_free(&was);
}

struct check {
    struct flows *flows;
    bool good;
};

/* The counts of a site, and the same as they are when all its mail comes anew. */
static void
check_site(void *context, const struct sched_glance *glance)
{
    struct check *check = context;
    struct site *site = glance->site;
    struct lanes old = site->lanes;
    struct window window = site->window;
    lanes_enter_again(check->flows, &site->lanes);
    window_change(&window, site_transport(site));
    check->good &= memcmp(&old.counts, &site->lanes.counts, sizeof(old.counts)) == 0 &&
                   memcmp(&old.plain.counts, &site->lanes.plain.counts, sizeof(old.counts)) == 0 &&
                   window.size == site->window.size && window.limit == site->window.limit &&
                   window.initial == site->window.initial;
}

static bool
is_counted(const struct world *w)
{
    struct check check = {&w->s->destinations.sites.flows, true};
    sched_glance(w->s, check_site, &check);
    return check.good;
}

static struct channel *
greet(struct world *w)
{
    struct channel *c = world_channel(w, "", 0);
    world_must(c != NULL, "a session");
    return channel_take(w, c) ? c : NULL;
}

static struct outcome
verdict(enum verdict v)
{
    return outcome_make(v, BLAME_NONE, 250, "2.0.0", "x");
}

/* Messages of several senders to one to eight recipients. Returns what must be answered
 * after the reload. */
static struct channel *
make_state(struct world *w, enum state state)
{
    static const char *const to[] = {
        "x.example x.example x.example x.example x.example x.example x.example x.example",
        "x.example y.example x.example", "y.example"};
    struct channel *c = NULL;
    for (unsigned i = 0; i < 9; i++) {
        unsigned mail = world_add(w, to[i % 3], 0, i % 2);
        w->mails[mail].sender = i % 4;
    }
    if (state == LOADING)
        return NULL;
    world_run(w);
    switch (state) {
    case WAITING:
        /* One by one they would all be taken: the sessions have greeted, and are at work. */
        while ((c = world_channel(w, "", 0)) != NULL && w->opens < 3 && channel_take(w, c))
            channel_send(w, c);
        return NULL;
    case OPENING:
    case LOADING:
        return NULL;
    case TAKEN:
        return greet(w);
    case HALF:
        if ((c = greet(w)) != NULL && c->work.count > 1) {
            struct outcome sent = verdict(VERDICT_DELIVERED);
            channel_settle(w, c, 0, &sent);
            return c;
        }
        return c;
    case SENT:
        if ((c = greet(w)) != NULL)
            channel_send(w, c);
        return NULL;
    case DEAD:
    case DUE:
        for (int i = 0; world_channels(w, "") > 0 && i < 100; i++)
            channel_refuse(w, world_channel(w, "", 0));
        if (state == DUE)
            world_pass(w, 3 * HOUR);
        return NULL;
    case STATES:
        break;
    }
    return NULL;
}

static void
finish(struct world *w, struct channel *c)
{
    if (c == NULL || !c->busy)
        return;
    for (size_t i = 0; i < c->work.count; i++)
        if (channel_mail(w, c)->to[c->work.indexes[i]].fate == FATE_OPEN) {
            struct outcome sent = verdict(VERDICT_DELIVERED);
            channel_settle(w, c, i, &sent);
        }
    c->busy = false;
    world_run(w);
}

/* Fine weather: as real sessions do, each takes what it is given, and ends when it finds
 * nothing. */
static bool
serve(struct world *w, int64_t most_ms)
{
    bool good = true;
    int64_t until = w->now + most_ms;
    while (w->finishes < w->count && w->now < until) {
        struct channel *c;
        while ((c = world_channel(w, "", 0)) != NULL)
            (void)channel_drain(w, c);
        good &= is_counted(w);
        world_pass(w, 60 * 1000);
    }
    for (unsigned i = 0; i < w->count; i++)
        good &= w->mails[i].finals == w->mails[i].count;
    return good && w->finishes == w->count;
}

static void
relay_text(char *out, size_t size, const char *name, const char *value, enum state state)
{
    bool own = strcmp(name, "concurrency") == 0 || state == WAITING;
    int at = snprintf(out, size, "smtp://a.example?%s", own ? "" : "concurrency=1");
    if (value)
        snprintf(out + at, size - (size_t)at, "%s%s=%s", own ? "" : "&", name, value);
    else if (own)
        snprintf(out, size, "smtp://a.example");
}

static void
try_one(const struct pair *p, enum way way, enum state state)
{
    struct world w;
    struct route_table *table = NULL;
    char from[200], to[200], name[200];
    const char *values[WAYS][2] = {
        {p->low, p->high}, {p->high, p->low}, {NULL, p->low}, {p->high, NULL}};
    relay_text(from, sizeof(from), p->name, values[way][0], state);
    relay_text(to, sizeof(to), p->name, values[way][1], state);
    sched_world_start(&w, 100, 20);
    w.may_be_early = true;
    world_route(&w, &table, from);
    struct channel *c = make_state(&w, state);
    world_route(&w, &table, to);
    bool good = is_counted(&w);
    world_run(&w);
    finish(&w, c);
    good &= is_counted(&w) && serve(&w, 60 * HOUR);
    snprintf(name, sizeof(name), "%s %s, mail %s", p->name, ways[way], states[state]);
    ok_named(good, name);
    if (!good)
        printf("# %s -> %s: %u of %u\n", from, to, w.finishes, w.count);
    while (world_channels(&w, "") > 0)
        channel_end(&w, world_channel(&w, "", 0), NULL);
    sched_world_end(&w);
    route_free(&table);
}

TEST(table)
{
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
        for (int way = 0; way < WAYS; way++)
            for (int state = 0; state < STATES; state++)
                try_one(&pairs[i], (enum way)way, (enum state)state);
}

/* Mail waits for an hour; the new parameter lets it go now. */
TEST(pauses)
{
    static const char *const from[] = {"rate_delay=1d", "transport_rate_delay=1d", "rate=1/d", "quota=1/d",
                                       "rate_delay=1d", "transport_rate_delay=1d"};
    static const char *const to[] = {"rate_delay=1s", "transport_rate_delay=1s", "rate=1/s", "quota=9/d",
                                     "initial=4", "initial=4"};
    for (size_t i = 0; i < sizeof(to) / sizeof(*to); i++) {
        struct world w;
        struct route_table *table = NULL;
        char relay[100];
        sched_world_start(&w, 100, 20);
        snprintf(relay, sizeof(relay), "smtp://a.example?%s", from[i]);
        world_route(&w, &table, relay);
        for (int n = 0; n < 3; n++)
            world_add(&w, "x.example", 0, 0);
        world_run(&w);
        struct channel *c = greet(&w);
        world_must(c != NULL, "the first is taken");
        channel_send(&w, c);
        ok_named(!channel_take(&w, c), from[i]);
        snprintf(relay, sizeof(relay), "smtp://a.example?%s", to[i]);
        world_route(&w, &table, relay);
        world_run(&w);
        ok_named(serve(&w, 5 * 60 * 1000), to[i]);
        sched_world_end(&w);
        route_free(&table);
    }
}

/* A dead site is probed no later than the new parameters say; with none that kills, it is
 * alive. */
TEST(dead)
{
    static const char *const to[] = {"maximal_backoff=60s", "cohort=0"};
    for (size_t i = 0; i < sizeof(to) / sizeof(*to); i++) {
        struct world w;
        struct route_table *table = NULL;
        char relay[100];
        sched_world_start(&w, 100, 20);
        world_route(&w, &table, "smtp://a.example?adaptive=no&minimal_backoff=3h&maximal_backoff=9h");
        world_add(&w, "x.example", 0, 0);
        world_run(&w);
        while (world_channels(&w, "") > 0)
            channel_refuse(&w, world_channel(&w, "", 0));
        int64_t until = world_site(&w, "smtp:[a.example]:25").site.dead_until_ms;
        ok_named(until >= w.now + 2 * HOUR, "dead for hours");
        snprintf(relay, sizeof(relay), "smtp://a.example?minimal_backoff=60s&%s", to[i]);
        world_route(&w, &table, relay);
        world_run(&w);
        until = world_site(&w, "smtp:[a.example]:25").site.dead_until_ms;
        ok_named(until <= w.now + 60 * 1000, to[i]);
        ok(i == 0 || until == 0);
        sched_world_end(&w);
        route_free(&table);
    }
}

/* Transactions under way when a quota begins, changes or ends count where they began. */
TEST(quota_under_way)
{
    static const struct {
        const char *from, *to, *then;
        unsigned sent; /* of ten, in the day */
    } cases[] = {
        {"",           "?quota=4/d", "?quota=4/d", 5},
        {"?quota=4/d", "",           "?quota=4/d", 10},
        {"?quota=4/d", "?quota=6/d", "?quota=6/d", 6},
        {"?quota=4/d", "?quota=2/d", "?quota=3/d", 3},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct world w;
        struct route_table *table = NULL;
        char relay[100];
        sched_world_start(&w, 100, 20);
        snprintf(relay, sizeof(relay), "smtp://a.example%s", cases[i].from);
        world_route(&w, &table, relay);
        for (int n = 0; n < 10; n++)
            world_add(&w, "x.example", 0, 0);
        world_run(&w);
        struct channel *c = greet(&w);
        snprintf(relay, sizeof(relay), "smtp://a.example%s", cases[i].to);
        world_route(&w, &table, relay);
        world_run(&w);
        ok_named(c == world_channel(&w, "", 0), "its session stays");
        channel_send(&w, c);
        (void)serve(&w, 60 * 1000);
        snprintf(relay, sizeof(relay), "smtp://a.example%s", cases[i].then);
        world_route(&w, &table, relay);
        world_run(&w);
        (void)serve(&w, 60 * 1000);
        is_number(w.finishes, cases[i].sent, cases[i].to);
        sched_world_end(&w);
        route_free(&table);
    }
}

TEST(shared)
{
    struct world w;
    struct route_table *table = NULL;
    struct sched_group group = {.members = 2, .has_bank = true, .shares_addresses = true};
    sched_world_start(&w, 100, 20);
    sched_members(w.s, &group);
    world_route(&w, &table, "smtp://a.example?shared=no");
    for (int i = 0; i < 3; i++)
        world_add(&w, "x.example", 0, 0);
    world_run(&w);
    is_number(sched_shared_sites(w.s), 0, "of this host alone");
    world_route(&w, &table, "smtp://a.example?shared=yes");
    is_number(sched_shared_sites(w.s), 1, "shared from now on");
    world_route(&w, &table, "smtp://a.example?shared=no");
    is_number(sched_shared_sites(w.s), 0, "and no longer");
    ok_named(serve(&w, 60 * 1000), "all go");
    sched_world_end(&w);
    route_free(&table);
}

/* A message that needs many transactions from now on lets small mail pass. */
TEST(preempted)
{
    struct world w;
    struct route_table *table = NULL;
    sched_world_start(&w, 100, 20);
    world_route(&w, &table, "smtp://a.example?concurrency=1&slot_cost=2&minimum_slots=1");
    world_add(&w, "x.example", 0, 0);
    world_run(&w);
    struct channel *c = greet(&w);
    unsigned large = world_add(
        &w, "x.example x.example x.example x.example x.example x.example x.example x.example", 0, 0);
    unsigned small = world_add(&w, "x.example", 0, 0);
    world_run(&w);
    world_route(&w, &table, "smtp://a.example?concurrency=1&slot_cost=2&minimum_slots=1&recipients=1");
    world_run(&w);
    channel_send(&w, c);
    for (int i = 0; i < 8; i++) {
        world_must(channel_take(&w, c), "its session goes on");
        channel_send(&w, c);
    }
    ok_named(w.mails[small].gone && !w.mails[large].gone, "the small one has passed");
    ok_named(serve(&w, 60 * 1000), "all go");
    sched_world_end(&w);
    route_free(&table);
}
