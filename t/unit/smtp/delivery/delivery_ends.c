/* link: t/sim/dns.c */
/* link: t/sim/clock.c */
/* link: t/sim/delivery_world.c */
/* How a connection may end: each end has an outcome, which is logged. Before a host has
 * heard a message the next host gets it; without another one, one message is deferred.
 * A kept connection that ends while nothing is under way is nobody's failure. */
#include "smtp/delivery/delivery.h"

#include "t/sim/delivery_world.h"

enum { KEPT_MS = 5000 };

static const struct end {
    const char *name, *greeting, *step, *reply; /* reply NULL: the host closes */
    const char *enhanced, *words;
} ends[] = {
    {"421 behind EHLO",           "220 h\r\n",                   "EHLO", "250 h\r\n421 4.7.0 too many\r\n",
     "4.7.0", "said: 421 4.7.0 too many (while sending MAIL FROM)"},
    {"a keyword without 250-",    "220 h\r\n",                   "EHLO", "250 h\r\nSIZE\r\n",
     "4.5.0", "while sending MAIL FROM: not an SMTP reply"        },
    {"a reply too many",          "220 h\r\n",                   "EHLO", "250-h\r\n250 SIZE\r\n250 OK\r\n",
     "4.5.0", "it sent a reply to no command"                     },
    {"421 behind the greeting",   "220 h\r\n421 4.3.2 bye\r\n",  "none", "",
     "4.3.2", "said: 421 4.3.2 bye"                               },
    {"nonsense behind greeting",  "220 h\r\nwelcome\r\n",        "none", "",
     "4.5.0", "not an SMTP reply"                                 },
    {"421 as the greeting",       "421 4.3.2 later\r\n",         "none", "",
     "4.3.2", "said: 421 4.3.2 later"                            },
    {"closed without a greeting", NULL,                          "none", "",
     "4.4.2", "lost connection with"                              },
    {"closed at EHLO",            "220 h\r\n",                   "EHLO", NULL,
     "4.4.2", "while sending EHLO"                                },
    {"421 to MAIL",               "220 h\r\n",                   "MAIL", "421 4.7.0 enough\r\n",
     "4.7.0", "said: 421 4.7.0 enough (while sending MAIL FROM)"  },
    {"closed at MAIL",            "220 h\r\n",                   "MAIL", NULL,
     "4.4.2", "while sending MAIL FROM"                           },
    {"nonsense to MAIL",          "220 h\r\n",                   "MAIL", "welcome\r\n",
     "4.5.0", "while sending MAIL FROM: not an SMTP reply"        }
};
enum { END_COUNT = sizeof(ends) / sizeof(ends[0]) };

static void
host_ends(struct host *h, const struct end *e, struct host_rule rules[2])
{
    rules[0] = (struct host_rule){e->step, e->reply, 0, 0};
    rules[1] = (struct host_rule){NULL, NULL, 0, 0};
    h->greeting = e->greeting;
    h->rules = rules;
}

/* Nobody settles it with the words of a host that was passed. */
TEST(next_host)
{
    for (size_t i = 0; i < END_COUNT; i++) {
        struct host_rule rules[2];
        FIXTURE(bed, b, bed_start, bed_stop);
        host_ends(&b.a, &ends[i], rules);
        add_mail(&b, "u@x.test v@x.test");
        add_mail(&b, "w@x.test");
        run(&b, "x.test");
        is_settled(&b,
                   "u@x.test sent 2.0.0 none\nv@x.test sent 2.0.0 none\n"
                   "w@x.test sent 2.0.0 none\n",
                   ends[i].name);
        is_number(b.a.connections, 1, "the host is asked once");
        ok_named(has(&b.manager.health, "bad 127.0.0.2"), "and comes later next time");
        ok_named(has(&b.lines, ends[i].words), "the log has its words");
    }
}

TEST(no_other)
{
    for (size_t i = 0; i < END_COUNT; i++) {
        struct host_rule rules[2];
        char want[80] = "";
        FIXTURE(bed, b, bed_start, bed_stop);
        host_ends(&b.a, &ends[i], rules);
        host_ends(&b.b, &ends[i], rules);
        add_mail(&b, "u@x.test");
        add_mail(&b, "w@x.test");
        run(&b, "x.test");
        /* Before a host has said that it is ready no message is taken. */
        if (b.manager.taken > 0)
            snprintf(want, sizeof(want), "u@x.test deferred %s site\n",
                     ends[i].enhanced);
        is_settled(&b, want, ends[i].name);
        is_trouble(&b, VERDICT_DEFERRED, ends[i].enhanced, ends[i].words);
        is_number(b.manager.trouble.blame, BLAME_SITE, "of the site");
        is_number(b.a.connections + b.b.connections, 2, "each host is asked once");
    }
}

/* A host that refuses a message within its content says nothing of other mail: the end of
 * the session must not say that the domain takes none. */
