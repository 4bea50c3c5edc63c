/* The control socket and those who ask it, over a real socket to a real manager. */
#include "admin/ask.h"
#include "admin/control.h"

#include "base/memory.h"
#include "t/tap.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/petrel-control-XXXXXX";

struct world {
    struct loop *loop;
    struct log *log;
    struct buffer lines;
    struct net *net;
    struct manager *manager;
    struct route_table *routes;
    struct control *control;
    struct sched_session *session; /* open, and waiting to be told */
    struct loop_task task;
    bool stalled;
    char path[100];
    struct id id; /* sent last */
};

static void
serve(void *context)
{
    struct world *w = context;
    struct errand errand;
    if (w->stalled)
        return;
    while (manager_take(w->manager, w->session, &errand))
        for (size_t i = 0; i < errand.count; i++) {
            struct outcome later =
                outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 450, "4.2.0",
                             "host said: 450 \x1b[2J not %u", errand.indexes[i]);
            manager_settled(w->manager, &errand, i, &later, NULL);
        }
    manager_session_ended(w->manager, w->session, NULL);
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
turns(struct world *w)
{
    for (int i = 0; i < 20; i++)
        loop_turn(w->loop, 1);
}

static void
begin(struct world *w)
{
    char error[300] = "";
    *w = (struct world){.loop = loop_new()};
    struct manager_settings settings = {
        .hostname = "h.test",
        .queue = {.spool = folder, .slices = 1},
        .sched = {.active_limit = 100, .session_limit = 10, .seed = 1}};
    struct route_settings routes = {
        .routes = TEXT("later.test smtp://x.test?recipients=0&concurrency=1&initial=1\nkeep.test hold\n* discard")};
    transport_default(&routes.base);
    w->log = log_new(w->loop, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    buffer_init(&w->lines, 64 * 1024 * 1024);
    log_capture(w->log, &w->lines);
    w->net = net_new(w->loop);
    w->routes = route_new(&routes, &w->lines);
    snprintf(w->path, sizeof(w->path), "%s/control", folder);
    if (w->routes == NULL || manager_new(&w->manager, w->loop, w->log, &settings,
                                         w->routes, error, sizeof(error)) != 0)
        abort();
    manager_plug(w->manager, TARGET_SMTP, open_session, w);
    w->control = control_new(w->loop, w->net, w->log, w->manager, w->path, error,
                             sizeof(error));
    if (!ok_named(w->control != NULL, "it listens"))
        printf("# %s\n", error);
    turns(w);
}

static void
end(struct world *w)
{
    w->stalled = false;
    if (w->session)
        serve(w);
    control_free(&w->control);
    ok(w->control == NULL);
    control_free(&w->control);
    manager_free(&w->manager);
    net_free(&w->net);
    route_free(&w->routes);
    log_free(&w->log);
    buffer_free(&w->lines);
    loop_free(&w->loop);
}

static void
on_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    struct world *w = context;
    if (refusal)
        abort();
    manager_accept(w->manager, &e);
}

static void
send_mail(struct world *w, unsigned recipients, const char *domain)
{
    struct outcome refusal;
    struct envelope *e = envelope_new();
    char address[60];
    for (unsigned i = 0; i < recipients; i++) {
        snprintf(address, sizeof(address), "user%u@%s", i, domain);
        if (!envelope_add(e, text_from(address), NOTIFY_NEVER, TEXT("")))
            abort();
    }
    struct queue_draft *draft = queue_begin(manager_queue(w->manager), 0, &refusal);
    if (draft == NULL || !queue_write(draft, TEXT("A: b\r\n\r\n")))
        abort();
    queue_name(draft, e);
    w->id = e->id;
    queue_commit(&draft, &e, on_stored, w);
    turns(w);
}

static struct ask *
connected(struct world *w)
{
    char error[300] = "";
    struct ask *a = ask_new(w->loop, w->path, error, sizeof(error));
    if (!ok_named(a != NULL, "it answers"))
        printf("# %s\n", error);
    return a;
}

static json_t *
about(struct ask *a, const char *command, struct id id)
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    return ask_question(a, json_pack("{s:s,s:s}", "command", command, "id", name));
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

