/* link: t/sim/dns.c */
/* link: t/sim/clock.c */
/* link: t/sim/delivery_world.c */
/* Sessions with our own hosts: from which address they come, and what goes there. */
#include "smtp/delivery/delivery.h"

#include "base/memory.h"
#include "sched/route/peers.h"
#include "t/sim/delivery_world.h"

#define MARK                                                                           \
    "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff;0;1700000000"

static const struct host_rule knows_us[] = {
    {"EHLO", "250-host\r\n250 XDEFRAG\r\n", 0, 0},
    {NULL,   NULL,                          0, 0}
};

/* host: of defrag_host; the other one, host2.test, is host a of the bed. */
static struct peers *
peers_of(struct bed *b, const char *host)
{
    char list[100];
    struct buffer mistakes;
    struct transport_params base;
    transport_params_default(&base);
    snprintf(list, sizeof(list), "Host2.test=127.0.0.2:%u", b->settings.smtp_port);
    buffer_init(&mistakes, 1000);
    struct peers_settings settings = {.host = text_from(host),
                                      .list = text_from(list),
                                      .smtp_port = 25,
                                      .base = &base};
    struct peers *peers = peers_new(&settings, &mistakes);
    host_must(peers != NULL);
    buffer_free(&mistakes);
    return peers;
}

static void
add_fragment(struct bed *b, const char *rcpts)
{
    add_mail(b, rcpts);
    struct envelope *e = b->manager.envelopes[b->manager.count - 1];
    e->fragment.set_mark = TEXT(MARK);
    e->eight_bit = true;
}

TEST(redirect)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    struct peers *peers = peers_of(&b, "host1.test=127.0.0.9:25");
    b.settings.peers = peers;
    b.settings.smtp_bind = TEXT("127.0.0.8");
    delivery_reload(b.delivery, &b.settings);
    b.target = *peers_find(peers, TEXT("host2.test"));
    peers_free(&peers); /* nothing of them is needed any more */
    b.a.rules = knows_us;
    add_fragment(&b, "u@x.test v@y.test");
    run(&b, "");
    is_settled(&b, "u@x.test sent 2.0.0 none\nv@y.test sent 2.0.0 none\n", "both sent");
    is_text(buffer_text(&b.a.commands),
            TEXT("EHLO me.test\nMAIL FROM:<s@me.test> XDEFRAG=" MARK "\n"
                 "RCPT TO:<@host2.test:u@x.test>\nRCPT TO:<@host2.test:v@y.test>\n"
                 "DATA\nQUIT\n"),
            "by a route, with its mark, though it takes no 8-bit content");
    is_text(buffer_text(&b.a.content),
            TEXT("Received: x\r\nSubject: x\r\n\r\n..dot\r\nend\r\n"), "as it is");
    is_string(host_came_from(&b.a), "127.0.0.9", "it comes from where they know us");
    b.target = (struct target){.kind = TARGET_MX, .timeout_scale = 1};
    add_mail(&b, "w@x.test");
    run(&b, "x.test");
    is_string(host_came_from(&b.a), "127.0.0.8", "and other mail from elsewhere");
    ok(has(&b.a.commands, "\nMAIL FROM:<s@me.test>\nRCPT TO:<w@x.test>\n"));
}

/* We have no address of our own there: smtp_bind. */
TEST(no_address)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    struct peers *peers = peers_of(&b, "host1.test");
    b.settings.peers = peers;
    b.settings.smtp_bind = TEXT("127.0.0.8");
    delivery_reload(b.delivery, &b.settings);
    b.target = *peers_find(peers, TEXT("host2.test"));
    b.a.rules = knows_us;
    add_fragment(&b, "u@x.test");
    run(&b, "");
    is_string(host_came_from(&b.a), "127.0.0.8", "from smtp_bind");
    b.settings.peers = NULL;
    delivery_reload(b.delivery, &b.settings);
    add_fragment(&b, "v@x.test");
    run(&b, "");
    is_string(host_came_from(&b.a), "127.0.0.8", "nobody knows us");
    is_settled(&b, "u@x.test sent 2.0.0 none\nv@x.test sent 2.0.0 none\n", "both sent");
    peers_free(&peers);
}

/* Its defrag_peers do not have us: the site is as good as ever. */
TEST(not_known)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    struct peers *peers = peers_of(&b, "host1.test");
    b.target = *peers_find(peers, TEXT("host2.test"));
    add_fragment(&b, "u@x.test v@x.test");
    run(&b, "");
    is_settled(&b, "u@x.test bounced 5.7.1 message\nv@x.test bounced 5.7.1 message\n",
               "neither is sent");
    ok(!b.manager.has_trouble && !has(&b.manager.health, "bad "));
    is_text(buffer_text(&b.a.commands), TEXT("EHLO me.test\nQUIT\n"),
            "nothing is said of them");
    is_number(b.b.connections, 0, "nor to anybody else");
    peers_free(&peers);
}

TEST(sources)
{
    struct bind_address others, s;
    struct net_address six;
    FIXTURE(bed, b, bed_start, bed_stop);
    struct peers *four = peers_of(&b, "host1.test=192.0.2.1:25");
    struct peers *none = peers_of(&b, "host1.test");
    host_must(net_address_parse_ip(TEXT("2001:db8::1"), &six));
    ok(bind_address_read(&others, TEXT("2001:db8::1"), NULL));
    bind_address_for_peers(&s, &others, four);
    struct net_address at;
    ok(bind_address_for(&s, NET_IPV4, &at) && at.port == 0);
    ok_named(bind_address_for(&s, NET_IPV6, &at) && net_address_equal(&at, &six),
             "the other family is as it was");
    ok(!bind_address_for(&others, NET_IPV4, &at));
    bind_address_for_peers(&s, &others, none);
    ok(!bind_address_for(&s, NET_IPV4, &at) && bind_address_for(&s, NET_IPV6, &at));
    bind_address_for_peers(&s, &others, NULL);
    ok(!bind_address_for(&s, NET_IPV4, &at) && bind_address_for(&s, NET_IPV6, &at));
    peers_free(&four);
    peers_free(&none);
}

int
main(void)
{
    spool.content = memory_new(CONTENT_MAX);
    tap_tests("");
    free(spool.content);
    return done();
}
