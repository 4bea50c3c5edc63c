/* The channel with other hosts: what is rare, and what nobody should get out of it
 * (doc/defragment.md "Hosts"). */
/* link: t/sim/registry_stand_in.c */
/* link: t/sim/loop.c */
#include "defrag/channel_internal.h"
#include "t/support/channel_shared_world.h"

#define ROUTES "z smtp://h\n* smtp://h?defragment=yes&notices=2h"

static void
part_to(struct shared *h, const char *to, const char *id, unsigned number)
{
    stage_part_to(&h->s, "a@x", to, id, number, 3,
                  number == 1 ? "Subject: whole\r\n\r\n1\r\n" : "and more\r\n");
}

static void
part(struct shared *h, const char *id, unsigned number)
{
    part_to(h, "b@y", id, number);
}

static unsigned
remembered(const struct shared *h)
{
    return HASH_COUNT(h->s.channel->held);
}

/* One that is on its way to b.test, which does not answer, with that much of its time
 * left. */
static void
send_away(struct shared *h, const char *to, int64_t left_ms)
{
    h->s.peers = PEERS_DEFER;
    part_to(h, to, "i", 1);
    shared_tell(h, REGISTRY_OTHER, "b.test");
    int64_t begun_ms = (int64_t)h->s.w.id.time_ms;
    sim_loop_advance(h->s.w.loop,
                     begun_ms + STAGE_HALF_MS - left_ms - loop_now_ms(h->s.w.loop));
}

/* --- Time ------------------------------------------------------------------------- */

/* A fragment whose time ends while the other host takes it. */
TEST(taken_late)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    send_away(&h, "b@y", 2000);
    h.s.peers = PEERS_SLOW;
    ok(world_operate(&h.s.w, MANAGER_RETRY) == MANAGER_DONE);
    sim_loop_advance(h.s.w.loop, STAGE_SLOW_MS * 2);
    is_number(h.s.count, 1, "is there, once");
    is_string(shared_peer(&h, 0), "b.test", "and nowhere else");
    is_number(remembered(&h), 0, "nobody remembers it");
    ok(world_is_empty(&h.s.w));
}

/* The same for two recipients; one was taken before. */
TEST(taken_late_by_one)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    send_away(&h, "b@y c@y d@z", 2000);
    stage_clear(&h.s);
    h.s.peers = PEERS_SLOW;
    ok(world_operate(&h.s.w, MANAGER_RETRY) == MANAGER_DONE);
    sim_loop_advance(h.s.w.loop, STAGE_SLOW_MS * 3);
    is_number(h.s.count, 2, "both are there");
    is_number(remembered(&h), 0, "nobody remembers it");
    ok(world_is_empty(&h.s.w));
}

/* And what it refuses then. */
TEST(refused_late)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    send_away(&h, "b@y c@y", 2000);
    h.s.peers = PEERS_SLOW;
    ok(world_operate(&h.s.w, MANAGER_RETRY) == MANAGER_DONE);
    sim_loop_advance(h.s.w.loop, STAGE_SLOW_MS / 2);
    h.s.peers = PEERS_REFUSE;
    sim_loop_advance(h.s.w.loop, STAGE_SLOW_MS * 2);
    is_number(h.s.count, 2, "goes on, to both");
    ok(strcmp(shared_peer(&h, 0), "") == 0 && strcmp(shared_peer(&h, 1), "") == 0);
    is_number(remembered(&h), 0, "nobody remembers it");
    ok(world_is_empty(&h.s.w));
}

static void
stop_over_its_time(struct shared *h, enum channel_timeout on_timeout)
{
    shared_begin(h, ROUTES);
    h->s.settings.on_timeout = on_timeout;
    stage_stop(&h->s);
    shared_start(h);
    send_away(h, "b@y", STAGE_HALF_MS / 2);
    ok_named(h->s.asked > 1, "that host was asked in vain");
    stage_stop(&h->s);
    sim_loop_advance(h->s.w.loop, STAGE_HALF_MS);
    shared_start(h);
}

/* Its fate must not depend on the time of our start. */
TEST(time_over_while_stopped)
{
    struct shared h;
    stop_over_its_time(&h, CHANNEL_RELEASE);
    sim_loop_advance(h.s.w.loop, 10 * 1000);
    is_number(h.s.count, 1, "goes on");
    shared_end(&h);
    stop_over_its_time(&h, CHANNEL_HOLD);
    is_number(h.s.count, 0, "is held");
    ok(world_operate(&h.s.w, MANAGER_HOLD) == MANAGER_ALREADY);
    shared_end(&h);
    stop_over_its_time(&h, CHANNEL_BOUNCE);
    ok_named(world_logged(&h.s.w, "dsn=5.4.7, status=bounced"), "is returned");
    shared_end(&h);
}