TEST(refused_content)
{
    static const struct host_rule refusal[] = {
        {"DATA", "354 go on\r\n554 5.6.0 never\r\n", 0, 0}, {NULL, NULL, 0, 0}
    };
    FIXTURE(bed, b, bed_start, bed_stop);
    b.a.rules = refusal;
    add_mail(&b, "u@x.test");
    add_mail(&b, "w@x.test");
    run(&b, "x.test");
    is_settled(&b, "u@x.test bounced 5.6.0 message\n", "one message is refused");
    ok_named(!b.manager.has_trouble || b.manager.trouble.verdict != VERDICT_FAILED, "and nothing else");
}

/* Mail has gone meanwhile: the session ends with the words, which are logged. */
TEST(no_mail)
{
    for (size_t i = 0; i < 3; i++) {
        struct host_rule rules[2];
        FIXTURE(bed, b, bed_start, bed_stop);
        host_ends(&b.a, &ends[i], rules);
        host_ends(&b.b, &ends[i], rules);
        run(&b, "x.test");
        is_settled(&b, "", ends[i].name);
        is_trouble(&b, VERDICT_DEFERRED, ends[i].enhanced, "");
    }
}

enum leaving { LEAVES_SILENTLY, LEAVES_WITH_421, LEAVES_BY_HALF, LEAVINGS };

static void
host_leaves(struct host_link *l, enum leaving how)
{
    switch (how) {
    case LEAVES_WITH_421:
        net_send(l->connection, TEXT("421 4.4.2 idle too long\r\n"));
        break;
    case LEAVES_BY_HALF:
        net_send(l->connection, TEXT("42"));
        return;
    case LEAVES_SILENTLY:
    case LEAVINGS:
        break;
    }
    host_hang_up(l);
}

/* One message is sent, and the session idle; the next one comes after the end, before,
 * or not. */
static void
test_kept(enum leaving how, bool has_more, bool before)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    b.settings.reuse_idle_ms = KEPT_MS;
    delivery_reload(b.delivery, &b.settings);
    add_mail(&b, "u@x.test");
    if (has_more)
        add_mail(&b, "v@x.test");
    b.manager.hidden = has_more;
    delivery_open(b.delivery, place(&b), &b.target, "x.test");
    for (int i = 0; i < 5000 && !has(&b.manager.verdicts, "u@x.test sent"); i++)
        clock_turn(b.loop);
    turns(&b, 20);
    host_leaves(&b.a.links[0], how);
    if (before)
        b.manager.hidden = 0; /* the end and the mail come in one turn */
    turns(&b, 100);
    if (has_more && !before && b.manager.ended == 0) {
        b.manager.hidden = 0;
        turns(&b, 100);
    }
    turns(&b, has_more && !before ? 300 : KEPT_MS + 100);
    ok_named(!has(&b.manager.verdicts, "deferred"), "no message is blamed");
    ok_named(!has(&b.manager.health, "bad"), "nor the host");
    if (has_more && b.manager.taken == 2)
        ok_named(has(&b.manager.verdicts, "v@x.test sent"), "mail taken is not lost");
    if (!has_more) {
        is_number(b.manager.ended, 1, "the session has ended");
        is_number(b.manager.trouble.verdict, VERDICT_DELIVERED, "and nothing is wrong");
    }
    if (how == LEAVES_WITH_421)
        ok_named(has(&b.lines, "421 4.4.2 idle too long"), "its words are logged");
    ok_named(b.a.connections <= 2 && b.b.connections == 0, "no loop");
}

/* --- Delivery --------------------------------------------------------------------- */

/* Delivery: the next request in one group with the dot of the last. */

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

static void
test_early_lost(void)
{
    struct bed b;
    start_early(&b);
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
    bed_stop(&b);
}

static void
test_early_answered(void)
{
    struct bed b;
    start_early(&b);
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
    bed_stop(&b);
}

/* A host that is slow with a dot does not get the next message with it. */
static void
test_late_answers(void)
{
    struct bed b;
    bed_start(&b);
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
    bed_stop(&b);
}

static void
test_early_stopped(void)
{
    struct bed b;
    start_early(&b);
    delivery_free(&b.delivery);
    is_settled(&b,
               "a@x.test sent 2.0.0 none\nb@x.test deferred 4.3.2 message\n"
               "c@x.test deferred 4.3.2 message\n",
               "both that are under way are given back");
    is_number(b.manager.ended, 1, "the session has ended");
    bed_stop(&b);
}

static void
delivery_early_tests(void)
{
    spool.content = memory_new(CONTENT_MAX);
    test_early_lost();
    test_early_answered();
    test_late_answers();
    test_early_stopped();
    free(spool.content);
}


int
main(void)
{
    spool.content = memory_new(CONTENT_MAX);
    tap_tests("");
    for (enum leaving how = LEAVES_SILENTLY; how < LEAVINGS; how++) {
        test_kept(how, false, false);
        test_kept(how, true, false);
        test_kept(how, true, true);
    }
    free(spool.content);
    delivery_early_tests();
    return done();
}
