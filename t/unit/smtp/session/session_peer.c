/* smtp/session with clients that are our own hosts: their recognition, the checks that
 * XDEFRAG skips, and changes by settings; on real sockets in virtual time. */
/* link: t/sim/loop.c */
#include "queue/queue_operator.h"
#include "smtp/session/session.h"

#include "t/support/listener_virtual.h"

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static const struct server_rules plain = {.hostname = "mx.example.org",
                                          .size_limit = 10000000,
                                          .recipient_limit = 100,
                                          .hop_limit = 50,
                                          .error_limit = 20};
static const char peers[] = "other.example=127.0.0.1:25, third.example=192.0.2.7:25";
static const char normal[] = "MAIL FROM:<s@o.example>\r\n";
static const char fragment[] =
    "MAIL FROM:<s@o.example> XDEFRAG=" KEY ";0;1699990000\r\n";
static const char routed[] = "RCPT TO:<@mx.example.org:u@d.example>\r\n";

static void
open_world(struct world *w)
{
    world_start_among(w, &plain, false, false, peers);
}

/* They are replaced as a reload does. The manager goes on with the old ones. */
static struct route_table *
reload_peers(struct world *w, const char *list)
{
    struct route_table *old = w->routes;
    w->defrag_peers = text_from(list);
    make_routes(w);
    listener_reload(w->listener, w->routes, &w->settings);
    return old;
}

/* Whether XDEFRAG is listed. */
static bool
is_offered(struct visitor *v)
{
    tell(v, "EHLO host.example\r\n");
    struct text all = heard(v);
    bool greeted = memmem(all.at, all.length, "250 DSN\r\n", 9) != NULL;
    ok_named(greeted, "EHLO is answered");
    return memmem(all.at, all.length, "250-XDEFRAG\r\n", 13) != NULL;
}

static bool
sends(struct visitor *v, const char *mail)
{
    return answers(v, mail, "250 2.1.0") && answers(v, routed, "250 2.1.5") &&
           answers(v, "DATA\r\n", "354") &&
           answers_late(v, "Content-Type: message/partial\r\n\r\nx\r\n.\r\n",
                        "250 2.0.0");
}

static void
free_stored(struct stored *s)
{
    for (size_t i = 0; i < s->count; i++) {
        envelope_free(&s->messages[i].envelope);
        buffer_free(&s->messages[i].content);
    }
}

TEST(passes_on)
{
    static struct world w;
    static struct stored s;
    struct visitor v;
    open_world(&w);
    visit(&v, &w);
    ok(answers(&v, "", "220 "));
    ok_named(is_offered(&v), "one of our hosts");
    ok(answers(&v, normal, "250"));
    ok_named(answers(&v, routed, "554 5.7.1 relay access denied"),
             "other mail of it is anybody's");
    ok(answers(&v, "RSET\r\n", "250"));
    char mark[100], mail[160];
    int64_t hour_ago_s = loop_now_ms(w.loop) / 1000 - 3600;
    snprintf(mark, sizeof(mark), KEY ";0;%lld", (long long)hour_ago_s);
    snprintf(mail, sizeof(mail), "MAIL FROM:<s@o.example> XDEFRAG=%s\r\n", mark);
    ok_named(sends(&v, mail), "its fragments may go to anybody");
    ok(answers(&v, fragment, "250"));
    ok_named(
        answers(&v, "RCPT TO:<@mx.example.org:u@refused.example>\r\n", "550 5.7.1"),
        "but for our routes");
    ok(answers(&v, "QUIT\r\n", "221"));
    s = (struct stored){.world = &w};
    dialog_must(queue_each(manager_queue(w.manager), collect, &s) == 0, "list");
    is_number(s.count, 1, "a message");
    const struct envelope *e = s.messages[0].envelope;
    is_text(e->fragment.set_mark, text_from(mark), "its mark is kept");
    ok(e->fragment.by_peer && e->count == 1 && e->trust.length == 0);
    is_text(e->recipients[0].address, TEXT("u@d.example"), "its route is not");
    is_number(e->birth_ms, hour_ago_s * 1000, "it is as old as it was there");
    ok(logged(&w, "queued, fragment from a peer host"));
    free_stored(&s);
    leave(&v);
    listener_world_end(&w);
}

/* A clock that is years off: the fragment is born today. */
TEST(odd_clock)
{
    static struct world w;
    static struct stored s;
    struct visitor v;
    open_world(&w);
    int64_t now = loop_now_ms(w.loop);
    visit(&v, &w);
    ok(answers(&v, "EHLO host.example\r\n", "250 DSN"));
    ok(sends(&v, "MAIL FROM:<s@o.example> XDEFRAG=" KEY ";0;17\r\n"));
    ok(sends(&v, "MAIL FROM:<s@o.example> XDEFRAG=" KEY ";0;99999999999\r\n"));
    s = (struct stored){.world = &w};
    dialog_must(queue_each(manager_queue(w.manager), collect, &s) == 0, "list");
    is_number(s.count, 2, "two messages");
    for (size_t i = 0; i < s.count; i++)
        is_number(s.messages[i].envelope->birth_ms, now, "born now");
    free_stored(&s);
    leave(&v);
    listener_world_end(&w);
}

