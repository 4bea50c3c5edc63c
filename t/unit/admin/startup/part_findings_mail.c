/* link: t/sim/loop.c */
/* The facts about mail and sites, from a queue manager in virtual time. */
#include "admin/startup/parts.h"

#include "t/support/manager_world.h"

enum { MINUTE_MS = 60 * 1000, MANY = 30 };

static struct finding_facts
collect(struct world *w, struct daemon *d)
{
    struct finding_facts facts = {0};
    d->loop = w->loop;
    d->manager = w->manager;
    d->findings.rest_us = 0;
    part_findings_see_mail(d, &facts);
    return facts;
}

TEST(nothing)
{
    struct daemon d = {0};
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    struct finding_facts f = collect(&w, &d);
    ok_named(f.oldest_ms == 0 && f.behind_ms == 0 && f.behind[0] == '\0', "no mail");
    ok_named(f.sites.dead + f.sites.clogged + f.sites.silent == 0, "no sites");
}

TEST(dead)
{
    struct daemon d = {0};
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    world_send(&w, "ann@a.test", "site@b.test");
    world_send(&w, "ann@a.test", "site@b.test");
    sim_loop_advance(w.loop, MINUTE_MS);
    struct finding_facts f = collect(&w, &d);
    is_number(f.sites.dead, 0, "dead for a minute");
    sim_loop_advance(w.loop, 9 * MINUTE_MS);
    f = collect(&w, &d);
    is_number(f.sites.dead, 1, "dead for more than two minutes");
    sim_loop_advance(w.loop, 60 * MINUTE_MS);
    world_send(&w, "ann@a.test", "site@b.test");
    world_turns(&w);
    f = collect(&w, &d);
    is_number(f.sites.dead, 1, "dead for an hour, with mail");
    is_number(f.sites.silent, 0, "a route names it: that says nothing of port 25");
    ok_named(strcmp(f.sites.worst_dead.name, "smtp:[sink.test]:25") == 0, f.sites.worst_dead.name);
    ok_named(f.sites.worst_dead.since_ms >= 60 * MINUTE_MS, "since when");
    ok_named(strstr(f.sites.worst_dead.why, "site is down") != NULL, f.sites.worst_dead.why);
    ok_named(f.behind_ms >= 60 * MINUTE_MS, "the age of the mail");
    ok_named(strstr(f.behind, ", site is down") != NULL, f.behind);
    w.all_good = true;
    manager_retry_all(w.manager);
    sim_loop_advance(w.loop, 60 * MINUTE_MS);
    f = collect(&w, &d);
    ok_named(f.sites.dead == 0 && f.behind_ms == 0, "it works again");
}

TEST(clogged)
{
    struct daemon d = {0};
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    w.settings.sched.active_limit = 10;
    w.settings.sched.site_share = 50;
    world_restart(&w);
    w.stalled = true;
    for (int i = 0; i < MANY; i++)
        world_send(&w, "ann@a.test", "good@b.test");
    sim_loop_advance(w.loop, 4 * MINUTE_MS);
    is_number(collect(&w, &d).sites.clogged, 0, "a burst is no clog");
    sim_loop_advance(w.loop, 3 * MINUTE_MS);
    struct finding_facts f = collect(&w, &d);
    is_number(f.sites.clogged, 1, "after five minutes it is one");
    is_number(f.sites.dead, 0, "but not dead");
    ok_named(strstr(f.sites.worst_clogged.why, "25 messages there, 5 recipients in memory") != NULL, f.sites.worst_clogged.why);
    world_unstall(&w);
    sim_loop_advance(w.loop, 20 * MINUTE_MS);
    is_number(collect(&w, &d).sites.clogged, 0, "over");
}

/* The channel connects nowhere. */
static void
fail_to_connect(void *context, struct sched_session *session, const struct target *target, const char *domain)
{
    struct world *w = context;
    struct outcome why = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.1", "connect to %s: Connection refused", domain);
    (void)target;
    manager_session_ended(w->manager, session, &why);
}

static struct sched_session *pending[64];
static char pending_domains[64][64];
static size_t pending_count;

static void
open_later(void *context, struct sched_session *session, const struct target *target, const char *domain)
{
    (void)context;
    (void)target;
    if (pending_count < 64) {
        snprintf(pending_domains[pending_count], sizeof(pending_domains[0]), "%s", domain);
        pending[pending_count++] = session;
    }
}

static void
fail_pending(struct world *w)
{
    for (size_t i = 0; i < pending_count; i++)
        fail_to_connect(w, pending[i], NULL, pending_domains[i]);
    pending_count = 0;
}

