/* The control socket and its clients, over a real socket to a real manager. */
#include "admin/view/control_client.h"
#include "base/json_field.h"
#include "admin/view/counters.h"

#include "t/support/control_world.h"
#include "t/support/folder.h"
#include "t/support/until.h"

#include <sys/stat.h>
#include <unistd.h>

enum { SOME = 20 }; /* turns, enough for what waits for no disk */

static char folder[40];

static void
serve(void *context)
{
    struct world *w = context;
    struct delivery_request errand;
    if (w->stalled)
        return;
    while (manager_take(w->manager, w->session, &errand))
        for (size_t i = 0; i < errand.count; i++) {
            struct outcome later =
                outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 450, "4.2.0",
                             "host said: 450 \x1b[2J not %u", errand.indexes[i]);
            manager_settled(w->manager, &errand, i, &later, NULL);
        }
    manager_session_ended(w->manager, w->session, &outcome_no_trouble);
    w->session = NULL;
}

static void
open_session(void *context, struct sched_session *session, const struct target *target,
             const char *domain)
{
    struct world *w = context;
    (void)target;
    (void)domain;
    if (w->session)
        abort();
    w->session = session;
    loop_post(w->loop, &w->task, serve, w);
}

static void
begin(struct world *w)
{
    control_world_begin(
        w, folder,
        TEXT("later.test smtp://x.test?recipients=0&concurrency=1&initial=1\n"
             "keep.test hold\n* discard"));
    manager_set_channel(w->manager, TARGET_SMTP, open_session, w);
    control_turns(w, SOME);
}

static void
end(struct world *w)
{
    w->stalled = false;
    if (w->session)
        serve(w);
    control_world_end(w);
}

/* The last message waits, or is held, and its files say so. */
static bool
is_at_rest(const struct world *w)
{
    char name[ID_LENGTH + 1], path[sizeof(folder) + sizeof(name) + 8];
    id_format(w->id, name);
    snprintf(path, sizeof(path), "%s/todo/%s", folder, name);
    return manager_active(w->manager, w->id) == NULL && access(path, F_OK) != 0;
}

static void
send_mail(struct world *w, unsigned recipients, const char *domain)
{
    unsigned before = w->accepted;
    post_mail(w, recipients, domain);
    until(w, w->accepted > before && (w->stalled ? w->session != NULL : is_at_rest(w)));
}

/* The last one may be at rest before the others: it has not yet been come to then. */
static bool
has_tried_all(const struct world *w)
{
    struct sched_counts counts = sched_count(manager_sched(w->manager));
    return counts.incoming == 0 && counts.active == 0 && is_at_rest(w);
}

static void
send_many(struct world *w, unsigned count, const char *domain)
{
    unsigned before = w->accepted;
    for (unsigned i = 0; i < count; i++)
        post_mail(w, 1, domain);
    until(w, w->accepted == before + count && has_tried_all(w));
}

static struct control_client *
connected(struct world *w)
{
    char error[300] = "";
    struct control_client *a =
        control_client_new(w->loop, w->path, error, sizeof(error));
    if (!ok_named(a != NULL, "it answers"))
        printf("# %s\n", error);
    return a;
}

static json_t *
about(struct control_client *a, const char *command, struct id id)
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    return control_client_question(
        a, json_pack("{s:s,s:s}", "command", command, "id", name));
}

static void
is_answer(json_t *answer, const char *want, const char *name)
{
    char *got = json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS);
    is_string(got ? got : "(nothing)", want, name);
    free(got);
    json_decref(answer);
}

static const char *
string_at(const json_t *answer, const char *key)
{
    const char *value = json_string_value(json_object_get(answer, key));
    return value ? value : "(none)";
}

