/* Targets of one table in another. */
#include "sched/route/route.h"

#include "t/support/tap.h"

static struct route_table *
table_of(const char *routes, int rate)
{
    struct route_settings settings = {.routes = text_from(routes), .smtp_port = 25};
    struct buffer mistakes;
    buffer_init(&mistakes, 4096);
    transport_params_default(&settings.base);
    settings.base.concurrency_limit = rate;
    struct route_table *table = route_new(&settings, &mistakes);
    if (!table)
        printf("# %.*s", TEXT_ARGS(buffer_text(&mistakes)));
    buffer_free(&mistakes);
    return table;
}

/* The rate that a target of the first pattern of `was` has in `now`; 0: no successor. */
static unsigned
successor_rate(const char *was_routes, const char *now_routes)
{
    struct route_table *was = table_of(was_routes, 20), *now = table_of(now_routes, 20);
    struct address address;
    ok(was && now && address_parse(TEXT("x@a.test"), &address));
    const struct target *target = route_find(was, &address);
    const struct target *next = route_successor(was, now, target);
    if (next)
        ok_named(route_leads_to(now, next), "it is a target of the new table");
    unsigned rate = next ? next->transport.rate.amount : 0;
    route_free(&was);
    route_free(&now);
    return rate;
}

TEST(successor)
{
    is_number(successor_rate("a.test smtp://h.test?rate=1/s", "a.test smtp://h.test?rate=9/s"), 9, "another rate");
    is_number(successor_rate("a.test smtp://h.test?rate=1/s", "a.test smtp://h.test?rate=1/s"), 0, "no change");
    is_number(successor_rate("a.test smtp://h.test?rate=1/s", "a.test smtp://i.test?rate=9/s"), 0, "another host");
    is_number(successor_rate("a.test smtp://h.test?rate=1/s", "a.test smtp://h.test?rate=9/s&tls=encrypt"), 0,
              "sessions without TLS cannot go on");
    is_number(successor_rate("a.test smtp://h.test?rate=1/s", "b.test smtp://h.test?rate=9/s"), 9, "another pattern");
    is_number(successor_rate("a.test smtp://h.test?rate=1/s\nb.test smtp://h.test?rate=2/s",
                             "a.test smtp://h.test?rate=9/s\nb.test smtp://h.test?rate=2/s"),
              9, "beside another route, which stays");
    is_number(successor_rate("a.test smtp://h.test?rate=1/s\nb.test smtp://h.test?rate=2/s",
                             "a.test smtp://h.test?rate=9/s\nb.test smtp://h.test?rate=8/s"),
              0, "two may be meant");
    is_number(successor_rate("a.test smtp://h.test?rate=1/s\nb.test smtp://h.test?rate=1/s",
                             "a.test smtp://h.test?rate=9/s\nb.test smtp://h.test?rate=1/s"),
              0, "a target that stays has none");
    is_number(successor_rate("a.test smtp://h.test?rate=1/s\nb.test smtp://h.test?rate=2/s",
                             "a.test smtp://h.test?rate=9/s\nb.test smtp://h.test?rate=9/s"),
              9, "two become one");
    is_number(successor_rate("a.test smtp://h.test?rate=1/s\nb.test smtp://h.test?rate=2/s\nc.test smtp://h.test?rate=3/s",
                             "b.test smtp://h.test?rate=2/s\nc.test smtp://h.test?rate=3/s\na.test smtp://h.test?rate=9/s\n"
                             "d.test smtp://h.test?rate=2/s\ne.test smtp://h.test?rate=9/s"),
              9, "among several that stay, for several domains");
}

/* The default of mail that no pattern matches is a target, too. */
TEST(default)
{
    struct route_table *was = table_of("", 20), *now = table_of("", 5);
    ok(was && now);
    const struct target *next = route_successor(was, now, route_default(was));
    ok_named(next == route_default(now), "the new default");
    ok(next && next->transport.concurrency_limit == 5);
    ok_named(route_successor(NULL, now, route_default(was)) == NULL, "without a table of before none is");
    ok(route_leads_to(was, route_default(was)) && !route_leads_to(now, route_default(was)));
    route_free(&was);
    route_free(&now);
}