TEST(blocked)
{
    struct daemon d = {0};
    char to[40];
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* mx");
    manager_set_channel(w.manager, TARGET_MX, open_later, &w);
    for (int i = 0; i < 5; i++) {
        snprintf(to, sizeof(to), "x@d%d.test", i);
        world_send(&w, "ann@a.test", to);
    }
    world_turns(&w);
    fail_pending(&w);
    world_turns(&w);
    /* Deferred mail leaves memory; sites without mail are not counted. */
    for (int i = 0; i < 5; i++) {
        snprintf(to, sizeof(to), "y@d%d.test", i);
        world_send(&w, "ann@a.test", to);
    }
    world_turns(&w);
    struct finding_facts f = collect(&w, &d);
    is_number(f.sites.silent, 5, "five sites are silent");
    ok_named(!f.sites.direct_greeted, "none has ever greeted");
}

/* A walk rests for two hundred times as long as it took. */
TEST(rest)
{
    struct daemon d = {0};
    struct finding_facts facts = {0};
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    d.loop = w.loop;
    d.manager = w.manager;
    d.findings.rest_us = INT64_MAX;
    d.findings.sites.dead = 9;
    part_findings_see_mail(&d, &facts);
    is_number(facts.sites.dead, 9, "what the last walk saw");
    d.findings.rest_us = 0;
    part_findings_see_mail(&d, &facts);
    is_number(facts.sites.dead, 0, "walked again");
    ok_named(d.findings.rest_us > 0, "then it rests");
}

static struct world *limit_world;

/* The account at a provider has reached its limit: while its target pauses, also when no mail is in memory. */
static const char *limit_said;

static void
refuse_later(void *context)
{
    struct sched_session *session = context;
    struct world *w = limit_world;
    struct delivery_request request;
    while (manager_take(w->manager, session, &request))
        for (size_t i = 0; i < request.count; i++) {
            struct outcome o =
                limit_said == NULL
                    ? outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "taken")
                    : outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 550, "4.4.5", "host smtp.b.test[192.0.2.1] said: %s", limit_said);
            snprintf(o.remote, sizeof(o.remote), "smtp.b.test");
            manager_settled(w->manager, &request, i, &o, NULL);
        }
    manager_session_ended(w->manager, session, &outcome_no_trouble);
}

static void
open_limited(void *context, struct sched_session *session, const struct target *target, const char *domain)
{
    static struct loop_task task;
    (void)target;
    (void)domain;
    limit_world = context;
    loop_post(limit_world->loop, &task, refuse_later, session);
}

TEST(full_list)
{
    struct daemon d = {0};
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://smtp.b.test");
    w.settings.suppression = (struct suppression_settings){.is_on = true, .limit = 1};
    manager_reload(w.manager, &w.settings, w.routes);
    struct finding_facts f = collect(&w, &d);
    is_number((long)f.named.count, 0, "an empty list is not full");
    faults_free(&f.named);
    manager_suppress(w.manager, TEXT("me@a.test"), TEXT("x@b.test"), SUPPRESSION_COMPLAINT, TEXT("abuse"));
    f = collect(&w, &d);
    is_number((long)f.named.count, 1, "a full one is a finding");
    ok_named(f.named.count == 1 && strcmp(f.named.items[0].row->code, "suppress_full") == 0, "by its code");
    faults_free(&f.named);
}

TEST(named)
{
    struct daemon d = {0};
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://joe@smtp.b.test:587");
    manager_set_channel(w.manager, TARGET_SMTP, open_limited, &w);
    limit_said = "550 5.4.5 Daily sending quota exceeded";
    world_send(&w, "ann@a.test", "x@b.test");
    world_turns(&w);
    struct finding_facts f = collect(&w, &d);
    is_number((long)f.named.count, 1, "one subject");
    ok_named(strcmp(f.named.items[0].row->code, "quota_used_up") == 0, f.named.items[0].row->code);
    ok_named(strstr(f.named.items[0].subject, "smtp.b.test") != NULL, f.named.items[0].subject);
    ok_named(strstr(f.named.items[0].text, "is tried again in 5") != NULL || strstr(f.named.items[0].text, "is tried again in 60 minutes") != NULL, f.named.items[0].text);
    faults_free(&f.named);
    limit_said = NULL;
    sim_loop_advance(w.loop, 3 * 60 * MINUTE_MS);
    f = collect(&w, &d);
    is_number((long)f.named.count, 0, "over by itself");
    ok_named(world_is_empty(&w), "and the mail has gone");
    faults_free(&f.named);
    limit_said = "550 5.7.25 no PTR record";
    world_send(&w, "", "x@b.test");
    world_turns(&w);
    f = collect(&w, &d);
    is_number((long)f.named.count, 1, "it refuses us");
    ok_named(strcmp(f.named.items[0].row->code, "receiver_refuses_us") == 0 && strcmp(f.named.items[0].subject, "smtp.b.test") == 0, f.named.items[0].subject);
    faults_free(&f.named);
}
