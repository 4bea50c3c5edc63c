/* The line of arrival of mail by sendmail(1), in each style. */
#include "base/log/log_internal.h"
#include "queue/spool/injected.h"
#include "t/support/tap.h"

/* Says the line of one message; out is NUL-ended. */
static void
say(enum log_style style, const char *sender, char *out, size_t size)
{
    struct buffer lines;
    struct log *log = log_new(NULL, style, LOG_LEVEL_INFO);
    struct envelope *e = envelope_new();
    buffer_init(&lines, LOG_LINE_MAX);
    log_capture(log, &lines);
    e->id = (struct id){.time_ms = 1750000000000, .hash = 7};
    e->sender = envelope_text(e, text_from(sender));
    e->content_size = 1234;
    e->storage.injected = true;
    e->storage.injector = 33;
    if (!envelope_add(e, TEXT("a@x.test"), 0, TEXT("")) ||
        !envelope_add(e, TEXT("b@x.test"), 0, TEXT("")))
        abort();
    injected_log(log, e);
    log_capture(log, NULL);
    snprintf(out, size, "%.*s", (int)lines.length, lines.length > 0 ? lines.at : "");
    buffer_free(&lines);
    envelope_free(&e);
    log_free(&log);
}

int
main(void)
{
    char line[LOG_LINE_MAX + 1];
    say(LOG_STYLE_PETREL, "php@x.test", line, sizeof(line));
    ok_named(strstr(line, ": uid=33, from=<php@x.test>, size=1234, nrcpt=2 (queued)\n"),
             "petrel's");
    ok_named(strncmp(line, "sendmail: ", 10) == 0, "by sendmail");
    say(LOG_STYLE_POSTFIX, "php@x.test", line, sizeof(line));
    ok_named(strstr(line, "postfix/pickup["), "Postfix's, of its pickup");
    ok_named(strstr(line, ": uid=33 from=<php@x.test>\n"), "in its words");
    say(LOG_STYLE_POSTFIX, "a\nb\x1b[2J@x.test", line, sizeof(line));
    ok_named(strchr(line, '\n') == line + strlen(line) - 1 && !strchr(line, '\x1b'),
             "a sender makes no second line, and nothing of a terminal");
    say(LOG_STYLE_JSON, "", line, sizeof(line));
    ok_named(strstr(line, "\"uid\"") && strstr(line, "<>"), "JSON, and a null sender");
    say(LOG_STYLE_QMAIL, "php@x.test", line, sizeof(line));
    is_string(line, "", "qmail's has `info msg` instead");
    return done();
}
