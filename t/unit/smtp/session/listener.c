/* smtp/listener: crowds, limits, bad manners, draining and new settings, on real
 * sockets. */
/* link: t/sim/clock.c */
#include "queue/queue_operator.h"
#include "smtp/session/listener.h"
#include "base/event/event.h"

#include "t/sim/clock.h"
#include "t/support/listener_world.h"

#include <sys/resource.h>
#include <sys/un.h>
#include <sys/wait.h>

static const struct server_rules plain = {.hostname = "mx.example.org",
                                          .size_limit = 10000000,
                                          .recipient_limit = 100,
                                          .hop_limit = 50,
                                          .error_limit = 20};

static long
resident_kb(void)
{
    long pages = 0, all = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    dialog_must(file != NULL && fscanf(file, "%ld %ld", &all, &pages) == 2, "statm");
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* The CPU time of this process so far: it does not depend on the load of the
 * machine. */
static int64_t
used_ms(void)
{
    return (int64_t)clock() * 1000 / CLOCKS_PER_SEC;
}

/* doc/dev/design.md "Measures": 16 MiB for 1,000 idle clients. */
TEST(thousand_idle)
{
    static struct world w;
    static struct visitor crowd[1000];
    struct rlimit files = {4096, 4096};
    setrlimit(RLIMIT_NOFILE, &files);
    listener_world_start(&w, &plain, false, true);
    listener_turns(&w, 3);
    long before = resident_kb();
    unsigned greeted = 0;
    for (int i = 0; i < 1000; i++) {
        visit(&crowd[i], &w);
        loop_turn(w.loop, 0);
    }
    for (int i = 0; i < 1000; i++)
        greeted += asks(&crowd[i], "EHLO idle.example\r\n", "220") &&
                   asks(&crowd[i], "", "250 DSN");
    listener_turns(&w, 3);
    long after = resident_kb();
    is_number(greeted, 1000, "1,000 clients are greeted");
    is_number(listener_sessions(w.listener), 1000, "and held");
    printf("# 1,000 idle clients: %ld KiB (this side included)\n", after - before);
    ok_named(after - before < 16 * 1024, "within 16 MiB");
    for (int i = 0; i < 1000; i++)
        leave(&crowd[i]);
    listener_turns(&w, 20);
    is_number(listener_sessions(w.listener), 0, "all gone");
    listener_world_end(&w);
}

TEST(too_many)
{
    static struct world w;
    struct visitor v[4];
    listener_world_start(&w, &plain, false, true);
    w.settings.clients.sessions = 3;
    w.settings.clients.sessions_per_client = 2;
    listener_reload(w.listener, w.routes, &w.settings);
    for (int i = 0; i < 3; i++)
        visit(&v[i], &w);
    ok(hears(&v[0], TEXT("220 ")));
    ok(hears(&v[1], TEXT("220 ")));
    ok(hears(&v[2], TEXT("421 4.7.0 too many connections from your address")));
    ok(is_closed(&v[2]));
    leave(&v[0]);
    listener_turns(&w, 3);
    visit(&v[3], &w);
    ok_named(hears(&v[3], TEXT("220 ")), "one has gone, another may come");
    w.settings.clients.sessions = 2;
    w.settings.clients.sessions_per_client = 3;
    listener_reload(w.listener, w.routes, &w.settings);
    leave(&v[2]);
    visit(&v[2], &w);
    ok(hears(&v[2], TEXT("421 4.7.0 too many connections, try again later")));
    for (int i = 1; i < 4; i++)
        leave(&v[i]);
    listener_turns(&w, 3);
    listener_world_end(&w);
}

/* The sanitizer keeps what was freed for a while. */
enum { GROWTH_MAX_KB = (TAP_ADDRESS_SANITIZER ? 64 : 16) * 1024 };

/* Sends and never reads: it is not listened to, and nobody else notices. */
TEST(never_reads)
{
    static struct world w;
    struct visitor deaf, other;
    static char helps[60000];
    for (size_t i = 0; i + 6 <= sizeof(helps); i += 6)
        memcpy(helps + i, "HELP\r\n", 6);
    listener_world_start(&w, &plain, false, true);
    visit(&deaf, &w);
    listener_turns(&w, 2);
    visit(&other, &w);
    ok(hears(&other, TEXT("220 ")));
    long before = resident_kb();
    size_t sent = 0;
    for (int i = 0; i < 3000; i++) {
        ssize_t some = send(deaf.socket, helps, sizeof(helps), MSG_NOSIGNAL);
        sent += some > 0 ? (size_t)some : 0;
        loop_turn(w.loop, 0);
    }
    printf("# a deaf client could send %zu bytes; resident memory grew by %ld KiB\n",
           sent, resident_kb() - before);
    ok_named(resident_kb() - before < GROWTH_MAX_KB, "bounded memory for it");
    ok_named(sent < 32 * 1024 * 1024, "it is stopped");
    int64_t start = used_ms();
    ok(asks(&other, "EHLO x\r\n", "250 DSN"));
    ok_named(used_ms() - start < 200, "another client is answered at once");
    ok(asks(&other, "NOOP\r\n", "250 2.0.0"));
    /* It wakes up and reads: all the replies come. */
    int64_t end = listener_now_ms() + PATIENCE_MS;
    while (deaf.heard.length < 1000000 && listener_now_ms() < end)
        turn(&deaf, 1);
    ok(deaf.heard.length >= 1000000);
    leave(&deaf);
    leave(&other);
    listener_turns(&w, 5);
    is_number(listener_sessions(w.listener), 0, "gone");
    listener_world_end(&w);
}

TEST(timeouts)
{
    static struct world w;
    struct visitor idle, half;
    clock_stop();
    listener_world_start(&w, &plain, false, true);
    w.settings.idle_timeout_ms = 300;
    w.settings.data_timeout_ms = 100;
    listener_reload(w.listener, w.routes, &w.settings);
    visit(&idle, &w);
    visit(&half, &w);
    ok(hears(&idle, TEXT("220 ")) && hears(&half, TEXT("220 ")));
    ok(asks(&half, "HELO x\r\n", "250"));
    ok(asks(&half, "MAIL FROM:<>\r\nRCPT TO:<b@example.org>\r\nDATA\r\n", "250"));
    ok(hears(&half, TEXT("250")) && hears(&half, TEXT("354")));
    clock_pass(101);
    ok(hears(&half, TEXT("421 4.4.2")));
    ok(is_closed(&half));
    listener_turns(&w, 5);
    hear(&idle);
    ok_named(idle.read == idle.heard.length, "DATA has its own time-out");
    clock_pass(200);
    ok(hears(&idle, TEXT("421 4.4.2")));
    ok(is_closed(&idle));
    leave(&idle);
    leave(&half);
    is_number(listener_sessions(w.listener), 0, "both are gone");
    listener_world_end(&w);
    clock_go();
}

/* Peers that vanish at every stage leave nothing behind. */
TEST(vanishing)
{
    static const char *const commands[] = {
        "",
        "HELO x\r\n",
        "HE",
        "HELO x\r\nMAIL FROM:<>\r\n",
        "HELO x\r\nMAIL FROM:<>\r\nRCPT TO:<b@example.org>\r\nDATA\r\nhalf a mess",
        "HELO x\r\nMAIL FROM:<>\r\nRCPT TO:<b@example.org>\r\nBDAT 100\r\nhalf",
        "HELO x\r\nMAIL FROM:<>\r\nRCPT TO:<b@example.org>\r\nBDAT 4\r\nhalf",
    };
    static struct world w;
    struct linger reset = {1, 0};
    listener_world_start(&w, &plain, false, true);
    for (size_t i = 0; i < 2 * sizeof(commands) / sizeof(commands[0]); i++) {
        struct visitor v;
        visit(&v, &w);
        listener_turns(&w, 2);
        say(&v, text_from(commands[i / 2]), SIZE_MAX);
        listener_turns(&w, 3);
        if (i % 2 == 0)
            setsockopt(v.socket, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        leave(&v);
        listener_turns(&w, 3);
    }
    is_number(listener_sessions(w.listener), 0, "no session is left");
    struct stored s = {.world = &w};
    queue_each(manager_queue(w.manager), collect, &s);
    is_number(s.count, 0, "no message is left");
    char command[300];
    snprintf(command, sizeof(command),
             "test -z \"$(find %s/pid %s/mess %s/intd -type f)\"", w.spool, w.spool,
             w.spool);
    is_number(system(command), 0, "no file is left");
    listener_world_end(&w);
}

/* A client may say everything and close its half before it has heard anything. */
TEST(half_closed)
{
    static struct world w;
    struct visitor v;
    listener_world_start(&w, &plain, false, true);
    visit(&v, &w);
    say(&v,
        TEXT("HELO x\r\nMAIL FROM:<>\r\nRCPT TO:<b@example.org>\r\nDATA\r\nx\r\n.\r\n"),
        SIZE_MAX);
    shutdown(v.socket, SHUT_WR);
    ok(hears(&v, TEXT("220")) && hears(&v, TEXT("250")) && hears(&v, TEXT("250")));
    ok(hears(&v, TEXT("250")) && hears(&v, TEXT("354")));
    ok(hears(&v, TEXT("250 2.0.0 Ok: queued as ")));
    ok(is_closed(&v));
    leave(&v);
    listener_world_end(&w);
}

TEST(draining)
{
    static struct world w;
    struct visitor idle, busy;
    listener_world_start(&w, &plain, false, true);
    visit(&idle, &w);
    visit(&busy, &w);
    ok(hears(&idle, TEXT("220")) && hears(&busy, TEXT("220")));
    ok(asks(&busy, "HELO x\r\n", "250") && asks(&busy, "MAIL FROM:<>\r\n", "250"));
    listener_drain(w.listener, PATIENCE_MS, on_drained, &w);
    ok(hears(&idle, TEXT("421 4.3.2")));
    ok(is_closed(&idle));
    ok(!w.drained);
    ok(asks(&busy, "RCPT TO:<b@example.org>\r\n", "250"));
    ok(asks(&busy, "DATA\r\n", "354") &&
       asks(&busy, "x\r\n.\r\n", "250 2.0.0 Ok: queued"));
    ok(hears(&busy, TEXT("421 4.3.2")));
    ok(is_closed(&busy));
    listener_turns(&w, 3);
    ok(w.drained);
    leave(&idle);
    leave(&busy);
    listener_world_end(&w);
}

TEST(grace_ends)
{
    static struct world w;
    struct visitor busy;
    listener_world_start(&w, &plain, false, true);
    visit(&busy, &w);
    ok(hears(&busy, TEXT("220")) && asks(&busy, "HELO x\r\n", "250") &&
       asks(&busy, "MAIL FROM:<>\r\n", "250"));
    listener_drain(w.listener, 50, on_drained, &w);
    ok_named(!w.drained, "never before it returns");
    int64_t end = listener_now_ms() + PATIENCE_MS;
    while (!w.drained && listener_now_ms() < end)
        turn(&busy, TURN_MS);
    ok(w.drained);
    is_number(listener_sessions(w.listener), 0, "cut off");
    leave(&busy);
    listener_world_end(&w);
    listener_world_start(&w, &plain, false, true);
    listener_drain(w.listener, 50, on_drained, &w);
    ok(!w.drained);
    listener_turns(&w, 2);
    ok_named(w.drained, "nobody is there: at once, but not before it returns");
    listener_world_end(&w);
}

TEST(unix_clients)
{
    static struct world w;
    struct visitor v;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    listener_world_start(&w, &plain, false, false);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", w.spool);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    dialog_must(connect(s, (struct sockaddr *)&address, sizeof(address)) == 0,
                "connect");
    visitor_on(&v, &w, s);
    ok(hears(&v, TEXT("220")) && asks(&v, "HELO x\r\n", "250"));
    ok(asks(&v, "MAIL FROM:<>\r\n", "250"));
    ok_named(asks(&v, "RCPT TO:<b@elsewhere.example>\r\n", "250"),
             "a client on a Unix socket may relay");
    leave(&v);
    visit(&v, &w);
    ok(hears(&v, TEXT("220")) && asks(&v, "HELO x\r\n", "250"));
    ok(asks(&v, "MAIL FROM:<>\r\n", "250"));
    ok_named(asks(&v, "RCPT TO:<b@elsewhere.example>\r\n", "554 5.7.1"),
             "a stranger may not");
    ok(memmem(w.lines.at, w.lines.length, "b@elsewhere.example", 19) != NULL);
    leave(&v);
    listener_turns(&w, 2);
    listener_world_end(&w);
}

TEST(new_settings)
{
    static struct world w;
    struct visitor v;
    listener_world_start(&w, &plain, false, true);
    visit(&v, &w);
    ok(hears(&v, TEXT("220")) && asks(&v, "HELO x\r\n", "250"));
    ok(asks(&v, "MAIL FROM:<>\r\n", "250"));
    w.settings.recipient_limit = 1;
    w.settings.message_size_limit = 10;
    listener_reload(w.listener, w.routes, &w.settings);
    ok(asks(&v, "RCPT TO:<a@example.org>\r\n", "250"));
    ok_named(asks(&v, "RCPT TO:<b@example.org>\r\n", "250"),
             "old settings until the transaction ends");
    ok(asks(&v, "RSET\r\n", "250"));
    ok_named(asks(&v, "MAIL FROM:<> SIZE=11\r\n", "552"), "then the new ones");
    w.settings.relay_from = TEXT("not-a-network");
    listener_reload(w.listener, w.routes, &w.settings);
    ok(memmem(w.lines.at, w.lines.length, "old settings stay", 17) != NULL);
    ok_named(asks(&v, "MAIL FROM:<> SIZE=11\r\n", "552"),
             "a bad reload changes nothing");
    leave(&v);
    listener_turns(&w, 2);
    listener_world_end(&w);
}

TEST(bad_settings)
{
    static struct world w;
    char error[200] = "";
    FIXTURE(buffer, mistakes, buffer_init, buffer_free, 65536);
    listener_world_start(&w, &plain, false, true);
    struct listener_settings s = w.settings;
    ok(listener_check(&s, &mistakes) && mistakes.length == 0);
    s.listen = TEXT("127.0.0.1:2525, nowhere");
    s.relay_from = TEXT("0.0.0.0/0");
    s.mt_priority = TEXT("yes");
    s.hostname = "not a name";
    ok(!listener_check(&s, &mistakes));
    struct text all = buffer_text(&mistakes);
    ok(memmem(all.at, all.length, "nowhere", 7) != NULL);
    ok(memmem(all.at, all.length, "relay_from: '0.0.0.0/0'", 23) != NULL);
    ok(memmem(all.at, all.length, "mt_priority: 'yes': say", 23) != NULL);
    ok(memmem(all.at, all.length, "hostname: 'not a name'", 22) != NULL);
    ok(listener_new(w.loop, w.net, w.events, w.manager, w.routes, &s, error,
                    sizeof(error)) == NULL);
    ok(error[0] != '\0' && strchr(error, '\n') == NULL);
    s = w.settings; /* its port is taken */
    ok(listener_new(w.loop, w.net, w.events, w.manager, w.routes, &s, error,
                    sizeof(error)) == NULL);
    ok(strstr(error, "127.0.0.1") != NULL);
    listener_world_end(&w);
}

/* 500 clients that say one byte now and then do not slow another one down. */
TEST(slow_crowd)
{
    static struct world w;
    static struct visitor crowd[500];
    struct visitor v;
    int64_t longest = 0;
    listener_world_start(&w, &plain, false, true);
    for (int i = 0; i < 500; i++) {
        visit(&crowd[i], &w);
        loop_turn(w.loop, 0);
    }
    visit(&v, &w);
    ok(hears(&v, TEXT("220")) && asks(&v, "EHLO x\r\n", "250 DSN"));
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 500; i++)
            if (send(crowd[i].socket, "x", 1, MSG_NOSIGNAL) != 1)
                break;
        int64_t start = used_ms();
        asks(&v, "NOOP\r\n", "250");
        int64_t took = used_ms() - start;
        longest = took > longest ? took : longest;
    }
    printf("# the slowest answer beside 500 drips took %d ms\n", (int)longest);
    ok_named(longest < 100, "500 slow clients slow nobody else");
    for (int i = 0; i < 500; i++)
        leave(&crowd[i]);
    leave(&v);
    listener_turns(&w, 5);
    listener_world_end(&w);
}

