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

/* --- Replies while mail comes faster than it leaves ------------------------------- */

/* Replies while mail comes faster than it leaves: they wait, in order, some of them go,
 * all of them at a reload, at a stop, and after a minute; on real sockets in virtual
 * time. */

static const struct server_rules session_pace_plain = {.hostname = "mx.example.org",
                                          .size_limit = 10000000,
                                          .recipient_limit = 100,
                                          .hop_limit = 50,
                                          .error_limit = 20,
                                          .soft_error_limit = 20};

enum { PACED = 500, CLIENTS = 30, FLOOR_MS = 10, FLOOR = 10 };

static struct sched_session *way_out[PACED];
static size_t opened;
static struct visitor clients[CLIENTS];

static void
keep_session(void *context, struct sched_session *session, const struct target *target,
             const char *domain)
{
    (void)context;
    (void)target;
    (void)domain;
    way_out[opened++] = session;
}

/* All routes lead to one next hop, whose sessions never greet. */
static void
open_slow_house(void)
{
    struct buffer mistakes;
    struct route_settings routes = {.routes =
                                        TEXT("d.example discard, * smtp://192.0.2.1"),
                                    .local_domains = TEXT("mx.example.org"),
                                    .smtp_port = 25};
    listener_world_start(&w, &session_pace_plain, false, true);
    buffer_init(&mistakes, 1000);
    transport_params_default(&routes.base);
    struct route_table *before = w.routes;
    w.routes = route_new(&routes, &mistakes);
    dialog_must(w.routes != NULL, "routes");
    struct manager_settings settings = {
        .hostname = "mx.example.org",
        .queue = {.spool = w.spool, .slices = 1, .message_size_limit = 100000000},
        .sched = {.active_limit = 10 * PACED,                .session_limit = 10 },
        .bounce_size_limit = 50000
    };
    opened = 0;
    manager_reload(w.manager, &settings, w.routes);
    manager_set_channel(w.manager, TARGET_SMTP, keep_session, NULL);
    listener_reload(w.listener, w.routes, &w.settings);
    route_free(&before);
    buffer_free(&mistakes);
}

static void
begin_mail(struct visitor *v)
{
    dialog_must(answers(v,
                        "MAIL FROM:<a@b.example>\r\nRCPT TO:<u@c.example>\r\n"
                        "DATA\r\n",
                        "354"),
                "354");
}

static const char content[] = "Subject: x\r\n\r\nx\r\n.\r\n";

/* Mail of one client until a crowd waits: less than that is answered at once. */
static unsigned
crowd(struct visitor *v)
{
    unsigned sent = 0;
    visit(v, &w);
    dialog_must(answers(v, "", "220") && answers(v, "EHLO c.example\r\n", "250"),
                "HELO");
    for (; manager_is_calm(w.manager); sent++) {
        begin_mail(v);
        dialog_must(answers_late(v, content, "250 2.0.0 Ok: queued as"), "250");
    }
    return sent;
}

static void
enter_clients(void)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        visit(&clients[i], &w);
        dialog_must(answers(&clients[i], "", "220"), "220");
        dialog_must(answers(&clients[i], "EHLO c.example\r\n", "250"), "HELO");
        begin_mail(&clients[i]);
    }
}

/* Until the messages of all are durable; no time goes by. */
static void
send_all(unsigned before)
{
    int64_t end = listener_now_ms() + PATIENCE_MS;
    for (unsigned i = 0; i < CLIENTS; i++)
        tell(&clients[i], content);
    while (world_times_logged(&w, "remark=\"queued\"") + world_times_logged(&w, "(queued)") <
               before + CLIENTS &&
           listener_now_ms() < end) {
        tell_ready(w.loop, 1);
        settle(&w);
    }
}

static unsigned
answered(bool *in_order)
{
    unsigned count = 0;
    *in_order = true;
    for (unsigned i = 0; i < CLIENTS; i++) {
        settle(&w);
        hear(&clients[i]);
        bool got = clients[i].heard.length > clients[i].read;
        *in_order = *in_order && (!got || count == i);
        count += got;
    }
    return count;
}

static void
leave_paced(struct visitor *first)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        leave(&clients[i]);
    leave(first);
    pass(&w, 100);
    while (opened > 0)
        manager_session_ended(w.manager, way_out[--opened], &outcome_no_trouble);
    listener_world_end(&w);
}

