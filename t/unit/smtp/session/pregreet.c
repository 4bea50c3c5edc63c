/* smtp/arrival: proxies that say for whom they speak, and silence before the greeting,
 * on real sockets in virtual time. */
/* link: t/sim/loop.c */
#include "queue/queue_operator.h"
#include "smtp/session/pregreet.h"
#include "smtp/access/refusals.h"

#include "t/support/listener_virtual.h"

static const struct server_rules plain = {.hostname = "mx.example.org",
                                          .size_limit = 10000000,
                                          .recipient_limit = 100,
                                          .hop_limit = 50,
                                          .error_limit = 20};

static const char known[] = "PROXY TCP4 192.0.2.7 198.51.100.1 40000 25\r\n";
static const char far[] = "PROXY TCP4 203.0.113.7 198.51.100.1 40000 25\r\n";
static const char local[] = "\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";

/* 192.0.2.0/24 may relay, and so may the proxy's own address. */
static void
open_world(struct world *w)
{
    listener_world_start(w, &plain, false, false);
    w->settings.proxy_from = TEXT("127.0.0.0/8");
    w->settings.relay_from = TEXT("127.0.0.0/8 192.0.2.0/24");
    listen_again(w, "?proxy");
}

static void
named(void)
{
    static struct world w;
    struct visitor v;
    open_world(&w);
    visit(&v, &w);
    pass(&w, 1000);
    ok_named(heard(&v).length == 0, "nothing is greeted before the header");
    is_number(listener_sessions(w.listener), 0, "there is no session yet");
    for (size_t i = 0; known[i] != '\0'; i++) {
        char one[2] = {known[i], '\0'};
        if (!answers(&v, one, known[i] == '\n' ? "220 mx.example.org" : ""))
            ok_named(false, "byte by byte");
    }
    ok(answers(&v, "EHLO c.example\r\n", "250 DSN"));
    ok(answers(&v, "MAIL FROM:<a@b.example>\r\n", "250"));
    ok_named(answers(&v, "RCPT TO:<x@elsewhere.example>\r\n", "250"),
             "the client that was named may relay");
    ok(answers(&v, "DATA\r\n", "354"));
    ok(answers_late(&v, "x\r\n.\r\n", "250 2.0.0"));
    static struct stored s;
    s = (struct stored){.world = &w};
    dialog_must(queue_each(manager_queue(w.manager), collect, &s) == 0, "list");
    is_number(s.count, 1, "a message");
    struct text trace = s.messages[0].envelope->prefix;
    ok_named(memmem(trace.at, trace.length, "[192.0.2.7]", 11) != NULL,
             "Received names the client");
    envelope_free(&s.messages[0].envelope);
    buffer_free(&s.messages[0].content);
    ok(logged(&w, "client=[192.0.2.7]") && !logged(&w, "127.0.0.1]"));
    leave(&v);
    visit(&v, &w);
    ok_named(answers(&v, far, "220"), "another client");
    ok(answers(&v, "HELO c.example\r\nMAIL FROM:<a@b.example>\r\n", "250"));
    ok_named(answers(&v, "RCPT TO:<x@elsewhere.example>\r\n", "554 5.7.1"),
             "is a stranger, though the proxy is none");
    leave(&v);
    visit(&v, &w);
    ok(answers(&v, "PROXY TCP6 2001:db8::7 2001:db8::1 1 25\r\n", "220"));
    ok(answers(&v, "HELP me\r\nXXXX\r\n", "500"));
    ok(logged(&w, "client=[IPv6:2001:db8::7]"));
    leave(&v);
    listener_world_end(&w);
}

TEST(in_one_piece)
{
    static struct world w;
    struct visitor v;
    char all[200];
    open_world(&w);
    visit(&v, &w);
    snprintf(all, sizeof(all), "%sEHLO c.example\r\nNOOP\r\nQUIT\r\n", known);
    ok_named(answers(&v, all, "221"), "commands behind the header are the client's");
    struct text t = buffer_text(&v.heard);
    ok(text_starts(t, TEXT("220 ")) && is_gone(&v));
    leave(&v);
    is_number(listener_sessions(w.listener), 0, "it is gone");
    visit(&v, &w);
    snprintf(all, sizeof(all), "%s%s", known, far);
    ok_named(answers(&v, all, "500 5.5.2"), "a second header is a bad command");
    leave(&v);
    listener_world_end(&w);
}

