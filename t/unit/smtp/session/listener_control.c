/* smtp/listener: rates, late answers, slow clients and untrusted clients that lie, on
 * real sockets in virtual time. */
/* link: t/sim/loop.c */
#include "smtp/session/listener.h"

#include "t/support/listener_virtual.h"

static const struct server_rules plain = {.hostname = "mx.example.org",
                                          .size_limit = 10000000,
                                          .recipient_limit = 100,
                                          .hop_limit = 50,
                                          .error_limit = 20,
                                          .soft_error_limit = 3,
                                          .error_delay_ms = 1000};

static void
reload(struct world *w)
{
    listener_reload(w->listener, w->routes, &w->settings);
}

/* --- Rates ------------------------------------------------------------------------ */

TEST(session_rate)
{
    static struct world w;
    struct visitor v[4];
    listener_world_start(&w, &plain, false, false);
    w.settings.clients.each[CLIENT_USAGE_SESSION] = TEXT("6/m,burst=2");
    reload(&w);
    for (int i = 0; i < 3; i++)
        visit(&v[i], &w);
    ok(answers(&v[0], "", "220") && answers(&v[1], "", "220"));
    ok(answers(&v[2], "",
               "421 4.7.0 too many connections from your address, try again in 10 s"));
    ok(is_gone(&v[2]));
    ok_named(logged(&w, "client=[127.0.0.1]") && logged(&w, "try again in 10 s"),
             "reason and client are in the log");
    pass(&w, 10000);
    visit(&v[3], &w);
    ok_named(answers(&v[3], "", "220"), "ten seconds later");
    for (int i = 0; i < 4; i++)
        leave(&v[i]);
    w.settings.clients.exempt = TEXT("127.0.0.0/8");
    reload(&w);
    for (int i = 0; i < 4; i++) {
        visit(&v[i], &w);
        ok_named(answers(&v[i], "", "220"), "exempt");
    }
    for (int i = 0; i < 4; i++)
        leave(&v[i]);
    listener_world_end(&w);
}

TEST(mail_rates)
{
    static struct world w;
    struct visitor v;
    listener_world_start(&w, &plain, false, false);
    w.settings.clients.each[CLIENT_USAGE_MESSAGE] = TEXT("2/m,burst=2");
    w.settings.clients.all[CLIENT_USAGE_RECIPIENT] = TEXT("60/m,burst=3");
    reload(&w);
    visit(&v, &w);
    ok(answers(&v, "HELO c.example\r\nMAIL FROM:<a@b.example>\r\n", "250"));
    for (int i = 0; i < 3; i++) {
        char rcpt[64];
        snprintf(rcpt, sizeof(rcpt), "RCPT TO:<u%d@example.org>\r\n", i);
        ok(answers(&v, rcpt, "250"));
    }
    ok(answers(&v, "RCPT TO:<u3@example.org>\r\n",
               "450 4.7.1 too many recipients, try again in 1 s"));
    ok_named(answers(&v, "RCPT TO:<u2@example.org>\r\n", "250"),
             "one that is there already costs nothing");
    pass(&w, 1000);
    ok(answers(&v, "RCPT TO:<u3@example.org>\r\n", "250"));
    ok(answers(&v, "RSET\r\nMAIL FROM:<a@b.example>\r\n", "250"));
    ok(answers(&v, "RSET\r\nMAIL FROM:<a@b.example>\r\n",
               "450 4.7.1 too many messages from your address, try again in"));
    ok_named(answers(&v, "RCPT TO:<u@example.org>\r\n", "503"),
             "there is no transaction then");
    pass(&w, 30000);
    ok(answers(&v, "MAIL FROM:<a@b.example>\r\n", "250"));
    leave(&v);
    listener_world_end(&w);
}

/* --- Errors ----------------------------------------------------------------------- */