TEST(slices)
{
    static const struct {
        const char *request, *answer;
    } rows[] = {
        {"{\"command\":\"adopt\"}",                 "invalid slice"                       },
        {"{\"command\":\"adopt\",\"slice\":\"1\"}", "slice must be a whole number, not a string"},
        {"{\"command\":\"adopt\",\"slice\":-1}",    "invalid slice"                       },
        {"{\"command\":\"adopt\",\"slice\":1024}",  "invalid slice"                       },
        {"{\"command\":\"adopt\",\"slice\":1}",     "no such slice: there are 0 to 0"     },
        {"{\"command\":\"adopt\",\"slice\":0}",     "slice 0 of 1 is handled here already"},
    };
    FIXTURE(world, w, begin, end);
    struct control_client *a = connected(&w);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *answer =
            control_client_question(a, json_loads(rows[i].request, 0, NULL));
        ok(json_is_false(json_object_get(answer, "ok")));
        is_string(string_at(answer, "error"), rows[i].answer, rows[i].request);
        json_decref(answer);
    }
    control_client_free(&a);
}

TEST(state)
{
    FIXTURE(world, w, begin, end);
    struct stat status;
    ok(stat(w.path, &status) == 0 && S_ISSOCK(status.st_mode));
    is_number(status.st_mode & 0777, 0600, "for root and the daemon's user");
    struct control_client *a = connected(&w);
    json_t *answer = about(a, "state", (struct id){.time_ms = 1, .hash = 2});
    is_answer(answer,
              "{\"attempts\":0,\"due_ms\":0,\"ok\":true,\"place\":\"gone\","
              "\"reasons\":[\"\"]}",
              "an unknown message");
    send_mail(&w, 2, "later.test");
    answer = about(a, "state", w.id);
    is_string(string_at(answer, "place"), "deferred", "deferred");
    is_number(json_integer_value(json_object_get(answer, "attempts")), 1, "once");
    ok(json_integer_value(json_object_get(answer, "due_ms")) > loop_now_ms(w.loop));
    const json_t *reasons = json_object_get(answer, "reasons");
    is_number(json_array_size(reasons), 1, "one reason is kept of what waits");
    is_string(json_string_value(json_array_get(reasons, 0)),
              "host said: 450 \\x1b[2J not 1", "escaped");
    json_decref(answer);
    char name[ID_LENGTH + 1];
    id_format(w.id, name);
    answer = control_client_question(a, json_pack("{s:s,s:[s,s]}", "command", "states",
                                                  "ids", "01JD3ZK5Q8-9F3K2C7A", name));
    reasons = json_array_get(json_object_get(answer, "states"), 1);
    is_string(string_at(reasons, "place"), "deferred",
              "of many at once, in their order");
    json_decref(answer);
    control_client_free(&a);
    control_client_free(&a);
}

/* All that state tells, and what it waits for. */
TEST(why)
{
    FIXTURE(world, w, begin, end);
    struct control_client *a = connected(&w);
    json_t *answer = about(a, "why", (struct id){.time_ms = 1, .hash = 2});
    is_string(string_at(answer, "place"), "gone", "an unknown message");
    is_number(json_array_size(json_object_get(answer, "hops")), 0, "has no next hop");
    json_decref(answer);
    answer =
        control_client_question(a, json_pack("{s:s,s:s}", "command", "why", "id", "x"));
    ok(json_is_false(json_object_get(answer, "ok")));
    json_decref(answer);
    w.stalled = true;
    send_mail(&w, 2, "later.test");
    answer = about(a, "why", w.id);
    is_string(string_at(answer, "place"), "active", "active");
    const json_t *hop = json_array_get(json_object_get(answer, "hops"), 0);
    is_number(json_integer_value(json_object_get(hop, "waiting")), 2, "both wait");
    is_string(string_at(json_object_get(hop, "site"), "bound"), "window", "and why");
    json_decref(answer);
    w.stalled = false;
    serve(&w);
    until(&w, is_at_rest(&w));
    answer = about(a, "why", w.id);
    is_string(string_at(answer, "place"), "deferred", "deferred");
    ok(json_integer_value(json_object_get(answer, "due_ms")) > loop_now_ms(w.loop));
    is_number(json_array_size(json_object_get(answer, "reasons")), 1, "a reason");
    json_decref(answer);
    control_client_free(&a);
}

