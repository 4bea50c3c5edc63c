/* A message of very many recipients: the verdicts of a dead site or of the routes are
 * reported in many turns, and each once, with any event meanwhile. */
/* link: t/sim/loop.c */
#include "t/support/manager_world.h"

enum { RECIPIENTS = 20000, IN_A_TURN = 2000, PLENTY = 1000 };

struct meter {
    struct world *world;
    const char *words; /* of a log line about a recipient */
    unsigned before, most;
};

/* Nobody is there. */
static void
fail_to_open(void *context)
{
    struct fake *f = context;
    struct world *w = f->world;
    struct outcome trouble =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.1", "connection refused");
    DL_DELETE(w->fakes, f);
    manager_session_ended(w->manager, f->session, &trouble);
    loop_release(w->loop, free, f);
}

static void
open_in_vain(void *context, struct sched_session *session, const struct target *target,
             const char *domain)
{
    struct fake *f = memory_new(sizeof(*f));
    (void)target;
    (void)domain;
    f->world = context;
    f->session = session;
    DL_APPEND(f->world->fakes, f);
    loop_post(f->world->loop, &f->task, fail_to_open, f);
}

static unsigned
count_told(const struct world *w, const char *words)
{
    unsigned count = 0;
    const char *at = w->lines.at;
    size_t left = w->lines.length, length = strlen(words);
    while (left > 0 && (at = memmem(at, left, words, length)) != NULL) {
        count++;
        at += length;
        left = w->lines.length - (size_t)(at - w->lines.at);
    }
    return count;
}

static void
measure(void *context)
{
    struct meter *meter = context;
    unsigned now = count_told(meter->world, meter->words);
    if (now - meter->before > meter->most)
        meter->most = now - meter->before;
    meter->before = now;
}

static void
plug_none(struct world *w)
{
    manager_set_channel(w->manager, TARGET_SMTP, open_in_vain, w);
}

/* Every n-th of count recipients is at c.test, the others at b.test. */
static void
send_many(struct world *w, unsigned n)
{
    FIXTURE(buffer, all, buffer_init, buffer_free, 1024 * 1024);
    for (unsigned i = 0; i < RECIPIENTS; i++)
        if (!buffer_format(&all, "good%u@%c.test ", i, n > 0 && i % n == 0 ? 'c' : 'b'))
            abort();
    if (!buffer_add_byte(&all, '\0'))
        abort();
    world_send(w, "ann@a.test", all.at);
}

static void
begin(struct world *w, struct meter *meter, const char *routes, const char *words)
{
    *meter = (struct meter){.world = w, .words = words};
    manager_world_begin(w, routes);
    buffer_free(&w->lines);
    buffer_free(&w->seen);
    buffer_init(&w->lines, 64 * 1024 * 1024);
    buffer_init(&w->seen, 64 * 1024 * 1024);
    loop_at_end(w->loop, LOOP_SEND_DISK, measure, meter);
}

static void
end(struct world *w, struct meter *meter)
{
    loop_at_end_remove(w->loop, LOOP_SEND_DISK, measure, meter);
    manager_world_end(w);
}

/* Until there is something between nothing and all. */
static void
go_half_way(struct world *w, const struct meter *meter)
{
    for (unsigned i = 0; i < PLENTY && meter->before < RECIPIENTS / 4; i++)
        loop_turn(w->loop, 0);
    ok_named(meter->before >= RECIPIENTS / 4 && meter->before < RECIPIENTS / 2,
             "it is in the midst of it");
}

TEST(dead_site)
{
    struct world w;
    struct meter meter;
    begin(&w, &meter, "* smtp://sink.test", "status=deferred");
    plug_none(&w);
    send_many(&w, 0);
    for (unsigned i = 0; i < 20 && meter.before < RECIPIENTS; i++)
        world_turns(&w);
    is_number(meter.before, RECIPIENTS, "each recipient is deferred, once");
    ok_named(meter.most > 0 && meter.most <= IN_A_TURN, "not too many in a turn");
    is_number(sched_count(manager_sched(w.manager)).deferred, 1, "then it waits");
    end(&w, &meter);
}

/* --- Verdicts of routes ----------------------------------------------------------- */

static const char refusing[] = "b.test error:5.1.1 gone\n* smtp://sink.test";

