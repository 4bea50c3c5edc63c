/* One request for all hosts: lists that are merged by age, a message that has moved,
 * operations that one host can do, and hosts that do not answer. */
/* link: t/sim/clock.c */
#include "admin/control/cluster_answer.h"

#include "queue/queue_operator.h"
#include "t/sim/clock.h"
#include "t/support/control_world.h"
#include "t/support/folder.h"
#include "t/support/siblings_memory.h"
#include "t/support/until.h"

enum { MESSAGES = 5, PATIENCE_MS = 30 * 1000 };

static char folder[40];
static struct world w;
static struct siblings_memory m;
static struct control_service *service;

/* --- A client ----------------------------------------------------------------------- */

static struct control_session *session;
static json_t *lines; /* but for signs of life */
static unsigned done_count, unread;
static bool reads;

static void
on_line(void *context, struct text json)
{
    (void)context;
    json_t *line = json_loadb(json.at, json.length, 0, NULL);
    unread++;
    if (line == NULL)
        abort();
    if (json_object_get(line, "seen") != NULL)
        json_decref(line);
    else
        json_array_append_new(lines, line);
}

static bool
is_full(void *context)
{
    (void)context;
    return !reads && unread > 2;
}

static bool
is_idle(void *context)
{
    (void)context;
    return true;
}

static void
on_done(void *context)
{
    (void)context;
    done_count++;
}

static void
ask(json_t *request)
{
    char *line = json_dumps(request, 0);
    json_decref(request);
    json_decref(lines);
    lines = json_array();
    unread = 0;
    unsigned before = done_count;
    bool is_answered = control_session_take(session, text_from(line));
    free(line);
    for (int64_t ms = 0; ms < PATIENCE_MS && !is_answered && done_count == before; ms++) {
        clock_turn(w.loop);
        if (!reads && is_full(NULL)) {
            unread = 0;
            control_session_resume(session);
        }
    }
    ok_named(is_answered || done_count == before + 1, "there is an answer");
}

static const char *
word(size_t line, const char *key)
{
    const char *value = json_string_value(json_object_get(json_array_get(lines, line), key));
    return value != NULL ? value : "";
}

static long
number(size_t line, const char *key)
{
    return (long)json_integer_value(json_object_get(json_array_get(lines, line), key));
}

static size_t
count_lines(void)
{
    return json_array_size(lines);
}

static size_t
last(void)
{
    return count_lines() - 1;
}

/* --- Without a group ---------------------------------------------------------------- */

TEST(refusals)
{
    service->cluster = NULL;
    ask(json_pack("{s:s,s:b}", "command", "list", "cluster", true));
    is_string(word(0, "error"), "this host is in no group: cluster is not set", "there is no group");
    siblings_memory_begin(&m, w.loop, "own");
    service->cluster = &m.who;
    m.who.calls = NULL;
    m.who.why = "there is no peer door";
    ask(json_pack("{s:s,s:b}", "command", "list", "cluster", true));
    is_string(word(0, "error"), "there is no peer door", "there is no way to the others");
    m.who.calls = &m.calls;
    static const char *const others[] = {"rm", "bounce", "cat", "adopt", "sites", "http", "nonsense"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        ask(json_pack("{s:s,s:b,s:b}", "command", others[i], "cluster", true, "all", true));
        is_string(word(0, "error"), "that is not asked of all hosts", others[i]);
    }
    ask(json_pack("{s:s,s:s}", "command", "list", "cluster", "yes"));
    is_string(word(0, "error"), "cluster must be true or false, not a string", "a type is a type");
    ask(json_pack("{s:s,s:b,s:i}", "command", "list", "cluster", true, "limit", 0));
    is_string(word(0, "error"), "limit is 1 to 10000", "a limit is a limit");
}

/* --- Lists -------------------------------------------------------------------------- */

enum { FAR = 30, PAGE = 4 };
static char far_ids[FAR][ID_LENGTH + 1]; /* of a host with pages of PAGE lines */

static void
name_far(void)
{
    for (unsigned i = 0; i < FAR; i++)
        id_format((struct id){.time_ms = (i % 2 ? UINT64_C(1749600000000) : UINT64_C(3000000000000)) + i, .hash = 5}, far_ids[i]);
}

static int
compare_names(const void *a, const void *b)
{
    struct id x, y;
    if (!id_parse(text_from(a), &x) || !id_parse(text_from(b), &y))
        abort();
    return id_compare(x, y);
}