static void
test_state(void)
{
    struct world w;
    begin(&w);
    struct stat status;
    ok(stat(w.path, &status) == 0 && S_ISSOCK(status.st_mode));
    is_number(status.st_mode & 0777, 0600, "for root and the daemon's user");
    struct ask *a = connected(&w);
    json_t *answer = about(a, "state", (struct id){.time_ms = 1, .hash = 2});
    is_answer(answer,
              "{\"attempts\":0,\"due_ms\":0,\"ok\":true,\"place\":\"unknown\","
              "\"reasons\":[\"\"]}",
              "an unknown message");
    send_mail(&w, 2, "later.test");
    answer = about(a, "state", w.id);
    is_string(string_at(answer, "place"), "deferred", "deferred");
    is_number(json_integer_value(json_object_get(answer, "attempts")), 1, "once");
    ok(json_integer_value(json_object_get(answer, "due_ms")) >
       loop_now_ms(w.loop) + 100000);
    const json_t *reasons = json_object_get(answer, "reasons");
    is_number(json_array_size(reasons), 1, "one reason is kept of what waits");
    is_string(json_string_value(json_array_get(reasons, 0)),
              "host said: 450 \\x1b[2J not 1", "escaped");
    json_decref(answer);
    ask_free(&a);
    ok(a == NULL);
    ask_free(&a);
    end(&w);
}

/* While it is active each recipient has its own reason. An answer may be long. */
static void
test_long_answer(void)
{
    struct world w;
    begin(&w);
    struct ask *a = connected(&w);
    w.stalled = true;
    send_mail(&w, 3000, "later.test");
    json_t *answer = about(a, "state", w.id);
    is_string(string_at(answer, "place"), "active", "active");
    json_decref(answer);
    struct errand errand;
    ok(w.session && manager_take(w.manager, w.session, &errand));
    is_number(errand.count, 3000, "all in one");
    struct outcome later;
    for (size_t i = 0; i + 1 < errand.count; i++) {
        later = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 450, "4.2.0", "\x01%0470u",
                             errand.indexes[i]);
        manager_settled(w.manager, &errand, i, &later, NULL);
    }
    answer = about(a, "state", w.id);
    const json_t *reasons = json_object_get(answer, "reasons");
    is_number(json_array_size(reasons), 1000, "as many reasons as are told");
    ok_named(text_starts(text_from(json_string_value(json_array_get(reasons, 7))),
                         TEXT("\\x01000")),
             "the right one");
    json_decref(answer);
    answer = about(a, "state", w.id);
    ok_named(answer != NULL, "the next question");
    json_decref(answer);
    manager_settled(w.manager, &errand, errand.count - 1, &later, NULL);
    turns(&w);
    ok(manager_remove(w.manager, w.id) == MANAGER_REMOVED);
    ask_free(&a);
    end(&w);
}

static void
test_commands(void)
{
    struct world w;
    begin(&w);
    struct ask *a = connected(&w);
    static const char unknown[] = "{\"error\":\"not in the queue of this daemon\","
                                  "\"ok\":false}";
    is_answer(about(a, "retry", (struct id){.time_ms = 1}), unknown, "retry nothing");
    is_answer(about(a, "rm", (struct id){.time_ms = 1}),
              "{\"error\":\"no such message\",\"ok\":false}", "rm nothing");
    send_mail(&w, 1, "later.test");
    is_answer(about(a, "retry", w.id), "{\"ok\":true}", "retry");
    turns(&w);
    json_t *answer = about(a, "state", w.id);
    is_number(json_integer_value(json_object_get(answer, "attempts")), 2, "was tried");
    json_decref(answer);
    is_answer(ask_question(a, json_pack("{s:s}", "command", "retry-all")),
              "{\"ok\":true}", "retry-all");
    turns(&w);
    answer = about(a, "state", w.id);
    is_number(json_integer_value(json_object_get(answer, "attempts")), 3, "and again");
    json_decref(answer);
    is_answer(about(a, "rm", w.id), "{\"busy\":false,\"ok\":true}", "rm");
    is_answer(about(a, "rm", w.id), "{\"error\":\"no such message\",\"ok\":false}",
              "it is gone");
    w.stalled = true;
    send_mail(&w, 1, "later.test");
    is_answer(about(a, "rm", w.id), "{\"busy\":true,\"ok\":true}", "rm in delivery");
    w.stalled = false;
    loop_post(w.loop, &w.task, serve, &w);
    turns(&w);
    is_answer(about(a, "rm", w.id), "{\"error\":\"no such message\",\"ok\":false}",
              "then it is gone");
    send_mail(&w, 1, "keep.test");
    is_answer(about(a, "retry", w.id), unknown, "held mail is not retried");
    is_answer(about(a, "rm", w.id), "{\"busy\":false,\"ok\":true}", "but removed");
    ask_free(&a);
    end(&w);
}

static const char refusal[] = "{\"ok\":false,\"error\":\"unknown command, or no valid id\"}\n";

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
    turns(w);
}

static void
raw_end(struct raw *r)
{
    net_abort(&r->connection);
    buffer_free(&r->got);
}

