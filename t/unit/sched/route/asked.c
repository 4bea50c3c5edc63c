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

TEST(required)
{
    static const struct {
        const char *target;
        int becomes; /* -1: it stays */
    } rows[] = {
        {"mx", TARGET_MX},
        {"mx?tls=none", TARGET_ERROR},
        {"mx?dane=no", TARGET_MX},
        {"mx?dane=no&sts=no", TARGET_ERROR},
        {"smtp://host.test", TARGET_SMTP},
        {"smtp://127.0.0.1", TARGET_SMTP},
        {"smtp://host.test?tls=none", TARGET_ERROR},
        {"smtps://host.test", TARGET_SMTP},
        {"lmtp://unix:/run/lmtp", -1},
        {"lmtp://127.0.0.1:24", -1},
        {"lmtp://localhost", -1},
        {"lmtp://host.test", TARGET_LMTP},
        {"https://host.test/x", -1},
        {"http://127.0.0.1/x", -1},
        {"maildir:/var/mail/%u", -1},
        {"hold", -1},
        {"discard", -1},
        {"error:5.1.1 gone", -1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char routes[200], key[ROUTE_KEY_MAX];
        snprintf(routes, sizeof(routes), "far.test %s", rows[i].target);
        struct route_table *table = table_of(routes);
        const struct target *t = found(table), *asked = route_asked(table, t, TARGET_REQUIRES_TLS);
        ok_named((asked != t) == (rows[i].becomes >= 0), rows[i].target);
        ok_named(asked == route_asked(table, t, TARGET_REQUIRES_TLS), "the same again");
        if (rows[i].becomes >= 0)
            is_number(asked->kind, rows[i].becomes, "its kind");
        if (asked != t && asked->kind != TARGET_ERROR) {
            route_key(asked, TEXT("far.test"), key);
            ok_named(strstr(key, "requiretls=yes") != NULL, "its destination says it");
            ok_named(route_leads_to(table, asked), "the route leads there");
        }
        if (asked->kind == TARGET_ERROR && t->kind != TARGET_ERROR)
            is_string(asked->enhanced, "5.7.10", "the code");
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
