/* Log lines of all styles, what is escaped in them, and where they are cut. */
#include "base/log/log.h"

/* link: t/sim/loop.c */
#include "base/log/log_internal.h"
#include "base/loop/loop.h"
#include "t/sim/sim.h"
#include "t/support/tap.h"

#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct buffer out;

static struct log *
log_open(enum log_style style)
{
    struct log *log = log_new(NULL, style, LOG_LEVEL_INFO);
    buffer_free(&out);
    buffer_init(&out, 1 << 20);
    log_capture(log, &out);
    return log;
}

/* One field on a line of its own. */
static struct text
field(struct log *log, struct text value)
{
    struct log_line line;
    buffer_clear(&out);
    log_start(&line, log, LOG_LEVEL_INFO, "p", NULL);
    log_field(&line, "k", value);
    log_end(&line);
    return buffer_text(&out);
}

static void
recipient_line(struct log *log)
{
    FIXTURE(log_line, line, log_start, log_end, log, LOG_LEVEL_INFO, "smtp", "01JD3ZK5Q8-9F3K2C7A");
    log_field(&line, "to", TEXT("<a@b.example>"));
    log_field_format(&line, "relay", "%s[%s]:%d", "mx", "192.0.2.1", 25);
    log_field_number(&line, "size", -12);
    log_remark(&line, TEXT("250 2.0.0 \"Ok\"\r\n"));
}

TEST(styles)
{
    char want[200];
    struct log *log = log_open(LOG_STYLE_PETREL);
    recipient_line(log);
    is_text(buffer_text(&out),
            TEXT("smtp: 01JD3ZK5Q8-9F3K2C7A: to=<a@b.example>, relay=mx[192.0.2.1]:25, "
                 "size=-12 (250 2.0.0 \"Ok\"\\x0d\\x0a)\n"),
            "petrel");

    buffer_clear(&out);
    log_restyle(log, LOG_STYLE_POSTFIX, LOG_LEVEL_INFO);
    recipient_line(log);
    snprintf(want, sizeof(want),
             "postfix/smtp[%ld]: 01JD3ZK5Q89F3K2C7A: to=<a@b.example>, "
             "relay=mx[192.0.2.1]:25, size=-12 (250 2.0.0 \"Ok\"\\x0d\\x0a)\n",
             (long)getpid());
    is_text(buffer_text(&out), text_from(want), "postfix");

    buffer_clear(&out);
    log_restyle(log, LOG_STYLE_JSON, LOG_LEVEL_INFO);
    recipient_line(log);
    is_text(
        buffer_text(&out),
        TEXT("{\"level\":\"info\",\"program\":\"smtp\",\"id\":\"01JD3ZK5Q8-9F3K2C7A\","
             "\"to\":\"<a@b.example>\",\"relay\":\"mx[192.0.2.1]:25\",\"size\":-12,"
             "\"text\":\"250 2.0.0 \\\"Ok\\\"\\\\x0d\\\\x0a\"}\n"),
        "json");
    log_free(&log);
    ok(log == NULL);
}

/* Also for hostile items: a comma divides them, and the whole has a limit. */
TEST(list)
{
    static const char *const wants[] = {
        "p: to=x, dkim=a.test/s1,b.test/s2\n",
        "{\"level\":\"info\",\"program\":\"p\",\"to\":\"x\",\"dkim\":[\"a.test/s1\",\"b.test/s2\"]}\n",
        "{\"level\":\"info\",\"program\":\"p\",\"dkim\":[\"one\\\\xff\"]}\n"};
    static char many[20000];
    struct log_line line;
    struct log *log = log_open(LOG_STYLE_PETREL);
    for (int i = 0; i < 3; i++) {
        buffer_clear(&out);
        log_start(&line, log, LOG_LEVEL_INFO, "p", NULL);
        if (i < 2)
            log_field(&line, "to", TEXT("x"));
        log_field_list(&line, "dkim",
                       i < 2 ? TEXT("a.test/s1,b.test/s2") : TEXT("one\xff"));
        log_end(&line);
        is_text(buffer_text(&out), text_from(wants[i]), wants[i]);
        log_restyle(log, LOG_STYLE_JSON, LOG_LEVEL_INFO);
    }
    buffer_clear(&out);
    memset(many, ',', sizeof(many));
    log_start(&line, log, LOG_LEVEL_INFO, "p", NULL);
    log_field_list(&line, "dkim", text_of(many, sizeof(many)));
    log_end(&line);
    json_t *read = json_loadb(out.at, out.length, 0, NULL);
    ok_named(read != NULL && out.length <= LOG_LINE_MAX, "its length has a limit");
    json_decref(read);
    log_start(&line, log, LOG_LEVEL_DEBUG, "p", NULL);
    log_field_list(&line, "dkim", TEXT("a"));
    log_end(&line);
    log_free(&log);
}