static const char *
answer_pages(const struct memory_host *host, const char *line)
{
    static char answer[4000];
    json_t *request = json_loads(line, 0, NULL);
    const char *after = json_string_value(json_object_get(request, "after"));
    unsigned i = 0;
    size_t at = 0;
    (void)host;
    while (after != NULL && i < FAR && compare_names(far_ids[i], after) <= 0)
        i++;
    unsigned end = i + PAGE < FAR ? i + PAGE : FAR;
    for (; i < end; i++)
        at += (size_t)snprintf(answer + at, sizeof(answer) - at, "{\"queue_id\":\"%s\",\"queue_name\":\"deferred\"}\n", far_ids[i]);
    if (end < FAR)
        snprintf(answer + at, sizeof(answer) - at, "{\"ok\":true,\"end\":true,\"next\":\"%s\"}\n", far_ids[end - 1]);
    else
        snprintf(answer + at, sizeof(answer) - at, "{\"ok\":true,\"end\":true,\"next\":null}\n");
    json_decref(request);
    return answer;
}

static bool
is_sorted(size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (compare_names(word(i - 1, "queue_id"), word(i, "queue_id")) > 0)
            return false;
    return true;
}

static unsigned
count_of(const char *host)
{
    unsigned count = 0;
    for (size_t i = 0; i < count_lines(); i++)
        count += strcmp(word(i, "host"), host) == 0 && word(i, "queue_id")[0] != '\0';
    return count;
}

static void
list_hosts(void)
{
    siblings_memory_begin(&m, w.loop, "own");
    siblings_memory_add(&m, "far")->answers = answer_pages;
    siblings_memory_add(&m, "twin")->service = service;
    siblings_memory_add(&m, "deaf");
    struct memory_host *torn = siblings_memory_add(&m, "torn");
    torn->answer = "{\"queue_id\":\"nonsense\"}\n";
    torn->breaks = "the connection broke";
}

TEST(list)
{
    list_hosts();
    ask(json_pack("{s:s,s:b,s:i}", "command", "list", "cluster", true, "limit", 1000));
    is_number(count_of("own"), MESSAGES, "our own");
    is_number(count_of("far"), FAR, "all pages of a host");
    is_number(count_of("twin"), MESSAGES, "those of another daemon");
    is_string(word(0, "queue_id"), "nonsense", "even what has no name");
    ok_named(is_sorted(0), "none are out of order");
    size_t content = 1 + FAR + 2 * MESSAGES;
    is_number((long)count_lines(), (long)content + 3, "and two hosts in trouble, and the end");
    for (size_t i = 2; i < content; i++)
        if (compare_names(word(i - 1, "queue_id"), word(i, "queue_id")) > 0)
            ok_named(false, "the oldest first");
    is_string(word(content, "host"), "deaf", "who does not answer comes last");
    is_string(word(content, "trouble"), "no answer for 2 s", "with the reason");
    is_string(word(content + 1, "trouble"), "the connection broke", "who breaks off, too");
    is_number(number(last(), "hosts"), 5, "five hosts");
    is_number(number(last(), "silent"), 2, "two of them in trouble");
    ok_named(json_is_null(json_object_get(json_array_get(lines, last()), "next")), "there is nothing more");
    is_number(m.hosts[0].asked, (FAR + PAGE - 1) / PAGE, "page by page");
    ok_named(strstr(m.hosts[0].line, "cluster") == NULL, "the question that is passed on is for one host");
    ok_named(strstr(m.hosts[0].line, "\"bytes\":524288") != NULL, "a page is limited");
}

