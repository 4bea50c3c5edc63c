/* Proves that calls may start, end, be cancelled and be freed in any order, also from
 * within callbacks: each is answered once, unless it is cancelled, and nothing is left. */
/* link: t/sim/clock.c */
/* link: t/sim/dns.c */
#include "t/sim/clock.h"
#include "t/support/http_world.h"

enum { WALKERS = 40, WALK_STEPS = 4000 };
struct walk {
    struct calls *calls;
    uint64_t state;
    struct walker {
        struct walk *walk;
        struct http_call *call;
        bool waits; /* for the callback */
    } walkers[WALKERS];
    int started, answered, cancelled, wrong;
};

static unsigned
walk_random(struct walk *w, unsigned below)
{
    w->state = w->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(w->state >> 33) % below;
}

static void walk_start(struct walk *w, struct walker *one);

static void
walk_cancel(struct walk *w, struct walker *one)
{
    w->cancelled += one->waits;
    one->waits = false;
    http_call_cancel(&one->call);
}

/* Any act of a callback on others, and on itself. */
static void
walk_hear(void *context, const struct http_result *result)
{
    struct walker *one = context;
    struct walk *w = one->walk;
    w->wrong += !one->waits || (result->error == NULL) != (result->response != NULL);
    one->waits = false;
    w->answered++;
    if (walk_random(w, 4) == 0)
        walk_cancel(w, &w->walkers[walk_random(w, WALKERS)]);
    one->call = NULL;
    if (walk_random(w, 3) == 0)
        walk_start(w, one);
    if (w->calls->caller != NULL && walk_random(w, 200) == 0) {
        for (size_t i = 0; i < WALKERS; i++)
            w->walkers[i].call = NULL;
        for (size_t i = 0; i < WALKERS; i++) {
            w->cancelled += w->walkers[i].waits;
            w->walkers[i].waits = false;
        }
        http_caller_free(&w->calls->caller);
    }
}

static void
walk_start(struct walk *w, struct walker *one)
{
    static const char *const hosts[] = {"mail.example.net", "nowhere.example.net",
                                        "slow.example.net", "127.0.0.1",
                                        "dead.example.net", "a..b"};
    static const struct http_request post = {
        .method = {"POST", 4}, .type = {"a/b", 3}, .body = {"=end", 4}
    };
    struct http_call_options options = {.cleartext = walk_random(w, 8) > 0,
                                        .deadline_ms = 1 + walk_random(w, 60)};
    char url[200];
    if (one->waits || w->calls->caller == NULL)
        return;
    snprintf(url, sizeof(url), "http%s://%s:%u/", walk_random(w, 8) > 0 ? "" : "s",
             hosts[walk_random(w, 6)], w->calls->port);
    one->walk = w;
    one->waits = true;
    w->started++;
    one->call = http_call_start(w->calls->caller, text_from(url), &post, &options,
                                walk_hear, one);
}

static void
walk_step(struct walk *w)
{
    struct calls *c = w->calls;
    struct walker *one = &w->walkers[walk_random(w, WALKERS)];
    if (c->caller == NULL)
        c->caller = http_caller_new(&(struct http_caller_settings){
            .loop = c->world->loop, .net = c->world->net, .dns = c->dns, .tls = &c->client});
    switch (walk_random(w, 8)) {
    case 0:
        walk_cancel(w, one);
        break;
    case 1:
    case 2:
    case 3:
        walk_start(w, one);
        break;
    case 4:
        c->manner = (enum manner)walk_random(w, CLOSES + 1);
        break;
    case 5:
        sim_dns_delay(c->dns, walk_random(w, 30));
        break;
    default:
        clock_pass(walk_random(w, 20));
        loop_turn(c->world->loop, 0);
    }
}

static void
test_walk(struct secrets *secrets)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct calls *c = calls_start(secrets, "", "ca.pem");
        struct walk w = {.calls = c, .state = seed};
        clock_stop();
        sim_dns_address(c->dns, "slow.example.net", "127.0.0.1");
        sim_dns_address(c->dns, "dead.example.net", "127.0.0.9");
        sim_dns_address(c->dns, "dead.example.net", "127.0.0.8");
        for (int step = 0; step < WALK_STEPS; step++)
            walk_step(&w);
        for (int i = 0; i < 2000 && w.answered + w.cancelled < w.started; i++) {
            clock_pass(20);
            loop_turn(c->world->loop, 0);
        }
        is_number(w.wrong, 0, "each answer is awaited");
        is_number(w.answered + w.cancelled, w.started, "none is missing");
        ok(w.answered > 300 && w.cancelled > 100);
        clock_go();
        calls_finish(c);
    }
}

int
main(void)
{
    struct secrets secrets;
    make_secrets(&secrets);
    test_walk(&secrets);
    drop_secrets(&secrets);
    return done();
}
