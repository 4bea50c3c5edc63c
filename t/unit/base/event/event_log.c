/* The lines of mail by sendmail(1) and of findings, in each style. */
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

/* --- Lines that are copied to the history ------------------------------------------ */

struct pair {
    struct loop *loop;
    struct log *log, *apart;
    struct event_hub *hub;
    struct buffer lines, copied, built;
    struct buffer *into;
    bool talks; /* another line comes between */
};

static void
pair_take(void *context, struct text line)
{
    struct pair *p = context;
    if (!buffer_add(p->into, line))
        abort();
}

/* A reader, as the history is one: once from what the log wrote, once anew. */
static void
pair_read(void *context, const struct event *event)
{
    struct pair *p = context;
    if (p->talks)
        log_say(p->log, LOG_LEVEL_INFO, "main", NULL, "something else");
    buffer_clear(&p->copied);
    buffer_clear(&p->built);
    p->into = &p->copied;
    event_log_history(event_hub_lines(p->hub), p->apart, event);
    p->into = &p->built;
    event_log_history(NULL, p->apart, event);
}

static void
pair_begin(struct pair *p)
{
    *p = (struct pair){.loop = sim_loop_new(1)};
    p->log = log_new(p->loop, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    buffer_init(&p->lines, 1 << 24);
    buffer_init(&p->copied, 1 << 20);
    buffer_init(&p->built, 1 << 20);
    log_capture(p->log, &p->lines);
    p->apart = log_new_apart(p->loop, pair_take, p);
    p->hub = event_hub_new(p->log);
    event_read(p->hub, EVENT_ALL, pair_read, p);
}

static void
pair_end(struct pair *p)
{
    event_hub_free(&p->hub);
    log_free(&p->apart);
    log_capture(p->log, NULL);
    log_free(&p->log);
    loop_free(&p->loop);
    buffer_free(&p->lines);
    buffer_free(&p->copied);
    buffer_free(&p->built);
}

static size_t pairs_wrong;

static void
pair_tell(struct pair *p, const struct event *event)
{
    event_tell(p->hub, event);
    if (text_equal(buffer_text(&p->copied), buffer_text(&p->built)))
        return;
    pairs_wrong++;
    printf("# %s: %.*s# and not %.*s", event_word(event->kind), TEXT_ARGS(buffer_text(&p->copied)),
           TEXT_ARGS(buffer_text(&p->built)));
}

static char words[][1100] = {
    "", "a", "a@example.org", "<a@example.org>", "<a b@example.org>", "<a", "a>", "<>", "<a>, b=<c>", "a (b", "a, b=c",
    "a (b), c=d", "TLSv1.3 with cipher TLS_AES_256_GCM_SHA384 (256/256 bits)", "TLSv1.3", "a\r\nb", "\xc3\xa4@\xe4", "\xff", " ",
    "" /* 1023 times "x" */, "" /* 1099 bytes with escapes */};

enum { WORDS = sizeof(words) / sizeof(words[0]) };

/* The kind with words of all members in turn. */
static void
pair_tell_words(struct pair *p, enum event_kind kind, unsigned at, unsigned step)
{
#define WORD(n) words[(at + (n) * step) % WORDS]
    struct event_client client = {.name = WORD(1), .helo = WORD(2), .user = WORD(3), .mechanism = WORD(4),
                                  .protocol = "ESMTP", .tls = WORD(5), .uid = at % 2 ? EVENT_NO_UID : at};
    struct outcome outcome = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 450, "4.2.0", "%s", WORD(6));
    snprintf(outcome.remote, sizeof(outcome.remote), "%s", WORD(7));
    static const struct event_verb verbs[] = {{"ehlo", 1, 1}, {NULL, 0, 0}};
    struct event_field field = {.key = "set", .kind = EVENT_TEXT, .value = text_from(WORD(2))};
    struct event event = {.kind = kind,
                          .id = {.time_ms = at % 5 == 4 ? 0 : 1750000000000 + at, .hash = at},
                          .client = &client,
                          .sender = text_from(WORD(8)),
                          .recipient = text_from(WORD(9)),
                          .original = text_from(WORD(10)),
                          .message_id = text_from(WORD(11)),
                          .relay = text_from(WORD(12)),
                          .tls = text_from(WORD(13)),
                          .dkim = text_from(WORD(14)),
                          .left_as = text_from(WORD(15)),
                          .command = text_from(WORD(16)),
                          .text = text_from(WORD(17)),
                          .reason = WORD(18),
                          .size = at * 1000,
                          .recipients = at,
                          .injector = at,
                          .verbs = verbs,
                          .fields = &field,
                          .field_count = at % 2,
                          .total_ms = at * 37,
                          .delay_ms = {at, at * 7, at * 77, at * 777},
                          .is_quiet = at % 7 == 6,
                          .outcome = &outcome};
    pair_tell(p, &event);
}

TEST(copies)
{
    struct pair p;
    memset(words[WORDS - 2], 'x', 1023);
    memset(words[WORDS - 1], '\x01', 1099);
    pair_begin(&p);
    for (int round = 0; round < 4; round++) {
        p.talks = round == 1;
        log_restyle(p.log, round == 2 ? LOG_STYLE_POSTFIX : LOG_STYLE_PETREL, round == 3 ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
        for (enum event_kind kind = 0; kind < EVENT_KINDS; kind++)
            for (unsigned at = 0; at < WORDS; at++)
                for (unsigned step = 0; step < WORDS; step += 3)
                    pair_tell_words(&p, kind, at, step);
        buffer_clear(&p.lines);
    }
    is_number((long)pairs_wrong, 0, "a line of the history is the same, copied or not");
    pair_end(&p);
}

/* An event at the place of another that the log has no line of. */
TEST(copies_of_nothing)
{
    struct pair p;
    pairs_wrong = 0;
    pair_begin(&p);
    struct outcome outcome = outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "ok");
    struct event event = {.kind = EVENT_DELIVERED, .id = {.time_ms = 1, .hash = 1}, .recipient = TEXT("a@b.test"),
                          .outcome = &outcome};
    pair_tell(&p, &event);
    event.recipient = TEXT("other@b.test");
    event.is_quiet = true;
    pair_tell(&p, &event);
    event.is_quiet = false;
    log_restyle(p.log, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    event.recipient = TEXT("third@b.test");
    pair_tell(&p, &event);
    is_number((long)pairs_wrong, 0, "what is not written is not copied");
    pair_end(&p);
}

int
main(void)
{
    char line[LOG_LINE_MAX + 1];
    test_findings();
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
