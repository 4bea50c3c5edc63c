/* link: t/sim/dns.c */
/* link: t/sim/clock.c */
/* link: t/sim/delivery_world.c */
/* Sessions to hosts whose IPv6 is a black hole (RFC 8305). */
#include "t/sim/delivery_world.h"
#include "smtp/delivery/delivery.h"
#include "base/memory.h"
#include "sched/route/target.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <string.h>

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

/* --- Source addresses, and families ------------------------------------------------- */

/* The source address, the name in EHLO, and the families of a session: by the target, by
 * the settings, and when this host does not have the address. */

static void
take_target(struct bed *b, const char *written)
{
    struct transport_params base;
    char problem[TARGET_PROBLEM_MAX];
    transport_params_default(&base);
    host_must(target_parse(text_from(written), b->settings.smtp_port, &base, &b->target,
                           problem));
}

static void
set(struct bed *b, const char *smtp_bind, enum target_family family)
{
    b->settings.smtp_bind = text_from(smtp_bind);
    b->settings.smtp_family = family;
    delivery_reload(b->delivery, &b->settings);
}

static void
test_target(void)
{
    struct bed b;
    bed_start(&b);
    set(&b, "127.0.0.8", TARGET_FAMILY_UNSET);
    take_target(&b, "mx?bind=127.0.0.9,::1&helo=mail.d.test");
    add_mail(&b, "u@x.test");
    run(&b, "x.test");
    is_string(host_came_from(&b.a), "127.0.0.9", "bind= goes before smtp_bind");
    ok(has(&b.a.commands, "EHLO mail.d.test\n"));
    take_target(&b, "mx?bind=::1");
    add_mail(&b, "v@x.test");
    run(&b, "x.test");
    is_string(host_came_from(&b.a), "127.0.0.8", "smtp_bind has the other family");
    ok(has(&b.a.commands, "EHLO me.test\n"));
    bed_stop(&b);
}

/* Deferred as an error of the settings, with its reason, and nothing was tried. */
static void
is_missing(struct bed *b, const char *text)
{
    unsigned connections = b->a.connections;
    add_mail(b, "u@x.test");
    run(b, "x.test");
    is_string(b->manager.trouble.enhanced, "4.3.5", text);
    is_string(b->manager.trouble.text, text, "its text");
    is_number(b->a.connections, connections, "no connection");
}

static void
test_missing(void)
{
    struct bed b;
    bed_start(&b);
    set(&b, "", TARGET_FAMILY_UNSET);
    take_target(&b, "mx?bind=192.0.2.77");
    is_missing(&b, "this host does not have the source address 192.0.2.77 of bind=");
    take_target(&b, "mx?bind=192.0.2.77,2001:db8::77");
    is_missing(&b, "this host does not have the source address 2001:db8::77 of bind=");
    take_target(&b, "mx");
    set(&b, "192.0.2.78", TARGET_FAMILY_UNSET);
    is_missing(&b,
               "this host does not have the source address 192.0.2.78 of smtp_bind");
    take_target(&b, "mx?bind=2001:db8::77&family=ipv4");
    set(&b, "127.0.0.8", TARGET_FAMILY_UNSET);
    add_mail(&b, "u@x.test");
    run(&b, "x.test");
    is_string(host_came_from(&b.a), "127.0.0.8", "a family that is not used needs no address");
    bed_stop(&b);
}

static void
test_families(void)
{
    struct bed b;
    bed_start(&b);
    set(&b, "127.0.0.8", TARGET_FAMILY_IPV6);
    take_target(&b, "mx");
    is_missing(&b,
               "no mail host of x.test has an IPv6 address, and the settings (family, "
               "source address) permit no other");
    take_target(&b, "mx?family=any");
    add_mail(&b, "u@x.test");
    run(&b, "x.test");
    is_string(host_came_from(&b.a), "127.0.0.8", "a route goes before smtp_family");
    set(&b, "127.0.0.8", TARGET_FAMILY_ANY);
    take_target(&b, "mx?family=ipv6");
    is_missing(&b,
               "no mail host of x.test has an IPv6 address, and the settings (family, "
               "source address) permit no other");
    set(&b, "127.0.0.8 2001:db8::77", TARGET_FAMILY_ANY);
    take_target(&b, "mx");
    add_mail(&b, "v@x.test");
    run(&b, "x.test");
    is_string(host_came_from(&b.a), "127.0.0.8", "one source address that exists is enough");
    bed_stop(&b);
}

static void
delivery_source_tests(void)
{
    spool.content = memory_new(CONTENT_MAX);
    test_target();
    test_missing();
    test_families();
    free(spool.content);
}


int
main(void)
{
    spool.content = malloc(CONTENT_MAX);
    tap_tests("");
    test_drained(1);
    test_drained(100000);
    free(spool.content);
    delivery_source_tests();
    return done();
}
