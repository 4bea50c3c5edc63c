/* The transcript of the client's machine: commands and replies, but nothing secret and no content. */
#include "smtp/client/client.h"

#include "base/memory.h"
#include "t/support/must.h"
#include "t/support/tap.h"

static const struct reply_outcome_peer peer = {"mx.example[192.0.2.1]", "mx.example[192.0.2.1]:25", 25};
static struct transcript t;
static struct buffer shown;

static struct client *
begin(const struct client_login *login)
{
    struct client_settings settings = {.hostname = "me.example", .peer = &peer, .timeout_scale = 1, .login = login, .transcript = &t};
    t = (struct transcript){0};
    return client_new(&settings);
}

/* Says it; the events are none of ours. */
static void
hear(struct client *c, const char *line)
{
    struct client_event event;
    struct text input = text_from(line);
    t.now_ms += 10;
    while (client_next(c, &input, &event))
        ;
    buffer_clear(client_output(c));
}

static void
is_shown(const char *want, const char *name)
{
    static const char marks[] = {[TRANSCRIPT_WE] = '>', [TRANSCRIPT_THEY] = '<', [TRANSCRIPT_NOTE] = '-'};
    struct transcript_line line;
    size_t at = 0;
    buffer_clear(&shown);
    while (transcript_next(&t, &at, &line))
        must(buffer_format(&shown, "%lld%c%.*s\n", (long long)line.at_ms, marks[line.who], TEXT_ARGS(line.text)));
    is_text(buffer_text(&shown), text_from(want), name);
}

TEST(login)
{
    struct client_login login = {.credentials = {.user = TEXT("joe"), .password = TEXT("hunter2")},
                                 .allowed = ~0u,
                                 .may_be_clear = true,
                                 .remedy = "relay_password",
                                 .nonce = "rOprNGfwEbeRWgbNEkqO"};
    struct client *c = begin(&login);
    hear(c, "220 hello\r\n");
    hear(c, "250-mx.example\r\n250 AUTH LOGIN\r\n");
    hear(c, "334 VXNlcm5hbWU6\r\n");
    hear(c, "334 hunter2 joe\r\n");
    ok_named(!t.failed, "nothing has failed");
    hear(c, "535 5.7.8 no, not with aHVudGVyMg== or hunter2\r\n");
    ok_named(t.failed, "it has failed");
    is_shown("10<220 hello\n10>EHLO me.example\n20<250 mx.example AUTH LOGIN\n20>AUTH ...\n30<334\n40<334\n"
             "50<535 5.7.8 no, not with ************ or *******\n"
             "50-the smarthost mx.example[192.0.2.1] refuses our user joe: 535 5.7.8 no, not with ************ or *******; check "
             "relay_password\n",
             "a login that is refused");
    client_free(&c);
    c = begin(&login);
    hear(c, "220 hello\r\n");
    hear(c, "250-mx.example\r\n250 AUTH PLAIN\r\n");
    hear(c, "235 2.7.0 welcome hunter2\r\n");
    is_shown("10<220 hello\n10>EHLO me.example\n20<250 mx.example AUTH PLAIN\n20>AUTH ...\n30<235 2.7.0\n",
             "one that succeeds: the code alone");
    ok_named(!t.failed, "it is no failure");
    client_free(&c);
}

TEST(ends)
{
    struct client *c = begin(NULL);
    struct client_event event;
    struct text nothing = TEXT("");
    hear(c, "220 hello\r\n");
    t.now_ms = 99;
    client_lost(c);
    while (client_next(c, &nothing, &event))
        ;
    ok_named(t.failed, "a conversation that is broken off");
    is_shown("10<220 hello\n10>EHLO me.example\n"
             "99-lost connection with mx.example[192.0.2.1] while sending EHLO\n",
             "says why");
    client_free(&c);
    c = begin(NULL);
    hear(c, "554 5.3.2 not\x1b[2J now\r\n");
    ok_named(t.failed, "a greeting that refuses");
    client_free(&c);
}

int
main(void)
{
    buffer_init(&shown, 64 * 1024);
    tap_tests("");
    buffer_free(&shown);
    return done();
}