TEST(sites)
{
    static const struct {
        const char *request;
        int sites; /* -1: refused */
    } rows[] = {
        {"{\"command\":\"sites\",\"from\":0}",                   1 },
        {"{\"command\":\"sites\",\"from\":1}",                   0 },
        {"{\"command\":\"sites\",\"from\":9223372036854775807}", 0 },
        {"{\"command\":\"sites\",\"from\":-1}",                  -1},
        {"{\"command\":\"sites\",\"from\":\"0\"}",               -1},
        {"{\"command\":\"sites\"}",                              -1},
    };
    FIXTURE(world, w, begin, end);
    struct control_client *a = connected(&w);
    send_mail(&w, 2, "later.test");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *answer =
            control_client_question(a, json_loads(rows[i].request, 0, NULL));
        const json_t *sites = json_object_get(answer, "sites");
        int count = sites ? (int)json_array_size(sites) : -1;
        is_number(count, rows[i].sites, rows[i].request);
        ok(json_is_true(json_object_get(answer, "ok")) == (rows[i].sites >= 0));
        json_decref(answer);
    }
    control_client_free(&a);
}

/* While it is active each recipient has its own reason. An answer may be long. */
TEST(long_answer)
{
    FIXTURE(world, w, begin, end);
    struct control_client *a = connected(&w);
    w.stalled = true;
    send_mail(&w, 3000, "later.test");
    json_t *answer = about(a, "state", w.id);
    is_string(string_at(answer, "place"), "active", "active");
    json_decref(answer);
    struct delivery_request errand;
    ok(w.session && manager_take(w.manager, w.session, &errand));
    is_number(errand.count, 3000, "all in one");
    struct outcome later;
    for (size_t i = 0; i + 1 < errand.count; i++) {
        later = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 450, "4.2.0",
                             "\x01%0470u", errand.indexes[i]);
        manager_settled(w.manager, &errand, i, &later, NULL);
    }
    answer = about(a, "state", w.id);
    const json_t *reasons = json_object_get(answer, "reasons");
    is_number(json_array_size(reasons), 1000, "as many reasons as are told");
    ok_named(text_starts(text_from(json_string_value(json_array_get(reasons, 7))),
                         TEXT("\\x01000")),
             "the right one");
    json_decref(answer);
    json_decref(about(a, "state", w.id));
    manager_settled(w.manager, &errand, errand.count - 1, &later, NULL);
    until(&w, is_at_rest(&w));
    char why[MANAGER_WHY_MAX];
    ok(manager_operate(w.manager, MANAGER_REMOVE, w.id, why) == MANAGER_DONE);
    control_client_free(&a);
}

/* It says how far it is where that takes a while. */
static json_t *
heard(struct control_client *a, json_t *line)
{
    while (line && json_object_get(line, "seen")) {
        json_decref(line);
        line = control_client_next(a);
    }
    return line;
}

/* A command about one message: its line, and the end. */
static void
is_done(struct control_client *a, const char *command, struct id id, bool good,
        const char *text)
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    json_t *line = control_client_question(
        a, json_pack("{s:s,s:[s]}", "command", command, "ids", name));
    line = heard(a, line);
    is_string(string_at(line, "id"), name, command);
    is_string(string_at(line, "text"), text, "what came of it");
    ok(json_is_true(json_object_get(line, "ok")) == good);
    ok((json_integer_value(json_object_get(line, "code")) == 0) == good);
    json_decref(line);
    is_answer(heard(a, control_client_next(a)), "{\"end\":true,\"ok\":true}",
              "the end");
}

static json_int_t
attempts(struct control_client *a, struct id id)
{
    json_auto_t *answer = about(a, "state", id);
    return json_integer_value(json_object_get(answer, "attempts"));
}

static void
is_tried(struct world *w, struct control_client *a, json_int_t count, const char *name)
{
    until(w, attempts(a, w->id) >= count);
    is_number(attempts(a, w->id), count, name);
}