/* Hosts that would never come to an end. */
TEST(list_round)
{
    siblings_memory_begin(&m, w.loop, "own");
    siblings_memory_add(&m, "page")->answer =
        "{\"queue_id\":\"01JD3ZK5Q8-9F3K2C7A\"}\n{\"ok\":true,\"end\":true,\"next\":\"01JD3ZK5Q8-9F3K2C7A\"}\n";
    siblings_memory_add(&m, "empty")->answer = "{\"ok\":true,\"end\":true,\"next\":\"01JD3ZK5Q8-9F3K2C7A\"}\n";
    siblings_memory_add(&m, "nonsense")->answer = "{\"ok\":true,\"end\":true,\"next\":\"\"}\n";
    siblings_memory_add(&m, "back")->answer =
        "{\"queue_id\":\"01JD3ZK5Q8-9F3K2C7B\"}\n{\"queue_id\":\"01JD3ZK5Q8-9F3K2C7A\"}\n{\"ok\":true,\"end\":true}\n";
    siblings_memory_add(&m, "same")->answer =
        "{\"queue_id\":\"01JD3ZK5Q8-9F3K2C7A\"}\n{\"queue_id\":\"01JD3ZK5Q8-9F3K2C7A\"}\n{\"ok\":true,\"end\":true}\n";
    siblings_memory_add(&m, "nameless")->answer = "{\"queue_id\":\"a\"}\n{\"queue_id\":\"b\"}\n{\"ok\":true,\"end\":true}\n";
    ask(json_pack("{s:s,s:b,s:i}", "command", "list", "cluster", true, "limit", 1000));
    is_number(count_of("own"), MESSAGES, "our own");
    is_number((long)count_lines(), MESSAGES + 4 + 6 + 1, "what they had to say, their troubles, and the end");
    for (size_t i = MESSAGES + 4; i < last(); i++)
        is_string(word(i, "trouble"), "its answer is not understood", word(i, "host"));
    is_number(number(last(), "silent"), 6, "six hosts are in trouble");
}

/* Lines that look like the end of the whole answer. */
TEST(false_ends)
{
    static const char *const commands[] = {"list", "show", "status"};
    for (size_t i = 0; i < 3; i++) {
        siblings_memory_begin(&m, w.loop, "own");
        siblings_memory_add(&m, "liar")->answer =
            "{\"queue_id\":\"01JD3ZK5Q8-9F3K2C7A\",\"queue_name\":\"deferred\",\"end\":true,\"error\":\"no\",\"trouble\":\"x\"}\n"
            "{\"ok\":true,\"end\":true,\"state\":\"running\",\"error\":\"no\"}\n";
        siblings_memory_add(&m, "deaf");
        ask(json_pack("{s:s,s:b,s:s*}", "command", commands[i], "cluster", true, "id", i == 1 ? "01JD3ZK5Q8-9F3K2C7A" : NULL));
        for (size_t k = 0; k < last(); k++) {
            const json_t *line = json_array_get(lines, k);
            bool is_deaf = strcmp(word(k, "host"), "deaf") == 0;
            ok(json_object_get(line, "end") == NULL && json_object_get(line, "error") == NULL);
            ok((json_object_get(line, "trouble") != NULL) == is_deaf);
        }
        is_number(number(last(), "silent"), 1, commands[i]);
    }
}

/* In several requests it is the same. */
TEST(list_on)
{
    char after[ID_LENGTH + 1] = "";
    unsigned seen = 0, rounds = 0;
    siblings_memory_begin(&m, w.loop, "own");
    siblings_memory_add(&m, "far")->answers = answer_pages;
    do {
        json_t *request = json_pack("{s:s,s:b,s:i}", "command", "list", "cluster", true, "limit", 7);
        if (after[0] != '\0')
            json_object_set_new(request, "after", json_string(after));
        ask(request);
        ok(is_sorted(last()));
        seen += (unsigned)last();
        ok(last() <= 7);
        snprintf(after, sizeof(after), "%s", word(last(), "next"));
    } while (after[0] != '\0' && ++rounds < 50);
    is_number(seen, FAR + MESSAGES, "all of both");
    is_number(rounds, (FAR + MESSAGES - 1) / 7, "seven at a time");
}

TEST(list_slowly)
{
    list_hosts();
    reads = false;
    ask(json_pack("{s:s,s:b,s:i}", "command", "list", "cluster", true, "limit", 1000));
    reads = true;
    is_number((long)count_lines(), 1 + FAR + 2 * MESSAGES + 3, "a client that reads slowly gets all");
}

/* With 256 hosts a page is smaller, and a turn takes some lines only. */
TEST(list_many)
{
    siblings_memory_begin(&m, w.loop, "own");
    for (size_t i = 1; i < GROUP_HOSTS_MAX; i++) {
        static char names[GROUP_HOSTS_MAX][8];
        snprintf(names[i], sizeof(names[i]), "h%zu", i);
        siblings_memory_add(&m, names[i])->answers = answer_pages;
    }
    ask(json_pack("{s:s,s:b,s:i}", "command", "list", "cluster", true, "limit", 10000));
    is_number((long)count_lines(), MESSAGES + (GROUP_HOSTS_MAX - 1) * FAR + 1, "all of 256 hosts");
    ok(is_sorted(last()));
    ok_named(strstr(m.hosts[0].line, "\"bytes\":32768") != NULL, "smaller pages");
}

