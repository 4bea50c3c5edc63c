/* The channel to web applications: what is posted, each answer, large mail, stops in the middle, and secrets. */
/* link: t/sim/loop.c t/sim/http_call.c */
#include "queue/poster/poster.h"

#include "base/http/http_call.h"
#include "t/sim/sim_http.h"
#include "t/support/manager_world.h"

#include <string.h>

#define URL "https://app.test:443/in"

struct posting {
    struct world w;
    struct http_caller *http;
};

static struct http_caller *caller; /* the same for each start of a world */

static void
plug(struct world *w)
{
    w->channel = poster_new(&(struct poster_settings){.loop = w->loop, .manager = w->manager, .http = caller});
    poster_use(w->channel, route_secrets(w->routes));
    manager_set_channel(w->manager, TARGET_HTTP, poster_open, w->channel);
}

static void
unplug(struct world *w)
{
    struct poster *poster = w->channel;
    poster_free(&poster);
    ok(poster == NULL);
    w->channel = NULL;
}

static void
route(struct world *w, const char *routes, const char *passwords)
{
    struct route_table *old = w->routes;
    w->routes_text.routes = text_from(routes);
    w->routes_text.passwords = text_from(passwords);
    w->routes = world_routes(w);
    manager_reload(w->manager, &w->settings, w->routes);
    if (w->channel != NULL)
        poster_use(w->channel, route_secrets(w->routes));
    route_free(&old);
}

static void
begin(struct world *w, const char *routes, const char *passwords)
{
    manager_world_begin(w, "* discard");
    caller = http_caller_new(&(struct http_caller_settings){.loop = w->loop});
    route(w, routes, passwords);
    w->plug = plug;
    plug(w);
}

static void
end(struct world *w)
{
    unplug(w);
    world_stop(w);
    http_caller_free(&caller);
    manager_world_end(w);
}

/* The value of a field of the last POST, or "". */
static const char *
field(const char *name)
{
    static char value[500];
    char wanted[100];
    struct text fields = sim_http_fields(caller), line;
    int length = snprintf(wanted, sizeof(wanted), "%s: ", name);
    value[0] = '\0';
    while (text_cut(&fields, '\n', &line))
        if (text_starts(line, text_from(wanted)))
            text_copy(value, sizeof(value), text_trim(text_after(line, (size_t)length)));
    return value;
}

TEST(delivery)
{
    FIXTURE(world, w, begin, end, "* https://joe@app.test/in?sign=key",
            "app.test joe secret\napp.test key a-secret-of-24-octets-00");
    sim_http_answer(caller, URL, 204, NULL, "");
    world_deliver(&w, "ann@a.test", "bob@h.test dan@h.test");
    ok(world_is_empty(&w));
    is_number(sim_http_calls(caller), 1, "one POST");
    is_string(sim_http_url(caller), URL, "to the URL without a user");
    is_text(sim_http_body(caller), TEXT("Subject: x\r\n\r\nbody\r\n"), "the message");
    is_string(field("X-Petrel-From"), "ann@a.test", "the sender");
    ok(memmem(sim_http_fields(caller).at, sim_http_fields(caller).length,
              "X-Petrel-To: bob@h.test\r\nX-Petrel-To: dan@h.test\r\n", 50) != NULL);
    is_string(field("Authorization"), "Basic am9lOnNlY3JldA==", "the password");
    ok(strlen(field("webhook-signature")) == 3 + 44 && strlen(field("webhook-id")) == 19 + 1 + 16);
    ok(sim_http_options(caller)->is_public && !sim_http_options(caller)->cleartext);
    ok(world_logged(&w, " http: ") && world_logged(&w, "status=sent (host app.test said: HTTP 204"));
}

/* The id stays over attempts and restarts; other recipients have another. */
TEST(again)
{
    char first[100];
    FIXTURE(world, w, begin, end, "* https://app.test/in", "");
    sim_http_answer(caller, URL, 500, NULL, "");
    world_deliver(&w, "ann@a.test", "bob@h.test");
    text_copy(first, sizeof(first), text_from(field("webhook-id")));
    ok(!world_is_empty(&w) && world_logged(&w, "status=deferred"));
    is_string(field("webhook-signature"), "", "no key: unsigned");
    unplug(&w);
    world_restart(&w);
    sim_http_answer(caller, URL, 200, NULL, "");
    sim_loop_advance(w.loop, 2 * 3600 * 1000);
    ok(world_is_empty(&w));
    is_string(field("webhook-id"), first, "the same id");
    world_deliver(&w, "ann@a.test", "dan@h.test");
    ok(strcmp(field("webhook-id"), first) != 0);
}