/* The daemon refuses these with a sentence, and goes on. */
static void
test_bad_requests(void)
{
    static const struct text bad[] = {
        TEXT("\n"),
        TEXT("hello\n"),
        TEXT("[]\n"),
        TEXT("{\n"),
        TEXT("{}\n"),
        TEXT("{\"command\":1}\n"),
        TEXT("{\"command\":\"state\"}\n"),
        TEXT("{\"command\":\"state\",\"id\":7}\n"),
        TEXT("{\"command\":\"state\",\"id\":\"x\"}\n"),
        TEXT("{\"command\":\"stat\",\"id\":\"01JD3ZK5Q8-9F3K2C7A\"}\n"),
        TEXT("{\"command\":\"state\",\"id\":\"01JD3ZK5Q8-9F3K2C7A\\u0000\"}\n"),
        TEXT("\0\xff\xfe\n"),
        TEXT("\"\xc3\"\n"),
    };
    struct world w;
    struct raw r;
    begin(&w);
    raw_begin(&w, &r);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        buffer_clear(&r.got);
        net_send(r.connection, bad[i]);
        turns(&w);
        is_text(buffer_text(&r.got), text_from(refusal), "refused");
    }
    static char deep[3000];
    memset(deep, '[', sizeof(deep));
    deep[sizeof(deep) - 1] = '\n';
    buffer_clear(&r.got);
    net_send(r.connection, text_of(deep, sizeof(deep)));
    turns(&w);
    is_text(buffer_text(&r.got), text_from(refusal), "deep nesting");
    ok(!r.ended);
    raw_end(&r);
    end(&w);
}

static void
test_limits(void)
{
    struct world w;
    struct raw r, more[40];
    begin(&w);
    raw_begin(&w, &r);
    static char endless[5000];
    memset(endless, 'x', sizeof(endless));
    net_send(r.connection, text_of(endless, sizeof(endless)));
    turns(&w);
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
    turns(&w);
    struct ask *a = connected(&w);
    ask_free(&a);
    end(&w);
}

/* Ten thousand questions in one go, read late: every one is answered. */
static void
test_pipeline(void)
{
    struct world w;
    struct raw r;
    begin(&w);
    raw_begin(&w, &r);
    net_want_input(r.connection, false);
    for (int i = 0; i < 10000; i++) {
        net_send(r.connection,
                 TEXT("{\"command\":\"state\",\"id\":\"01JD3ZK5Q8-9F3K2C7A\"}\n"));
        if (i % 500 == 0)
            turns(&w);
    }
    turns(&w);
    ok(!r.ended);
    net_want_input(r.connection, true);
    for (int i = 0; i < 200; i++)
        turns(&w);
    size_t answers = 0;
    struct text rest = buffer_text(&r.got), line;
    while (text_cut(&rest, '\n', &line) && rest.at)
        answers += text_starts(line, TEXT("{\"ok\":true,\"place\":\"unknown\""));
    is_number(answers, 10000, "all are answered");
    raw_end(&r);
    end(&w);
}

static void
test_no_daemon(void)
{
    char error[300] = "", path[300];
    struct loop *loop = loop_new();
    snprintf(path, sizeof(path), "%s/nothing", folder);
    ok(ask_new(loop, path, error, sizeof(error)) == NULL);
    ok_named(strstr(error, path) && strstr(error, "No such file"), "says why");
    memset(path, 'x', 200);
    path[200] = '\0';
    ok(ask_new(loop, path, error, sizeof(error)) == NULL);
    ok(strstr(error, "too long") != NULL);
    loop_free(&loop);
}

/* The daemon ends between two questions. */
static void
test_daemon_goes(void)
{
    struct world w;
    begin(&w);
    struct ask *a = connected(&w);
    json_t *answer = about(a, "state", (struct id){.time_ms = 1});
    ok(answer != NULL);
    json_decref(answer);
    control_free(&w.control);
    turns(&w);
    ok(about(a, "state", (struct id){.time_ms = 1}) == NULL);
    ok_named(about(a, "state", (struct id){.time_ms = 1}) == NULL, "from then on");
    ask_free(&a);
    end(&w);
}

static void
test_bad_paths(void)
{
    struct world w;
    char error[300], path[300];
    begin(&w);
    memset(path, 'x', 200);
    path[200] = '\0';
    ok(control_new(w.loop, w.net, w.log, w.manager, path, error, sizeof(error)) == NULL);
    ok(strstr(error, "longer than") != NULL);
    ok(control_new(w.loop, w.net, w.log, w.manager, "/nowhere/x", error,
                   sizeof(error)) == NULL);
    ok_named(error[0] && strchr(error, '\n') == NULL, "one line");
    end(&w);
    begin(&w); /* what the last run has left is replaced */
    end(&w);
}

int
main(void)
{
    if (mkdtemp(folder) == NULL)
        abort();
    test_state();
    test_long_answer();
    test_commands();
    test_bad_requests();
    test_limits();
    test_pipeline();
    test_no_daemon();
    test_daemon_goes();
    test_bad_paths();
    char command[100];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0)
        abort();
    return done();
}