/* --- A message ---------------------------------------------------------------------- */

static char name_a[ID_LENGTH + 1], name_b[ID_LENGTH + 1], name_c[ID_LENGTH + 1];

static const char *
answer_show(const struct memory_host *host, const char *line)
{
    static char answer[1000];
    const char *to = NULL, *as = NULL;
    if (strcmp(host->name, "b") == 0 && strstr(line, name_a) != NULL)
        to = "c", as = name_b;
    if (strcmp(host->name, "c") == 0 && strstr(line, name_b) != NULL)
        to = "d", as = name_c;
    if (strcmp(host->name, "round") == 0)
        to = "round", as = name_a;
    if (strcmp(host->name, "lost") == 0)
        to = "nobody", as = name_b;
    if (to != NULL)
        snprintf(answer, sizeof(answer), "{\"queue_id\":\"x\",\"queue_name\":\"gone\",\"given\":{\"host\":\"%s\",\"id\":\"%s\",\"time_ms\":1}}\n{\"ok\":true,\"end\":true}\n", to, as);
    else if (strcmp(host->name, "d") == 0 && strstr(line, name_c) != NULL)
        snprintf(answer, sizeof(answer), "{\"queue_id\":\"%s\",\"queue_name\":\"deferred\"}\n{\"ok\":true,\"end\":true}\n", name_c);
    else
        snprintf(answer, sizeof(answer), "{\"ok\":true,\"end\":true}\n");
    return answer;
}

static void
show_hosts(const char *const *names, size_t count)
{
    siblings_memory_begin(&m, w.loop, "own");
    for (size_t i = 0; i < count; i++)
        siblings_memory_add(&m, names[i])->answers = answer_show;
}

static json_t *
show_request(const char *id)
{
    return json_pack("{s:s,s:b,s:s,s:b}", "command", "show", "cluster", true, "id", id, "why", true);
}

TEST(show)
{
    static const char *const moved[] = {"b", "c", "d"}, *const round[] = {"round"}, *const lost[] = {"lost"};
    id_format((struct id){.time_ms = 1, .hash = 1}, name_a);
    id_format((struct id){.time_ms = 2, .hash = 1}, name_b);
    id_format((struct id){.time_ms = 3, .hash = 1}, name_c);
    show_hosts(moved, 3);
    ask(show_request(name_a));
    is_number((long)count_lines(), 4, "a message that has moved twice");
    is_string(word(0, "host"), "b", "who had it");
    is_string(word(1, "host"), "c", "who had it then");
    is_string(word(2, "host"), "d", "who has it");
    is_string(word(2, "queue_id"), name_c, "by another name");
    is_number(number(3, "silent"), 0, "nobody is in trouble");
    is_number(m.hosts[0].asked + m.hosts[1].asked + m.hosts[2].asked, 5, "all are asked once, then who was named");
    char own[ID_LENGTH + 1];
    id_format(w.id, own);
    ask(show_request(own));
    is_string(word(0, "host"), "own", "one of our own");
    is_string(word(0, "queue_name"), "hold", "its place");
    is_number((long)count_lines(), 2, "nobody else has it");
    ask(show_request(name_c));
    is_string(word(0, "host"), "d", "one that another host has");
    show_hosts(round, 1);
    ask(show_request(name_a));
    is_number((long)count_lines(), CLUSTER_FOLLOWS_MAX + 2, "a ring has an end");
    show_hosts(lost, 1);
    ask(show_request(name_a));
    is_string(word(1, "host"), "nobody", "one that was given to a host that nobody knows");
    is_string(word(1, "trouble"), "it is not in the group now", "which is said");
    is_number(number(2, "silent"), 1, "and counted");
    siblings_memory_begin(&m, w.loop, "own");
    ask(show_request("nonsense"));
    is_string(word(0, "trouble"), "invalid id", "what is no id, is none on our host");
}

/* --- Operations --------------------------------------------------------------------- */