TEST(commands)
{
    FIXTURE(world, w, begin, end);
    struct control_client *a = connected(&w);
    static const char *const words[] = {"hold", "release", "retry", "bounce", "rm"};
    for (size_t i = 0; i < 5; i++)
        is_done(a, words[i], (struct id){.time_ms = 1}, false, "no such message");
    send_mail(&w, 1, "later.test");
    is_done(a, "retry", w.id, true, "is due now");
    is_tried(&w, a, 2, "was tried");
    json_t *all = json_pack("{s:s,s:b}", "command", "retry", "all", true);
    is_answer(heard(a, control_client_question(a, all)), "{\"end\":true,\"ok\":true}",
              "retry of all");
    is_tried(&w, a, 3, "and again");
    is_done(a, "hold", w.id, true, "held");
    is_done(a, "hold", w.id, true, "is held already");
    is_done(a, "retry", w.id, false, "is held and cannot be retried");
    is_done(a, "release", w.id, true, "released");
    is_tried(&w, a, 4, "and tried");
    is_done(a, "release", w.id, false, "is not held");
    is_done(a, "rm", w.id, true, "removed");
    is_done(a, "rm", w.id, false, "no such message");
    w.stalled = true;
    send_mail(&w, 1, "later.test");
    is_done(a, "hold", w.id, true, "held; its delivery ends first");
    struct counters counted;
    counters_read(w.manager, &counted);
    is_number(counted.apart.held, 1, "it is in one place");
    is_number(counted.places.active, 0, "and counted once");
    is_done(a, "bounce", w.id, true, "returned to its sender when its delivery ends");
    is_done(a, "rm", w.id, true, "removed when its delivery ends");
    w.stalled = false;
    loop_post(w.loop, &w.task, serve, &w);
    until(&w, is_at_rest(&w));
    is_done(a, "rm", w.id, false, "no such message");
    send_mail(&w, 1, "keep.test");
    is_done(a, "retry", w.id, false, "is held and cannot be retried");
    is_done(a, "rm", w.id, true, "removed");
    control_client_free(&a);
}

/* Ids that a command told, in order; the end is heard. */
static unsigned
told(struct control_client *a, json_t *request, bool good)
{
    unsigned lines = 0;
    json_t *line = heard(a, control_client_question(a, request));
    while (line && json_object_get(line, "id")) {
        lines += json_is_true(json_object_get(line, "ok")) == good;
        json_decref(line);
        line = heard(a, control_client_next(a));
    }
    is_answer(line, "{\"end\":true,\"ok\":true}", "the end");
    return lines;
}

TEST(filters)
{
    FIXTURE(world, w, begin, end);
    struct control_client *a = connected(&w);
    told(a, json_pack("{s:s,s:b}", "command", "rm", "all", true), true);
    send_many(&w, 100, "keep.test");
    send_many(&w, 200, "later.test");
    is_number(
        told(a, json_pack("{s:s,s:s}", "command", "hold", "to", "nobody.test"), true),
        0, "none of these");
    is_number(told(a,
                   json_pack("{s:s,s:s}", "command", "hold", "to", "user0@later.test"),
                   true),
              200, "by recipient");
    is_number(told(a, json_pack("{s:s,s:b}", "command", "hold", "all", true), true), 0,
              "nobody is told what he has");
    is_number(told(a,
                   json_pack("{s:s,s:s,s:s}", "command", "release", "place", "hold",
                             "to", "later.test"),
                   true),
              200, "by place and recipient");
    is_number(told(a, json_pack("{s:s,s:s}", "command", "release", "place", "deferred"),
                   true),
              0, "what is not held is not released");
    is_number(
        told(a, json_pack("{s:s,s:i}", "command", "rm", "older_ms", 3600000), true), 0,
        "none is so old");
    is_number(told(a, json_pack("{s:s,s:s}", "command", "rm", "place", "hold"), true),
              100, "by place");
    is_number(told(a, json_pack("{s:s,s:s}", "command", "bounce", "from", ""), true),
              200, "by sender");
    is_number(told(a, json_pack("{s:s,s:b}", "command", "rm", "all", true), true), 0,
              "all are gone");
    control_client_free(&a);
}