static void
test_paced(void)
{
    struct visitor first;
    bool in_order;
    open_slow_house();
    is_number(crowd(&first), PACED, "a crowd waits");
    enter_clients();
    send_all(PACED);
    is_number(answered(&in_order), 0, "all replies wait");
    pass(&w, FLOOR_MS + 1); /* in which the crowd itself had its replies */
    unsigned some = answered(&in_order);
    ok_named(some >= FLOOR - 1 && some <= FLOOR,
             "some are sent, however slow the site");
    ok_named(in_order, "first come, first served");
    is_number(world_times_logged(&w, "mail arrives faster than it leaves"), 1, "logged once");
    pass(&w, FLOOR_MS);
    is_number(answered(&in_order), some + FLOOR, "and some more");
    ok(in_order);
    pass(&w, 2 * FLOOR_MS);
    is_number(answered(&in_order), CLIENTS, "in the end all");
    is_number(world_times_logged(&w, "mail arrives faster than it leaves"), 1, "still once");
    leave_paced(&first);
}

/* Mail for others is not delayed, and does not starve those that wait. */
static void
test_others(void)
{
    enum { OTHERS = FLOOR + 2 };
    struct visitor first, others[OTHERS];
    bool in_order;
    open_slow_house();
    (void)crowd(&first);
    enter_clients();
    send_all(PACED);
    unsigned before = answered(&in_order);
    for (unsigned i = 0; i < OTHERS; i++) {
        visit(&others[i], &w);
        dialog_must(answers(&others[i], "", "220"), "220");
        dialog_must(answers(&others[i], "EHLO c.example\r\n", "250"), "EHLO");
        dialog_must(answers(&others[i],
                            "MAIL FROM:<a@b.example>\r\nRCPT TO:<u@d.example>\r\n"
                            "DATA\r\n",
                            "354"),
                    "354");
    }
    pass(&w, FLOOR_MS);
    before = answered(&in_order);
    bool good = true;
    for (unsigned i = 0; i < OTHERS; i++)
        good = good && answers_late(&others[i], content, "250 2.0.0 Ok: queued");
    ok_named(good, "mail for others is answered at once");
    is_number(answered(&in_order), before, "before those that wait");
    pass(&w, FLOOR_MS);
    is_number(answered(&in_order), before + 1, "of whom one has its turn");
    for (unsigned i = 0; i < OTHERS; i++)
        leave(&others[i]);
    leave_paced(&first);
}

/* A client that has gone waits no longer. */
static void
test_gone(void)
{
    struct visitor first;
    bool in_order;
    open_slow_house();
    (void)crowd(&first);
    enter_clients();
    send_all(PACED);
    struct linger reset = {.l_onoff = 1};
    dialog_must(setsockopt(clients[CLIENTS - 1].socket, SOL_SOCKET, SO_LINGER, &reset,
                           sizeof(reset)) == 0,
                "linger");
    leave(&clients[CLIENTS - 1]);
    settle(&w);
    is_number(listener_sessions(w.listener), CLIENTS, "its session has ended");
    is_number(answered(&in_order), 0, "the others wait");
    visit(&clients[CLIENTS - 1], &w);
    ok_named(answers(&clients[CLIENTS - 1], "", "220"), "and a new one is greeted");
    leave_paced(&first);
}

static void
test_reload(void)
{
    struct visitor first;
    bool in_order;
    open_slow_house();
    (void)crowd(&first);
    enter_clients();
    send_all(PACED);
    listener_reload(w.listener, w.routes, &w.settings);
    is_number(answered(&in_order), CLIENTS, "a reload sends all replies");
    leave_paced(&first);
}

static void
test_stop(void)
{
    struct visitor first;
    bool in_order;
    open_slow_house();
    (void)crowd(&first);
    enter_clients();
    send_all(PACED);
    listener_drain(w.listener, 1000, on_drained, &w);
    is_number(answered(&in_order), CLIENTS, "and so does a stop");
    bool good = true;
    for (unsigned i = 0; i < CLIENTS; i++)
        good = good && text_starts(heard(&clients[i]), TEXT("250 2.0.0 Ok: queued"));
    ok_named(good, "before it says good-bye");
    leave_paced(&first);
}

static void
session_pace_tests(void)
{
    test_paced();
    test_others();
    test_gone();
    test_reload();
    test_stop();
}


int
main(void)
{
    stress();
    trusted();
    tap_tests("");
    session_pace_tests();
    return done();
}
