/* Targets with what senders ask of TLS: which routes it changes, and that they are found again. */
#include "sched/route/route.h"

#include "mime/address.h"
#include "t/support/tap.h"

#include <string.h>

static struct route_table *
table_of(const char *routes)
{
    struct buffer errors;
    struct route_settings s = {.routes = text_from(routes), .smtp_port = 25, .without_secrets = true};
    buffer_init(&errors, 1000);
    transport_params_default(&s.base);
    struct route_table *table = route_new(&s, &errors);
    if (table == NULL)
        printf("# %.*s\n", TEXT_ARGS(buffer_text(&errors)));
    buffer_free(&errors);
    return table;
}

static const struct target *
found(const struct route_table *table)
{
    struct address address;
    if (!address_parse(TEXT("you@far.test"), &address))
        return NULL;
    return route_find(table, &address);
}

TEST(waived)
{
    static const struct {
        const char *target;
        bool changes;
    } rows[] = {
        {"mx", true},
        {"mx?dane=no", true},
        {"mx?dane=no&sts=no", false},
        {"mx?tls=none", false},
        {"mx?tls=verify", true},
        {"smtp://host.test?tls=verify", false},
        {"smtp://host.test?mx=yes", false},
        {"lmtp://host.test", false},
        {"maildir:/var/mail/%u", false},
        {"hold", false},
        {"discard", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char routes[200], keys[2][ROUTE_KEY_MAX];
        snprintf(routes, sizeof(routes), "far.test %s", rows[i].target);
        struct route_table *table = table_of(routes);
        const struct target *t = found(table), *asked = route_asked(table, t, TARGET_WAIVES_TLS);
        ok_named((asked != t) == rows[i].changes, rows[i].target);
        ok_named(asked == route_asked(table, t, TARGET_WAIVES_TLS), "the same again");
        ok_named(route_asked(table, t, TARGET_ASKS_NOTHING) == t, "nothing is asked");
        ok_named(asked->tls == t->tls, "what the route demands stays");
        route_key(t, TEXT("far.test"), keys[0]);
        route_key(asked, TEXT("far.test"), keys[1]);
        is_string(keys[1], keys[0], "its destination has the same name");
        ok_named(route_leads_to(table, asked) && route_leads_to(table, t), "the route leads there");
        route_free(&table);
    }
}

/* After a reload. */
TEST(successor)
{
    struct route_table *was = table_of("far.test mx?family=ipv4"), *now = table_of("far.test mx?family=ipv4&rate=5/s"), *gone = table_of("far.test smtp://host.test\n * smtp://host.test");
    const struct target *asked = route_asked(was, found(was), TARGET_WAIVES_TLS);
    ok(route_leads_to(was, asked));
    const struct target *next = route_successor(was, now, asked);
    ok(next == route_asked(now, found(now), TARGET_WAIVES_TLS));
    ok(route_successor(was, now, found(was)) == found(now));
    ok(!route_leads_to(gone, asked) && route_successor(was, gone, asked) == NULL);
    route_free(&was);
    route_free(&now);
    route_free(&gone);
}
