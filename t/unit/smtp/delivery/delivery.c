/* link: t/sim/dns.c */
/* link: t/sim/clock.c */
/* link: t/sim/delivery_world.c */
/* Sessions over real sockets: hosts in order, requests, reuse, and every way to fail. */
#include "smtp/delivery/delivery.h"

#include "t/sim/delivery_world.h"

/* --- Tests ---------------------------------------------------------------------------
 */

static void
test_plain(void)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    add_mail(&b, "u@x.test v@x.test");
    run(&b, "x.test");
    is_settled(&b, "u@x.test sent 2.0.0 none\nv@x.test sent 2.0.0 none\n", "both sent");
    ok(b.manager.timed && !b.manager.has_trouble);
    is_text(buffer_text(&b.a.commands),
            TEXT("EHLO me.test\nMAIL FROM:<s@me.test> SIZE=36\nRCPT TO:<u@x.test>\n"
                 "RCPT TO:<v@x.test>\nDATA\nQUIT\n"),
            "one transaction, then QUIT");
    is_text(buffer_text(&b.a.content),
            TEXT("Received: x\r\nSubject: x\r\n\r\n..dot\r\nend\r\n"),
            "prefix and content, stuffed and ended");
    is_number(b.b.connections, 0, "the second host was not needed");
}

static void
test_many_errands(void)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    for (int i = 0; i < 5; i++)
        add_mail(&b, "u@x.test");
    run(&b, "x.test");
    is_number(b.a.connections, 1, "one connection for five messages");
    is_number(b.manager.taken, 5, "all taken");
    is_number(b.manager.most, 2, "the next one with the dot of the last");
    ok(!has(&b.a.commands, "RSET"));
}

static void
test_idle(void)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    b.settings.reuse_idle_ms = 400;
    delivery_reload(b.delivery, &b.settings);
    add_mail(&b, "u@x.test");
    add_mail(&b, "v@x.test");
    b.manager.hidden = 1;
    delivery_open(b.delivery, place(&b), &b.target, "x.test");
    turns(&b, 150);
    is_settled(&b, "u@x.test sent 2.0.0 none\n", "the first is sent");
    is_number(b.a.open, 1, "and the connection kept");
    b.manager.hidden = 0;
    loop_turn(b.loop, 0);
    is_number(b.manager.taken, 2, "a kept connection takes it in the turn it comes");
    turns(&b, 150);
    is_settled(&b, "u@x.test sent 2.0.0 none\nv@x.test sent 2.0.0 none\n",
               "the second goes over it when it comes");
    is_number(b.manager.ended, 0, "kept again");
    turns(&b, 700);
    is_number(b.manager.ended, 1, "at last it ends");
    ok(!b.manager.has_trouble);
    is_number(b.a.connections, 1, "it was one connection");
    ok(b.a.commands.length > 5 &&
       memcmp(b.a.commands.at + b.a.commands.length - 5, "QUIT\n", 5) == 0);
}

/* The host closes a kept connection, or we are about to end: it ends in peace. */
static void
test_idle_closed(bool by_us)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    b.settings.reuse_idle_ms = 5000;
    delivery_reload(b.delivery, &b.settings);
    add_mail(&b, "u@x.test");
    delivery_open(b.delivery, place(&b), &b.target, "x.test");
    turns(&b, 100);
    by_us ? delivery_drain(b.delivery) : host_hang_up(&b.a.links[0]);
    turns(&b, 200);
    is_number(b.manager.ended, 1, "the session has ended");
    ok(!b.manager.has_trouble);
}