/* The client's key when the proxy names none. */
TEST(unnamed)
{
    static struct world w;
    struct visitor v;
    open_world(&w);
    visit(&v, &w);
    ssize_t sent = send(v.socket, local, sizeof(local) - 1, MSG_NOSIGNAL);
    ok(sent == 16 && answers(&v, "", "220"));
    ok(answers(&v, "HELO c.example\r\nMAIL FROM:<a@b.example>\r\n", "250"));
    ok_named(answers(&v, "RCPT TO:<x@elsewhere.example>\r\n", "250"),
             "LOCAL is the proxy, which may relay");
    leave(&v);
    visit(&v, &w);
    ok(answers(&v, "PROXY UNKNOWN\r\n", "220"));
    ok(answers(&v, "HELO c.example\r\nMAIL FROM:<a@b.example>\r\n", "250"));
    ok_named(answers(&v, "RCPT TO:<x@elsewhere.example>\r\n", "554 5.7.1"),
             "UNKNOWN is somebody, who may not");
    ok(answers(&v, "RCPT TO:<x@example.org>\r\n", "250"));
    listener_reload(w.listener, w.routes, &w.settings);
    ok(answers(&v, "RSET\r\nMAIL FROM:<a@b.example>\r\n", "250"));
    ok_named(answers(&v, "RCPT TO:<x@elsewhere.example>\r\n", "554 5.7.1"),
             "with new settings, too");
    leave(&v);
    listener_world_end(&w);
}

TEST(cut_off)
{
    static struct world w;
    struct visitor v;
    open_world(&w);
    visit(&v, &w);
    ok(answers(&v, "EHLO c.example\r\n", ""));
    ok_named(is_gone(&v), "without a header it is cut off without a word");
    ok(logged(&w, "cut off: client=[127.0.0.1]: proxy protocol: no valid header"));
    leave(&v);

    visit(&v, &w);
    ok(answers(&v, "PROXY TCP4 192.0.2.7", ""));
    pass(&w, PREGREET_HEADER_MS - 1);
    ok(answers(&v, " 198", "") && !is_gone(&v));
    pass(&w, 1);
    ok_named(is_gone(&v), "after five seconds, whatever came");
    ok(logged(&w, "proxy protocol: no header in time"));
    leave(&v);

    visit(&v, &w);
    ok(answers(&v, "PROXY TCP4", ""));
    leave(&v);
    settle(&w);
    ok(logged(&w, "proxy protocol: connection closed before the header"));

    w.settings.proxy_from = TEXT("10.0.0.0/8");
    listener_reload(w.listener, w.routes, &w.settings);
    visit(&v, &w);
    ok(answers(&v, known, ""));
    ok_named(is_gone(&v), "who is no proxy is cut off, too");
    ok(logged(&w, "cut off: client=[127.0.0.1]: proxy protocol: is not in proxy_from"));
    leave(&v);
    ok(!logged(&w, "refused="));
    listener_world_end(&w);
}

/* The checks of a load balancer, for instance. */
TEST(many_cut_off)
{
    static struct world w;
    struct visitor v;
    unsigned lines = 0;
    open_world(&w);
    for (int i = 0; i < REFUSALS_EACH_MAX + 5; i++) {
        visit(&v, &w);
        leave(&v);
        settle(&w);
    }
    for (size_t at = 0; at < w.lines.length; at++)
        lines += text_starts(text_after(buffer_text(&w.lines), at), TEXT("cut off: "));
    is_number(lines, REFUSALS_EACH_MAX, "no more lines than of other refusals");
    pass(&w, 1500);
    ok(logged(&w, "client=[127.0.0.1]: 5 more refusals in this second, not logged"));
    listener_world_end(&w);
}

static void
counted(void)
{
    static struct world w;
    struct visitor v[4];
    open_world(&w);
    w.settings.clients.sessions_per_client = 1;
    listener_reload(w.listener, w.routes, &w.settings);
    for (int i = 0; i < 4; i++)
        visit(&v[i], &w);
    ok(answers(&v[0], known, "220"));
    ok_named(answers(&v[1], known, "421 4.7.0 too many connections from your address"),
             "the client is counted");
    ok_named(answers(&v[2], far, "220"), "not the proxy");
    w.settings.clients.sessions = 1;
    listener_reload(w.listener, w.routes, &w.settings);
    leave(&v[1]);
    visit(&v[1], &w);
    settle(&w);
    ok_named(is_gone(&v[1]), "those without a name have a limit, too");
    ok(logged(&w, "too many connections without a header yet"));
    for (int i = 0; i < 4; i++)
        leave(&v[i]);
    settle(&w);
    is_number(listener_sessions(w.listener), 0, "all are gone");
    listener_world_end(&w);
}

