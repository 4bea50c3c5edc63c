/* ETRN behind the SMTP server: which mail is due then, how often, and for how many. */
/* link: t/sim/loop.c */
#include "admin/control/flush.h"

#include "t/support/manager_world.h"

static struct flush *
flush_begin(struct world *w)
{
    manager_world_begin(w, "keep.test hold\n* mx");
    return flush_new(w->loop, w->log, w->manager);
}

static void
flush_end(struct world *w, struct flush **f)
{
    flush_free(f);
    ok(*f == NULL);
    flush_free(f);
    manager_world_end(w);
}

/* The mail that is tried because of it. */
static const char *
tried(struct world *w, struct flush *f, const char *node)
{
    static char seen[1000];
    buffer_clear(&w->seen);
    is_number(flush_ask(f, node, "[192.0.2.1]"), FLUSH_STARTED, node);
    world_turns(w);
    world_turns(w);
    text_copy(seen, sizeof(seen), buffer_text(&w->seen));
    return seen;
}

static bool
is_logged(const struct world *w, const char *line)
{
    return memmem(w->lines.at, w->lines.length, line, strlen(line)) != NULL;
}

TEST(which)
{
    struct world w;
    struct flush *f = flush_begin(&w);
    world_deliver(&w, "a@s.test", "later@x.test");
    world_deliver(&w, "b@s.test", "later@y.test");
    world_deliver(&w, "c@s.test", "later@sub.x.test");
    world_deliver(&w, "d@s.test", "later@a.b.sub.x.test");
    world_deliver(&w, "e@s.test", "later@ax.test");
    world_deliver(&w, "f@s.test", "good@x.test later@y.test");
    world_deliver(&w, "g@s.test", "later@x.test");
    world_deliver(&w, "h@s.test", "u@keep.test");
    is_string(tried(&w, f, "x.test"), "a@s.test>later@x.test g@s.test>later@x.test ",
              "of its own only, and not who has it already");
    ok(is_logged(&w, "node x.test: queuing is started for client [192.0.2.1]"));
    ok(is_logged(&w, "node x.test: done, 2 messages are due now"));
    is_string(tried(&w, f, "sub.x.test"), "c@s.test>later@sub.x.test ", "a sub-domain");
    is_string(tried(&w, f, "@sub.x.test"),
              "c@s.test>later@sub.x.test d@s.test>later@a.b.sub.x.test ",
              "with its sub-domains");
    ok(is_logged(&w, "node @sub.x.test: done, 2 messages are due now"));
    is_string(tried(&w, f, "keep.test"), "", "what is held stays");
    is_string(tried(&w, f, "nobody.test"), "", "nothing waits");
    ok(is_logged(&w, "node nobody.test: done, 0 messages are due now"));
    is_string(tried(&w, f, "test2"), "", "no part of a label");
    is_string(tried(&w, f, "@st"), "", "nor that");
    flush_end(&w, &f);
}

/* Two recipients of a node, and two nodes of a message. */
TEST(counts)
{
    struct world w;
    struct flush *f = flush_begin(&w);
    world_deliver(&w, "a@s.test", "later@x.test later2@x.test later@y.test");
    is_number(flush_ask(f, "y.test", "[192.0.2.1]"), FLUSH_STARTED, "one node");
    is_string(tried(&w, f, "@x.test"),
              "a@s.test>later@x.test a@s.test>later2@x.test a@s.test>later@y.test ",
              "all its open recipients are tried, once");
    ok(is_logged(&w, "node y.test: done, 1 messages are due now"));
    ok(is_logged(&w, "node @x.test: done, 1 messages are due now"));
    flush_end(&w, &f);
}

TEST(dead_site)
{
    struct world w;
    struct flush *f = flush_begin(&w);
    for (int i = 0; i < 30; i++)
        world_deliver(&w, "a@s.test", "site@down.test");
    world_deliver(&w, "b@s.test", "later@other.test");
    ok_named(sched_count(manager_sched(w.manager)).dead == 1, "the site is dead");
    is_number((long)sched_count(manager_sched(w.manager)).deferred, 31, "all wait");
    w.all_good = true;
    tried(&w, f, "down.test");
    world_turns(&w);
    is_number((long)sched_count(manager_sched(w.manager)).dead, 0, "it is revived");
    is_number((long)sched_count(manager_sched(w.manager)).deferred, 1,
              "its mail is delivered, the other waits");
    flush_end(&w, &f);
}