/* Nor does a host that says nothing, or not enough, keep us from ending. */
static void
test_drained_early(const char *greeting)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    b.a.greeting = greeting;
    b.a.quiet_after = 0;
    b.a.quiet = true;
    add_mail(&b, "u@x.test");
    delivery_open(b.delivery, place(&b), &b.target, "x.test");
    turns(&b, 60);
    is_number(b.a.open, 1, "connected");
    is_number(b.manager.ended, 0, "it is waited for");
    delivery_drain(b.delivery);
    is_number(b.manager.ended, 1, "no longer");
    ok(!b.manager.has_trouble && b.manager.taken == 0);
    turns(&b, 20);
    is_number(b.b.connections, 0, "and nobody else is called");
}

static void
test_next_host(void)
{
    static const char *const greetings[] = {NULL, "554 5.3.2 no\r\n", "421 busy\r\n",
                                            "nonsense\r\n"};
    for (size_t i = 0; i < 4; i++) {
        FIXTURE(bed, b, bed_start, bed_stop);
        b.a.greeting = greetings[i];
        add_mail(&b, "u@x.test");
        run(&b, "x.test");
        is_settled(&b, "u@x.test sent 2.0.0 none\n", "over the second host");
        is_number(b.a.connections, 1, "the first was tried");
        ok(!b.manager.has_trouble);
    }
}

/* LIMITS of RFC 9422 is told the scheduler; of domains only for a smarthost. */
static void
test_limits(void)
{
    static const struct host_rule rules[] = {
        {"EHLO", "250-host\r\n250 LIMITS RCPTMAX=20 MAILMAX=7 RCPTDOMAINMAX=3\r\n", 0,
         0                                                                              },
        {NULL,   NULL,                                                              0, 0}
    };
    struct bed b;
    bed_start(&b);
    b.a.rules = rules;
    add_mail(&b, "u@x.test");
    run(&b, "x.test");
    ok(told_limits.recipients == 20 && told_limits.mails == 7);
    bed_stop(&b);
    bed_start(&b);
    b.a.rules = rules;
    add_mail(&b, "u@x.test");
    b.target.kind = TARGET_SMTP;
    text_copy(b.target.host, sizeof(b.target.host), TEXT("a.test"));
    run(&b, "");
    ok(told_limits.recipients == 3 && told_limits.mails == 7);
    bed_stop(&b);
    bed_start(&b);
    add_mail(&b, "u@x.test");
    run(&b, "x.test");
    ok_named(told_limits.recipients == 0 && told_limits.mails == 0, "none");
    bed_stop(&b);
}

static void
test_no_host(void)
{
    struct bed b;
    bed_start(&b);
    b.a.greeting = "554 5.3.2 closed for mail\r\n";
    host_shut(&b.b);
    add_mail(&b, "u@x.test");
    run(&b, "x.test");
    is_settled(&b, "", "no message had an attempt");
    is_number(b.manager.taken, 0, "nor was one taken");
    is_trouble(&b, VERDICT_DEFERRED, "4.3.2",
               "host a.test[127.0.0.2] said: 554 5.3.2 closed for mail");
    bed_stop(&b);
    bed_start(&b);
    host_shut(&b.a);
    host_shut(&b.b);
    run(&b, "x.test");
    is_trouble(&b, VERDICT_DEFERRED, "4.4.1", "connect to b.test[127.0.0.3]:");
    ok_named(!strstr(b.manager.trouble.text, "cannot connect"), "the address once");
    bed_stop(&b);
}

static void
test_no_domain(void)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    run(&b, "unknown.test");
    is_trouble(&b, VERDICT_FAILED, "5.1.2", "unknown.test");
    sim_dns_mx(b.dns, "null.test", 0, "");
    run(&b, "null.test");
    is_trouble(&b, VERDICT_FAILED, "5.1.10", "null MX");
    sim_dns_status(b.dns, "broken.test", DNS_TRY_AGAIN);
    run(&b, "broken.test");
    is_trouble(&b, VERDICT_DEFERRED, "4.4.3", "broken.test");
    is_number(b.a.connections + b.b.connections, 0, "nobody was disturbed");
}

