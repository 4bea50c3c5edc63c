/* Scenarios: what each statement means. */
#include "t/simulation/scenario.h"

#include "t/support/tap.h"

#define BASE "site s\ndomain d site s\n"

static struct scenario *
parse(const char *content, struct buffer *mistakes)
{
    struct scenario_defaults defaults = scenario_defaults();
    defaults.bulk_size = 1 << 20;
    buffer_init(mistakes, 1 << 16);
    return scenario_new(text_from(content), "file", &defaults, mistakes);
}

static struct scenario *
good(const char *content)
{
    struct buffer mistakes;
    struct scenario *s = parse(content, &mistakes);
    is_text(buffer_text(&mistakes), TEXT(""), "no mistake");
    buffer_free(&mistakes);
    if (!s)
        exit(1);
    return s;
}

TEST(all)
{
    struct scenario *s = good(
        "# a comment\n"
        "seed 18446744073709551615\r\n"
        "\n"
        "until 1h   # that long\n"
        "active_limit 100\nactive_recipient_limit 900\nsession_limit 7\nsite_active_share 0\n"
        "transport concurrency=3 adaptive=no positive=1/concurrency\n"
        "client dns=1ms idle=0\n"
        "site pair sessions=5 over=queue:6 delay.rcpt=1s delay.jitter=2%\n"
        "address pair mx1 preference=10\n"
        "address pair mx2 preference=20 down\n"
        "site s%d 3..5 rate=10/s,burst=2 rate_reply=421 fail=1/4,random\n"
        "site s4 tempfail=2/3 per_session=9 over=rst\n"
        "domain Example.COM site pair\n"
        "domain d%d.example 1..4 site s%d\n"
        "at 30m site pair silent\n"
        "at 1m address pair mx2 up sessions=2\n"
        "arrive domain=example.com count=3 recipients=4 size=2M at=10s every=500ms\n"
        "arrive domain=d%d.example name=many count=8 class=urgent rate=4/s random "
        "sender=u%d@x.example\n");
    ok(s->seed == UINT64_MAX && s->until_us == INT64_C(3600000000));
    ok(s->sched.active_limit == 100 && s->sched.session_limit == 7);
    is_number(s->sched.recipient_limit, 900, "recipients");
    ok(s->sched.site_share == 0 && s->dns_us == 1000 && s->idle_us == 0);
    ok(s->targets[0].transport.concurrency_limit == 3 &&
       !s->targets[0].transport.adaptive);
    is_number(s->site_count, 4, "sites");
    const struct scenario_site *pair = s->site_at[0];
    is_number(pair->server_count, 2, "two addresses, no third");
    is_string(pair->servers[1].name, "mx2", "in their order");
    ok(pair->servers[1].state == FAKE_SERVER_DOWN && pair->servers[1].preference == 20);
    ok(pair->servers[0].sessions == 5 && pair->servers[0].over == FAKE_SERVER_OVER_QUEUE);
    ok(pair->servers[0].queue == 6 && pair->servers[0].rcpt_us == 1000000);
    is_number(pair->servers[0].jitter, 20, "per mille");
    is_string(s->site_at[3]->name, "s5", "a range of sites");
    const struct fake_server_settings *s3 = s->site_at[1]->servers,
                                   *s4 = s->site_at[2]->servers;
    ok(s3->rate.amount == 10 && s3->rate.burst == 2 && s3->rate_reply == 421);
    ok(s3->fail.bad == 1 && s3->fail.of == 4 && s3->fail.random &&
       s3->tempfail.of == 0);
    ok(s4->tempfail.bad == 2 && !s4->tempfail.random && s4->fail.of == 4);
    ok(s4->per_session == 9 && s4->over == FAKE_SERVER_OVER_RESET);
    is_number(s->domain_count, 5, "domains");
    is_string(s->domain_at[0]->name, "example.com", "in lower case");
    is_string(s->domain_at[4]->name, "d4.example", "a range of domains");
    is_number(s->domain_at[4]->site, 1, "over the sites in turn");
    is_number(s->change_count, 2, "changes");
    ok(s->changes[0].at_us == INT64_C(1800000000) && !s->changes[0].address);
    is_string(s->changes[1].address, "mx2", "of one address");
    is_string(s->changes[1].options, "up sessions=2", "to what");
    const struct scenario_arrival *a = s->arrivals, *b = a + 1;
    ok(a->messages == 3 && a->recipients == 4 && a->at_us == 10000000);
    ok(a->every_us == 500000 && !a->random && a->class == SCHED_CLASS_BULK);
    is_string(a->name, "line 20", "its name is its line");
    ok(b->first == 1 && b->count == 4 && b->every_us == 250000 && b->random);
    ok(b->class == SCHED_CLASS_URGENT && b->size == 10240);
    is_number(s->messages, 11, "in all");
    scenario_free(&s);
    ok(s == NULL);
}