TEST(late_answers)
{
    static struct world w;
    struct visitor v, other;
    listener_world_start(&w, &plain, false, true);
    visit(&v, &w);
    visit(&other, &w);
    ok(answers(&v, "XXXX\r\nXXXX\r\nXXXX\r\n", "500"));
    ok_named(answers(&v, "XXXX\r\nNOOP\r\n", ""), "the fourth is answered later");
    pass(&w, 999);
    ok(answers(&v, "", ""));
    ok_named(answers(&other, "NOOP\r\n", "250"), "nobody else waits");
    pass(&w, 1);
    ok_named(text_equal(heard(&v), TEXT("500 5.5.2 command not recognized\r\n"
                                        "250 2.0.0 Ok\r\n")),
             "then what came meanwhile is read");
    ok(answers(&v, "XXXX\r\nXXXX\r\nNOOP\r\n", ""));
    pass(&w, 2000);
    ok(text_equal(heard(&v), TEXT("500 5.5.2 command not recognized\r\n")));
    pass(&w, 2999);
    ok_named(answers(&v, "", ""), "each costs more than the one before");
    pass(&w, 1);
    ok(answers(&v, "", "250"));
    /* 7 s to 17 s for the others, then it is enough. */
    for (int i = 0; i < 15; i++)
        tell(&v, "XXXX\r\n");
    int64_t waited_s = 0;
    while (!is_gone(&v) && waited_s < 400) {
        pass(&w, 1000);
        waited_s++;
        heard(&v);
    }
    struct text all = text_trim(buffer_text(&v.heard));
    size_t last = text_find_last(all, '\n');
    ok(text_starts(text_after(all, last + 1), TEXT("421 4.7.0 too many errors")));
    is_number(waited_s, 4 + 5 + 6 + 7 + 8 + 9 + 10 + 11 + 12 + 13 + 14 + 15 + 16 + 17,
              "seconds for the junk of a pipeline");
    leave(&v);
    leave(&other);
    listener_world_end(&w);
}

TEST(harvest)
{
    static struct world w;
    struct visitor v;
    listener_world_start(&w, &plain, false, false);
    visit(&v, &w);
    ok(answers(&v, "HELO c.example\r\nMAIL FROM:<a@b.example>\r\n", "250"));
    for (int i = 0; i < 3; i++)
        ok(answers(&v, "RCPT TO:<guess@elsewhere.example>\r\n", "554 5.7.1"));
    ok_named(answers(&v, "RCPT TO:<guess@elsewhere.example>\r\n", ""),
             "a stranger's guesses are errors");
    pass(&w, 1000);
    ok(answers(&v, "", "554 5.7.1") &&
       answers(&v, "RCPT TO:<u@example.org>\r\n", "250"));
    ok(answers(&v, "DATA\r\n", "354"));
    ok(answers_late(&v, "x\r\n.\r\n", "250 2.0.0"));
    ok_named(answers(&v, "XXXX\r\n", "500"), "a message wipes them out");
    leave(&v);

    w.settings.relay_from = TEXT("127.0.0.0/8");
    reload(&w);
    visit(&v, &w);
    ok(answers(&v, "HELO c.example\r\nMAIL FROM:<a@b.example>\r\n", "250"));
    for (int i = 0; i < 30; i++)
        if (!answers(&v, "RCPT TO:<u@refused.example>\r\n", "550 5.7.1"))
            ok_named(false, "who may relay does not guess");
    leave(&v);
    listener_world_end(&w);
}

/* Only error replies to an address: each is late, from the first one on. */
TEST(probing)
{
    static struct world w;
    struct visitor v;
    int known = 0;
    int64_t waited_s = 0;
    listener_world_start(&w, &plain, false, false);
    w.settings.sender_login = TEXT("user user@example.org");
    w.settings.soft_error_limit = 10;
    reload(&w);
    visit(&v, &w);
    ok(answers(&v, "HELO c.example\r\nMAIL FROM:<a@b.example>\r\n", "250"));
    ok_named(answers(&v, "RSET\r\nMAIL FROM:<user@example.org>\r\n", "250 2.0.0 Ok"),
             "the refusal is not said at once");
    while (!is_gone(&v) && waited_s < 1000) {
        struct text told = heard(&v);
        if (text_starts(told, TEXT("553 5.7.1"))) {
            known++;
            tell(&v, "MAIL FROM:<user@example.org>\r\n");
        }
        pass(&w, 1000);
        waited_s++;
    }
    is_number(known, plain.error_limit, "what one session can learn");
    ok_named(waited_s >= 20 * 21 / 2, "and it takes minutes");
    leave(&v);
    listener_world_end(&w);
}