TEST(how_often)
{
    struct world w;
    struct flush *f = flush_begin(&w);
    world_deliver(&w, "a@s.test", "later@x.test");
    is_string(tried(&w, f, "x.test"), "a@s.test>later@x.test ", "at first");
    buffer_clear(&w.seen);
    is_number(flush_ask(f, "x.test", "[192.0.2.1]"), FLUSH_RECENT, "again, at once");
    sim_loop_advance(w.loop, FLUSH_AGAIN_MS - 3000);
    is_number(flush_ask(f, "x.test", "[192.0.2.1]"), FLUSH_RECENT, "again, too early");
    is_number((long)w.seen.length, 0, "nothing comes of it");
    sim_loop_advance(w.loop, 3000);
    is_string(tried(&w, f, "x.test"), "a@s.test>later@x.test ", "after a minute");
    flush_end(&w, &f);
}

TEST(limit)
{
    struct world w;
    char name[40];
    struct flush *f = flush_begin(&w);
    int started = 0;
    world_deliver(&w, "a@s.test", "later@n7.test");
    for (int i = 0; i < FLUSH_NODES_MAX; i++) {
        snprintf(name, sizeof(name), "n%d.test", i);
        started += flush_ask(f, name, "[192.0.2.1]") == FLUSH_STARTED;
    }
    is_number(started, FLUSH_NODES_MAX, "so many");
    is_number(flush_ask(f, "one.more", "[192.0.2.1]"), FLUSH_FULL, "and no more");
    ok(is_logged(&w, "node one.more: refused to client [192.0.2.1]"));
    is_number(flush_ask(f, "n7.test", "[192.0.2.1]"), FLUSH_RECENT, "but these");
    buffer_clear(&w.seen);
    world_turns(&w);
    ok_named(text_equal(buffer_text(&w.seen), TEXT("a@s.test>later@n7.test ")),
             "one walk serves all");
    ok(is_logged(&w, "node n999.test: done, 0 messages are due now"));
    is_number(flush_ask(f, "one.more", "[192.0.2.1]"), FLUSH_FULL, "still full");
    sim_loop_advance(w.loop, FLUSH_AGAIN_MS);
    is_number(flush_ask(f, "one.more", "[192.0.2.1]"), FLUSH_STARTED, "then not");
    flush_end(&w, &f);
}

/* More than a turn takes; a request within the walk is served by the next one. */
TEST(many)
{
    struct world w;
    struct flush *f = flush_begin(&w);
    for (int i = 0; i < 2500; i++)
        world_send(&w, "a@s.test", i % 2 ? "later@x.test" : "later@y.test");
    sim_loop_advance(w.loop, 10000);
    is_number((long)sched_count(manager_sched(w.manager)).deferred, 2500, "all wait");
    is_number(flush_ask(f, "x.test", "[192.0.2.1]"), FLUSH_STARTED, "the first");
    uint64_t turns = sim_loop_turns(w.loop);
    for (int i = 0; i < 3; i++)
        loop_turn(w.loop, 0);
    ok_named(!is_logged(&w, "node x.test: done"), "its walk takes some turns");
    ok(sim_loop_turns(w.loop) >= turns + 3);
    is_number(flush_ask(f, "x.test", "[192.0.2.1]"), FLUSH_RECENT, "it is under way");
    is_number(flush_ask(f, "y.test", "[192.0.2.1]"), FLUSH_STARTED, "the second");
    sim_loop_advance(w.loop, 5000);
    ok(is_logged(&w, "node x.test: done, 1250 messages are due now"));
    ok(is_logged(&w, "node y.test: done, 1250 messages are due now"));
    flush_end(&w, &f);
}

/* It may be asked, and then all ends. */
TEST(cut_short)
{
    struct world w;
    struct flush *f = flush_begin(&w);
    world_deliver(&w, "a@s.test", "later@x.test");
    is_number(flush_ask(f, "x.test", "[192.0.2.1]"), FLUSH_STARTED, "asked");
    flush_end(&w, &f);
    f = flush_begin(&w);
    for (int i = 0; i < 1500; i++)
        world_send(&w, "a@s.test", "later@x.test");
    sim_loop_advance(w.loop, 10000);
    is_number(flush_ask(f, "x.test", "[192.0.2.1]"), FLUSH_STARTED, "begun");
    for (int i = 0; i < 3; i++)
        loop_turn(w.loop, 0);
    flush_end(&w, &f);
}