static void
test_verdicts(void)
{
    static const struct host_rule rules[] = {
        {"RCPT TO:<bad",   "550 5.1.1 no\r\n",    0, 0},
        {"RCPT TO:<later", "450 4.2.0 later\r\n", 0, 0},
        {NULL,             NULL,                  0, 0}
    };
    FIXTURE(bed, b, bed_start, bed_stop);
    b.a.rules = rules;
    add_mail(&b, "good@x.test bad@x.test later@x.test");
    add_mail(&b, "bad@x.test");
    add_mail(&b, "good@x.test");
    run(&b, "x.test");
    is_settled(&b,
               "bad@x.test bounced 5.1.1 message\nlater@x.test deferred 4.2.0 message\n"
               "good@x.test sent 2.0.0 none\nbad@x.test bounced 5.1.1 message\n"
               "good@x.test sent 2.0.0 none\n",
               "to each its own");
}

/* --- Too many recipients ------------------------------------------------------------ */

static unsigned
heard(const struct host *h, const char *verb)
{
    unsigned count = 0;
    struct text rest = buffer_text(&h->commands);
    size_t end;
    while ((end = text_find(rest, '\n')) != TEXT_NONE) {
        count += text_starts(rest, text_from(verb));
        rest = text_after(rest, end + 1);
    }
    return count;
}

/* RFC 5321 §4.5.3.1.10: the others follow in the next transactions, immediately. */
static void
test_too_many(const char *beyond, const char *ehlo)
{
    const struct host_rule rules[] = {
        {"EHLO",          ehlo,                 0, 0},
        {"RCPT TO:<bad",  "550 5.1.1 no\r\n",   0, 0},
        {"RCPT TO:<full", "452 4.2.2 full\r\n", 0, 0},
        {NULL,            NULL,                 0, 0}
    };
    FIXTURE(bed, b, bed_start, bed_stop);
    b.a.rules = rules;
    b.a.rcpt_max = 2;
    b.a.rcpt_beyond = beyond;
    add_mail(&b, "a@x.test bad@x.test b@x.test c@x.test full@x.test d@x.test e@x.test");
    add_mail(&b, "z@x.test");
    run(&b, "x.test");
    is_settled(
        &b,
        "bad@x.test bounced 5.1.1 message\nfull@x.test deferred 4.2.2 message\n"
        "a@x.test sent 2.0.0 none\nb@x.test sent 2.0.0 none\nc@x.test sent 2.0.0 none\n"
        "d@x.test sent 2.0.0 none\ne@x.test sent 2.0.0 none\nz@x.test sent 2.0.0 "
        "none\n",
        "all get the message, and each one verdict");
    is_number(b.a.connections, 1, "over one connection");
    is_number(heard(&b.a, "DATA"), 4, "in three transactions; then the next message");
    is_number(heard(&b.a, "RCPT TO:<b@"), 1, "none is asked for twice");
    is_number(b.manager.takes, 2, "the site is known to take two");
}