static const char refusal[] =
    "{\"ok\":false,\"error\":\"unknown command or invalid id\"}\n";
static const char no_object[] =
    "{\"ok\":false,\"error\":\"a request must be a JSON object\"}\n";
static const char no_name[] =
    "{\"ok\":false,\"error\":\"command must be a string, not a whole number\"}\n";
static const char no_id[] =
    "{\"ok\":false,\"error\":\"id must be a string, not a whole number\"}\n";
static const char half[] = "{\"ok\":false,\"error\":\"bad selection\"}\n";
static const char nobody[] =
    "{\"ok\":false,\"error\":\"no ids, no filter and not all\"}\n";

/* A client by hand: what comes back in answer to these bytes. */
struct raw {
    struct net_connection *connection;
    struct buffer got;
    bool ended;
};

static void
on_raw(void *context, enum net_event event)
{
    struct raw *r = context;
    struct text input = net_input(r->connection);
    if (event == NET_INPUT) {
        if (!buffer_add(&r->got, input))
            abort();
        net_consume(r->connection, input.length);
    }
    r->ended = r->ended || event == NET_ENDED || event == NET_FAILED;
}

static void
raw_begin(struct world *w, struct raw *r)
{
    struct net_address address = {.family = NET_UNIX};
    snprintf(address.path, sizeof(address.path), "%s", w->path);
    *r = (struct raw){0};
    buffer_init(&r->got, 64 * 1024 * 1024);
    r->connection = net_connect(w->net, &address, NULL, on_raw, r);
    control_turns(w, SOME);
}

static void
raw_end(struct raw *r)
{
    net_abort(&r->connection);
    buffer_free(&r->got);
}

static bool
has_end(const struct raw *r)
{
    static const char end[] = "{\"ok\":true,\"end\":true}\n";
    return r->got.length > 0 && memmem(r->got.at, r->got.length, end, strlen(end));
}

static size_t
lines_with(const struct raw *r, const char *start)
{
    size_t lines = 0;
    struct text rest = buffer_text(&r->got), line;
    while (text_cut(&rest, '\n', &line) && rest.at)
        lines += text_starts(line, text_from(start));
    return lines;
}

/* Two at once, and one that leaves: each message is held or not, and both ends come. */
TEST(two)
{
    struct raw one, two, three;
    FIXTURE(world, w, begin, end);
    send_many(&w, 200, "later.test");
    raw_begin(&w, &one);
    raw_begin(&w, &two);
    raw_begin(&w, &three);
    net_send(one.connection, TEXT("{\"command\":\"hold\",\"all\":true}\n"
                                  "{\"command\":\"hold\",\"all\":true}\n"));
    net_send(two.connection, TEXT("{\"command\":\"release\",\"all\":true}\n"));
    net_send(three.connection, TEXT("{\"command\":\"hold\",\"all\":true}\n"));
    loop_turn(w.loop, 1);
    raw_end(&three);
    until(&w, has_end(&one) && has_end(&two));
    ok(has_end(&one) && has_end(&two));
    control_turns(&w, SOME);
    raw_end(&one);
    raw_end(&two);
    /* Which of them was served last is chance: from here on the order is ours. */
    struct control_client *a = connected(&w);
    told(a, json_pack("{s:s,s:b}", "command", "hold", "all", true), true);
    control_turns(&w, SOME);
    is_number(told(a, json_pack("{s:s,s:s}", "command", "rm", "place", "hold"), true),
              200, "each message is there, and held");
    control_client_free(&a);
}

