/* Scenarios: what each statement means, and what is said of a bad one. */
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


static const struct {
    const char *line, *mistake;
} bad[] = {
    {"sead 3",                       "'sead' is not a statement: seed until"                        },
    {"seed many",                    "'many' is not a number from 0 to 18446744073709551615"        },
    {"seed 1 2",                     "one value must follow"                                     },
    {"until",                        "one value must follow"                                     },
    {"until late",                   "'late' is not a time such as 500ms, 10s, 30m, 2h"             },
    {"until -5s",                    "'-5s' is not a time"                                          },
    {"active_limit 0",               "'0' is not a number from 1 to 1000000"                        },
    {"active_recipient_limit 0",     "'0' is not a number from 1 to 100000000"                      },
    {"site_active_share 101",        "'101' is not a number from 0 to 100"                          },
    {"transport concurrency=x",      "'concurrency=x' is not an option of a transport"               },
    {"target",                       "the name of a target must come first"                         },
    {"target concurrency=5",         "the name of a target must come first"                         },
    {"target t fast",                "'fast' is not an option of a transport"                       },
    {"domain e site s target",       "only 'target NAME' may follow the site"                       },
    {"domain e site s over t",       "only 'target NAME' may follow the site"                       },
    {"domain e site s target t",     "no target 't' is defined above"                               },
    {"arrive domain=d for=1m",       "for=TIME needs rate= or every=, and makes 1 to 10000000"      },
    {"arrive domain=d rate=1/m for=1s", "for=TIME needs rate= or every="                            },
    {"transport fast",               "'fast' is not an option of a transport"                        },
    {"client speed=3",               "'speed=3' is not a part of 'client': dns=TIME idle=TIME"      },
    {"site",                         "the name of a site must come first"                        },
    {"site sessions=5",              "the name of a site must come first"                        },
    {"site s session=5",             "'session=5' is not a server setting: up down silent"     },
    {"site s sessions=five",         "'sessions=five': sessions needs a number; 0 = no limit"    },
    {"site s over=422",              "'over=422': over needs 421, rst, refuse, silent or queue:N"},
    {"site s over=queue",            "'over=queue': over needs"                                  },
    {"site s delay.rcpt=fast",       "delay.rcpt needs a time such as 10ms"                      },
    {"site s delay.jitter=2",        "delay.jitter needs a share such as 2%"                     },
    {"site s delay.jitter=200%",     "delay.jitter needs a share such as 2%"                     },
    {"site s fail=3/2",              "fail needs odds such as 1/4 or 1/4,random"                 },
    {"site s fail=1/0",              "fail needs odds"                                           },
    {"site s fail=1/4,often",        "fail needs odds"                                           },
    {"site s rate=10",               "rate needs a rate such as 10/s"                            },
    {"site s rate_reply=550",        "rate_reply needs a reply code such as 451"                 },
    {"site t%d 5..1",                "'5..1' is not a range such as 1..500"                         },
    {"site t%d 1..1000000",          "more than 100000 sites"                                    },
    {"address t a",                  "no site 't' is defined above; 'site t' makes it"               },
    {"address s",                    "a name of the address must follow the site"          },
    {"domain e",                     "'site NAME' must follow the domain"                        },
    {"domain e site t",              "no site 't' is defined above"                                  },
    {"domain d site s",              "duplicate domain 'd'"                           },
    {"domain e%d 1..9999999 site s", "'1..9999999' is not a range"                                  },
    {"at noon site s down",          "'noon' is not a time"                                         },
    {"at 1m s down",                 "'site NAME', 'address SITE NAME' or 'flush' must"},
    {"at 1m",                        "'flush' must follow the time"},
    {"at 1m site t down",            "no site 't' is defined above"                                  },
    {"at 1m site s",                 "no change: up, down, silent or KEY=VALUE must follow"},
    {"at 1m site s away",            "'away' is not a server setting"                          },
    {"at 1m address s mx up",        "site 's' has no address 'mx'"                              },
    {"arrive",                       "domain=NAME must name a domain defined above, not ''"    },
    {"arrive domain=e",              "domain=NAME must name a domain defined above, not 'e'"   },
    {"arrive domain=d count=0",      "'0' is not a number from 1 to 10000000"                       },
    {"arrive domain=d recipients=x", "'x' is not a number from 1 to 100000"                         },
    {"arrive domain=d size=big",     "'big' is not a size such as 10K"                              },
    {"arrive domain=d class=first",  "'first' is not a class: normal, urgent or bulk"               },
    {"arrive domain=d rate=5",       "'5' is not a rate such as 10/s"                               },
    {"arrive domain=d every=often",  "'often' is not a time"                                        },
    {"arrive domain=d colour=red",   "'colour=red' is not a part of 'arrive': domain="              },
};

TEST(mistakes)
{
    struct buffer mistakes;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char content[400], want[200];
        snprintf(content, sizeof(content), BASE "%s\narrive domain=d\n", bad[i].line);
        snprintf(want, sizeof(want), "file:3: ");
        struct scenario *s = parse(content, &mistakes);
        struct text said = buffer_text(&mistakes);
        bool is_said = text_starts(said, text_from(want)) && !s &&
                       memmem(said.at, said.length, bad[i].mistake,
                              strlen(bad[i].mistake)) != NULL;
        if (!ok_named(is_said, bad[i].line))
            printf("# said: %.*s\n", TEXT_ARGS(said));
        is_number(text_find(said, '\n'), said.length - 1, "in one line");
        buffer_free(&mistakes);
        scenario_free(&s);
    }
    /* Found by a fuzzer: a name of a NUL, and no name, were compared. */
    struct scenario_defaults defaults = scenario_defaults();
    buffer_init(&mistakes, 1 << 16);
    ok(scenario_new(TEXT("site farm\ndomain \0 site farm\narrive "), "file", &defaults,
                    &mistakes) == NULL);
    buffer_free(&mistakes);
    ok(parse("", &mistakes) == NULL);
    is_text(buffer_text(&mistakes),
            TEXT("file:1: no mail arrives: add an 'arrive'\n"), "an empty file");
    buffer_free(&mistakes);
    ok(parse(BASE "arrive domain=d count=10000000\narrive domain=d\n", &mistakes) ==
       NULL);
    is_text(buffer_text(&mistakes), TEXT("file:4: more than 10000000 messages\n"),
            "all the mail together");
    buffer_free(&mistakes);
    ok(parse("one\n" BASE "two\n", &mistakes) == NULL);
    ok_named(memmem(mistakes.at, mistakes.length, "file:4: 'two'", 13) != NULL,
             "every mistake is told");
    buffer_free(&mistakes);
}

/* Errors that do not fit are left out whole: half a line would swallow the next output. */
TEST(many_errors)
{
    char content[80 * 3 + 1] = "";
    struct scenario_defaults defaults = scenario_defaults();
    for (int i = 0; i < 80; i++)
        memcpy(content + 3 * i, "x\n\n", 4);
    FIXTURE(buffer, mistakes, buffer_init, buffer_free, 1000);
    ok(scenario_new(text_from(content), "file", &defaults, &mistakes) == NULL);
    ok(mistakes.length > 0 && mistakes.length <= 1000);
    ok_named(mistakes.at[mistakes.length - 1] == '\n', "whole lines");
}