TEST(say)
{
    struct log *log = log_open(LOG_STYLE_PETREL);
    log_say(log, LOG_LEVEL_INFO, "main", NULL, "started with %d sites", 3);
    log_say(log, LOG_LEVEL_WARNING, "queue", "ID", "disk is %s", "slow");
    log_say(log, LOG_LEVEL_ERROR, "dns", NULL, "gone");
    log_say(log, LOG_LEVEL_DEBUG, "main", NULL, "not wanted");
    is_text(buffer_text(&out),
            TEXT("main: started with 3 sites\nqueue: ID: warning: disk is slow\n"
                 "dns: error: gone\n"),
            "sentences; warnings and errors say so; no more than asked for");

    buffer_clear(&out);
    log_say(log, LOG_LEVEL_INFO, "smtp", NULL, "host x said: 554 no, status=sent (ok)");
    log_say(log, LOG_LEVEL_INFO, "smtp", NULL, "host x said: 554 no, a=, so");
    log_say(log, LOG_LEVEL_INFO, "smtp", NULL, "one, two = 2, =3, ");
    is_text(buffer_text(&out),
            TEXT("smtp: host x said: 554 no\\x2c status=sent (ok)\n"
                 "smtp: host x said: 554 no\\x2c a=\\x2c so\n"
                 "smtp: one, two = 2, =3, \n"),
            "the words of a peer in one forge no field");

    buffer_clear(&out);
    log_restyle(log, LOG_STYLE_JSON, LOG_LEVEL_DEBUG);
    log_say(log, LOG_LEVEL_DEBUG, "main", NULL, "wanted");
    log_say(log, LOG_LEVEL_WARNING, "main", NULL, "a=%d, b", 1);
    is_text(buffer_text(&out),
            TEXT("{\"level\":\"debug\",\"program\":\"main\",\"text\":\"wanted\"}\n"
                 "{\"level\":\"warning\",\"program\":\"main\",\"text\":\"a=1, b\"}\n"),
            "the same in json");

    buffer_clear(&out);
    log_say(log, LOG_LEVEL_INFO, "queue", "name\xff", "x");
    is_text(
        buffer_text(&out),
        TEXT(
            "{\"level\":\"info\",\"program\":\"queue\",\"id\":\"?\",\"text\":\"x\"}\n"),
        "an id that is none");

    buffer_clear(&out);
    log_restyle(log, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    struct log_line line;
    log_start(&line, log, LOG_LEVEL_WARNING, "p", NULL);
    log_field(&line, "a", TEXT("b"));
    log_field_format(&line, "a", "b");
    log_field_number(&line, "a", 1);
    log_remark(&line, TEXT("c"));
    log_end(&line);
    is_text(buffer_text(&out), TEXT(""), "a line below the level costs nothing");

    log_start(&line, log, LOG_LEVEL_ERROR, "p", NULL);
    log_remark(&line, TEXT("alone"));
    log_end(&line);
    is_text(buffer_text(&out), TEXT("p: error: (alone)\n"), "a remark without fields");
    log_free(&log);
}

TEST(time)
{
    static const struct {
        int64_t now_ms;
        struct text line;
    } times[] = {
        {0,             TEXT("1970-01-01T00:00:00.000Z p: x\n")},
        {999,           TEXT("1970-01-01T00:00:00.999Z p: x\n")},
        {951782400007,  TEXT("2000-02-29T00:00:00.007Z p: x\n")},
        {1735689599999, TEXT("2024-12-31T23:59:59.999Z p: x\n")},
        {4102444800000, TEXT("2100-01-01T00:00:00.000Z p: x\n")},
    };
    struct loop *loop = sim_loop_new(1);
    struct log *log = log_new(loop, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    log_capture(log, &out);
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        buffer_clear(&out);
        sim_loop_step_wall(loop, times[i].now_ms - loop_now_ms(loop));
        loop_turn(loop, 0);
        log_say(log, LOG_LEVEL_INFO, "p", NULL, "x");
        is_text(buffer_text(&out), times[i].line, "the time in UTC");
    }
    log_restyle(log, LOG_STYLE_JSON, LOG_LEVEL_INFO);
    buffer_clear(&out);
    log_say(log, LOG_LEVEL_INFO, "p", NULL, "x");
    ok(text_starts(buffer_text(&out), TEXT("{\"time\":\"2100-01-01T00:00:00.000Z\",")));
    log_restyle(log, LOG_STYLE_POSTFIX, LOG_LEVEL_INFO);
    buffer_clear(&out);
    log_say(log, LOG_LEVEL_INFO, "p", NULL, "x");
    ok(text_starts(buffer_text(&out), TEXT("2100-01-01T00:00:00.000Z postfix/p[")));
    log_free(&log);
    loop_free(&loop);
}

static struct text
escape(struct text t)
{
    buffer_clear(&out);
    ok_named(log_escape(t, &out), "there is room");
    return buffer_text(&out);
}

TEST(escape)
{
    is_text(escape(TEXT("")), TEXT(""), "nothing");
    is_text(escape(text_of(NULL, 0)), TEXT(""), "nothing at all");
    is_text(escape(TEXT("a b~\\<>\"")), TEXT("a b~\\<>\""), "printable ASCII passes");
    is_text(escape(TEXT("a\0b\r\n\t\x1b[31m\x7f")),
            TEXT("a\\x00b\\x0d\\x0a\\x09\\x1b[31m\\x7f"), "control bytes do not");
    is_text(escape(TEXT("\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xa6")),
            TEXT("\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xa6"), "UTF-8 passes");
    is_text(escape(TEXT("\xc2\x80\xc2\x9f\xc2\xa0")),
            TEXT("\\xc2\\x80\\xc2\\x9f\xc2\xa0"), "C1 does not, what follows it does");
    is_text(escape(TEXT("\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9")),
            TEXT("\xe2\x80\xa7\\xe2\\x80\\xa8\\xe2\\x80\\xa9"), "line separators");
    is_text(escape(TEXT("\xe2\x80\xaa\xe2\x80\xae\xe2\x80\xaf")),
            TEXT("\\xe2\\x80\\xaa\\xe2\\x80\\xae\xe2\x80\xaf"), "bidi: embeddings");
    is_text(escape(TEXT("\xe2\x81\x9f\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xb0")),
            TEXT("\xe2\x81\x9f\\xe2\\x81\\xa6\\xe2\\x81\\xa9\xe2\x81\xb0"),
            "bidi: isolates");
    is_text(escape(TEXT("\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90")),
            TEXT("\\xd8\\x9c\\xe2\\x80\\x8e\\xe2\\x80\\x8f\xe2\x80\x90"),
            "bidi: marks");
    is_text(escape(TEXT("\xc3(\xff\xed\xa0\x80\xe2\x82")),
            TEXT("\\xc3(\\xff\\xed\\xa0\\x80\\xe2\\x82"), "ill-formed UTF-8");

    size_t wrong = 0;
    for (int c = 0; c < 256; c++) {
        char byte = (char)c;
        buffer_clear(&out);
        bool pass = c >= 0x20 && c < 0x7f;
        wrong += !log_escape(text_of(&byte, 1), &out) || out.length != (pass ? 1 : 4);
    }
    is_number(wrong, 0, "every byte alone");
}

TEST(escape_limit)
{
    const struct text t = TEXT("ab\xe2\x82\xac\nc");
    static const char *const want[] = {
        "",
        "a",
        "ab",
        "ab",
        "ab",
        "ab\xe2\x82\xac",
        "ab\xe2\x82\xac",
        "ab\xe2\x82\xac",
        "ab\xe2\x82\xac",
        "ab\xe2\x82\xac\\x0a",
        "ab\xe2\x82\xac\\x0ac",
    };
    for (size_t limit = 0; limit < sizeof(want) / sizeof(want[0]); limit++) {
        FIXTURE(buffer, small, buffer_init, buffer_free, limit);
        bool whole = log_escape(t, &small);
        is_text(buffer_text(&small), text_from(want[limit]), "cut between characters");
        ok_named(whole == (limit == 10), "and says so");
    }
}

static struct text
remark(struct log *log, struct text value)
{
    struct log_line line;
    buffer_clear(&out);
    log_start(&line, log, LOG_LEVEL_INFO, "p", NULL);
    log_field(&line, "k", TEXT("v"));
    log_remark(&line, value);
    log_end(&line);
    return buffer_text(&out);
}

TEST(forgery)
{
    struct log *log = log_open(LOG_STYLE_PETREL);
    is_text(field(log, TEXT("x, status=sent")), TEXT("p: k=x\\x2c status=sent\n"),
            "a value makes no second field");
    is_text(field(log, TEXT("a,b, c,, d,")), TEXT("p: k=a,b\\x2c c,\\x2c d,\n"),
            "only commas before a space");
    is_text(field(log, TEXT("<\"a, b\"@c>")), TEXT("p: k=<\"a, b\"@c>\n"),
            "within brackets they stay");
    is_text(field(log, TEXT("<a>, status=<b>")), TEXT("p: k=<a>\\x2c status=<b>\n"),
            "unless the bracket ends before");
    is_text(field(log, TEXT("<a, b")), TEXT("p: k=\\x3ca\\x2c b\n"), "or does not end");
    is_text(field(log, TEXT("<a")), TEXT("p: k=\\x3ca\n"), "a bracket that is not closed hides no field");
    is_text(field(log, TEXT("<a>b")), TEXT("p: k=<a>b\n"), "one that is closed is seen");
    static char long_value[3000];
    memset(long_value, 'x', sizeof(long_value));
    long_value[0] = '<';
    long_value[sizeof(long_value) - 1] = '>';
    struct text cut = field(log, text_of(long_value, sizeof(long_value)));
    ok_named(text_starts(cut, TEXT("p: k=<xxx")) && text_ends_nocase(cut, TEXT("x...>\n")), "one that is cut is closed");
    long_value[sizeof(long_value) - 2] = '>';
    cut = field(log, text_of(long_value, sizeof(long_value)));
    ok_named(text_starts(cut, TEXT("p: k=\\x3cxxx")) && text_ends_nocase(cut, TEXT("x...\n")), "or escaped, if it was not");
    is_text(field(log, TEXT("a\nmain: error: b")), TEXT("p: k=a\\x0amain: error: b\n"),
            "a value makes no second line");
    is_text(field(log, TEXT("")), TEXT("p: k=\n"), "an empty value");
    is_text(field(log, TEXT("a=b,c")), TEXT("p: k=a=b,c\n"), "no need, no change");
    is_text(remark(log, TEXT("said: no, sorry (x)")),
            TEXT("p: k=v (said: no, sorry (x))\n"), "a remark keeps its commas");
    is_text(remark(log, TEXT("550 x), status=sent (y")),
            TEXT("p: k=v (550 x)\\x2c status=sent (y)\n"), "unless it seems to end");
    is_text(remark(log, TEXT("")), TEXT("p: k=v ()\n"), "an empty remark");
    log_free(&log);
}

/* The characters of t are whole and it is one line that ends in mark and LF. */
static bool
is_cut(struct text t, const char *mark)
{
    return t.length <= LOG_LINE_MAX && text_is_utf8(t) &&
           text_find(t, '\n') == t.length - 1 && text_ends_nocase(t, text_from(mark));
}

TEST(limits)
{
    static char long_value[20000];
    struct log *log = log_open(LOG_STYLE_PETREL);
    memset(long_value, 'v', sizeof(long_value));
    is_number(field(log, text_of(long_value, 1024)).length, 5 + 1024 + 1,
              "a field of 1024 bytes is whole");
    ok(!text_ends_nocase(buffer_text(&out), TEXT("...\n")));
    is_number(field(log, text_of(long_value, 1025)).length, 5 + 1024 + 1,
              "a longer one is cut to that");
    ok(is_cut(buffer_text(&out), "vv...\n"));

    /* Euro signs and escapes at every offset: the cut never splits one. */
    bool whole = true;
    for (size_t start = 0; start < 4; start++) {
        for (size_t i = start; i + 3 <= sizeof(long_value); i += 3)
            memcpy(long_value + i, "\xe2\x82\xac", 3);
        whole = whole && is_cut(field(log, text_of(long_value, 15000)), "\xac...\n");
        memset(long_value, '\n', sizeof(long_value));
        memset(long_value, 'x', start);
        whole = whole && is_cut(field(log, text_of(long_value, 15000)), "\\x0a...\n");
        memset(long_value, 'x', sizeof(long_value));
    }
    ok_named(whole, "no cut within a character or an escape");

    for (int length = LOG_LINE_MAX - 5; length < LOG_LINE_MAX; length++) {
        buffer_clear(&out);
        log_say(log, LOG_LEVEL_INFO, "p", NULL, "%.*s", length, long_value);
        bool fits = length <= LOG_LINE_MAX - 4;
        is_number(out.length, fits ? length + 4 : LOG_LINE_MAX, "the line's limit");
        ok(is_cut(buffer_text(&out), fits ? "x\n" : "x...\n"));
    }
    buffer_clear(&out);
    log_say(log, LOG_LEVEL_INFO, "p", NULL, "%.*s", 20000, long_value);
    ok(out.length == LOG_LINE_MAX && is_cut(buffer_text(&out), "x...\n"));

    struct log_line line;
    buffer_clear(&out);
    log_start(&line, log, LOG_LEVEL_INFO, "p", "ID");
    log_field(&line, "from", text_of(long_value, 15000));
    log_field(&line, "status", TEXT("sent"));
    log_remark(&line, text_of(long_value, 15000));
    log_end(&line);
    ok(is_cut(buffer_text(&out), "x...\n"));
    ok_named(memmem(out.at, out.length, "..., status=sent (", 18) != NULL,
             "a long value does not push out the next field");

    buffer_clear(&out);
    log_start(&line, log, LOG_LEVEL_INFO, "p", "ID");
    for (int i = 0; i < 100; i++)
        log_field_format(&line, "k", "%.*s", 900, long_value);
    log_end(&line);
    ok_named(out.length == LOG_LINE_MAX && is_cut(buffer_text(&out), "...\n"),
             "nor do many fields pass the limit");
    log_free(&log);
}

/* A line cut by json is still json, and small values are whole. */
TEST(json_limits)
{
    static char long_value[20000];
    static const char fillers[] = {'v', '"', '\\', '\n', '\xc3'};
    struct log *log = log_open(LOG_STYLE_JSON);
    bool legal = true, small = true, marked = true;
    for (size_t i = 0; i < sizeof(fillers); i++) {
        memset(long_value, fillers[i], sizeof(long_value));
        struct log_line line;
        buffer_clear(&out);
        log_start(&line, log, LOG_LEVEL_INFO, "p", "ID");
        for (int k = 0; k < 20; k++) {
            char key[8];
            snprintf(key, sizeof(key), "key%d", k);
            log_field(&line, key, text_of(long_value, sizeof(long_value)));
        }
        log_field(&line, "status", TEXT("sent"));
        log_remark(&line, text_of(long_value, sizeof(long_value)));
        log_end(&line);
        json_t *read = json_loadb(out.at, out.length, 0, NULL);
        legal = legal && read != NULL && out.length <= LOG_LINE_MAX &&
                text_find(buffer_text(&out), '\n') == out.length - 1;
        const char *status = json_string_value(json_object_get(read, "status"));
        small = small && status != NULL && strcmp(status, "sent") == 0;
        const char *text = json_string_value(json_object_get(read, "text"));
        marked = marked && text_ends_nocase(text_from(text), TEXT("..."));
        json_decref(read);
    }
    ok_named(legal, "a cut line is one JSON object within the limit");
    ok_named(small, "its small values are whole");
    ok_named(marked, "its long ones say that they were cut");
    log_free(&log);
}

static struct text
seconds(struct log *log, const int64_t *ms, size_t count)
{
    struct log_line line;
    buffer_clear(&out);
    log_start(&line, log, LOG_LEVEL_INFO, "p", NULL);
    log_field_seconds(&line, "s", ms, count);
    log_end(&line);
    return text_without_line_end(buffer_text(&out));
}

/* As printf() writes them, but for zeros at their end, and half a hundredth is rounded up;
 * in json to thousandths, as jansson does. */
TEST(seconds)
{
    static const int64_t several[] = {1005, 1500, 100000, INT64_C(31536000000000)};
    struct log *log = log_open(LOG_STYLE_PETREL);
    char want[64];
    bool good = true;
    for (int64_t ms = -3000; ms < 50000 && good; ms++) {
        log_restyle(log, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
        /* A thousandth more decides half a hundredth. */
        snprintf(want, sizeof(want), "p: s=%.2f", (double)ms / 1000 + (ms < 0 ? 0 : 0.0001));
        size_t end = strlen(want);
        while (ms >= 0 && want[end - 1] == '0')
            want[--end] = '\0';
        if (want[end - 1] == '.')
            want[end - 1] = '\0';
        good = text_equal(seconds(log, &ms, 1), text_from(want));
        if (!good)
            is_text(buffer_text(&out), text_from(want), "seconds");
        log_restyle(log, LOG_STYLE_JSON, LOG_LEVEL_INFO);
        json_t *object = json_pack("{s:s,s:s,s:f}", "level", "info", "program", "p", "s", (double)ms / 1000);
        char *line = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12));
        good = good && text_equal(seconds(log, &ms, 1), text_from(line));
        free(line);
        json_decref(object);
    }
    ok_named(good, "seconds to hundredths");
    is_text(seconds(log, several, 4), TEXT("{\"level\":\"info\",\"program\":\"p\",\"s\":[1.005,1.5,100.0,31536000000.0]}"), "several in json");
    log_restyle(log, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    is_text(seconds(log, several, 4), TEXT("p: s=1.01/1.5/100/31536000000"), "half a hundredth; zeros in front of the point; a thousand years");
    log_free(&log);
}

/* Descriptor 2 while a test looks at what arrives there. */
struct tapped {
    int ends[2], saved;
    char got[300];
};

static void
tap_start(struct tapped *t)
{
    t->saved = dup(2);
    if (t->saved < 0 || pipe2(t->ends, O_NONBLOCK) != 0)
        abort();
    fflush(stderr);
    dup2(t->ends[1], 2);
}

/* The input since the last call. */
static struct text
tap_read(struct tapped *t)
{
    ssize_t got = read(t->ends[0], t->got, sizeof(t->got));
    return text_of(t->got, got > 0 ? (size_t)got : 0);
}

static void
tap_stop(struct tapped *t)
{
    dup2(t->saved, 2);
    close(t->saved);
    close(t->ends[0]);
    close(t->ends[1]);
}

/* The lines of now without their time. */
static void
is_logged(struct text got, const char *first, const char *second, const char *what)
{
    char want[200] = "", time[] = "2025-06-15T15:06:40.000Z ";
    if (first != NULL)
        snprintf(want, sizeof(want), "%sp: %s\n%s%s%s", time, first,
                 second != NULL ? time : "", second != NULL ? "p: " : "",
                 second != NULL ? second : "");
    is_text(got, text_from(want), what);
}

static void
at_stage(void *context)
{
    struct tapped *t = context;
    bool came = tap_read(t).length > 0;
    t->got[0] = came ? 'y' : 'n';
}

struct saying {
    struct tapped *tapped;
    struct log *log;
    bool came;
};

static void
at_answer(void *context)
{
    struct saying *s = context;
    log_say(s->log, LOG_LEVEL_INFO, "p", NULL, "answer");
}

static void
at_send(void *context)
{
    struct saying *s = context;
    s->came = tap_read(s->tapped).length > 0;
}

TEST(gathering)
{
    struct tapped t;
    struct loop *loop = sim_loop_new(1);
    tap_start(&t);
    struct log *log = log_new(loop, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    log_say(log, LOG_LEVEL_INFO, "p", NULL, "one");
    log_say(log, LOG_LEVEL_INFO, "p", NULL, "two\n");
    struct text early = tap_read(&t);
    is_logged(early, NULL, NULL, "what a turn says waits for its end");
    loop_turn(loop, 0);
    is_logged(tap_read(&t), "one", "two\\x0a\n", "and comes whole, in order");
    loop_turn(loop, 0);
    is_logged(tap_read(&t), NULL, NULL, "once");
    log_say(log, LOG_LEVEL_INFO, "p", NULL, "before");
    log_say(log, LOG_LEVEL_WARNING, "p", NULL, "now");
    is_logged(tap_read(&t), "before", "warning: now\n", "a warning takes all along");
    loop_at_end(loop, LOOP_SYNC_MARKS, at_stage, &t);
    log_say(log, LOG_LEVEL_INFO, "p", NULL, "x");
    uint64_t turns = sim_loop_turns(loop);
    loop_run(loop);
    ok_named(t.got[0] == 'y' && sim_loop_turns(loop) == turns + 1,
             "it makes a turn, and is written before what the disk does at its end");
    loop_at_end_remove(loop, LOOP_SYNC_MARKS, at_stage, &t);
    struct saying saying = {&t, log, false};
    loop_at_end(loop, LOOP_ANSWER_MANAGER, at_answer, &saying);
    loop_at_end(loop, LOOP_SEND_NET, at_send, &saying);
    loop_turn(loop, 0);
    ok_named(saying.came, "said in ANSWER, it is written before the sockets are");
    loop_at_end_remove(loop, LOOP_ANSWER_MANAGER, at_answer, &saying);
    loop_at_end_remove(loop, LOOP_SEND_NET, at_send, &saying);
    log_say(log, LOG_LEVEL_INFO, "p", NULL, "last");
    log_free(&log);
    is_logged(tap_read(&t), "last", NULL, "the end of the log leaves nothing behind");
    loop_turn(loop, 0);
    tap_stop(&t);
    loop_free(&loop);
}

TEST(gathering_limit)
{
    struct tapped t;
    char word[2001];
    struct loop *loop = sim_loop_new(1);
    memset(word, 'x', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    tap_start(&t);
    struct log *log = log_new(loop, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    int lines = 0;
    while (lines < 100 && tap_read(&t).length == 0) {
        log_say(log, LOG_LEVEL_INFO, "p", NULL, "%s", word);
        lines++;
    }
    while (tap_read(&t).length > 0)
        continue;
    log_free(&log);
    tap_stop(&t);
    ok_named(lines > 25 && lines < 40, "64 KiB wait for the end of the turn at most");
    loop_free(&loop);
}

/* Nobody reads: what is said does not wait, what is lost is told, once it is read. */
TEST(unread)
{
    struct tapped t;
    static char all[4 * 1024 * 1024];
    size_t length = 0;
    int lines = 0;
    struct loop *loop = sim_loop_new(1);
    tap_start(&t);
    struct log *log = log_new(loop, LOG_STYLE_JSON, LOG_LEVEL_INFO);
    for (; lines < 30000; lines++)
        log_say(log, LOG_LEVEL_INFO, "p", NULL, "line %d", lines);
    loop_turn(loop, 0);
    for (struct text got; lines < 30010;) {
        while ((got = tap_read(&t)).length > 0 && length + got.length < sizeof(all)) {
            memcpy(all + length, got.at, got.length);
            length += got.length;
        }
        /* The watch is on a descriptor of the log's own, the next after the pipe's. */
        for (int d = 3; d < 20; d++)
            sim_loop_ready(loop, d, LOOP_WRITE);
        loop_turn(loop, 0);
        if (memmem(all, length, "log lines lost", 14) != NULL && lines++ >= 30000)
            log_say(log, LOG_LEVEL_WARNING, "p", NULL, "heard %d", lines);
    }
    struct text rest = text_of(all, length), line;
    int said = 0, lost = -1, heard = 0;
    struct log_counts counts = *log_counts(log);
    bool legal = true;
    while (text_cut(&rest, '\n', &line) && line.length > 0) {
        json_t *read = json_loadb(line.at, line.length, 0, NULL);
        const char *what = json_string_value(json_object_get(read, "text"));
        legal = legal && what != NULL;
        int told = 0;
        if (what != NULL && sscanf(what, "%d log lines lost", &told) == 1)
            lost = told;
        said +=
            what != NULL && strncmp(what, "line ", 5) == 0 && atoi(what + 5) == said;
        heard += what != NULL && strncmp(what, "heard ", 6) == 0;
        json_decref(read);
    }
    ok_named(legal, "every line is whole");
    is_number((int64_t)counts.lost, lost, "the counted ones are lost");
    is_number((int64_t)counts.lines[LOG_LEVEL_INFO], 30000, "all are counted");
    ok_named(counts.lines[LOG_LEVEL_WARNING] > 1 && counts.lines[LOG_LEVEL_ERROR] == 0, "by level");
    ok_named(said > 8000 && said < 30000, "the first are kept, in order");
    is_number(said + lost, 30000, "and the others are counted");
    ok_named(heard > 5, "what comes later is written");
    log_free(&log);
    tap_stop(&t);
    loop_free(&loop);
}

/* It is read again when the program ends: what is lost is told then, too. */
TEST(read_at_end)
{
    FIXTURE(tapped, t, tap_start, tap_stop);
    struct loop *loop = sim_loop_new(1);
    struct log *log = log_new(loop, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    for (int i = 0; i < 60000; i++)
        log_say(log, LOG_LEVEL_INFO, "p", NULL, "line %d", i);
    pid_t reader = fork();
    if (reader == 0) {
        static char all[4 * 1024 * 1024];
        size_t length = 0;
        alarm(60);
        while (length < sizeof(all) && memmem(all, length, "log lines lost", 14) == NULL) {
            struct pollfd from = {.fd = t.ends[0], .events = POLLIN};
            (void)poll(&from, 1, -1);
            ssize_t got = read(t.ends[0], all + length, sizeof(all) - length);
            length += got > 0 ? (size_t)got : 0;
        }
        _exit(length == sizeof(all));
    }
    int status = -1;
    log_free(&log);
    ok_named(reader > 0 && waitpid(reader, &status, 0) == reader && status == 0, "told");
    loop_free(&loop);
}

/* Captures descriptor 2 while say runs. */
TEST(stderr)
{
    FIXTURE(tapped, t, tap_start, tap_stop);
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    struct buffer captured;
    buffer_init(&captured, 1000);
    log_say(log, LOG_LEVEL_INFO, "p", NULL, "first");
    log_capture(log, &captured);
    log_say(log, LOG_LEVEL_INFO, "p", NULL, "second");
    log_capture(log, NULL);
    log_say(log, LOG_LEVEL_INFO, "p", NULL, "third");
    is_text(tap_read(&t), TEXT("p: first\np: third\n"), "lines go to descriptor 2");
    is_text(buffer_text(&captured), TEXT("p: second\n"), "unless captured");
    buffer_free(&captured);
    log_free(&log);
}

/* Short values are copied in words, and a line is long enough for usual ones. */
TEST(lengths)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ";
    static const char *const keys[] = {"k", "to", "dsn", "from", "class", "sasl_username", "a_key_of_nineteen_x"};
    struct log *log = log_open(LOG_STYLE_PETREL);
    char want[200];
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        for (size_t length = 0; length < sizeof(letters); length++) {
            struct text value = text_of(letters, length);
            struct log_line line;
            buffer_clear(&out);
            log_start(&line, log, LOG_LEVEL_INFO, "p", NULL);
            log_field(&line, keys[i], value);
            log_field_address(&line, "x", value);
            log_remark(&line, value);
            log_end(&line);
            snprintf(want, sizeof(want), "p: %s=%.*s, x=<%.*s> (%.*s)\n", keys[i], TEXT_ARGS(value), TEXT_ARGS(value),
                     TEXT_ARGS(value));
            is_text(buffer_text(&out), text_from(want), "a field, an address and a remark");
        }
    log_free(&log);
}

/* At each of its lengths a line gets one field more. */
TEST(growth)
{
    struct log *log = log_open(LOG_STYLE_PETREL);
    char filler[1000];
    memset(filler, 'f', sizeof(filler));
    for (size_t length = 300; length <= 1000; length++) {
        struct log_line line;
        struct text value = text_of(filler, length);
        buffer_clear(&out);
        log_start(&line, log, LOG_LEVEL_INFO, "p", NULL);
        log_field(&line, "a", value);
        log_field(&line, "b", TEXT("0123456789abcdefghijk"));
        log_remark(&line, TEXT("the end"));
        log_end(&line);
        struct text made = buffer_text(&out);
        is_number(made.length, length + strlen("p: a=, b=0123456789abcdefghijk (the end)\n"), "its length");
        ok_named(text_equal(text_after(made, length + strlen("p: a=")), TEXT(", b=0123456789abcdefghijk (the end)\n")),
                 "its end");
    }
    log_free(&log);
}

int
main(void)
{
    buffer_init(&out, 1 << 20);
    tap_tests("");
    buffer_free(&out);
    return done();
}