TEST(operations)
{
    char own[ID_LENGTH + 1];
    id_format(w.id, own);
    siblings_memory_begin(&m, w.loop, "own");
    struct memory_host *b = siblings_memory_add(&m, "b"), *c = siblings_memory_add(&m, "c");
    b->answer = "{\"id\":\"B\",\"ok\":true,\"code\":0,\"text\":\"held\"}\n{\"ok\":true,\"end\":true}\n";
    char missing[300];
    snprintf(missing, sizeof(missing), "{\"id\":\"%s\",\"ok\":false,\"code\":65,\"text\":\"no such message\",\"missing\":true}\n{\"ok\":true,\"end\":true}\n", own);
    c->answer = missing;
    ask(json_pack("{s:s,s:b,s:[s,s]}", "command", "hold", "cluster", true, "ids", own, name_a));
    is_number((long)count_lines(), 4, "one of them is nowhere");
    is_string(word(last() - 1, "id"), name_a, "that one");
    is_string(word(last() - 1, "text"), "no such message on any host", "is reported once");
    is_number(number(last() - 1, "code"), 65, "as wrong");
    bool had_own = false;
    for (size_t i = 0; i < 2; i++)
        had_own = had_own || (strcmp(word(i, "host"), "own") == 0 && strcmp(word(i, "id"), own) == 0);
    ok_named(had_own, "the other by who has it");
    c->answer = NULL;
    ask(json_pack("{s:s,s:b,s:[s]}", "command", "release", "cluster", true, "ids", name_a));
    is_string(word(last() - 2, "text"), "no such message on the hosts that answered", "while a host does not answer, nobody knows");
    is_string(word(last() - 1, "host"), "c", "who that is");
    ask(json_pack("{s:s,s:b,s:b}", "command", "hold", "cluster", true, "all", true));
    is_number(number(last(), "silent"), 1, "all of all hosts but one");
}

/* --- The status --------------------------------------------------------------------- */

static json_t *
answer_summary(void *context, const json_t *request)
{
    (void)context, (void)request;
    return json_pack("{s:b,s:s}", "ok", true, "version", "1");
}

TEST(status)
{
    siblings_memory_begin(&m, w.loop, "own");
    siblings_memory_add(&m, "b")->answer = "{\"ok\":true,\"version\":\"2\"}\n";
    siblings_memory_add(&m, "c")->breaks = "connection refused";
    ask(json_pack("{s:s,s:b}", "command", "status", "cluster", true));
    is_number((long)count_lines(), 4, "two that answer, and one that does not");
    ok_named(strcmp(word(0, "version"), word(1, "version")) != 0, "each its own");
    is_string(word(2, "trouble"), "connection refused", "why");
    ok_named(json_object_get(json_array_get(lines, 0), "ok") == NULL, "none of them is the end");
    ok_named(strstr(m.hosts[0].line, "\"summary\"") != NULL, "they are asked for a summary");
}

/* Texts of others may be anything. */
TEST(odd_trouble)
{
    siblings_memory_begin(&m, w.loop, "own");
    siblings_memory_add(&m, "b")->breaks = "it said \xff\x1b[31m";
    siblings_memory_add(&m, "c")->answer = "{\"ok\":false,\"error\":\"\\u001b[2J\"}\n";
    ask(json_pack("{s:s,s:b}", "command", "status", "cluster", true));
    is_string(word(1, "host"), "b", "a trouble that is no text");
    ok_named(word(1, "trouble")[0] != '\0' && strchr(word(1, "trouble"), 0x1b) == NULL, "is said in harmless bytes");
    ok_named(word(2, "trouble")[0] != '\0' && strchr(word(2, "trouble"), 0x1b) == NULL, "as an error is");
}

TEST(leaving)
{
    list_hosts();
    char line[] = "{\"command\":\"list\",\"cluster\":true}";
    ok(!control_session_take(session, text_from(line)));
    control_session_free(&session);
    clock_turns(w.loop, 3);
    is_number(siblings_memory_open(&m), 0, "a client that leaves takes its questions along");
    ok(service->sessions == NULL && service->asked == 0);
}

int
main(void)
{
    folder_make(folder, sizeof(folder), "all");
    control_world_begin(&w, folder, TEXT("* hold"));
    control_turns(&w, 20);
    for (unsigned i = 0; i < MESSAGES; i++)
        post_mail(&w, 1, "keep.test");
    until(&w, w.accepted == MESSAGES && queue_count_apart(manager_queue(w.manager)).held == MESSAGES);
    clock_stop();
    name_far();
    qsort(far_ids, FAR, sizeof(far_ids[0]), compare_names);
    service = control_server_service(w.control);
    questions_on(control_server_questions(w.control), "summary", answer_summary, NULL);
    session = control_session_new(service, &(struct control_transport){.line = on_line, .is_full = is_full, .is_idle = is_idle, .done = on_done});
    reads = true;
    tap_tests("");
    json_decref(lines);
    service->cluster = NULL;
    clock_go();
    control_world_end(&w);
    folder_remove(folder);
    return done();
}