/* An application that is down holds no message, and its site is dead. */
TEST(down)
{
    FIXTURE(world, w, begin, end, "* https://app.test/in", "");
    world_deliver(&w, "ann@a.test", "bob@h.test");
    world_deliver(&w, "ann@a.test", "dan@h.test");
    ok(world_logged(&w, "dsn=4.4.1, status=deferred") && sim_http_fields(caller).length == 0);
    unsigned calls = sim_http_calls(caller);
    ok_named(calls <= 2, "it is not asked for each message");
    sim_http_answer(caller, URL, 200, NULL, "");
    sim_loop_advance(w.loop, 2 * 3600 * 1000);
    ok(world_is_empty(&w));
}

/* Fifty recipients fit one POST. */
TEST(many)
{
    struct buffer list;
    FIXTURE(world, w, begin, end, "* https://app.test/in?recipients=100", "");
    sim_http_answer(caller, URL, 200, NULL, "");
    buffer_init(&list, 10000);
    for (int i = 0; i < POSTER_RECIPIENTS_MAX + 1; i++)
        ok(buffer_format(&list, "r%d@h.test ", i));
    ok(buffer_add_byte(&list, '\0'));
    world_deliver(&w, "ann@a.test", list.at);
    ok(world_is_empty(&w));
    struct text fields = sim_http_fields(caller), line;
    int last = 0;
    while (text_cut(&fields, '\n', &line))
        last += text_starts(line, TEXT("X-Petrel-To: "));
    ok_named(last == 1 || last == POSTER_RECIPIENTS_MAX, "the last of two POSTs has the rest");
    buffer_free(&list);
}

/* A stop within a POST: the message waits, and comes once more. */
TEST(stopped)
{
    FIXTURE(world, w, begin, end, "* https://app.test/in?sign=key", "app.test key a-secret-of-24-octets-00");
    sim_http_answer(caller, URL, 200, NULL, "");
    sim_http_delay(caller, 10 * 1000);
    for (int ms = 0; ms < 25 * 1000; ms += 5000) {
        world_send(&w, "ann@a.test", "bob@h.test");
        sim_loop_advance(w.loop, ms);
        poster_drain(w.channel); /* without mail they end */
        unplug(&w);
        world_restart(&w);
    }
    sim_loop_advance(w.loop, 3600 * 1000);
    ok(world_is_empty(&w));
}

/* The route changes, and its secrets, while a POST is on its way: that ends as it began, and is not repeated. */
TEST(reloaded)
{
    FIXTURE(world, w, begin, end, "* https://joe@app.test/in?sign=key", "app.test joe secret\napp.test key a-secret-of-24-octets-00");
    sim_http_answer(caller, URL, 200, NULL, "");
    sim_http_delay(caller, 10 * 1000);
    world_send(&w, "ann@a.test", "bob@h.test");
    sim_loop_advance(w.loop, 15 * 1000);
    ok(sim_http_fields(caller).length > 0);
    route(&w, "* https://other.test/in", "");
    route(&w, "* discard", "");
    sim_loop_advance(w.loop, 60 * 1000);
    ok(world_is_empty(&w) && world_logged(&w, "status=sent (host app.test said: HTTP 200"));
    is_number(sim_http_calls(caller), 1, "one POST");
    world_send(&w, "ann@a.test", "dan@h.test");
    sim_loop_advance(w.loop, 60 * 1000);
    ok(world_is_empty(&w));
    is_number(sim_http_calls(caller), 1, "the next mail goes by the new route");
}

/* Secrets that are gone, or a token that cannot be read: mail waits, and no path is said. */
TEST(secrets)
{
    FIXTURE(world, w, begin, end, "* https://joe@app.test/in?auth=bearer", "app.test joe @/nowhere/token");
    sim_http_answer(caller, URL, 200, NULL, "");
    world_deliver(&w, "ann@a.test", "bob@h.test");
    ok(world_logged(&w, "cannot post to app.test as joe: its token file: ") && !world_logged(&w, "nowhere"));
    poster_use(w.channel, NULL);
    sim_loop_advance(w.loop, 3600 * 1000);
    ok(world_logged(&w, "cannot post to app.test as joe: it is no longer in auth_passwords"));
    ok(sim_http_fields(caller).length == 0 && !world_is_empty(&w));
    route(&w, "* https://joe@app.test/in?auth=bearer", "app.test joe x y");
    sim_loop_advance(w.loop, 2 * 3600 * 1000);
    ok(world_is_empty(&w));
    is_string(field("Authorization"), "Bearer x y", "a token of the table");
}