TEST(while_it_waits)
{
    static struct world w;
    struct visitor v;
    listener_world_start(&w, &plain, false, true);
    w.settings.idle_timeout_ms = 1000;
    w.settings.error_delay_ms = 30000;
    reload(&w);
    visit(&v, &w);
    ok(answers(&v, "XXXX\r\nXXXX\r\nXXXX\r\nXXXX\r\n", "500"));
    pass(&w, 29999);
    ok_named(answers(&v, "", "") && !v.closed, "our delay is not its silence");
    pass(&w, 1);
    ok(answers(&v, "", "500"));
    pass(&w, 1000);
    ok(answers(&v, "", "421 4.4.2") && is_gone(&v));
    leave(&v);
    visit(&v, &w);
    ok(answers(&v, "XXXX\r\nXXXX\r\nXXXX\r\nXXXX\r\n", "500"));
    listener_drain(w.listener, 60000, on_drained, &w);
    ok_named(text_equal(heard(&v), TEXT("500 5.5.2 command not recognized\r\n"
                                        "421 4.3.2 shutting down, try again later\r\n")),
             "who leaves does not wait");
    ok(is_gone(&v));
    leave(&v);
    listener_world_end(&w);
    listener_world_start(&w, &plain, false, true);
    visit(&v, &w);
    ok(answers(&v, "XXXX\r\nXXXX\r\nXXXX\r\nXXXX\r\n", "500"));
    leave(&v);
    pass(&w, 2000);
    is_number(listener_sessions(w.listener), 0, "who goes meanwhile is gone after it");
    visit(&v, &w);
    ok(answers(&v, "XXXX\r\nXXXX\r\nXXXX\r\nXXXX\r\n", "500"));
    listener_free(&w.listener);
    ok(is_gone(&v));
    leave(&v);
    listener_world_end(&w);
}

static void
junk(void)
{
    static struct world w;
    struct visitor v;
    listener_world_start(&w, &plain, false, false);
    w.settings.junk_limit = 10;
    reload(&w);
    visit(&v, &w);
    ok(answers(&v, "HELO c.example\r\n", "250"));
    for (int i = 0; i < 12; i++)
        if (!answers(&v, i % 2 == 0 ? "NOOP\r\n" : "RSET\r\n", "250"))
            ok_named(false, "ten are free, and three errors are");
    ok_named(answers(&v, "NOOP\r\n", ""), "then junk is answered late");
    pass(&w, 1000);
    ok(answers(&v, "", "250"));
    for (int i = 0; i < 17 && !v.closed; i++) {
        tell(&v, "NOOP\r\n");
        pass(&w, 30000);
    }
    struct text all = heard(&v);
    ok(memmem(all.at, all.length, "421 4.7.0 too many errors", 25) != NULL);
    ok(is_gone(&v));
    leave(&v);
    listener_world_end(&w);
    listener_world_start(&w, &plain, false, true);
    w.settings.junk_limit = 10;
    reload(&w);
    visit(&v, &w);
    for (int i = 0; i < 100; i++)
        if (!answers(&v, "NOOP\r\n", "250"))
            ok_named(false, "who may relay keeps its connection as it likes");
    leave(&v);
    listener_world_end(&w);
}

/* --- Slow ones -------------------------------------------------------------------- */

static void
slow(struct world *w)
{
    w->settings.idle_timeout_ms = 300000;
    w->settings.data_timeout_ms = 180000;
    w->settings.data_rate_min = 50;
    reload(w);
}

/* Seconds until it is cut off, saying what every second. */
static int
seconds(struct visitor *v, const char *what, int at_most)
{
    for (int i = 0; i < at_most; i++) {
        if (is_gone(v))
            return i;
        tell(v, what);
        sim_loop_advance(v->world->loop, 1000);
        heard(v);
    }
    return at_most;
}

static void
slow_commands(void)
{
    static struct world w;
    struct visitor v;
    listener_world_start(&w, &plain, false, true);
    slow(&w);
    visit(&v, &w);
    ok(answers(&v, "", "220"));
    int lasted = seconds(&v, "X", 1000);
    printf("# a byte a second: %d s\n", lasted);
    ok_named(lasted >= 299 && lasted <= 302, "a command has 300 s");
    ok(logged(&w, "421 4.4.2"));
    leave(&v);
    visit(&v, &w);
    ok(answers(&v, "", "220"));
    is_number(seconds(&v, "NOOP\r\n", 450), 450, "whole commands prolong it");
    leave(&v);
    listener_world_end(&w);
}

