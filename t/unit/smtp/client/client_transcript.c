/* The transcript of the client's machine: commands and replies, but nothing secret and no content. */
#include "smtp/client/client.h"

#include "base/memory.h"
#include "t/support/must.h"
#include "t/support/tap.h"
#include "smtp/client/transcript.h"

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

/* --- The transcript of a conversation --------------------------------------------- */

/* The transcript of a conversation: lines with their time, the last 2 KiB of them. */

static struct transcript kept;

static void
is_line(size_t *at, int64_t at_ms, enum transcript_who who, const char *text)
{
    struct transcript_line line = {0};
    ok_named(transcript_next(&kept, at, &line), "a line");
    ok(line.at_ms == at_ms && line.who == who);
    is_text(line.text, text_from(text), text);
}

static void
test_lines(void)
{
    size_t at = 0;
    struct transcript_line line;
    kept = (struct transcript){.begun_ms = 1000, .now_ms = 1000};
    ok_named(!transcript_next(&kept, &at, &line), "nothing yet");
    transcript_add(&kept, TRANSCRIPT_THEY, TEXT("220 hello"));
    kept.now_ms = 1025;
    transcript_add(&kept, TRANSCRIPT_WE, TEXT("EHLO me"));
    transcript_add(&kept, TRANSCRIPT_NOTE, TEXT(""));
    is_line(&at, 0, TRANSCRIPT_THEY, "220 hello");
    is_line(&at, 25, TRANSCRIPT_WE, "EHLO me");
    is_line(&at, 25, TRANSCRIPT_NOTE, "");
    ok_named(!transcript_next(&kept, &at, &line), "the end");
    ok_named(!kept.is_cut && !kept.failed, "whole");
    transcript_add(NULL, TRANSCRIPT_WE, TEXT("x"));
    ok_named(true, "nobody needs to want it");
}

static void
test_limits(void)
{
    static char long_line[5000];
    size_t at = 0, count = 0, bytes = 0;
    struct transcript_line line;
    memset(long_line, 'x', sizeof(long_line));
    kept = (struct transcript){.begun_ms = 0, .now_ms = INT64_MAX};
    transcript_add(&kept, TRANSCRIPT_WE, text_of(long_line, sizeof(long_line)));
    ok(transcript_next(&kept, &at, &line));
    is_number(line.text.length, TRANSCRIPT_LINE_MAX, "a long line is cut");
    ok_named(line.at_ms == UINT32_MAX, "a time that is too long is the longest");
    for (unsigned i = 0; i < 10000; i++)
        transcript_add(&kept, (enum transcript_who)(i % 3), text_of(long_line, i % 400));
    for (at = 0; transcript_next(&kept, &at, &line); count++)
        bytes += line.text.length;
    ok_named(kept.is_cut && count > 5 && bytes > TRANSCRIPT_MAX / 2 && bytes < TRANSCRIPT_MAX, "the last lines are kept");
    is_number(line.text.length, TRANSCRIPT_LINE_MAX, "the last one of all");
}

static void
transcript_tests(void)
{
    test_lines();
    test_limits();
}


int
main(void)
{
    buffer_init(&shown, 64 * 1024);
    tap_tests("");
    buffer_free(&shown);
    transcript_tests();
    return done();
}
