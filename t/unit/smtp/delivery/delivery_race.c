/* link: t/sim/dns.c */
/* link: t/sim/clock.c */
/* link: t/sim/delivery_world.c */
/* Sessions to hosts whose IPv6 is a black hole (RFC 8305). */
#include "t/sim/delivery_world.h"

#include <arpa/inet.h>
#include <sys/socket.h>

enum { PLUGS = 3 };

/* [::1] with the port of the hosts, whose backlog is full: the system drops what comes.
 */
struct hole {
    int listener, plugs[PLUGS];
};

static void
dig(struct hole *hole, uint16_t port)
{
    struct sockaddr_in6 name = {.sin6_family = AF_INET6,
                                .sin6_addr = in6addr_loopback,
                                .sin6_port = htons(port)};
    struct sockaddr *at = (struct sockaddr *)&name;
    hole->listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    host_must(bind(hole->listener, at, sizeof(name)) == 0 &&
              listen(hole->listener, 0) == 0);
    for (size_t i = 0; i < PLUGS; i++) {
        hole->plugs[i] =
            socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)!connect(hole->plugs[i], at, sizeof(name));
    }
}

static void
fill_in(struct hole *hole)
{
    close(hole->listener);
    for (size_t i = 0; i < PLUGS; i++)
        close(hole->plugs[i]);
}

/* The IPv4 address of the same host answers meanwhile, and is remembered. */
TEST(black_hole)
{
    struct hole hole;
    FIXTURE(bed, b, bed_start, bed_stop);
    dig(&hole, b.settings.smtp_port);
    b.settings.connect_timeout_ms = 100000;
    delivery_reload(b.delivery, &b.settings);
    sim_dns_address(b.dns, "six.test", "::1");
    sim_dns_address(b.dns, "six.test", "127.0.0.2");
    sim_dns_mx(b.dns, "y.test", 10, "six.test");
    sim_dns_mx(b.dns, "y.test", 20, "b.test");
    add_mail(&b, "u@y.test");
    run(&b, "y.test");
    is_settled(&b, "u@y.test sent 2.0.0 none\n", "sent");
    is_number(b.a.connections, 1, "by IPv4");
    is_number(b.b.connections, 0, "and not by the backup");
    ok_named(has(&b.manager.health, "[::1]"), "IPv6 is known to be bad");
    ok_named(has(&b.lines, "connecting to six.test[::1]") &&
                 has(&b.lines, "connecting to six.test[127.0.0.2]"),
             "both were called");
    fill_in(&hole);
}

/* The winner of the race is of no use: then the loser is waited for, then the backup.
 */
TEST(useless_winner)
{
    struct hole hole;
    FIXTURE(bed, b, bed_start, bed_stop);
    dig(&hole, b.settings.smtp_port);
    b.settings.connect_timeout_ms = 400;
    delivery_reload(b.delivery, &b.settings);
    b.a.greeting = "421 4.3.2 busy\r\n";
    sim_dns_address(b.dns, "six.test", "::1");
    sim_dns_address(b.dns, "six.test", "127.0.0.2");
    sim_dns_mx(b.dns, "y.test", 10, "six.test");
    sim_dns_mx(b.dns, "y.test", 20, "b.test");
    add_mail(&b, "u@y.test");
    run(&b, "y.test");
    is_settled(&b, "u@y.test sent 2.0.0 none\n", "sent by the backup");
    ok(b.a.connections == 1 && b.b.connections == 1);
    ok_named(has(&b.lines, "connect to six.test[::1]") && has(&b.lines, "timed out"),
             "after the other one had its time");
    fill_in(&hole);
}

/* The end of the daemon in the middle of a race. */
TEST(stopped)
{
    struct hole hole;
    FIXTURE(bed, b, bed_start, bed_stop);
    dig(&hole, b.settings.smtp_port);
    sim_dns_address(b.dns, "six.test", "::1");
    sim_dns_mx(b.dns, "y.test", 10, "six.test");
    add_mail(&b, "u@y.test");
    delivery_open(b.delivery, place(&b), &b.target, "y.test");
    for (int i = 0; i < 1000 && !has(&b.lines, "connecting"); i++)
        clock_turn(b.loop);
    delivery_free(&b.delivery);
    is_number(b.manager.ended, 1, "the session has ended");
    is_settled(&b, "", "no mail has heard");
    fill_in(&hole);
}

/* Sessions that have no connection yet end at once when the daemon is to stop. */
static void
test_drained(int64_t dns_ms)
{
    struct hole hole;
    FIXTURE(bed, b, bed_start, bed_stop);
    dig(&hole, b.settings.smtp_port);
    sim_dns_delay(b.dns, dns_ms);
    sim_dns_address(b.dns, "six.test", "::1");
    sim_dns_mx(b.dns, "y.test", 10, "six.test");
    add_mail(&b, "u@y.test");
    delivery_open(b.delivery, place(&b), &b.target, "y.test");
    for (int i = 0;
         i < 20 || (dns_ms < 100 && i < 1000 && !has(&b.lines, "connecting")); i++)
        clock_turn(b.loop);
    is_number(b.manager.ended, 0, "it is at it");
    delivery_drain(b.delivery);
    is_number(b.manager.ended, 1, "it has ended");
    ok(!b.manager.has_trouble);
    turns(&b, 20);
    fill_in(&hole);
}

int
main(void)
{
    spool.content = malloc(CONTENT_MAX);
    tap_tests("");
    test_drained(1);
    test_drained(100000);
    free(spool.content);
    return done();
}