TEST(too_many_ends)
{
    static const char many[] = "452 4.5.3 too many recipients\r\n";
    struct host_rule none[] = {
        {"RCPT", many, 0, 0},
        {NULL,   NULL, 0, 0}
    };
    struct host_rule refusal[] = {
        {".",  "554 5.6.0 bad content\r\n", 0, 0},
        {NULL, NULL,                        0, 0}
    };
    struct host_rule alone[] = {
        {"EHLO", "250-host\r\n250 LIMITS MAILMAX=1\r\n", 0, 0},
        {NULL,   NULL,                                   0, 0}
    };
    struct host_rule closes[] = {
        {"MAIL FROM:<later", NULL, 1, 2},
        {NULL,               NULL, 0, 0}
    };
    struct {
        const struct host_rule *rules;
        const char *verdicts, *name;
        bool has_rate;
    } all[] = {
        {none,
         "a@x.test deferred 4.5.3 message\nb@x.test deferred 4.5.3 message\nc@x.test "
         "deferred 4.5.3 message\n", "a host that takes none is tried again later",      false},
        {refusal,
         "a@x.test bounced 5.6.0 message\nb@x.test bounced 5.6.0 message\nc@x.test "
         "bounced 5.6.0 message\n",  "a refusal of the content is one for all",          false},
        {alone,
         "a@x.test sent 2.0.0 none\nb@x.test deferred 4.5.3 message\nc@x.test deferred "
         "4.5.3 message\n",          "no second transaction where the host permits one", false},
        {NULL,
         "a@x.test sent 2.0.0 none\nb@x.test deferred 4.5.3 message\nc@x.test deferred "
         "4.5.3 message\n",          "nor one beyond the rate of a route",               true },
        {closes,
         "a@x.test sent 2.0.0 none\nb@x.test sent 2.0.0 none\nc@x.test sent 2.0.0 "
         "none\n",                   "in the order of the message",                      false},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        FIXTURE(bed, b, bed_start, bed_stop);
        b.a.rules = all[i].rules;
        b.a.rcpt_max = 1;
        b.a.rcpt_beyond = many;
        b.target.transport.rate =
            (struct rate){.amount = all[i].has_rate, .burst = 1, .period_ms = 1000};
        add_mail(&b, "a@x.test b@x.test c@x.test");
        run(&b, "x.test");
        is_settled(&b, all[i].verdicts, all[i].name);
    }
}

/* The end of the connection comes with the reply to the content. */
TEST(too_many_closes)
{
    static const struct host_rule rules[] = {
        {".",  "250 2.0.0 taken\r\n421 4.3.2 bye\r\n", 0, 0},
        {NULL, NULL,                                   0, 0}
    };
    FIXTURE(bed, b, bed_start, bed_stop);
    b.a.rules = rules;
    b.a.rcpt_max = 1;
    b.a.rcpt_beyond = "452 too many recipients\r\n";
    add_mail(&b, "a@x.test b@x.test");
    run(&b, "x.test");
    is_settled(&b, "a@x.test sent 2.0.0 none\nb@x.test deferred 4.0.0 message\n",
               "each has one verdict");
}

TEST(lost_in_the_middle)
{
    static const char *const starts[] = {"RCPT", "DATA", "."};
    for (size_t i = 0; i < 3; i++) {
        struct host_rule rules[] = {
            {starts[i], NULL, 0, 0},
            {NULL,      NULL, 0, 0}
        };
        FIXTURE(bed, b, bed_start, bed_stop);
        b.a.rules = rules;
        add_mail(&b, "u@x.test");
        run(&b, "x.test");
        is_settled(&b, "u@x.test deferred 4.4.2 site\n", starts[i]);
        is_trouble(&b, VERDICT_DEFERRED, "4.4.2", "lost connection");
        is_number(b.a.connections, 1, "no second attempt of the message");
        is_number(b.b.connections, 0, "nor elsewhere");
    }
}

/* The first connection refuses a second mail in these ways; the second takes it. */
TEST(again)
{
    static const char *const replies[] = {NULL, "421 4.7.0 enough\r\n",
                                          "450 4.7.0 enough\r\n"};
    for (size_t i = 0; i < 3; i++) {
        struct host_rule rules[] = {
            {"MAIL FROM:<s@me.test> SIZE=36", "250 ok\r\n", 0, 0},
            {"MAIL",                          replies[i],   1, 2},
            {NULL,                            NULL,         0, 0}
        };
        FIXTURE(bed, b, bed_start, bed_stop);
        b.a.rules = rules;
        add_mail(&b, "u@x.test");
        add_mail(&b, "v@x.test");
        b.manager.envelopes[1]->sender = TEXT("other@me.test");
        run(&b, "x.test");
        is_settled(&b, "u@x.test sent 2.0.0 none\nv@x.test sent 2.0.0 none\n",
                   "sent over a new connection");
        is_number(b.a.connections, 2, "to the same host");
    }
}