TEST(refused)
{
    struct world w;
    struct meter meter;
    begin(&w, &meter, refusing, "status=bounced");
    send_many(&w, 4);
    world_turns(&w);
    is_number(meter.before, RECIPIENTS / 4 * 3,
              "each that is refused is told of, once");
    ok_named(meter.most > 0 && meter.most <= IN_A_TURN, "not too many in a turn");
    is_number(w.attempts, RECIPIENTS / 4 + 1, "the others go out, and the notice");
    is_number(count_told(&w, "sender notified"), 1, "the sender hears of it once");
    world_turns(&w);
    ok(world_is_empty(&w));
    end(&w, &meter);
}

/* Others do not wait for it. */
TEST(others)
{
    struct world w;
    struct meter meter;
    begin(&w, &meter, refusing, "status=bounced");
    send_many(&w, 0);
    go_half_way(&w, &meter);
    world_send(&w, "eve@e.test", "good@other.test");
    for (unsigned i = 0; i < 6; i++)
        loop_turn(w.loop, 0);
    ok_named(world_logged(&w, "to=<good@other.test>") && meter.before < RECIPIENTS,
             "a small message goes out before it is through");
    world_turns(&w);
    is_number(meter.before, RECIPIENTS, "then the rest of it");
    end(&w, &meter);
}

/* A command of an operator is carried out when its recipients are routed. */
TEST(operator)
{
    static const struct {
        enum manager_verb verb;
        unsigned attempts; /* notices among them */
        unsigned held;
    } cases[] = {
        {MANAGER_REMOVE, 0, 0},
        {MANAGER_BOUNCE, 1, 0},
        {MANAGER_HOLD,   0, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct world w;
        struct meter meter;
        begin(&w, &meter, refusing, "status=bounced");
        send_many(&w, 2);
        go_half_way(&w, &meter);
        is_number(world_operate(&w, cases[i].verb), MANAGER_LATER, "it is under way");
        world_turns(&w);
        is_number(w.attempts, cases[i].attempts, "nobody gets it");
        is_number(world_files(&w, "hold"), cases[i].held, "held or gone");
        is_number(world_files(&w, "info"), cases[i].held, "so");
        end(&w, &meter);
    }
}

static void
plug_lmtp(struct world *w)
{
    manager_set_channel(w->manager, TARGET_LMTP, fake_open, w);
}

/* Waiting recipients are bounced in many turns, also when a stop comes between. */
TEST(bounce)
{
    for (int stops = 0; stops < 2; stops++) {
        struct world w;
        struct meter meter;
        begin(&w, &meter, "b.test smtp://sink.test\n* lmtp://unix:/x",
              "status=bounced");
        plug_none(&w);
        w.plug = plug_lmtp;
        plug_lmtp(&w);
        send_many(&w, 0);
        for (unsigned i = 0; i < 20 && world_place(&w) != SCHED_DEFERRED; i++)
            world_turns(&w);
        is_number(world_operate(&w, MANAGER_BOUNCE), MANAGER_DONE, "it is returned");
        go_half_way(&w, &meter);
        is_number(world_operate(&w, MANAGER_REMOVE), MANAGER_ENDING,
                  "and nothing else");
        if (stops) {
            world_stop(&w);
            is_number(meter.before, RECIPIENTS, "the stop waits for it");
            manager_world_start(&w);
        }
        world_turns(&w);
        is_number(meter.before, RECIPIENTS, "each recipient is told of once");
        ok_named(meter.most > 0 && meter.most <= IN_A_TURN, "not too many in a turn");
        is_number(w.attempts, 1, "the notice alone is sent");
        end(&w, &meter);
    }
}

/* New routes are for those, too, that had been routed by the old ones. */
TEST(reload)
{
    struct world w;
    struct meter meter;
    begin(&w, &meter, refusing, "status=bounced");
    send_many(&w, 2);
    go_half_way(&w, &meter);
    struct route_table *before = w.routes;
    w.routes_text.routes = TEXT("c.test discard\n* error:5.1.2 all gone");
    w.routes = world_routes(&w);
    manager_reload(w.manager, &w.settings, w.routes);
    route_free(&before);
    world_turns(&w);
    is_number(meter.before, RECIPIENTS / 2 + 2,
              "each is refused once, the notice, and what tells of that");
    is_number(count_told(&w, "(discarded)"), RECIPIENTS / 2,
              "the others are discarded");
    is_number(w.attempts, 0, "nobody is sent it");
    end(&w, &meter);
}

/* A stop in the midst: what was said before is not said again. */
TEST(stop)
{
    struct world w;
    struct meter meter;
    begin(&w, &meter, refusing, "status=bounced");
    send_many(&w, 2);
    go_half_way(&w, &meter);
    world_restart(&w);
    world_turns(&w);
    is_number(meter.before, RECIPIENTS / 2, "each is told of once");
    is_number(w.attempts, RECIPIENTS / 2 + 1,
              "the others get it, and the sender his notice");
    world_turns(&w);
    ok(world_is_empty(&w));
    end(&w, &meter);
}

/* A recipient settled from elsewhere, as a part of a reassembled message, is not
 * served. */
TEST(settled)
{
    struct world w;
    struct meter meter;
    begin(&w, &meter, refusing, "status=bounced");
    send_many(&w, 2);
    go_half_way(&w, &meter);
    unsigned indexes[] = {0, RECIPIENTS - 2};
    struct outcome joined =
        outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "joined");
    ok(manager_settle_awaiting(w.manager, w.id, indexes, 2, &joined));
    world_turns(&w);
    is_number(count_told(&w, "(joined)"), 2, "they have it");
    is_number(w.attempts, RECIPIENTS / 2 - 2 + 1, "and are not served");
    end(&w, &meter);
}

