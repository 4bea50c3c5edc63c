/* The picture of `petrel top`: rates of a round and of a minute, a daemon that was
 * restarted, orders, scrolling, and small terminals. */
#include "admin/command/top_view.h"

#include "t/support/tap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct top_view view;

/* An answer as the daemon gives it; ' stands for ". */
static json_t *answer(const char *format, ...) __attribute__((format(printf, 1, 2)));

static json_t *
answer(const char *format, ...)
{
    char text[4000];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    for (char *c = text; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    json_t *object = json_loads(text, 0, NULL);
    ok_named(object != NULL, text);
    return object;
}

static void
counts(int64_t at_ms, int uptime_s, int in, int out)
{
    top_view_take(&view, answer("{'uptime_s':%d,'totals':{'stored':%d,'ended':%d}}", uptime_s, in, out), at_ms);
}

static const char *
drawn(size_t rows)
{
    static char text[20000];
    struct buffer out;
    buffer_init(&out, TOP_LINES_MAX);
    top_view_draw(&view, rows, 1000000, &out);
    text_copy(text, sizeof(text), buffer_text(&out));
    buffer_free(&out);
    return text;
}

static void
shows(const char *part)
{
    ok_named(strstr(drawn(0), part) != NULL, part);
}

static void
test_rates(void)
{
    counts(5000, 10, 100, 50);
    shows("a second   in - (last minute -), out - (-)\n");
    counts(7000, 12, 110, 51);
    shows("a second   in 5.0 (last minute 5.0), out 0.5 (0.5)\n");
    for (int s = 8; s <= 200; s++)
        counts(s * 1000, s + 5, 110 + (s - 7) * 3, 51);
    shows("a second   in 3.0 (last minute 3.0), out 0.0 (0.0)\n");
    counts(200500, 205, 110 + 193 * 3 + 100, 51);
    shows("a second   in 200.0 (last minute 4.");
    counts(201500, 1, 7, 7); /* restarted */
    shows("a second   in - (last minute -), out - (-)\n");
    counts(203500, 3, 17, 7);
    shows("a second   in 5.0 (last minute 5.0), out 0.0 (0.0)\n");
    counts(203500, 3, 17, 7); /* the same time: no rate */
    shows("a second   in - (last minute 5.0)");
    top_view_end(&view);
}

/* More often than a second: the minute is still a minute. */
static void
test_often(void)
{
    for (int i = 0; i <= 1200; i++)
        counts(1000 + i * 100, i / 10, i, 0);
    shows("a second   in 10.0 (last minute 10.0), out 0.0 (0.0)\n");
    ok(view.count > 100 && view.count <= 122);
    top_view_end(&view);
}

#define SITE(name, mail, open)                                                                                         \
    "{'site':'" name "','state':'alive','bound':'nothing','waiting':" #mail ",'backlogged':1,'sessions':" #open "}"

static void
test_lines(void)
{
    top_view_take(&view,
                  answer("{'version':'1.2','uptime_s':90,'accepting':false,'reason':'disk full','queue':{'incoming':1,'active':2,"
                         "'deferred':3,'hold':4,'corrupt':5,'defrag':6},'sessions':{'in':7,'out':8,'busy':6,'idle':2,'stress':true},"
                         "'site_totals':{'sites':9,'dead':1,'waiting':10,'backlogged':11},'sites':["
                         "{'site':'mx.a','state':'dead','bound':'dead','bound_until_ms':1012000,'waiting':5,'latency_ms':20},"
                         "{'site':'mx.b','state':'probing','bound':'window','window':2,'sessions':2,'busy':1},"
                         "{'site':'mx.c','state':'alive','bound':'rate','bound_until_ms':1003000}],"
                         "'findings':[{'severity':'error','code':'disk_low','subject':'','text':'t1'},"
                         "{'severity':'hint','code':'b','subject':'s','text':'t2'},{},{},{}]}"),
                  0);
    is_string(drawn(0),
              "petrel 1.2, up 1 min; accepts no mail: disk full\n"
              "error      disk_low: t1\n"
              "hint       b s: t2\n"
              "           : \n"
              "           and 2 more: see petrel status\n"
              "queue      1 incoming, 2 active, 3 deferred, 4 hold, 5 corrupt, 6 defrag\n"
              "sessions   7 in (near the limit), 8 out (6 busy, 2 idle)\n"
              "sites      9, 1 dead; 10 recipients waiting, 11 messages backlogged\n"
              "a second   in - (last minute -), out - (-)\n"
              "\n"
              "site                              mail window open busy  latency  bound (order: mail)\n"
              "mx.a                                 5      0    0    0    20 ms  dead, tried again in 12 s\n"
              "mx.b                                 0      2    2    1     0 ms  probing, window\n"
              "mx.c                                 0      0    0    0     0 ms  rate, next in 3 s\n",
              "all lines");
    view.trouble = "no daemon answers";
    view.paused = true;
    shows("; paused\nas it was:  no daemon answers\n");
    top_view_end(&view);
    ok(view.status == NULL);
}

static void
begins(size_t rows, const char *names)
{
    const char *table = strstr(drawn(rows), "  bound (");
    char said[100] = "";
    for (const char *line = table ? strchr(table, '\n') : NULL; line != NULL && line[1] != '\0'; line = strchr(line + 1, '\n'))
        snprintf(said + strlen(said), sizeof(said) - strlen(said), "%c", line[1]);
    is_string(said, names, "sites");
}

static void
test_sites(void)
{
    top_view_take(&view, answer("{'sites':[" SITE("b", 5, 1) "," SITE("a", 5, 0) "," SITE("d", 9, 0) "," SITE("c", 0, 7) "]}"), 0);
    begins(0, "dabc");
    view.order = TOP_BY_SESSIONS;
    begins(0, "cbda");
    view.order = TOP_BY_NAME;
    begins(0, "abcd");
    begins(9, "ab"); /* five lines, a heading, an empty one */
    begins(8, "a");
    ok(strstr(drawn(7), "  bound (") == NULL);
    ok(strstr(drawn(3), "petrel ") != NULL);
    view.scroll = 2;
    begins(0, "cd");
    view.scroll = 1000;
    begins(0, "d");
    is_number((int)view.scroll, 3, "not beyond the last one");
    top_view_end(&view);
    top_view_take(&view, answer("{}"), 0);
    view.scroll = 5;
    begins(0, "");
    is_number((int)view.scroll, 0, "no sites");
    top_view_end(&view);
}

int
main(void)
{
    test_rates();
    test_often();
    test_lines();
    test_sites();
    return done();
}