/* The rules for untrusted clients hold for their own mail, too. */
TEST(no_stranger)
{
    static struct world w;
    struct visitor v;
    open_world(&w);
    w.settings.sender_login = TEXT("user s@o.example");
    w.settings.check_sender = true;
    w.settings.clients.each[CLIENT_USAGE_MESSAGE] = TEXT("2/h,burst=2");
    w.settings.clients.each[CLIENT_USAGE_RECIPIENT] = TEXT("1/h,burst=1");
    w.settings.clients.each[CLIENT_USAGE_SESSION] = TEXT("1/h,burst=1");
    w.settings.greet_delay_ms = 5000;
    listener_reload(w.listener, w.routes, &w.settings);
    for (int i = 0; i < 3; i++) {
        visit(&v, &w);
        ok_named(answers(&v, "", "220 "), "no rate of sessions, greeted at once");
        ok(answers(&v, "EHLO host.example\r\n", "250 DSN"));
        ok_named(sends(&v, fragment), "no rate of messages, no sender_login");
        leave(&v);
    }
    visit(&v, &w);
    ok(answers(&v, "EHLO host.example\r\n", "250 DSN"));
    ok(answers(&v, normal, "553 5.7.1"));
    ok(answers(&v, "MAIL FROM:<t@o.example>\r\n", "250"));
    ok(answers(&v, "RCPT TO:<u@example.org>\r\n", "250"));
    ok_named(answers(&v, "RCPT TO:<v@example.org>\r\n", "450 4.7.1"),
             "a rate of recipients, of other mail");
    ok(answers(&v, "RSET\r\n", "250"));
    ok(answers(&v, "MAIL FROM:<t@o.example>\r\n", "250"));
    ok(answers(&v, "RSET\r\n", "250"));
    ok(answers(&v, "MAIL FROM:<t@o.example>\r\n", "450 4.7.1"));
    leave(&v);
    struct route_table *old = reload_peers(&w, "third.example=192.0.2.7:25");
    visit(&v, &w);
    ok_named(heard(&v).length == 0, "a stranger waits");
    pass(&w, 6000);
    ok(answers(&v, "EHLO host.example\r\n", "250 DSN"));
    leave(&v);
    settle(&w);
    visit(&v, &w);
    ok_named(answers(&v, "", "4"), "and comes at his rate");
    leave(&v);
    listener_world_end(&w);
    route_free(&old);
}

/* Between transactions. */
TEST(reloaded)
{
    static struct world w;
    struct visitor v;
    world_start_among(&w, &plain, false, false, "");
    visit(&v, &w);
    ok(answers(&v, "", "220 "));
    ok_named(!is_offered(&v), "there is no other host");
    ok(answers(&v, fragment, "555 5.5.4"));
    struct route_table *first = reload_peers(&w, peers);
    ok_named(is_offered(&v), "now it is one of them");
    ok(answers(&v, fragment, "250"));
    struct route_table *second = reload_peers(&w, "third.example=192.0.2.7:25");
    route_free(&second); /* what the session needs of it, it has */
    ok_named(answers(&v, routed, "250"), "what was begun goes on");
    ok(answers(&v, "DATA\r\n", "354"));
    ok(answers_late(&v, "Content-Type: message/partial\r\n\r\nx\r\n.\r\n",
                    "250 2.0.0"));
    ok_named(answers(&v, fragment, "555 5.5.4"), "and then it is none any more");
    ok(!is_offered(&v));
    leave(&v);
    settle(&w);
    listener_world_end(&w);
    route_free(&first);
}

/* Settings that are refused: the old ones stay, but the peers are known by the routes.
 */
TEST(half_reloaded)
{
    static struct world w;
    struct visitor v;
    open_world(&w);
    visit(&v, &w);
    ok(answers(&v, "", "220 ") && is_offered(&v));
    w.settings.etrn = TEXT("[");
    struct route_table *old = reload_peers(&w, "");
    ok(logged(&w, "old settings stay"));
    ok(!is_offered(&v));
    leave(&v);
    settle(&w);
    listener_world_end(&w);
    route_free(&old);
}

/* It is the client whom a proxy names that counts. */
TEST(by_proxy)
{
    static struct world w;
    struct visitor v;
    open_world(&w);
    w.settings.proxy_from = TEXT("127.0.0.0/8");
    listen_again(&w, "?proxy");
    visit(&v, &w);
    ok(answers(&v, "PROXY TCP4 192.0.2.7 198.51.100.1 40000 25\r\n", "220"));
    ok_named(is_offered(&v), "one of our hosts by a proxy");
    leave(&v);
    visit(&v, &w);
    ok(answers(&v, "PROXY TCP4 192.0.2.8 198.51.100.1 40000 25\r\n", "220"));
    ok_named(!is_offered(&v), "a stranger by a proxy that is one");
    leave(&v);
    visit(&v, &w);
    ok(answers(&v, "PROXY UNKNOWN\r\n", "220"));
    ok_named(!is_offered(&v), "somebody by a proxy that is one");
    leave(&v);
    listener_world_end(&w);
}

TEST(by_lmtp)
{
    static struct world w;
    struct visitor v;
    world_start_among(&w, &plain, true, false, peers);
    visit(&v, &w);
    ok(answers(&v, "", "220"));
    tell(&v, "LHLO host.example\r\n");
    struct text all = heard(&v);
    ok(memmem(all.at, all.length, "250 DSN\r\n", 9) != NULL &&
       memmem(all.at, all.length, "XDEFRAG", 7) == NULL);
    ok(answers(&v, fragment, "555 5.5.4"));
    leave(&v);
    listener_world_end(&w);
}
