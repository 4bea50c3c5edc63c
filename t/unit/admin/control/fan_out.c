/* Many hosts: those that answer, hang, break off, answer nonsense or far too much; and what
 * is held of their answers. */
/* link: t/sim/clock.c */
#include "admin/control/fan_out.h"

#include "base/memory.h"
#include "queue/queue_operator.h"
#include "t/sim/clock.h"
#include "t/support/control_world.h"
#include "t/support/folder.h"
#include "t/support/siblings_memory.h"
#include "t/support/until.h"

enum { MESSAGES = 5 };

static char folder[40];
static struct world w;
static struct siblings_memory m;
static struct fan_out *f;
static unsigned woken;

static void
on_wake(void *context)
{
    (void)context;
    woken++;
}

static void
begin(void)
{
    siblings_memory_begin(&m, w.loop, "own");
    woken = 0;
}

static void
ask_all(const char *command)
{
    json_t *request = json_pack("{s:s}", "command", command);
    f = fan_out_new(control_server_service(w.control), &m.who, on_wake, NULL);
    for (size_t i = 0; i < fan_out_count(f); i++)
        fan_out_ask(f, i, request, 10000);
    json_decref(request);
}

static void
end(void)
{
    fan_out_free(&f);
    ok(f == NULL);
    clock_turns(w.loop, 3);
    is_number(siblings_memory_open(&m), 0, "no question is left");
}

/* The lines of content of a host that is over. */
static unsigned
lines_of(size_t host)
{
    json_t *line;
    unsigned count = 0;
    for (;;) {
        enum fan_out_state state = fan_out_take(f, host, &line);
        if (state == FAN_OUT_OVER)
            return count;
        if (state == FAN_OUT_WAITS) {
            clock_turn(w.loop);
        } else {
            json_decref(line);
            count++;
        }
    }
}

TEST(answers)
{
    begin();
    siblings_memory_add(&m, "b")->answer = "{\"a\":1}\n{\"seen\":7}\n{\"id\":\"x\",\"ok\":false}\n{\"ok\":true,\"end\":true,\"next\":\"n\"}\n";
    siblings_memory_add(&m, "c")->answer = "{\"ok\":false,\"error\":\"it is too late\"}\n";
    siblings_memory_add(&m, "own")->answer = "{\"ok\":true}\n";
    ask_all("list");
    is_number((long)fan_out_count(f), 3, "our own and two others");
    is_number((long)fan_out_find(f, "c"), 2, "by name");
    is_number((long)fan_out_find(f, "d"), 3, "or not");
    is_number(lines_of(1), 2, "two lines of content");
    is_number((long)fan_out_seen(f), 7, "a sign of life is none of them");
    is_string(json_string_value(json_object_get(fan_out_last(f, 1), "next")), "n", "the last line");
    is_string(fan_out_trouble(f, 1), "", "no trouble");
    is_number(lines_of(2), 0, "a refusal has no content");
    is_string(fan_out_trouble(f, 2), "it is too late", "and says why");
    is_number(lines_of(0), MESSAGES, "our own messages");
    ok_named(fan_out_last(f, 0) != NULL && fan_out_trouble(f, 0)[0] == '\0', "and their end");
    is_number(m.hosts[2].asked, 0, "we are not asked by the peer door");
    ok(woken > 0);
    end();
}

