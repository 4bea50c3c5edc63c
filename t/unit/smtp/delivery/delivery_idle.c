/* link: t/sim/clock.c */
/* link: t/sim/delivery_world.c */
/* link: t/sim/dns.c t/sim/loop.c */
/* A kept connection in virtual time: only mail and the end of its time wake it. */
#include "smtp/delivery/delivery.h"

#include "t/sim/delivery_world.h"
#include "t/sim/sim.h"

enum { KEPT_MS = 60000 };

static void
exchange(struct bed *b, const char *want)
{
    for (int i = 0; i < 10000 && !has(&b->manager.verdicts, want); i++) {
        sim_loop_poll(b->loop);
        loop_turn(b->loop, 1);
    }
    ok_named(has(&b->manager.verdicts, want), want);
}

/* The first message is sent; a second one, not yet to be seen, waits. */
static void
keep(struct bed *b)
{
    bed_start(b);
    b->settings.reuse_idle_ms = KEPT_MS;
    delivery_reload(b->delivery, &b->settings);
    add_mail(b, "u@x.test");
    add_mail(b, "v@x.test");
    b->manager.hidden = 1;
    delivery_open(b->delivery, place(b), &b->target, "x.test");
    exchange(b, "u@x.test sent");
}

TEST(pause)
{
    FIXTURE(bed, b, keep, bed_stop);
    uint64_t before = sim_loop_turns(b.loop);
    sim_loop_advance(b.loop, KEPT_MS / 2);
    is_number((long)(sim_loop_turns(b.loop) - before), 1,
              "no turn but the one in which the test ends the wait");
    b.manager.hidden = 0;
    loop_turn(b.loop, 0);
    is_number(b.manager.taken, 2, "mail is taken in the turn that brings it");
    exchange(&b, "v@x.test sent");
    before = sim_loop_turns(b.loop);
    sim_loop_advance(b.loop, KEPT_MS - 1);
    is_number(b.manager.ended, 0, "the time begins anew");
    is_number((long)(sim_loop_turns(b.loop) - before), 1, "nothing happens in it");
    sim_loop_advance(b.loop, 1);
    is_number(b.manager.ended, 1, "then the session ends");
    is_number(b.a.connections, 1, "it was one connection");
}

TEST(last_moment)
{
    FIXTURE(bed, b, keep, bed_stop);
    sim_loop_advance(b.loop, KEPT_MS - 1);
    b.manager.hidden = 0;
    loop_turn(b.loop, 1);
    is_number(b.manager.taken, 2, "mail at the end of the time is taken");
    is_number(b.manager.ended, 0, "over the same connection");
}

TEST(reload)
{
    FIXTURE(bed, b, keep, bed_stop);
    sim_loop_advance(b.loop, 5000);
    b.settings.reuse_idle_ms = 8000;
    delivery_reload(b.delivery, &b.settings);
    sim_loop_advance(b.loop, 2999);
    is_number(b.manager.ended, 0, "a new time counts from when it became idle");
    sim_loop_advance(b.loop, 1);
    is_number(b.manager.ended, 1, "and ends the session");
}

int
main(void)
{
    spool.content = memory_new(CONTENT_MAX);
    tap_tests("");
    free(spool.content);
    return done();
}
