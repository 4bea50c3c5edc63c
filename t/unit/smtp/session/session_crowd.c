/* smtp/session when there are many: stress and its end, sessions that give way to a
 * newcomer, and acts that do not keep a session; on real sockets in virtual time. */
/* link: t/sim/loop.c */
#include "smtp/session/session.h"

#include "t/support/listener_virtual.h"

static const struct server_rules plain = {.hostname = "mx.example.org",
                                          .size_limit = 10000000,
                                          .recipient_limit = 100,
                                          .hop_limit = 50,
                                          .error_limit = 20,
                                          .soft_error_limit = 20};

static struct world w;

/* sessions of all and of each client; junk_limit 10. */
static void
open_house(int sessions, int each, bool may_relay)
{
    listener_world_start(&w, &plain, false, may_relay);
    w.settings.clients.sessions = sessions;
    w.settings.clients.sessions_per_client = each;
    w.settings.junk_limit = 10;
    w.settings.idle_timeout_ms = 300000;
    w.settings.data_timeout_ms = 180000;
    listener_reload(w.listener, w.routes, &w.settings);
}

static void
visit_from(struct visitor *v, unsigned char last)
{
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + last)};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)w.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int s = socket(AF_INET, SOCK_STREAM, 0);
    dialog_must(s >= 0 && bind(s, (struct sockaddr *)&from, sizeof(from)) == 0 &&
                    connect(s, (struct sockaddr *)&to, sizeof(to)) == 0,
                "cannot connect");
    visitor_on(v, &w, s);
}

static void
leave_all(struct visitor *v, int count)
{
    for (int i = 0; i < count; i++)
        leave(&v[i]);
    pass(&w, 10);
}

static void
stress(void)
{
    enum { CROWD = 17 };
    struct visitor v[CROWD];
    open_house(20, 20, false);
    for (int i = 0; i < CROWD - 1; i++) {
        visit_from(&v[i], 2);
        ok(answers(&v[i], "", "220"));
    }
    ok(!listener_is_stressed(w.listener));
    visit_from(&v[CROWD - 1], 3);
    ok(answers(&v[CROWD - 1], "", "220"));
    ok_named(listener_is_stressed(w.listener), "above 80 %");
    is_number(world_times_logged(&w, "17 of 20 sessions (server_session_limit): stress begins"),
              1, "told");
    pass(&w, 9000);
    ok(answers(&v[CROWD - 1], "HELO c.example\r\n", "250"));
    is_number(listener_sessions(w.listener), CROWD, "they have ten seconds");
    pass(&w, 2000);
    is_number(listener_sessions(w.listener), 11,
              "the silent are cut off, until less than "
              "60 % are left");
    ok(answers(&v[0], "", "421 4.4.2"));
    ok_named(!listener_is_stressed(w.listener), "that was enough");
    is_number(world_times_logged(&w, "stress ends"), 1, "told");
    is_number(world_times_logged(&w, "stress begins"), 1, "once");
    pass(&w, 60000);
    is_number(listener_sessions(w.listener), 11, "and there is time again");
    leave_all(v, CROWD);
    listener_world_end(&w);
}

/* Neither hurried nor asked to give way. */
static void
trusted(void)
{
    enum { CROWD = 10 };
    struct visitor v[CROWD], other;
    open_house(CROWD, CROWD, true);
    for (int i = 0; i < CROWD; i++)
        visit_from(&v[i], 2);
    ok(answers(&v[CROWD - 1], "", "220"));
    ok(listener_is_stressed(w.listener));
    pass(&w, 60000);
    is_number(listener_sessions(w.listener), CROWD, "trusted clients stay");
    for (int i = 0; i < 15; i++)
        if (!answers(&v[0], "NOOP\r\n", "250"))
            ok_named(false, "and may idle");
    visit_from(&other, 3);
    ok(answers(&other, "", "421 4.7.0 too many connections, try again later"));
    leave(&other);
    leave_all(v, CROWD);
    listener_world_end(&w);
}

TEST(hurried)
{
    struct visitor v[9];
    open_house(10, 10, false);
    for (int i = 0; i < 9; i++)
        visit_from(&v[i], 2);
    ok(answers(&v[0], "HELO c.example\r\n", "250"));
    ok_named(answers(&v[0], "NOOP\r\n", "250"), "junk, and an error");
    ok_named(answers(&v[0], "NOOP\r\n", "421 4.7.0 too many errors"), "is all one has");
    ok(answers(&v[1], "HELO c.example\r\nMAIL FROM:<a@b.example>\r\n", "250"));
    ok_named(
        answers(&v[1], "RCPT TO:<u@example.org>\r\nDATA\r\n", "354") &&
            answers_late(&v[1], "Subject: x\r\n\r\nx\r\n.\r\n", "250 2.0.0 Ok: queued"),
        "mail is taken");
    leave_all(v, 9);
    listener_world_end(&w);
}