TEST(troubles)
{
    static const struct {
        const char *name, *answer, *breaks, *trouble;
        unsigned lines;
    } rows[] = {
        {"garbage", "{\"a\":1}\nthis is no JSON\n{\"ok\":true}\n",       NULL,                 "its answer is not understood",     1},
        {"number",  "17\n",                                              NULL,                 "its answer is not understood",     0},
        {"array",   "[1]\n",                                             NULL,                 "its answer is not understood",     0},
        {"twice",   "{\"ok\":true}\n{\"ok\":true}\n",                    NULL,                 "its answer is not understood",     0},
        {"endless", "{\"a\":1}\n",                                       NULL,                 "its answer has no end",            1},
        {"empty",   "",                                                  NULL,                 "its answer has no end",            0},
        {"breaks",  "{\"a\":1}\n{\"a\":2}\n",                            "the connection broke", "the connection broke",           2},
        {"refuses", "{\"ok\":false}\n",                                  NULL,                 "it refused",                       0},
        {"secret",  NULL,                                                "TLS: wrong secret",  "TLS: wrong secret",                0},
    };
    size_t count = sizeof(rows) / sizeof(rows[0]);
    begin();
    for (size_t i = 0; i < count; i++) {
        struct memory_host *h = siblings_memory_add(&m, rows[i].name);
        h->answer = rows[i].answer;
        h->breaks = rows[i].breaks;
    }
    siblings_memory_add(&m, "nowhere")->has_no_address = true;
    siblings_memory_add(&m, "lost")->is_lost = true;
    ask_all("list");
    for (size_t i = 0; i < count; i++) {
        is_number(lines_of(i + 1), rows[i].lines, rows[i].name);
        is_string(fan_out_trouble(f, i + 1), rows[i].trouble, rows[i].name);
    }
    is_number(lines_of(count + 1), 0, "no address, no question");
    is_string(fan_out_trouble(f, count + 1), "its address is not known", "which is said");
    is_number(lines_of(count + 2), 0, "a lost host");
    is_string(fan_out_trouble(f, count + 2), "lost; no answer for 2 s", "is given 2 s");
    clock_turn(w.loop);
    is_number(m.hosts[count + 1].ignored, 1, "and then no more");
    end();
}

/* Texts of another host go to JSON and to terminals. */
TEST(control_characters)
{
    json_t *line;
    begin();
    siblings_memory_add(&m, "error")->answer = "{\"ok\":false,\"error\":\"a\\u001b]0;x\\u0007 b\xc2\x9b\x31m\"}\n";
    siblings_memory_add(&m, "cut")->answer = "{\"ok\":false,\"error\":\"-\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
                                             "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
                                             "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
                                             "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
                                             "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
                                             "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\"}\n";
    siblings_memory_add(&m, "breaks")->breaks = "it said: 451 \xff\x1b[2J";
    siblings_memory_add(&m, "line")->answer =
        "{\"a\":\"x\\u001b[2J\xc3\xa9\xc2\x9b\",\"b\":[[\"\\u007f\",{\"c\":\"\\n\",\"\\u001b\":1}]],\"d\":1}\n{\"ok\":true}\n";
    ask_all("list");
    for (size_t i = 1; i <= 3; i++) {
        is_number(lines_of(i), 0, "no line");
        json_t *text = json_string(fan_out_trouble(f, i));
        ok_named(text != NULL && strpbrk(json_string_value(text), "\x1b\x07") == NULL, "trouble can be written, and read");
        json_decref(text);
    }
    is_string(fan_out_trouble(f, 1), "a?]0;x? b?1m", "nothing for a terminal");
    while (fan_out_take(f, 4, &line) == FAN_OUT_WAITS)
        clock_turn(w.loop);
    char *text = json_dumps(line, JSON_COMPACT | JSON_SORT_KEYS);
    is_string(text, "{\"a\":\"x?[2J\xc3\xa9?\",\"b\":[[\"?\",{\"c\":\"?\"}]],\"d\":1}", "nor in lines");
    free(text);
    json_decref(line);
    is_number(lines_of(4), 0, "that was all");
    end();
}

static const char *
answer_late(const struct memory_host *host, const char *line)
{
    (void)host, (void)line;
    return NULL;
}

