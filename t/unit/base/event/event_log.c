/* The lines of mail by sendmail(1), of findings and of upstreams, in each style. */
/* link: t/sim/loop.c */
#include "base/log/log_internal.h"
#include "base/event/event.h"
#include "base/event/event_log.h"
#include "t/sim/sim.h"
#include "t/support/tap.h"

/* Says the lines of an event; out is NUL-ended. */
static void
say_event(enum log_style style, const struct event *event, char *out, size_t size)
{
    struct buffer lines;
    struct log *log = log_new(NULL, style, LOG_LEVEL_INFO);
    struct event_hub *events = event_hub_new(log);
    buffer_init(&lines, LOG_LINE_MAX);
    log_capture(log, &lines);
    event_tell(events, event);
    log_capture(log, NULL);
    snprintf(out, size, "%.*s", (int)lines.length, lines.length > 0 ? lines.at : "");
    buffer_free(&lines);
    event_hub_free(&events);
    log_free(&log);
}

static void
say(enum log_style style, const char *sender, char *out, size_t size)
{
    struct event event = {.kind = EVENT_SUBMITTED,
                          .id = {.time_ms = 1750000000000, .hash = 7},
                          .sender = text_from(sender),
                          .size = 1234,
                          .recipients = 2,
                          .injector = 33};
    say_event(style, &event, out, size);
}

static void
test_findings(void)
{
    char line[LOG_LINE_MAX + 1];
    struct event event = {.kind = EVENT_TROUBLE,
                          .program = "main",
                          .command = TEXT("login_refused"),
                          .relay = TEXT("mx:587"),
                          .text = TEXT("535 no\nline"),
                          .hint = TEXT("Correct it, then reload.")};
    static const enum log_style styles[] = {LOG_STYLE_PETREL, LOG_STYLE_POSTFIX};
    for (size_t i = 0; i < 2; i++) {
        say_event(styles[i], &event, line, sizeof(line));
        ok_named(strstr(line, "trouble=login_refused, subject=mx:587 (535 no\\x0aline) (Correct it, then reload.)\n"),
                 "a finding begins, with its remedy");
        ok_named(strchr(line, '\n') == line + strlen(line) - 1, "in one line");
    }
    say_event(LOG_STYLE_JSON, &event, line, sizeof(line));
    ok_named(strstr(line, "\"event\":\"trouble\"") && strstr(line, "\"code\":\"login_refused\"") &&
                 strstr(line, "\"subject\":\"mx:587\"") && strstr(line, "\"remedy\":\"Correct it, then reload.\""),
             "in JSON by its members");
    event.kind = EVENT_RECOVERED;
    say_event(LOG_STYLE_PETREL, &event, line, sizeof(line));
    ok_named(strstr(line, "main: recovered=login_refused, subject=mx:587 (535 no") && !strstr(line, "Correct"),
             "it ends, without");
}

static void
test_upstreams(void)
{
    char line[LOG_LINE_MAX + 1];
    struct event event = {.kind = EVENT_UPSTREAM_FAILED, .program = "smtp", .relay = TEXT("mx:587"), .text = TEXT("refuses the login: 535")};
    say_event(LOG_STYLE_PETREL, &event, line, sizeof(line));
    ok_named(strstr(line, "smtp: warning: mx:587 refuses the login: 535\n"), "an upstream that fails is named");
    event.kind = EVENT_UPSTREAM_OK;
    event.text = TEXT("is in no route any more");
    say_event(LOG_STYLE_POSTFIX, &event, line, sizeof(line));
    ok_named(strstr(line, ": mx:587 is in no route any more\n"), "so is one that fails no more");
}

int
main(void)
{
    char line[LOG_LINE_MAX + 1];
    test_findings();
    test_upstreams();
    say(LOG_STYLE_PETREL, "php@x.test", line, sizeof(line));
    ok_named(strstr(line, ": uid=33, from=<php@x.test>, size=1234, nrcpt=2 (queued)\n"),
             "petrel's");
    ok_named(strncmp(line, "sendmail: ", 10) == 0, "by sendmail");
    say(LOG_STYLE_POSTFIX, "php@x.test", line, sizeof(line));
    ok_named(strstr(line, "postfix/pickup["), "Postfix's, of its pickup");
    ok_named(strstr(line, ": uid=33 from=<php@x.test>\n"), "in its words");
    say(LOG_STYLE_POSTFIX, "a\nb\x1b[2J@x.test", line, sizeof(line));
    const char *second = strchr(line, '\n') + 1;
    ok_named(strstr(second, ": message-id=<>\n") && !strchr(line, '\x1b') &&
                 strchr(second, '\n') == line + strlen(line) - 1,
             "a sender makes no further line, and nothing of a terminal");
    say(LOG_STYLE_JSON, "", line, sizeof(line));
    ok_named(strstr(line, "\"uid\":33") && strstr(line, "\"from\":\"\""), "JSON, and a null sender");
    tap_tests("");
    return done();
}