TEST(newcomers)
{
    enum { CROWD = 10 };
    struct visitor v[CROWD], other, more;
    open_house(CROWD, 5, false);
    for (int i = 0; i < CROWD; i++) {
        visit_from(&v[i], i < 5 ? 2 : 3);
        ok(answers(&v[i], "", "220"));
    }
    visit_from(&other, 4);
    ok_named(answers(&other, "", "421 4.7.0 too many connections, try again later"),
             "nobody has been idle for long");
    leave(&other);
    pass(&w, 2500);
    ok(answers(&v[0], "HELO c.example\r\n", "250"));
    visit_from(&more, 3);
    ok_named(answers(&more, "", "421 4.7.0 too many connections from your address"),
             "nobody gives way to who has enough");
    leave(&more);
    visit_from(&other, 4);
    ok_named(answers(&other, "", "220"), "a new client finds room");
    ok_named(answers(&v[1], "", "421 4.3.2 idle connection closed") && is_gone(&v[1]),
             "of the one that is idle longest");
    ok_named(answers(&v[0], "NOOP\r\n", "250"), "which is not the first that came");
    is_number(world_times_logged(&w, "refused=421 4.3.2, client=[127.0.0.2]"), 1, "told");
    leave(&other);
    leave_all(v, CROWD);
    listener_world_end(&w);
}

/* A client that may relay finds space, however many sessions it has. */
TEST(trusted_newcomer)
{
    enum { CROWD = 10 };
    struct visitor v[CROWD], other;
    open_house(CROWD, CROWD, false);
    w.settings.relay_from = TEXT("127.0.0.9");
    listener_reload(w.listener, w.routes, &w.settings);
    for (int i = 0; i < CROWD; i++) {
        visit_from(&v[i], i < 5 ? 9 : (unsigned char)i);
        ok(answers(&v[i], "", "220"));
    }
    pass(&w, 2500);
    visit_from(&other, 9);
    ok_named(answers(&other, "", "220"), "a trusted client finds room");
    ok_named(answers(&v[5], "", "421 4.3.2"), "of an untrusted one");
    leave(&other);
    leave_all(v, CROWD);
    listener_world_end(&w);
}

/* A newcomer costs a bounded number of looks: sessions that cannot give way go to the
 * end of the row, so that the next newcomer gets further. */
TEST(bounded_walk)
{
    enum { TRUSTED = 120, LOOKS = 100 };
    static struct visitor v[TRUSTED + 1];
    struct visitor other;
    open_house(TRUSTED + 1, TRUSTED + 1, false);
    w.settings.relay_from = TEXT("127.0.0.9");
    listener_reload(w.listener, w.routes, &w.settings);
    for (int i = 0; i < TRUSTED + 1; i++) {
        visit_from(&v[i], i < TRUSTED ? 9 : 2);
        ok(answers(&v[i], "", "220"));
    }
    pass(&w, 2500);
    visit_from(&other, 3);
    ok_named(answers(&other, "", "421 4.7.0 too many connections, try again later"),
             "the first is refused");
    leave(&other);
    visit_from(&other, 3);
    ok_named(answers(&other, "", "220"), "the next finds who can give way");
    ok(answers(&v[TRUSTED], "", "421 4.3.2"));
    leave(&other);
    leave_all(v, TRUSTED + 1);
    listener_world_end(&w);
}

/* To be busy is no right to more than others have. */
TEST(busy_crowd)
{
    enum { CROWD = 12 };
    struct visitor v[CROWD], other;
    open_house(CROWD, CROWD, false);
    for (int i = 0; i < CROWD; i++) {
        visit_from(&v[i], 2);
        ok(answers(&v[i], "HELO c.example\r\n", "250"));
    }
    visit_from(&other, 3);
    ok_named(answers(&other, "", "220"), "one of many of a client gives way");
    ok(answers(&v[0], "", "421 4.3.2"));
    leave(&other);
    leave_all(v, CROWD);
    listener_world_end(&w);
}

/* A session that brings no mail forward ends. */
TEST(no_way_to_stay)
{
    static const char *const loops[] = {"RCPT TO:<u@example.org>\r\n", "BDAT 0\r\n",
                                        "BDAT 1\r\nx"};
    for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++) {
        struct visitor v;
        int said = 0;
        open_house(100, 100, false);
        visit_from(&v, 2);
        ok(answers(&v, "EHLO c.example\r\n", "250 DSN"));
        ok(answers(&v, "MAIL FROM:<a@b.example>\r\nRCPT TO:<u@example.org>\r\n",
                   "250"));
        while (said < 100 && answers(&v, loops[i], "250"))
            said++;
        ok_named(said >= 10 && said <= 9 + 20, loops[i]);
        is_number(world_times_logged(&w, "421 4.7.0"), 1, "is over");
        leave(&v);
        listener_world_end(&w);
    }
}

int
main(void)
{
    stress();
    trusted();
    tap_tests("");
    return done();
}