/* The answer to a command about many is read late: the command waits. */
TEST(slow_reader)
{
    struct raw r;
    FIXTURE(world, w, begin, end);
    send_many(&w, 5000, "keep.test");
    raw_begin(&w, &r);
    net_want_input(r.connection, false);
    net_send(r.connection, TEXT("{\"command\":\"release\",\"all\":true}\n"));
    for (int i = 0; i < 20; i++)
        control_turns(&w, SOME);
    ok(!has_end(&r) && !r.ended);
    net_want_input(r.connection, true);
    until(&w, has_end(&r));
    ok_named(has_end(&r), "all is told in the end");
    is_number(lines_with(&r, "{\"id\":"), 5000, "each message");
    raw_end(&r);
}

/* The daemon refuses these with a sentence, and goes on. */
TEST(bad_requests)
{
    static const struct {
        struct text request;
        const char *answer;
    } bad[] = {
        {TEXT("\n"),                                                             no_object},
        {TEXT("hello\n"),                                                        no_object},
        {TEXT("[]\n"),                                                           no_object},
        {TEXT("{\n"),                                                            no_object},
        {TEXT("\0\xff\xfe\n"),                                                  no_object},
        {TEXT("\"\xc3\"\n"),                                                    no_object},
        {TEXT("{}\n"),                                                           refusal  },
        {TEXT("{\"command\":\"state\"}\n"),                                      refusal  },
        {TEXT("{\"command\":\"state\",\"id\":\"x\"}\n"),                         refusal  },
        {TEXT("{\"command\":\"stat\",\"id\":\"01JD3ZK5Q8-9F3K2C7A\"}\n"),        refusal  },
        {TEXT("{\"command\":\"state\",\"id\":\"01JD3ZK5Q8-9F3K2C7A\\u0000\"}\n"), no_object},
        {TEXT("{\"command\":1}\n"),                                              no_name  },
        {TEXT("{\"command\":\"state\",\"id\":7}\n"),                             no_id    },
    };
    struct raw r;
    FIXTURE(world, w, begin, end);
    raw_begin(&w, &r);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        buffer_clear(&r.got);
        net_send(r.connection, bad[i].request);
        control_turns(&w, SOME);
        is_text(buffer_text(&r.got), text_from(bad[i].answer), "refused");
    }
    static const struct text halves[] = {
        TEXT("{\"command\":\"rm\",\"ids\":[]}\n"),
        TEXT("{\"command\":\"rm\",\"ids\":[\"x\"]}\n"),
        TEXT("{\"command\":\"rm\",\"all\":false}\n"),
        TEXT("{\"command\":\"rm\",\"all\":true,\"too\":\"x.test\"}\n"),
        TEXT("{\"command\":\"rm\",\"to\":\"\"}\n"),
        TEXT("{\"command\":\"rm\",\"older_ms\":-1}\n"),
        TEXT("{\"command\":\"rm\",\"place\":\"nowhere\"}\n"),
    };
    for (size_t i = 0; i < sizeof(halves) / sizeof(*halves); i++) {
        buffer_clear(&r.got);
        net_send(r.connection, halves[i]);
        control_turns(&w, SOME);
        is_text(buffer_text(&r.got), text_from(half), "half a selection");
    }
    buffer_clear(&r.got);
    net_send(r.connection, TEXT("{\"command\":\"rm\"}\n"));
    control_turns(&w, SOME);
    is_text(buffer_text(&r.got), text_from(nobody), "none");
    static char deep[3000];
    memset(deep, '[', sizeof(deep));
    deep[sizeof(deep) - 1] = '\n';
    buffer_clear(&r.got);
    net_send(r.connection, text_of(deep, sizeof(deep)));
    control_turns(&w, SOME);
    is_text(buffer_text(&r.got), text_from(no_object), "deep nesting");
    ok(!r.ended);
    raw_end(&r);
}

