/* Idle sessions in virtual time: mail for other sites is as fast as if no connection were
 * kept, and a site's next mail still finds its connection. */
#include "t/simulation/simulation.h"

#include "t/support/tap.h"

static struct simulation_result *
run_text(struct text text)
{
    struct buffer errors;
    struct scenario_defaults defaults = scenario_defaults();
    buffer_init(&errors, 1 << 16);
    struct scenario *s = scenario_new(text, "idle", &defaults, &errors);
    is_text(buffer_text(&errors), TEXT(""), "a scenario");
    buffer_free(&errors);
    if (!s)
        exit(1);
    struct simulation_result *r = simulation_run(s, NULL, NULL);
    scenario_free(&s);
    return r;
}

/* So many domains, each with a server of its own that answers in 5 ms. */
static struct simulation_result *
run_domains(int domains, int limit, int idle_ms, const char *more)
{
    struct buffer text;
    buffer_init(&text, 1 << 20);
    bool fits = buffer_format(
        &text,
        "delivery_session_limit %d\nclient dns=1ms idle=%dms\n"
        "site s%%d 1..%d delay.greeting=5ms delay.rcpt=5ms delay.message=5ms\n"
        "domain d%%d.example 1..%d site s%%d\n"
        "arrive domain=d%%d.example count=%d\n%s\nuntil 1h\n",
        limit, idle_ms, domains, domains, domains, more);
    ok_named(fits, "a scenario is written");
    struct simulation_result *r = run_text(buffer_text(&text));
    buffer_free(&text);
    return r;
}

static void
is_as_fast(int domains, int limit)
{
    struct simulation_result *kept = run_domains(domains, limit, 2000, ""),
                             *none = run_domains(domains, limit, 0, "");
    printf("# %d domains, limit %d: %lld ms, without kept connections %lld ms\n",
           domains, limit, (long long)kept->end_ms, (long long)none->end_ms);
    ok(kept->finished && none->finished &&
       kept->messages_delivered == (uint64_t)domains);
    ok_named(kept->end_ms * 10 <= none->end_ms * 11, "as fast, within a tenth");
    ok_named(kept->peak_sessions <= 2 * (size_t)limit,
             "no more sessions than twice the limit");
    ok_named(none->peak_sessions <= (size_t)limit, "idle ones are the second half");
    simulation_free(&kept);
    simulation_free(&none);
}

/* One site gets a message each 200 ms while a thousand others get one each. */
static void
test_reuse(void)
{
    struct simulation_result *r =
        run_domains(1000, 10, 2000,
                    "site busy delay.rcpt=5ms\ndomain busy.example site busy\n"
                    "arrive domain=busy.example count=100 every=200ms");
    ok_named(r->finished && r->messages_delivered == 1100, "all is delivered");
    printf("# %llu sessions for 1100 messages\n", (unsigned long long)r->greeted);
    ok_named(r->greeted <= 1000 + 20, "a site with more mail keeps its connection");
    simulation_free(&r);
}

int
main(void)
{
    is_as_fast(1000, 10);
    is_as_fast(200, 4);
    is_as_fast(50, 1);
    test_reuse();
    return done();
}