static void
slow_content(void)
{
    static struct world w;
    struct visitor v;
    static const char begin[] =
        "HELO c.example\r\nMAIL FROM:<>\r\nRCPT TO:<u@example.org>\r\nDATA\r\n";
    listener_world_start(&w, &plain, false, true);
    slow(&w);
    visit(&v, &w);
    ok(answers(&v, begin, "354"));
    int lasted = seconds(&v, "x", 1000);
    printf("# a byte of content a second: %d s\n", lasted);
    ok_named(lasted >= 359 && lasted <= 362, "twice the time-out");
    leave(&v);
    visit(&v, &w);
    ok(answers(&v, begin, "354"));
    is_number(seconds(&v,
                      "a line of sixty bytes is what a very slow modem sends..\r\n"
                      "..\r\n",
                      600),
              600, "sixty bytes a second are enough");
    ok(answers_late(&v, ".\r\n", "250"));
    w.settings.data_timeout_ms = 20000;
    reload(&w);
    ok(answers(&v, begin, "354"));
    lasted = seconds(&v, "x", 1000);
    printf("# of a shorter time-out: %d s\n", lasted);
    ok_named(lasted >= 39 && lasted <= 42, "however long a command may take");
    w.settings.data_rate_min = 0;
    reload(&w);
    leave(&v);
    visit(&v, &w);
    ok(answers(&v, begin, "354"));
    is_number(seconds(&v, "x", 500), 500, "0: any rate");
    leave(&v);
    listener_world_end(&w);
}

/* --- Input of untrusted clients --------------------------------------------------- */

static void
strangers(void)
{
    static struct world w;
    struct visitor v;
    listener_world_start(&w, &plain, false, false);
    w.settings.check_helo = w.settings.check_sender = true;
    w.settings.soft_error_limit = 20;
    reload(&w);
    visit(&v, &w);
    ok(answers(&v, "HELO mx.example.org\r\n", "250"));
    ok(answers(&v, "MAIL FROM:<a@b.example>\r\n", "550 5.7.1 HELO names this host"));
    ok(logged(&w, "HELO names this host"));
    ok(answers(&v, "HELO [127.0.0.1]\r\nMAIL FROM:<a@b.example>\r\n", "550 5.7.1"));
    ok(answers(&v, "HELO pc\r\nMAIL FROM:<a@b.example>\r\n", "550 5.7.1 HELO is"));
    ok(answers(&v, "HELO c.example\r\nMAIL FROM:<a@pc>\r\n", "550 5.1.8"));
    ok(answers(&v, "MAIL FROM:<>\r\nRCPT TO:<u@example.org>\r\n", "250"));
    ok(answers(&v, "RCPT TO:<u2@example.org>\r\n", "452 4.5.3 one recipient"));
    ok_named(answers(&v, "RCPT TO:<u@example.org>\r\n", "250"), "the same again");
    leave(&v);
    w.settings.relay_from = TEXT("127.0.0.0/8");
    reload(&w);
    visit(&v, &w);
    ok_named(answers(&v, "HELO pc\r\nMAIL FROM:<a@pc>\r\n", "250"),
             "who may relay is not asked");
    ok(answers(&v, "RSET\r\nMAIL FROM:<>\r\nRCPT TO:<u@x.example>\r\n", "250"));
    ok(answers(&v, "RCPT TO:<u2@x.example>\r\n", "250"));
    leave(&v);
    w.settings.relay_from = TEXT("");
    listen_again(&w, "?lmtp");
    visit(&v, &w);
    ok_named(answers(&v, "LHLO pc\r\nMAIL FROM:<a@pc>\r\n", "250"), "nor is LMTP");
    for (int i = 0; i < 30; i++)
        if (!answers(&v, "RCPT TO:<u@elsewhere.example>\r\n", "554 5.7.1"))
            ok_named(false, "which does not guess");
    leave(&v);
    listener_world_end(&w);
}

int
main(void)
{
    tap_tests("");
    junk();
    slow_commands();
    slow_content();
    strangers();
    return done();
}