TEST(limits)
{
    struct raw r, more[40];
    FIXTURE(world, w, begin, end);
    raw_begin(&w, &r);
    static char endless[40000];
    memset(endless, 'x', sizeof(endless));
    net_send(r.connection, text_of(endless, sizeof(endless)));
    control_turns(&w, SOME);
    ok_named(r.ended, "a request without end is cut off");
    raw_end(&r);

    unsigned refused = 0;
    for (size_t i = 0; i < 40; i++)
        raw_begin(&w, &more[i]);
    for (size_t i = 0; i < 40; i++)
        refused += more[i].ended;
    is_number(refused, 8, "32 clients at a time");
    for (size_t i = 0; i < 40; i++)
        raw_end(&more[i]);
    control_turns(&w, SOME);
    struct control_client *a = connected(&w);
    control_client_free(&a);
}

/* Ten thousand questions in one go, read late: every one is answered. */
TEST(pipeline)
{
    struct raw r;
    FIXTURE(world, w, begin, end);
    raw_begin(&w, &r);
    net_want_input(r.connection, false);
    for (int i = 0; i < 10000; i++) {
        net_send(r.connection,
                 TEXT("{\"command\":\"state\",\"id\":\"01JD3ZK5Q8-9F3K2C7A\"}\n"));
        if (i % 500 == 0)
            control_turns(&w, SOME);
    }
    control_turns(&w, SOME);
    ok(!r.ended);
    net_want_input(r.connection, true);
    for (int i = 0; i < 200; i++)
        control_turns(&w, SOME);
    is_number(lines_with(&r, "{\"ok\":true,\"place\":\"gone\""), 10000,
              "all are answered");
    raw_end(&r);
}

/* One client does not hold the loop. */
TEST(pipeline_steps)
{
    struct raw r;
    size_t before = 0, most = 0;
    FIXTURE(world, w, begin, end);
    raw_begin(&w, &r);
    for (int i = 0; i < 100; i++)
        net_send(r.connection, TEXT("{\"command\":\"state\",\"id\":\"01JD3ZK5Q8-9F3K2C7A\"}\n"));
    for (int i = 0; i < 200 && before < 100; i++) {
        control_turns(&w, 1);
        size_t now = (size_t)lines_with(&r, "{\"ok\":true,\"place\":\"gone\"");
        most = now - before > most ? now - before : most;
        before = now;
    }
    is_number((long)before, 100, "all are answered");
    ok_named(most > 1 && most <= 32, "some in a turn");
    raw_end(&r);
}

TEST(no_daemon)
{
    char error[300] = "", path[300];
    struct loop *loop = loop_new();
    snprintf(path, sizeof(path), "%s/nothing", folder);
    ok(control_client_new(loop, path, error, sizeof(error)) == NULL);
    ok_named(strstr(error, path) && strstr(error, "No such file"), "says why");
    memset(path, 'x', 200);
    path[200] = '\0';
    ok(control_client_new(loop, path, error, sizeof(error)) == NULL);
    ok(strstr(error, "too long") != NULL);
    loop_free(&loop);
}

/* The daemon ends between two questions. */
TEST(daemon_goes)
{
    FIXTURE(world, w, begin, end);
    struct control_client *a = connected(&w);
    json_decref(about(a, "state", (struct id){.time_ms = 1}));
    control_server_free(&w.control);
    control_turns(&w, SOME);
    ok(about(a, "state", (struct id){.time_ms = 1}) == NULL);
    ok_named(about(a, "state", (struct id){.time_ms = 1}) == NULL, "from then on");
    control_client_free(&a);
}

TEST(bad_paths)
{
    struct world w;
    char error[300], path[300];
    begin(&w);
    memset(path, 'x', 200);
    path[200] = '\0';
    ok(control_server_new(w.loop, w.net, w.log, w.manager, path, error,
                          sizeof(error)) == NULL);
    ok(strstr(error, "longer than") != NULL);
    ok(control_server_new(w.loop, w.net, w.log, w.manager, "/nowhere/x", error,
                          sizeof(error)) == NULL);
    ok_named(error[0] && strchr(error, '\n') == NULL, "one line");
    end(&w);
    begin(&w); /* what the last run has left is replaced */
    end(&w);
}

int
main(void)
{
    folder_make(folder, sizeof(folder), "control");
    tap_tests("");
    folder_remove(folder);
    return done();
}