/* Two seconds from the question, or from the last sign of life. */
TEST(silence)
{
    json_t *line;
    begin();
    siblings_memory_add(&m, "b")->answers = answer_late;
    int64_t begun_ms = loop_monotonic_ms(w.loop);
    ask_all("list");
    while (fan_out_take(f, 1, &line) == FAN_OUT_WAITS)
        clock_turn(w.loop);
    int64_t took_ms = loop_monotonic_ms(w.loop) - begun_ms;
    ok_named(took_ms >= FAN_OUT_SILENCE_MS && took_ms < FAN_OUT_SILENCE_MS + 1000, "two seconds");
    is_string(fan_out_trouble(f, 1), "no answer for 2 s", "why");
    json_t *request = json_pack("{s:s}", "command", "list");
    m.hosts[0].answers = NULL;
    m.hosts[0].answer = "{\"a\":1}\n{\"ok\":true}\n";
    fan_out_ask(f, 1, request, 10000);
    json_decref(request);
    is_number(lines_of(1), 1, "it may be asked again");
    is_string(fan_out_trouble(f, 1), "", "and there is no trouble then");
    end();
}

static char *huge;

TEST(too_much)
{
    enum { LINE = 60 * 1000, LINES = 8 * 1024 * 1024 / LINE };
    huge = memory_new((size_t)LINES * (LINE + 20) + 100);
    size_t at = 0;
    for (unsigned i = 0; i < LINES; i++) {
        at += (size_t)sprintf(huge + at, "{\"a\":\"");
        memset(huge + at, 'x', LINE);
        at += LINE;
        at += (size_t)sprintf(huge + at, "\"}\n");
    }
    strcpy(huge + at, "{\"ok\":true}\n");
    static const char *const names[] = {"b", "c", "d", "e", "f"};
    unsigned whole = 0, cut = 0;
    begin();
    for (size_t i = 0; i < 5; i++)
        siblings_memory_add(&m, names[i])->answer = huge;
    ask_all("list");
    clock_turns(w.loop, 5);
    for (size_t i = 1; i <= 5; i++) {
        unsigned lines = lines_of(i);
        whole += lines == LINES && fan_out_trouble(f, i)[0] == '\0';
        cut += strcmp(fan_out_trouble(f, i), "its answer is longer than is waited for") == 0;
    }
    is_number(whole, 4, "answers of 8 MiB fit while there is space");
    is_number(cut, 1, "others are cut off, and that is said");
    end();
    memset(huge, ' ', 70 * 1000);
    strcpy(huge + 70 * 1000, "\n{\"ok\":true}\n");
    begin();
    siblings_memory_add(&m, "b")->answer = huge;
    ask_all("list");
    is_number(lines_of(1), 0, "a line is not longer than lines may be");
    is_string(fan_out_trouble(f, 1), "its answer is longer than is waited for", "or it is cut off");
    end();
    free(huge);
}

TEST(leaving)
{
    begin();
    siblings_memory_add(&m, "b")->answer = "{\"a\":1}\n{\"ok\":true}\n";
    siblings_memory_add(&m, "c");
    ask_all("list");
    end();
    is_number(woken, 0, "nobody is woken who has gone");
    is_number(m.hosts[1].ignored, 1, "and no answer comes to him");
    begin();
    for (size_t i = 0; i < MEMORY_HOSTS_MAX; i++)
        siblings_memory_add(&m, "many")->answer = "{\"ok\":true}\n";
    ask_all("list");
    is_number((long)fan_out_count(f), GROUP_HOSTS_MAX, "a group has an end");
    is_number(lines_of(GROUP_HOSTS_MAX - 1), 0, "the last one answers");
    end();
}

int
main(void)
{
    folder_make(folder, sizeof(folder), "fan");
    control_world_begin(&w, folder, TEXT("* hold"));
    control_turns(&w, 20);
    for (unsigned i = 0; i < MESSAGES; i++)
        post_mail(&w, 1, "keep.test");
    until(&w, w.accepted == MESSAGES && queue_count_apart(manager_queue(w.manager)).held == MESSAGES);
    clock_stop();
    tap_tests("");
    clock_go();
    control_world_end(&w);
    folder_remove(folder);
    return done();
}