/* Those that are refused are reported before the others are held. */
TEST(held)
{
    struct world w;
    struct meter meter;
    begin(&w, &meter, "b.test error:5.1.1 gone\n* hold", "status=bounced");
    send_many(&w, 2);
    world_turns(&w);
    is_number(meter.before, RECIPIENTS / 2, "each that is refused is told of");
    is_number(world_files(&w, "hold"), 2, "it is held, and so is its bounce");
    end(&w, &meter);
}

/* --- Many next hops --------------------------------------------------------------- */

enum { DOMAINS = 6000 };

static void
plug_mx(struct world *w)
{
    manager_set_channel(w->manager, TARGET_MX, fake_open, w);
}

/* Each recipient has a domain of its own; it is where it is after some turns. */
static void
begin_many_sites(struct world *w, struct meter *meter, unsigned turns)
{
    struct buffer all;
    begin(w, meter, "* mx", "status=sent");
    w->plug = plug_mx;
    buffer_init(&all, 1024 * 1024);
    for (unsigned i = 0; i < DOMAINS; i++)
        if (!buffer_format(&all, "good@d%u.test ", i))
            abort();
    if (!buffer_add_byte(&all, '\0'))
        abort();
    world_send(w, "ann@a.test", all.at);
    buffer_free(&all);
    for (unsigned i = 0; i < turns; i++)
        loop_turn(w->loop, 0);
}

static void
deliver_all(struct world *w)
{
    for (unsigned i = 0; i < PLENTY && !world_is_empty(w); i++)
        world_turns(w);
}

/* Routed, found and entered some in a turn; in between a reload or a stop loses
 * nothing, and nobody is served twice. */
TEST(many_sites)
{
    struct world w;
    struct meter meter;
    begin_many_sites(&w, &meter, 2 * DOMAINS / IN_A_TURN);
    is_number(w.opened, 0, "no session before the scheduler has all of them");
    deliver_all(&w);
    is_number(w.attempts, DOMAINS, "then each is served");
    end(&w, &meter);
    for (unsigned turns = 1; turns < 16; turns += 2) {
        begin_many_sites(&w, &meter, turns);
        struct route_table *before = w.routes;
        w.routes = world_routes(&w);
        manager_reload(w.manager, &w.settings, w.routes);
        route_free(&before);
        deliver_all(&w);
        is_number(w.attempts, DOMAINS, "each once, with new routes");
        end(&w, &meter);
        begin_many_sites(&w, &meter, turns);
        world_restart(&w);
        deliver_all(&w);
        is_number(w.attempts, DOMAINS, "each once, over a stop");
        end(&w, &meter);
        begin_many_sites(&w, &meter, turns);
        (void)world_operate(&w, MANAGER_REMOVE);
        bool is_early = w.opened == 0;
        deliver_all(&w);
        ok_named(world_is_empty(&w) && (!is_early || w.attempts == 0), "removed");
        end(&w, &meter);
    }
}
