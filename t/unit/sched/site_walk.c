/* Walks over the sites: each is met once, in steps, while some go and others come. */
#include "sched/site.h"

#include "sched/destination.h"
#include "t/support/tap.h"

enum { SITES = 30, TARGETS = 3 };

static const int64_t NOW = INT64_C(1700000000000);
static struct destinations set;
static struct target targets[TARGETS];
static struct destination *domains[SITES + 1];
static unsigned met[SITES + 1], others, freed_met;
static bool is_gone[SITES + 1];

static void
add(unsigned number, unsigned target)
{
    char domain[20];
    snprintf(domain, sizeof(domain), "d%u.example", number);
    domains[number] = destination_get(&set, &targets[target], text_from(domain), NOW);
}

static void
meet(void *context, struct site *site)
{
    (void)context;
    unsigned number;
    const char *name = strchr(site->key, 'd');
    if (name == NULL || sscanf(name, "d%u.example", &number) != 1) {
        others++;
        return;
    }
    met[number]++;
    freed_met += is_gone[number];
}

static void
begin(void)
{
    memset(met, 0, sizeof(met));
    memset(is_gone, 0, sizeof(is_gone));
    others = freed_met = 0;
    destinations_init(&set, 5);
    for (unsigned i = 0; i < TARGETS; i++) {
        targets[i] = (struct target){.kind = TARGET_MX, .tls = TARGET_TLS_MAY};
        transport_params_default(&targets[i].transport);
        targets[i].transport.concurrency_limit = (int)i + 1; /* another transport */
    }
    for (unsigned i = 0; i < SITES; i++)
        add(i, i * TARGETS / SITES);
}

/* Its site has no domain any more, and goes. */
static void
leave(unsigned number)
{
    struct site *old = domains[number]->site;
    destination_move(&set, domains[number], old->transport, TEXT("other"), NOW);
    is_gone[number] = true;
}

TEST(steps)
{
    begin();
    struct site_walk *walk = site_walk_begin(&set.sites);
    unsigned steps = 1;
    while (site_walk_step(walk, 7, meet, NULL))
        steps++;
    is_number(steps, 5, "seven at a time");
    bool once = true;
    for (unsigned i = 0; i < SITES; i++)
        once = once && met[i] == 1;
    ok_named(once, "each once");
    ok_named(!site_walk_step(walk, 7, meet, NULL), "and then none");
    site_walk_end(&walk);
    ok(walk == NULL && set.sites.walks == NULL);
    site_walk_end(&walk);
    destinations_free(&set);
}

/* The next one goes, in the middle, at the end of a transport, and at the end of all. */
TEST(leaving)
{
    begin();
    struct site_walk *walk = site_walk_begin(&set.sites), *second = site_walk_begin(&set.sites);
    for (unsigned i = 0; i < SITES; i++) {
        if (i % 3 == 2 || i == 9 || i == 10 || i == SITES - 1)
            leave(i);
        site_walk_step(walk, 1, meet, NULL);
    }
    while (site_walk_step(walk, 1, meet, NULL))
        ;
    bool good = true;
    for (unsigned i = 0; i < SITES; i++)
        good = good && met[i] <= 1 && (is_gone[i] || met[i] == 1);
    ok_named(good, "those that stay are met once");
    is_number(freed_met, 0, "none that has gone");
    add(SITES, 0);
    memset(met, 0, sizeof(met));
    while (site_walk_step(second, 4, meet, NULL))
        ;
    is_number(freed_met, 0, "nor by another walk, which stood at the first");
    is_number(met[0], 1, "the first");
    site_walk_end(&second);
    for (unsigned i = 0; i <= SITES; i++)
        domains[i] = NULL;
    destinations_free(&set);
    ok_named(!site_walk_step(walk, 10, meet, NULL), "a walk outlives the sites");
    site_walk_end(&walk);
}

TEST(nothing)
{
    destinations_init(&set, 5);
    struct site_walk *walk = site_walk_begin(&set.sites);
    ok_named(!site_walk_step(walk, 10, meet, NULL), "no sites");
    site_walk_end(&walk);
    destinations_free(&set);
}