TEST(defaults)
{
    struct scenario *s = good("site s\ndomain d site s\narrive domain=d");
    ok(s->seed == 1 && s->until_us == INT64_MAX && s->targets[0].transport.adaptive);
    ok(s->sched.active_limit == 20000 && s->sched.session_limit == 500);
    is_number(s->sched.recipient_limit, 40000, "recipients");
    const struct fake_server_settings *r = s->site_at[0]->servers;
    is_string(r->name, "s", "a site's only server has its name");
    ok(r->state == FAKE_SERVER_UP && r->sessions == 0 && r->rate.amount == 0);
    ok(r->connect_timeout_us == 30000000 && r->greeting_timeout_us == 300000000);
    ok(s->arrivals->messages == 1 && s->arrivals->recipients == 1);
    ok(s->arrivals->class == SCHED_CLASS_NORMAL && s->arrivals->every_us == 0);
    scenario_free(&s);
}

/* Later lines of a site change its addresses; a name with %d all of its sites. */
TEST(again)
{
    struct scenario *s = good("site s%d 1..2\naddress s%d a sessions=3\nsite s%d down\n"
                              "address s%d b up\ndomain d site s2\narrive domain=d");
    for (size_t i = 0; i < 2; i++) {
        const struct scenario_site *site = s->site_at[i];
        ok(site->server_count == 2 && site->servers[0].sessions == 3);
        ok(site->servers[0].state == FAKE_SERVER_DOWN);
        ok(site->servers[1].state == FAKE_SERVER_UP && site->servers[1].sessions == 0);
    }
    is_number(s->domain_at[0]->site, 1, "one of many");
    scenario_free(&s);
}

/* A target begins with the options of the transport as they are above it. */
TEST(targets)
{
    struct scenario *s =
        good("transport concurrency=7\ntarget a recipients=3\n"
             "transport concurrency=9\ntarget b\nsite s\n"
             "domain x%d 1..2 site s target a\ndomain y site s target b\n"
             "domain z site s\narrive domain=x%d\nat 5s flush\n");
    is_number(s->target_count, 3, "with the first, which has no name");
    ok(s->targets[1].transport.concurrency_limit == 7);
    ok(s->targets[1].transport.recipient_limit == 3);
    ok(s->targets[2].transport.concurrency_limit == 9);
    ok(s->targets[2].transport.recipient_limit == 50);
    ok(s->domain_at[0]->target == 1 && s->domain_at[1]->target == 1);
    ok(s->domain_at[2]->target == 2 && s->domain_at[3]->target == 0);
    ok(s->change_count == 1 && s->changes[0].kind == SCENARIO_FLUSH && s->changes[0].at_us == 5000000);
    scenario_free(&s);
}

TEST(for)
{
    struct scenario *s = good("site s\ndomain d site s\n"
                              "arrive domain=d for=90m rate=50/s\n"
                              "arrive domain=d every=2s for=1m\n");
    is_number(s->arrivals[0].messages, 270000, "as many as come in that time");
    is_number(s->arrivals[1].messages, 30, "at that interval");
    scenario_free(&s);
}

TEST(mistakes)
{
    struct buffer mistakes;
    ok(parse("one\n" BASE "two\n", &mistakes) == NULL);
    ok_named(memmem(mistakes.at, mistakes.length, "file:4: 'two'", 13) != NULL,
             "every mistake is told");
    buffer_free(&mistakes);
}
