/* The transcript of a conversation: lines with their time, the last 2 KiB of them. */
#include "smtp/client/transcript.h"

#include "t/support/tap.h"

static struct transcript t;

static void
is_line(size_t *at, int64_t at_ms, enum transcript_who who, const char *text)
{
    struct transcript_line line = {0};
    ok_named(transcript_next(&t, at, &line), "a line");
    ok(line.at_ms == at_ms && line.who == who);
    is_text(line.text, text_from(text), text);
}

TEST(lines)
{
    size_t at = 0;
    struct transcript_line line;
    t = (struct transcript){.begun_ms = 1000, .now_ms = 1000};
    ok_named(!transcript_next(&t, &at, &line), "nothing yet");
    transcript_add(&t, TRANSCRIPT_THEY, TEXT("220 hello"));
    t.now_ms = 1025;
    transcript_add(&t, TRANSCRIPT_WE, TEXT("EHLO me"));
    transcript_add(&t, TRANSCRIPT_NOTE, TEXT(""));
    is_line(&at, 0, TRANSCRIPT_THEY, "220 hello");
    is_line(&at, 25, TRANSCRIPT_WE, "EHLO me");
    is_line(&at, 25, TRANSCRIPT_NOTE, "");
    ok_named(!transcript_next(&t, &at, &line), "the end");
    ok_named(!t.is_cut && !t.failed, "whole");
    transcript_add(NULL, TRANSCRIPT_WE, TEXT("x"));
    ok_named(true, "nobody needs to want it");
}

TEST(limits)
{
    static char long_line[5000];
    size_t at = 0, count = 0, bytes = 0;
    struct transcript_line line;
    memset(long_line, 'x', sizeof(long_line));
    t = (struct transcript){.begun_ms = 0, .now_ms = INT64_MAX};
    transcript_add(&t, TRANSCRIPT_WE, text_of(long_line, sizeof(long_line)));
    ok(transcript_next(&t, &at, &line));
    is_number(line.text.length, TRANSCRIPT_LINE_MAX, "a long line is cut");
    ok_named(line.at_ms == UINT32_MAX, "a time that is too long is the longest");
    for (unsigned i = 0; i < 10000; i++)
        transcript_add(&t, (enum transcript_who)(i % 3), text_of(long_line, i % 400));
    for (at = 0; transcript_next(&t, &at, &line); count++)
        bytes += line.text.length;
    ok_named(t.is_cut && count > 5 && bytes > TRANSCRIPT_MAX / 2 && bytes < TRANSCRIPT_MAX, "the last lines are kept");
    is_number(line.text.length, TRANSCRIPT_LINE_MAX, "the last one of all");
}