static void
on_over(void *context)
{
    loop_stop(context);
}

/* Serves as `sendmail -bs`, on descriptors 0 and 1. */
static void
serve_standard(const struct world *w, int both)
{
    struct queue_settings settings = {.spool = w->spool, .slices = 1};
    struct queue *queue;
    char error[200];
    dup2(both, 0);
    dup2(both, 1);
    close(both);
    struct loop *loop = loop_new();
    struct net *net = net_new(loop);
    struct log *log = log_new(loop, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    struct event_hub *events = event_hub_new(log);
    if (queue_open_injector(&queue, log, &settings, error, sizeof(error)) != 0)
        _exit(2);
    listener_serve_standard(loop, net, events, queue, w->routes, &w->settings, on_over,
                            loop);
    loop_run(loop);
    queue_close(&queue);
    net_free(&net);
    event_hub_free(&events);
    log_free(&log);
    loop_turn(loop, 0);
    loop_free(&loop);
    _exit(0);
}

TEST(standard_session)
{
    static struct world w;
    static struct stored s;
    struct visitor v;
    int pair[2], status = -1;
    listener_world_start(&w, &plain, false, false);
    dialog_must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "pair");
    pid_t child = fork();
    if (child == 0) {
        close(pair[0]);
        serve_standard(&w, pair[1]);
    }
    close(pair[1]);
    visitor_on(&v, &w, pair[0]);
    ok(hears(&v, TEXT("220 mx.example.org ESMTP")));
    say(&v,
        TEXT("EHLO x\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<b@elsewhere.example>\r\n"
             "DATA\r\nfirst\r\n.\r\nMAIL FROM:<>\r\nRCPT TO:<c@example.org>\r\n"
             "BDAT 8 LAST\r\nsecond\r\nQUIT\r\n"),
        SIZE_MAX);
    ok(asks(&v, "", "250 DSN"));
    ok_named(hears(&v, TEXT("250 2.1.0")) && hears(&v, TEXT("250 2.1.5")),
             "it may relay, although its descriptors have no address");
    ok(hears(&v, TEXT("354")) && hears(&v, TEXT("250 2.0.0 Ok: queued as ")));
    ok(hears(&v, TEXT("250")) && hears(&v, TEXT("250")));
    ok(hears(&v, TEXT("250 2.0.0 Ok: queued as ")) && hears(&v, TEXT("221 ")));
    ok(is_closed(&v));
    leave(&v);
    waitpid(child, &status, 0);
    is_number(status, 0, "it ends by itself");
    s = (struct stored){.world = &w};
    listener_turns(&w, 10);
    queue_each(manager_queue(w.manager), collect, &s);
    is_number(s.count, 2, "both messages are in the spool");
    for (size_t i = 0; i < s.count; i++) {
        struct text prefix = s.messages[i].envelope->prefix;
        ok(memmem(prefix.at, prefix.length, "from x (local) by mx.example.org", 32) !=
           NULL);
        ok(memmem(prefix.at, prefix.length, "Message-ID: <", 13) != NULL);
        envelope_free(&s.messages[i].envelope);
        buffer_free(&s.messages[i].content);
    }
    listener_world_end(&w);
}
