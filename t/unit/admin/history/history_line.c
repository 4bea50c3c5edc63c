/* The grammar of the history's lines: lines of the log are read back, with any text of a peer. */
#include "admin/history/history_line.h"
#include "base/buffer.h"
#include "base/log/log.h"
#include "base/event/event_log.h"
#include "t/sim/sim.h"
#include "t/support/tap.h"
/* link: t/sim/loop.c */

#include <string.h>

static char written[LOG_LINE_MAX + 1];

static void
take(void *context, struct text line)
{
    (void)context;
    text_copy(written, sizeof(written), text_without_line_end(line));
}

static struct history_line
write_event(struct loop *loop, const struct event *event)
{
    struct log *log = log_new_apart(loop, take, NULL);
    struct history_line line = {0};
    event_log_history(log, event);
    log_free(&log);
    ok_named(history_line_read(text_from(written), &line), written);
    return line;
}

static void
is_value(const struct history_line *line, const char *key, const char *want)
{
    is_text(history_line_value(line, key), text_from(want), key[0] != '\0' ? key : "remark");
}

static void
test_time(void)
{
    is_number(history_line_time(TEXT("1970-01-01T00:00:00.000Z")), 0, "the epoch");
    is_number(history_line_time(TEXT("2026-11-22T12:06:15.184Z")), 1795349175184, "a time");
    is_number(history_line_time(TEXT("2024-02-29T23:59:59.999Z")), 1709251199999, "a leap day");
    is_number(history_line_time(TEXT("2000-03-01T00:00:00.000Z")), 951868800000, "a leap century");
    static const char *const bad[] = {"",
                                      "2026-11-22T12:06:15.184",
                                      "2026-11-22 12:06:15.184Z",
                                      "2026-13-22T12:06:15.184Z",
                                      "2026-00-22T12:06:15.184Z",
                                      "2026-11-32T12:06:15.184Z",
                                      "2026-11-22T24:06:15.184Z",
                                      "2026-11-22T12:60:15.184Z",
                                      "2026-11-22T12:06:61.184Z",
                                      "2026-11-22T12:06:15.18xZ",
                                      "1969-11-22T12:06:15.184Z",
                                      "+026-11-22T12:06:15.184Z"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ok_named(history_line_time(text_from(bad[i])) == -1, bad[i]);
}

/* A bracket that a client opens hides what follows it from nobody. */
static void
test_open_bracket(struct loop *loop)
{
    static char sender[2000];
    memset(sender, 'a', sizeof(sender));
    struct event_client client = {.name = "[192.0.2.7]", .helo = "<a", .user = "<b", .protocol = "ESMTP", .uid = EVENT_NO_UID};
    struct event event = {.kind = EVENT_ACCEPTED,
                          .id = {.time_ms = 1795349175184, .hash = 5},
                          .client = &client,
                          .sender = text_of(sender, sizeof(sender)),
                          .message_id = TEXT("<abc"),
                          .recipients = 1,
                          .text = TEXT("queued for <c>")};
    struct history_line line = write_event(loop, &event);
    is_value(&line, "helo", "\\x3ca");
    is_value(&line, "sasl_username", "\\x3cb");
    is_number(history_line_value(&line, "from").length, 1025, "a sender that is cut");
    is_value(&line, "nrcpt", "1");
    is_value(&line, "message_id", "\\x3cabc");
    is_value(&line, "", "queued for <c>");
}

static void
test_accepted(struct loop *loop)
{
    struct event_client client = {.name = "[192.0.2.7]",
                                  .helo = "app (x), client=[192.0.2.8], y",
                                  .user = "alice",
                                  .mechanism = "PLAIN",
                                  .protocol = "ESMTPSA",
                                  .tls = "TLSv1.3 with cipher TLS_AES_256_GCM_SHA384 (256/256 bits)",
                                  .uid = EVENT_NO_UID};
    struct event event = {.kind = EVENT_ACCEPTED,
                          .id = {.time_ms = 1795349175184, .hash = 5},
                          .client = &client,
                          .sender = TEXT("\"a, b (c\"@x.example"),
                          .message_id = TEXT("<abc@x.example>"),
                          .size = 220,
                          .recipients = 1,
                          .text = TEXT("queued")};
    struct history_line line = write_event(loop, &event);
    is_text(line.event, TEXT("accepted"), "the kind");
    is_text(line.program, TEXT("smtpd"), "the program");
    is_number(line.time_ms, SIM_WALL_START_MS, "the time");
    ok(id_compare(line.id, event.id) == 0);
    is_value(&line, "client", "[192.0.2.7]");
    is_value(&line, "helo", "app\\x20(x)\\x2c client=[192.0.2.8]\\x2c y");
    is_value(&line, "from", "<\"a, b (c\"@x.example>");
    is_value(&line, "tls", "TLSv1.3");
    is_value(&line, "sasl_username", "alice");
    is_value(&line, "message_id", "<abc@x.example>");
    is_value(&line, "size", "220");
    is_value(&line, "", "queued");
    is_value(&line, "none", "");
    event.message_id = TEXT("");
    line = write_event(loop, &event);
    is_value(&line, "message_id", "");
    is_value(&line, "sasl_username", "alice");
    is_value(&line, "", "queued");
    event.message_id = TEXT("a> (b>@x, from=<c@d>");
    line = write_event(loop, &event);
    is_value(&line, "message_id", "<a>\\x20(b>@x\\x2c from=<c@d>>");
    is_value(&line, "from", "<\"a, b (c\"@x.example>");
}

static void
test_others(struct loop *loop)
{
    struct outcome outcome = {.verdict = VERDICT_FAILED, .code = 550};
    text_copy(outcome.enhanced, sizeof(outcome.enhanced), TEXT("5.1.1"));
    text_copy(outcome.remote, sizeof(outcome.remote), TEXT("mx.x.example[192.0.2.9]:25"));
    text_copy(outcome.text, sizeof(outcome.text),
              TEXT("host mx said: 550 5.1.1 (a), status=sent (b) (in reply to RCPT TO command)"));
    struct event event = {.kind = EVENT_BOUNCED,
                          .program = "smtp",
                          .id = {.time_ms = 1795349175184, .hash = 5},
                          .recipient = TEXT("b@y.example"),
                          .tls = TEXT("TLSv1.2 with cipher X (128/128 bits)"),
                          .reason = "no_user",
                          .outcome = &outcome};
    struct history_line line = write_event(loop, &event);
    is_value(&line, "to", "<b@y.example>");
    is_value(&line, "relay", "mx.x.example[192.0.2.9]:25");
    is_value(&line, "tls", "TLSv1.2");
    is_value(&line, "class", "no_user");
    is_value(&line, "status", "bounced");
    is_value(&line, "", "host mx said: 550 5.1.1 (a)\\x2c status=sent (b) (in reply to RCPT TO command)");
    event = (struct event){.kind = EVENT_NOTIFIED,
                           .id = event.id,
                           .other = {.time_ms = 1795349175185, .hash = 6},
                           .recipient = TEXT("a@x.example"),
                           .reason = "failure",
                           .text = TEXT("sender non-delivery notification")};
    line = write_event(loop, &event);
    is_value(&line, "other", "01M81JCPWH-00000006");
    is_value(&line, "of", "failure");
    is_value(&line, "to", "<a@x.example>");
    is_value(&line, "", "sender non-delivery notification");
    event = (struct event){.kind = EVENT_ENDED, .id = event.id};
    line = write_event(loop, &event);
    is_text(line.fields, TEXT("event=ended"), "ended: no more");
    event = (struct event){
        .kind = EVENT_TROUBLE, .program = "main", .command = TEXT("disk_full"), .text = TEXT("a, b (c), d")};
    line = write_event(loop, &event);
    ok(line.id.time_ms == 0);
    ok_named(strstr(written, "warning") == NULL, "no mark of a level");
    is_value(&line, "code", "disk_full");
    is_value(&line, "", "a\\x2c b (c)\\x2c d");
}

static void
test_refused(struct loop *loop)
{
    struct outcome outcome = {.verdict = VERDICT_FAILED, .code = 554};
    struct event_client client = {.name = "[IPv6:2001:db8::1]", .helo = "", .uid = 1000};
    text_copy(outcome.enhanced, sizeof(outcome.enhanced), TEXT("5.7.1"));
    text_copy(outcome.text, sizeof(outcome.text), TEXT("relay access denied"));
    struct event event = {.kind = EVENT_REFUSED,
                          .client = &client,
                          .command = TEXT("RCPT TO:<x> (y), to=<z@z>"),
                          .sender = TEXT(""),
                          .recipient = TEXT("n@example.com"),
                          .outcome = &outcome};
    struct history_line line = write_event(loop, &event);
    ok(line.id.time_ms == 0);
    is_value(&line, "refused", "554 5.7.1");
    is_value(&line, "client", "[IPv6:2001:db8::1]");
    is_value(&line, "from", "<>");
    is_value(&line, "to", "<n@example.com>");
    is_value(&line, "command", "RCPT TO:<x>\\x20(y)\\x2c to=<z@z>");
    is_value(&line, "", "relay access denied");
}

static void
test_bad(void)
{
    struct history_line line;
    struct id id;
    int64_t time_ms;
    static const char *const bad[] = {"",
                                      "2026-11-22T12:06:15.184Z",
                                      "2026-11-22T12:06:15.184Z ",
                                      "2026-11-22T12:06:15.184Z smtpd",
                                      "2026-11-22T12:06:15.184Z smtpd:",
                                      "2026-11-22T12:06:15.184Z smtpd: ",
                                      "2026-11-22T12:06:15.184Z : event=ended",
                                      "2026-11-22T12:06:15.184Z smtpd: ended",
                                      "2026-11-22T12:06:15.184Z smtpd: event=",
                                      "2026-11-22T12:06:15.184Z smtpd: even=ended",
                                      "2026-11-22T12:06:15.184Z a-very-long-program-name: event=ended",
                                      "Z smtpd: event=ended"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ok_named(!history_line_read(text_from(bad[i]), &line), bad[i]);
    ok(!history_line_glance(TEXT("x"), &time_ms, &id));
    ok(history_line_glance(TEXT("2026-11-22T12:06:15.184Z smtp: 01M81JCPWH-00000006: event=x"), &time_ms, &id) &&
       time_ms == 1795349175184 && id.hash == 6);
}

int
main(void)
{
    struct loop *loop = sim_loop_new(1);
    test_time();
    test_accepted(loop);
    test_open_bracket(loop);
    test_others(loop);
    test_refused(loop);
    test_bad();
    loop_free(&loop);
    return done();
}