/* But what was let go before goes on. */
TEST(let_go_before_stop)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    h.s.settings.on_timeout = CHANNEL_HOLD;
    stage_stop(&h.s);
    shared_start(&h);
    h.s.refuses = true;
    h.s.peers = PEERS_REFUSE;
    part(&h, "i", 1);
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    h.s.settings.on_timeout = CHANNEL_RELEASE;
    channel_reload(h.s.channel, &h.s.settings);
    sim_loop_advance(h.s.w.loop, 2 * STAGE_HALF_MS);
    h.s.settings.on_timeout = CHANNEL_HOLD;
    stage_stop(&h.s);
    h.s.refuses = false;
    shared_start(&h);
    sim_loop_advance(h.s.w.loop, 2 * STAGE_HALF_MS);
    is_number(h.s.count, 1, "what was on its way by itself is so again");
    is_string(shared_peer(&h, 0), "", "to whom it was for");
}

/* Somebody sets the clock, or the machine has slept: nothing is offered in vain again
 * and again until our timers notice. */
TEST(clock)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    part(&h, "i", 1);
    shared_tell(&h, REGISTRY_OWN, "");
    sim_loop_step_wall(h.s.w.loop, 2 * STAGE_HALF_MS);
    for (unsigned i = 0; i < 100 && h.s.count == 0; i++)
        loop_turn(h.s.w.loop, 1000);
    is_number(h.s.count, 1, "its time is over at once");
    world_turns(&h.s.w);
    ok(world_is_empty(&h.s.w));
}

TEST(reason)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    part(&h, "j", 1);
    shared_tell(&h, REGISTRY_OWN, "");
    ok_named(strstr(stage_why(&h.s), "deferred") == NULL, "nothing was tried");
    send_away(&h, "b@y", STAGE_HALF_MS / 2);
    const char *why = stage_why(&h.s);
    ok_named(strstr(why, "goes to b.test, ") != NULL, "where it is to go is told");
    ok_named(strstr(why, "; previously deferred: come again") != NULL,
             "and why it is not there");
}

/* --- Floods ----------------------------------------------------------------------- */

/* A stranger has some sets, and not the registry and all places for owners. */
TEST(too_many_sets)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    h.s.settings.limits.sender_sets = 5;
    channel_reload(h.s.channel, &h.s.settings);
    for (unsigned i = 0; i < 50; i++) {
        char id[16];
        snprintf(id, sizeof(id), "s%u", i);
        part(&h, id, 2);
    }
    is_number(h.s.count, 45, "what is too much passes");
    while (h.registry.count > 0)
        shared_tell(&h, REGISTRY_OWN, "");
    is_number(claims_count(h.s.channel->claims).known, 5,
              "and no set of it is claimed");
    is_number(h.registry.closed, 45, "any more");
    is_number(h.registry.closed_ms, 0, "nor remembered");
}

/* A part too many of a set that is open leaves the set ours. */
TEST(too_large_a_part)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    part(&h, "i", 1);
    shared_tell(&h, REGISTRY_OWN, "");
    h.s.settings.limits.recipients = 1;
    channel_reload(h.s.channel, &h.s.settings);
    part(&h, "i", 2);
    is_number(h.s.count, 1, "it passes");
    is_number(h.registry.closed, 0, "but the set is there still");
    h.s.settings.limits.recipients = 0;
    channel_reload(h.s.channel, &h.s.settings);
    part(&h, "i", 2);
    part(&h, "i", 3);
    is_number(h.s.count, 2, "and is joined");
}

/* A host that is away must not make ours grow. */
TEST(too_many_journeys)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    h.s.peers = PEERS_DEFER;
    part(&h, "i", 1);
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    h.s.settings.limits.recipients = 10;
    channel_reload(h.s.channel, &h.s.settings);
    for (unsigned i = 0; i < 40; i++)
        part(&h, "i", 2); /* the same, again and again */
    is_number(h.s.channel->redirects.count, 10, "so many are on their way");
    ok_named(remembered(&h) <= 20, "few are in memory");
    h.s.peers = PEERS_TAKE;
    sim_loop_advance(h.s.w.loop, STAGE_HALF_MS * 2);
    is_number(remembered(&h), 0, "none in the end");
    ok(world_is_empty(&h.s.w));
}

/* Sets that began while the registry was down, when it is back. */
TEST(too_many_at_once)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    h.s.peers = PEERS_DEFER;
    h.s.settings.limits.recipients = 4;
    channel_reload(h.s.channel, &h.s.settings);
    h.registry.is_down = true;
    for (unsigned i = 0; i < 4; i++)
        part(&h, "i", i < 2 ? 1 : 2);
    part_to(&h, "c@y", "i", 1);
    shared_tell(&h, REGISTRY_UNAVAILABLE, "");
    h.s.settings.limits.recipients = 1;
    channel_reload(h.s.channel, &h.s.settings);
    h.registry.is_down = false;
    channel_recover(h.s.channel, false);
    world_turns(&h.s.w);
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    is_number(h.s.channel->redirects.count, 1, "no more than may be");
    ok_named(stage_figures(&h.s).messages > 0, "the others stay in their set");
    sim_loop_advance(h.s.w.loop, STAGE_HALF_MS * 2);
    ok(world_is_empty(&h.s.w));
}