/* It is refused on the new connection, too: then that is the verdict. */
TEST(again_refused)
{
    static const struct host_rule rules[] = {
        {"MAIL FROM:<other", "450 4.7.1 enough\r\n", 0, 0},
        {NULL,               NULL,                   0, 0}
    };
    FIXTURE(bed, b, bed_start, bed_stop);
    b.a.rules = rules;
    add_mail(&b, "u@x.test");
    add_mail(&b, "v@x.test");
    b.manager.envelopes[1]->sender = TEXT("other@me.test");
    run(&b, "x.test");
    is_settled(&b, "u@x.test sent 2.0.0 none\nv@x.test deferred 4.7.1 site\n",
               "once more, not for ever");
    is_number(b.a.connections, 2, "two connections");
}

/* After a tired connection no host can be reached: the request still gets its verdict.
 */
TEST(again_gone)
{
    static const struct host_rule rules[] = {
        {"MAIL FROM:<other", NULL, 0, 0},
        {NULL,               NULL, 0, 0}
    };
    FIXTURE(bed, b, bed_start, bed_stop);
    b.a.rules = rules;
    b.b.greeting = "554 5.3.2 no\r\n";
    b.settings.reuse_idle_ms = 500;
    delivery_reload(b.delivery, &b.settings);
    add_mail(&b, "u@x.test");
    add_mail(&b, "v@x.test");
    b.manager.envelopes[1]->sender = TEXT("other@me.test");
    b.manager.hidden = 1;
    delivery_open(b.delivery, place(&b), &b.target, "x.test");
    turns(&b, 100);
    host_shut(&b.a);
    b.manager.hidden = 0;
    turns(&b, 300);
    is_settled(&b, "u@x.test sent 2.0.0 none\nv@x.test deferred 4.3.2 site\n",
               "deferred with what the last host said");
    is_number(b.manager.ended, 1, "ended");
    is_trouble(&b, VERDICT_DEFERRED, "4.3.2", "554 5.3.2 no");
}

static void
fill_content(size_t length)
{
    for (size_t i = 0; i < length; i++)
        spool.content[i] = i % 71 == 69 ? '\r' : i % 71 == 70 ? '\n' : 'x';
    spool.length = length;
}

TEST(large)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    fill_content(71 * 40000);
    add_mail(&b, "u@x.test");
    run(&b, "x.test");
    is_settled(&b, "u@x.test sent 2.0.0 none\n", "a large message");
    size_t prefix = strlen("Received: x\r\n");
    ok_named(b.a.content.length == prefix + spool.length &&
                 memcmp(b.a.content.at + prefix, spool.content, spool.length) == 0,
             "came whole");
}

/* A host that does not read: we hold a bounded part of the content, and time runs. */
TEST(deaf)
{
    static const struct host_rule rules[] = {
        {NULL, NULL, 0, 0}
    };
    FIXTURE(bed, b, bed_start, bed_stop);
    b.a.rules = rules;
    b.a.deaf = true;
    b.target.timeout_scale = 0.002; /* 360 ms for a block of content */
    fill_content(CONTENT_MAX - 100);
    /* As much as fits into the kernel's buffers, several times. */
    for (int i = 0; i < 1; i++)
        add_mail(&b, "u@x.test");
    b.manager.envelopes[0]->prefix = TEXT("");
    run(&b, "x.test");
    is_settled(&b, "u@x.test deferred 4.4.2 site\n", "timed out");
}

TEST(broken_content)
{
    for (int how = 0; how < 5; how++) {
        FIXTURE(bed, b, bed_start, bed_stop);
        fill_content(71 * 4000);
        add_mail(&b, "u@x.test");
        if (how == 0)
            spool.fail_to_open = true;
        if (how == 1)
            spool.fail_at = 0;
        if (how == 2)
            spool.fail_at = 100 * 1024;
        if (how == 3)
            spool.length -= 71; /* shorter than it was */
        if (how == 4)
            spool.content[1000] ^= 1;
        run(&b, "x.test");
        is_settled(&b, "u@x.test deferred 4.3.0 message\n",
                   "our fault, not the site's");
        turns(&b, 20);
        is_number(b.a.open, 0, "the connection is gone");
        ok_named(!b.manager.has_trouble, "no trouble of the site");
    }
}