/* --- Before the greeting ---------------------------------------------------------- */

static void
greeting(void)
{
    static struct world w;
    struct visitor v, early;
    listener_world_start(&w, &plain, false, false);
    w.settings.greet_delay_ms = 3000;
    listener_reload(w.listener, w.routes, &w.settings);
    visit(&v, &w);
    visit(&early, &w);
    pass(&w, 2999);
    ok_named(heard(&v).length == 0, "silence");
    ok(answers(&early, "EHLO c.example\r\n", "554 5.5.1 client sent data before the greeting"));
    ok(is_gone(&early));
    ok(logged(&w, "client sent data before the greeting"));
    pass(&w, 1);
    ok(text_starts(heard(&v), TEXT("220 ")));
    ok(answers(&v, "EHLO c.example\r\n", "250 DSN"));
    leave(&v);
    leave(&early);

    w.settings.clients.sessions_per_client = 1;
    listener_reload(w.listener, w.routes, &w.settings);
    settle(&w);
    visit(&early, &w);
    pass(&w, 1000);
    visit(&v, &w);
    ok_named(answers(&v, "", "421 4.7.0"), "who waits is counted");
    leave(&v);
    leave(&early);
    settle(&w);
    visit(&v, &w);
    pass(&w, 3000);
    ok_named(text_starts(heard(&v), TEXT("220 ")), "until it goes");
    leave(&v);

    w.settings.relay_from = TEXT("127.0.0.0/8");
    listener_reload(w.listener, w.routes, &w.settings);
    settle(&w);
    visit(&v, &w);
    ok_named(answers(&v, "", "220"), "who may relay does not wait");
    leave(&v);
    listener_world_end(&w);
}

static void
behind_a_header(void)
{
    static struct world w;
    struct visitor v;
    char all[200];
    open_world(&w);
    w.settings.greet_delay_ms = 3000;
    listener_reload(w.listener, w.routes, &w.settings);
    visit(&v, &w);
    snprintf(all, sizeof(all), "%sEHLO c.example\r\n", far);
    ok_named(answers(&v, all, "554 5.5.1"), "what stands behind the header is early");
    leave(&v);
    visit(&v, &w);
    ok(answers(&v, far, ""));
    pass(&w, 3000);
    ok(text_starts(heard(&v), TEXT("220 ")));
    leave(&v);
    visit(&v, &w);
    ok_named(answers(&v, known, "220"), "a client that may relay");
    leave(&v);
    visit(&v, &w);
    ok_named(answers(&v, "PROXY UNKNOWN\r\n", ""), "one without a name waits");
    leave(&v);
    listener_world_end(&w);
}

static void
leaving(void)
{
    static struct world w;
    struct visitor v, unnamed_one;
    open_world(&w);
    w.settings.greet_delay_ms = 3000;
    listener_reload(w.listener, w.routes, &w.settings);
    visit(&v, &w);
    visit(&unnamed_one, &w);
    ok(answers(&v, far, ""));
    listener_drain(w.listener, 60000, on_drained, &w);
    ok_named(answers(&v, "", "421 4.3.2"), "who waits hears that we leave");
    ok(is_gone(&v) && is_gone(&unnamed_one));
    ok_named(w.drained, "nobody is waited for");
    leave(&v);
    leave(&unnamed_one);
    listener_world_end(&w);
    listener_world_start(&w, &plain, false, false);
    w.settings.greet_delay_ms = 3000;
    listener_reload(w.listener, w.routes, &w.settings);
    visit(&v, &w);
    settle(&w);
    listener_free(&w.listener);
    ok_named(is_gone(&v), "at once, when it has to be");
    leave(&v);
    listener_world_end(&w);
}

int
main(void)
{
    named();
    tap_tests("");
    counted();
    greeting();
    behind_a_header();
    leaving();
    return done();
}
