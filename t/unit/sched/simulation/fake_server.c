/* Pretended servers: limits, what is over them, odds, rates, delays. */
#include "t/simulation/fake_server.h"

#include "t/support/tap.h"

#define NOW INT64_C(1700000000000)

static struct fake_server
receiver_with(const char *options, uint64_t *random)
{
    struct fake_server r = {.random = random};
    struct text rest = text_from(options), option;
    struct buffer problem;
    buffer_init(&problem, 1024);
    while (text_word(&rest, " ", &option))
        ok_named(fake_server_option(&r.settings, option, &problem), options);
    buffer_free(&problem);
    return r;
}

TEST(limit)
{
    static const struct {
        const char *options;
        enum reception reception;
    } over[] = {
        {"sessions=2 over=421",     RECEPTION_421       },
        {"sessions=2 over=rst",     RECEPTION_RESET     },
        {"sessions=2 over=refuse",  RECEPTION_REFUSED   },
        {"sessions=2 over=silent",  RECEPTION_UNGREETED },
        {"sessions=2 over=queue:0", RECEPTION_UNANSWERED},
    };
    uint64_t random = 1;
    for (size_t i = 0; i < sizeof(over) / sizeof(*over); i++) {
        struct fake_server r = receiver_with(over[i].options, &random);
        is_number(fake_server_connect(&r), RECEPTION_SESSION, "the first");
        is_number(fake_server_connect(&r), RECEPTION_SESSION, "the second");
        is_number(fake_server_connect(&r), over[i].reception, "the third");
        ok(!fake_server_left(&r));
        is_number(fake_server_connect(&r), RECEPTION_SESSION, "there is room again");
        is_number(r.peak_sessions, 2, "never more");
    }
    struct fake_server r = receiver_with("sessions=0", &random);
    for (int i = 0; i < 1000; i++)
        (void)fake_server_connect(&r);
    is_number(r.sessions, 1000, "no limit");
}

TEST(queue)
{
    uint64_t random = 1;
    struct fake_server r = receiver_with("sessions=1 over=queue:2", &random);
    is_number(fake_server_connect(&r), RECEPTION_SESSION, "served");
    is_number(fake_server_connect(&r), RECEPTION_QUEUED, "one waits");
    is_number(fake_server_connect(&r), RECEPTION_QUEUED, "two wait");
    is_number(fake_server_connect(&r), RECEPTION_UNANSWERED, "no third");
    fake_server_gave_up(&r);
    is_number(fake_server_connect(&r), RECEPTION_QUEUED, "one gave up");
    ok(fake_server_left(&r));
    ok(fake_server_left(&r));
    ok(!fake_server_left(&r));
    is_number(r.sessions, 0, "all have been served");
    is_number(r.waiting, 0, "none waits");
}

TEST(state)
{
    uint64_t random = 1;
    struct fake_server r = receiver_with("down", &random);
    is_number(fake_server_connect(&r), RECEPTION_REFUSED, "down");
    r = receiver_with("silent", &random);
    is_number(fake_server_connect(&r), RECEPTION_UNANSWERED, "silent");
    r = receiver_with("down up", &random);
    is_number(fake_server_connect(&r), RECEPTION_SESSION, "up again");
}

TEST(odds)
{
    uint64_t random = 1;
    struct fake_server r = receiver_with("fail=1/4", &random);
    for (int i = 0; i < 12; i++)
        is_number(fake_server_connect(&r) == RECEPTION_421, i % 4 == 3, "every fourth");
    r = receiver_with("fail=1/4,random", &random);
    int failed = 0;
    for (int i = 0; i < 10000; i++)
        failed += fake_server_connect(&r) == RECEPTION_421;
    ok_named(failed > 2300 && failed < 2700, "a fourth, at random");
    r = receiver_with("tempfail=1/2 reject=2/2", &random);
    is_number(fake_server_begin(&r, NOW), RECEIPT_REJECT, "rejected");
    is_number(fake_server_begin(&r, NOW), RECEIPT_TEMPFAIL, "or not yet");
    r = receiver_with("", &random);
    is_number(fake_server_begin(&r, NOW), RECEIPT_TAKEN, "taken");
}

TEST(rate)
{
    uint64_t random = 1;
    struct fake_server r = receiver_with("rate=10/s,burst=2", &random);
    int taken = 0;
    for (int i = 0; i < 10000; i++)
        taken += fake_server_begin(&r, NOW + i) == RECEIPT_TAKEN;
    ok_named(taken >= 100 && taken <= 102, "ten a second, and two at first");
}

TEST(delays)
{
    uint64_t random = 1;
    struct fake_server r = receiver_with("delay.rcpt=1s delay.message=2s", &random);
    int64_t reply_us;
    is_number(fake_server_service_us(&r, 3, &reply_us), 5000000,
              "each recipient, and the message");
    is_number(reply_us, 2000000, "which is answered after its content");
    r = receiver_with("delay.rcpt=1s delay.jitter=10%", &random);
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < 1000; i++) {
        int64_t us = fake_server_service_us(&r, 1, &reply_us);
        least = us < least ? us : least;
        most = us > most ? us : most;
    }
    ok(least >= 900000 && least < 910000 && most <= 1100000 && most > 1090000);
}

TEST(problem)
{
    struct fake_server_settings s = {.sessions = 3};
    FIXTURE(buffer, problem, buffer_init, buffer_free, 1024);
    ok(!fake_server_option(&s, TEXT("sessions=-1"), &problem));
    is_text(buffer_text(&problem),
            TEXT("'sessions=-1': sessions needs a number; 0 = no limit"),
            "what is right");
    is_number(s.sessions, 3, "nothing has changed");
}
