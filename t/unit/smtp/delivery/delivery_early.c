/* link: t/sim/dns.c */
/* link: t/sim/clock.c */
/* link: t/sim/delivery_world.c */
/* Delivery: the next request in one group with the dot of the last. */
#include "smtp/delivery/delivery.h"

#include "t/sim/delivery_world.h"

/* Four messages to a host that answers one dot and then says nothing more. */
static void
start_early(struct bed *b)
{
    static const char *const rcpts[] = {"a@x.test", "b@x.test", "c@x.test", "d@x.test"};
    bed_start(b);
    for (size_t i = 0; i < 4; i++)
        add_mail(b, rcpts[i]);
    b->a.quiet_after = 1;
    delivery_open(b->delivery, place(b), &b->target, "x.test");
    turns(b, 100);
    is_settled(b, "a@x.test sent 2.0.0 none\n", "the first is sent");
    is_number(b->manager.taken, 3, "two are under way");
    ok_named(has(&b->a.commands, "RCPT TO:<c@x.test>\nDATA\n"),
             "the next is said before the answer to the dot");
}

TEST(early_lost)
{
    FIXTURE(bed, b, start_early, bed_stop);
    b.a.quiet_after = 0;
    b.a.quiet = false;
    net_abort(&b.a.links[0].connection);
    turns(&b, 200);
    is_settled(&b,
               "a@x.test sent 2.0.0 none\nb@x.test deferred 4.4.2 site\n"
               "c@x.test sent 2.0.0 none\nd@x.test sent 2.0.0 none\n",
               "only the one at its dot is in doubt");
    is_number(b.a.connections, 2, "the one behind it went over a new connection");
    is_number(b.manager.ended, 1, "the session has ended");
}

TEST(early_answered)
{
    FIXTURE(bed, b, start_early, bed_stop);
    turns(&b, 250);
    b.a.quiet_after = 0;
    b.a.quiet = false;
    b.a.links[0].in_data = true;
    net_send(b.a.links[0].connection,
             TEXT("250 2.0.0 slow\r\n250 ok\r\n250 ok\r\n354 go\r\n"));
    turns(&b, 100);
    is_settled(&b,
               "a@x.test sent 2.0.0 none\nb@x.test sent 2.0.0 none\n"
               "c@x.test sent 2.0.0 none\nd@x.test sent 2.0.0 none\n",
               "all are sent in order");
    is_number(b.a.connections, 1, "over one connection");
}

/* A host that is slow with a dot does not get the next message with it. */
TEST(late_answers)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    add_mail(&b, "a@x.test");
    add_mail(&b, "b@x.test");
    add_mail(&b, "c@x.test");
    b.a.quiet_after = 1;
    b.a.dots = 1;
    delivery_open(b.delivery, place(&b), &b.target, "x.test");
    for (unsigned i = 1; i <= 3; i++) {
        turns(&b, 300);
        is_number(b.manager.taken, i, "one at a time");
        b.a.quiet = false;
        net_send(b.a.links[0].connection, TEXT("250 2.0.0 at last\r\n"));
    }
    turns(&b, 150);
    is_number(b.manager.most, 1, "one at a time");
    is_number(b.manager.ended, 1, "the session has ended");
}

TEST(early_stopped)
{
    FIXTURE(bed, b, start_early, bed_stop);
    delivery_free(&b.delivery);
    is_settled(&b,
               "a@x.test sent 2.0.0 none\nb@x.test deferred 4.3.2 message\n"
               "c@x.test deferred 4.3.2 message\n",
               "both that are under way are given back");
    is_number(b.manager.ended, 1, "the session has ended");
}

int
main(void)
{
    spool.content = memory_new(CONTENT_MAX);
    tap_tests("");
    free(spool.content);
    return done();
}