TEST(timeouts)
{
    static const char *const starts[] = {"EHLO", "MAIL", "RCPT", "DATA", "."};
    for (size_t i = 0; i < 5; i++) {
        struct host_rule rules[] = {
            {starts[i], "",             0, 0},
            {"EHLO",    "250 host\r\n", 0, 0},
            {NULL,      NULL,           0, 0}
        };
        FIXTURE(bed, b, bed_start, bed_stop);
        b.a.rules = rules;
        b.target.timeout_scale = 0.0005; /* 150 ms a reply, 300 ms the last one */
        add_mail(&b, "u@x.test");
        run(&b, "x.test");
        is_settled(&b,
                   i < 2 ? "u@x.test sent 2.0.0 none\n" /* by the next host */
                         : "u@x.test deferred 4.4.2 site\n",
                   starts[i]);
    }
}

TEST(smarthost)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    b.target.kind = TARGET_SMTP;
    b.target.port = b.settings.smtp_port;
    text_copy(b.target.host, sizeof(b.target.host), TEXT("b.test"));
    add_mail(&b, "u@anywhere.test");
    run(&b, "");
    is_settled(&b, "u@anywhere.test sent 2.0.0 none\n", "by name");
    is_number(b.b.connections, 1, "over it");
    text_copy(b.target.host, sizeof(b.target.host), TEXT("127.0.0.2"));
    add_mail(&b, "v@anywhere.test");
    run(&b, "");
    is_number(b.a.connections, 1, "by address");
    text_copy(b.target.host, sizeof(b.target.host), TEXT("misspelt.test"));
    run(&b, "");
    is_trouble(&b, VERDICT_DEFERRED, "4.4.3", "misspelt.test");
}

TEST(lmtp)
{
    static const struct host_rule rules[] = {
        {".",  "250 2.0.0 u has it\r\n452 4.2.2 v is full\r\n", 0, 0},
        {NULL, NULL,                                            0, 0}
    };
    char directory[] = "/tmp/petrel-t-XXXXXX", path[80], address[100];
    struct host h = {0};
    struct bed b;
    bed_start(&b);
    host_must(mkdtemp(directory) != NULL);
    snprintf(path, sizeof(path), "%s/lmtp", directory);
    snprintf(address, sizeof(address), "unix:%s", path);
    fake_host_start(&h, b.theirs, address, 0);
    h.rules = rules;
    b.target.kind = TARGET_LMTP;
    text_copy(b.target.path, sizeof(b.target.path), text_from(path));
    add_mail(&b, "u@local.test v@local.test");
    run(&b, "");
    is_settled(&b,
               "u@local.test sent 2.0.0 none\nv@local.test deferred 4.2.2 message\n",
               "a reply for each");
    ok(text_starts(buffer_text(&h.commands), TEXT("LHLO me.test\n")));
    fake_host_stop(&h);
    run(&b, "");
    is_trouble(&b, VERDICT_DEFERRED, "4.4.1", path);
    memset(b.target.path, 'x', sizeof(b.target.path) - 1);
    run(&b, "");
    is_trouble(&b, VERDICT_DEFERRED, "4.3.5", "not a valid path of a Unix socket");
    b.target.path[0] = '\0';
    text_copy(b.target.host, sizeof(b.target.host), TEXT("a.test"));
    b.target.port = b.settings.smtp_port;
    b.a.rules = rules;
    add_mail(&b, "u@local.test v@local.test");
    run(&b, "");
    is_number(b.a.connections, 1, "LMTP over TCP");
    bed_stop(&b);
    unlink(path);
    rmdir(directory);
}

