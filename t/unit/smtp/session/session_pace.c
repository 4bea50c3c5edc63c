/* Replies while mail comes faster than it leaves: they wait, in order, some of them go,
 * all of them at a reload, at a stop, and after a minute; on real sockets in virtual
 * time. */
/* link: t/sim/loop.c */
#include "smtp/session/session.h"

#include "t/support/listener_virtual.h"

static const struct server_rules plain = {.hostname = "mx.example.org",
                                          .size_limit = 10000000,
                                          .recipient_limit = 100,
                                          .hop_limit = 50,
                                          .error_limit = 20,
                                          .soft_error_limit = 20};

enum { CROWD = 500, CLIENTS = 30, FLOOR_MS = 10, FLOOR = 10 };

static struct world w;
static struct sched_session *way_out[CROWD];
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
open_house(void)
{
    struct route_settings routes = {.routes =
                                        TEXT("d.example discard, * smtp://192.0.2.1"),
                                    .local_domains = TEXT("mx.example.org"),
                                    .smtp_port = 25};
    listener_world_start(&w, &plain, false, true);
    FIXTURE(buffer, mistakes, buffer_init, buffer_free, 1000);
    transport_params_default(&routes.base);
    struct route_table *before = w.routes;
    w.routes = route_new(&routes, &mistakes);
    dialog_must(w.routes != NULL, "routes");
    struct manager_settings settings = {
        .hostname = "mx.example.org",
        .queue = {.spool = w.spool, .slices = 1, .message_size_limit = 100000000},
        .sched = {.active_limit = 10 * CROWD,                .session_limit = 10 },
        .bounce_size_limit = 50000
    };
    opened = 0;
    manager_reload(w.manager, &settings, w.routes);
    manager_set_channel(w.manager, TARGET_SMTP, keep_session, NULL);
    listener_reload(w.listener, w.routes, &w.settings);
    route_free(&before);
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
leave_all(struct visitor *first)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        leave(&clients[i]);
    leave(first);
    pass(&w, 100);
    while (opened > 0)
        manager_session_ended(w.manager, way_out[--opened], &outcome_no_trouble);
    listener_world_end(&w);
}

TEST(paced)
{
    struct visitor first;
    bool in_order;
    open_house();
    is_number(crowd(&first), CROWD, "a crowd waits");
    enter_clients();
    send_all(CROWD);
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
    leave_all(&first);
}

/* Mail for others is not delayed, and does not starve those that wait. */
TEST(others)
{
    enum { OTHERS = FLOOR + 2 };
    struct visitor first, others[OTHERS];
    bool in_order;
    open_house();
    (void)crowd(&first);
    enter_clients();
    send_all(CROWD);
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
    leave_all(&first);
}

/* A client that has gone waits no longer. */
TEST(gone)
{
    struct visitor first;
    bool in_order;
    open_house();
    (void)crowd(&first);
    enter_clients();
    send_all(CROWD);
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
    leave_all(&first);
}

TEST(reload)
{
    struct visitor first;
    bool in_order;
    open_house();
    (void)crowd(&first);
    enter_clients();
    send_all(CROWD);
    listener_reload(w.listener, w.routes, &w.settings);
    is_number(answered(&in_order), CLIENTS, "a reload sends all replies");
    leave_all(&first);
}

TEST(stop)
{
    struct visitor first;
    bool in_order;
    open_house();
    (void)crowd(&first);
    enter_clients();
    send_all(CROWD);
    listener_drain(w.listener, 1000, on_drained, &w);
    is_number(answered(&in_order), CLIENTS, "and so does a stop");
    bool good = true;
    for (unsigned i = 0; i < CLIENTS; i++)
        good = good && text_starts(heard(&clients[i]), TEXT("250 2.0.0 Ok: queued"));
    ok_named(good, "before it says good-bye");
    leave_all(&first);
}