TEST(bind)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    b.settings.smtp_bind = TEXT("127.0.0.9 ::1");
    delivery_reload(b.delivery, &b.settings);
    add_mail(&b, "u@x.test");
    run(&b, "x.test");
    char ip[NET_ADDRESS_TEXT_MAX];
    net_address_ip(&b.a.from, ip);
    is_string(ip, "127.0.0.9", "the source address of its family");
}

TEST(sources)
{
    static const struct {
        const char *list, *mistakes;
    } rows[] = {
        {"",                       ""                                              },
        {"192.0.2.1",              ""                                              },
        {"192.0.2.1, 2001:db8::1", ""                                              },
        {"nobody.test",            "smtp_bind: 'nobody.test': not an IP address\n" },
        {"192.0.2.1:25",           "smtp_bind: '192.0.2.1:25': not an IP address\n"},
        {"192.0.2.1 192.0.2.2 x",
         "smtp_bind: '192.0.2.2': a second address of its family\n"
         "smtp_bind: 'x': not an IP address\n"                                     },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct delivery_settings settings = {.smtp_bind = text_from(rows[i].list)};
        FIXTURE(buffer, mistakes, buffer_init, buffer_free, 1000);
        bool good = delivery_check(&settings, &mistakes);
        is_text(buffer_text(&mistakes), text_from(rows[i].mistakes), rows[i].list);
        ok(good == (rows[i].mistakes[0] == '\0'));
    }
}

/* The daemon stops in the middle: all mail taken is settled, every session ended.
 */
TEST(stop)
{
    static const char *const starts[] = {"EHLO", "MAIL", "DATA", ".", "never"};
    for (size_t i = 0; i < 5; i++) {
        struct host_rule rules[] = {
            {starts[i], "",             0, 0},
            {"EHLO",    "250 host\r\n", 0, 0},
            {NULL,      NULL,           0, 0}
        };
        FIXTURE(bed, b, bed_start, bed_stop);
        b.a.rules = rules;
        b.settings.reuse_idle_ms = 5000;
        delivery_reload(b.delivery, &b.settings);
        add_mail(&b, "u@x.test");
        delivery_open(b.delivery, place(&b), &b.target, "x.test");
        delivery_open(b.delivery, place(&b), &b.target, "x.test");
        turns(&b, 60);
        delivery_open(b.delivery, place(&b), &b.target, "x.test"); /* still in DNS */
        delivery_free(&b.delivery);
        is_number(b.manager.ended, 3, "three sessions have ended");
        is_settled(&b,
                   i == 0   ? ""
                   : i == 4 ? "u@x.test sent 2.0.0 none\n"
                            : "u@x.test deferred 4.3.2 message\n",
                   starts[i]);
    }
}

int
main(void)
{
    spool.content = memory_new(CONTENT_MAX);
    test_plain();
    test_many_errands();
    test_idle();
    test_idle_closed(false);
    test_idle_closed(true);
    test_drained_early("");
    test_drained_early("220 host ESMTP\r\n");
    test_next_host();
    test_limits();
    test_no_host();
    test_no_domain();
    test_verdicts();
    static const char plain[] = "250 host\r\n",
                      piped[] = "250-host\r\n250 PIPELINING\r\n";
    test_too_many("452 4.5.3 too many recipients\r\n", plain);
    test_too_many("452 4.5.3 too many recipients\r\n", piped);
    test_too_many("452 too many recipients\r\n", piped);
    test_too_many("552 that is enough\r\n", piped);
    test_too_many("550 5.5.3 no more\r\n", piped);
    test_too_many("451 4.5.3 no more\r\n",
                  "250-host\r\n250-PIPELINING\r\n250 CHUNKING\r\n");
    tap_tests("");
    free(spool.content);
    return done();
}
