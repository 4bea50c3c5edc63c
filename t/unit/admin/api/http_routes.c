/* Proves the list of paths, the access that each needs, and the answers of health. */
#include "admin/api/http_routes.h"

#include "t/support/control_world.h"
#include "t/support/folder.h"

static struct health_check given[HEALTH_CHECKS_MAX];
static size_t given_count;

static struct live *w_live;
static struct series *w_series;
static const char *body = "";

static size_t
none_wait(void *context)
{
    (void)context;
    return 0;
}

static void
nothing(void *context)
{
    (void)context;
}

static size_t
checks(void *context, struct health_check out[HEALTH_CHECKS_MAX])
{
    (void)context;
    memcpy(out, given, sizeof(given));
    return given_count;
}

/* "STATUS BODY" */
static const char *
ask(struct world *w, const char *method, const char *path, enum http_may may)
{
    static char out[100000];
    struct health health = {.look = checks};
    struct http_routes routes = {.loop = w->loop, .log = w->log, .manager = w->manager,
                                 .questions = control_server_questions(w->control),
                                 .live = w_live,
                                 .series = w_series,
                                 .health = &health};
    struct http_reader request = {.method = text_from(method)};
    struct http_exchange x = {
        .request = &request, .may = may, .client = TEXT("192.0.2.1"), .wake = nothing};
    const char *why;
    buffer_init(&request.body, 1000);
    ok(buffer_add(&request.body, text_from(body)));
    buffer_init(&x.body, HTTP_ANSWER_MAX);
    buffer_init(&x.fields, HTTP_FIELDS_MAX);
    ok(http_target_read(text_from(path), &x.target, &why) == 0);
    http_routes_answer(&routes, &x);
    snprintf(out, sizeof(out), "%.*s%u %.*s", TEXT_ARGS(buffer_text(&x.fields)), x.status,
             TEXT_ARGS(buffer_text(&x.body)));
    if (x.stream.free != NULL)
        x.stream.free(x.stream.context);
    buffer_free(&request.body);
    buffer_free(&x.body);
    buffer_free(&x.fields);
    return out;
}

static void
test_health(struct world *w)
{
    is_string(ask(w, "GET", "/livez", HTTP_MAY_NOTHING), "200 ok\n", "it lives");
    is_string(ask(w, "HEAD", "/healthz", HTTP_MAY_NOTHING), "200 ok\n", "the same");
    given[0] = (struct health_check){.name = "accepting", .good = true, .why = "no"};
    given[1] = (struct health_check){.name = "upstream", .good = true, .why = "no"};
    given_count = 2;
    is_string(ask(w, "GET", "/readyz", HTTP_MAY_NOTHING),
              "200 ready\naccepting ok\nupstream ok\n", "ready");
    given[1] = (struct health_check){.name = "upstream", .why = "relay.test: 535 no"};
    is_string(ask(w, "GET", "/readyz", HTTP_MAY_NOTHING),
              "503 not ready\naccepting ok\nupstream fail\n", "one condition fails");
    is_string(ask(w, "GET", "/readyz", HTTP_MAY_READ),
              "503 not ready\naccepting ok\nupstream fail: relay.test: 535 no\n",
              "readers hear why");
}

/* Patterns, and access. */
static void
test_queue_paths(struct world *w)
{
    static const struct {
        const char *method, *path;
        enum http_may may;
        const char *status;
    } rows[] = {
        {"GET", "/api/queue", HTTP_MAY_NOTHING, "401"},
        {"GET", "/api/queue/x", HTTP_MAY_READ, "404"},
        {"GET", "/api/queue/01JD3ZK5Q8-9F3K2C7A/why", HTTP_MAY_READ, "404"},
        {"GET", "/api/queue/01JD3ZK5Q8-9F3K2C7A/message", HTTP_MAY_READ, "403"},
        {"GET", "/api/queue/01JD3ZK5Q8-9F3K2C7A/message", HTTP_MAY_OPERATE, "404"},
        {"GET", "/api/queue//why", HTTP_MAY_READ, "404"},
        {"GET", "/api/queue/x/why/y", HTTP_MAY_READ, "404"},
        {"GET", "/api/queue?limit=501", HTTP_MAY_READ, "400"},
        {"GET", "/api/queue?q=a+b+c+d+e+f+g+h", HTTP_MAY_READ, "200"},
        {"GET", "/api/queue?q=a+b+c+d+e+f+g+h+i", HTTP_MAY_READ, "400"},
        {"GET", "/api/sites?from=-1", HTTP_MAY_READ, "400"},
        {"GET", "/api/sites?from=1&to=2", HTTP_MAY_READ, "400"},
        {"POST", "/api/queue/rm", HTTP_MAY_READ, "403"},
        {"POST", "/api/queue/rm", HTTP_MAY_OPERATE, "400"},
        {"POST", "/api/queue/x", HTTP_MAY_OPERATE, "Allow: GET, HEAD\r\n405"},
        {"POST", "/api/test", HTTP_MAY_NOTHING, "401"},
        {"POST", "/api/test", HTTP_MAY_READ, "403"},
        {"POST", "/api/test", HTTP_MAY_OPERATE, "400"},
        {"POST", "/api/site/forget-limits", HTTP_MAY_NOTHING, "401"},
        {"POST", "/api/site/forget-limits", HTTP_MAY_READ, "403"},
        {"POST", "/api/site/forget-limits", HTTP_MAY_OPERATE, "400"},
        {"GET", "/api/site/forget-limits", HTTP_MAY_OPERATE, "Allow: POST\r\n405"},
        {"GET", "/api/test", HTTP_MAY_OPERATE, "Allow: POST\r\n405"},
        {"DELETE", "/api/queue/rm", HTTP_MAY_OPERATE, "Allow: POST\r\n405"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ok_named(strncmp(ask(w, rows[i].method, rows[i].path, rows[i].may),
                         rows[i].status, strlen(rows[i].status)) == 0,
                 rows[i].path);
}

static void
test_access(struct world *w)
{
    const char *key = "401 {\"ok\":false,\"error\":\"a key or token is needed: run `petrel page`, or send http_token\"}\n";
    is_string(ask(w, "GET", "/api/status", HTTP_MAY_NOTHING), key, "the status");
    is_string(ask(w, "GET", "/nothing", HTTP_MAY_NOTHING), key, "what is not there");
    is_string(ask(w, "GET", "/nothing", HTTP_MAY_READ),
              "404 {\"ok\":false,\"error\":\"nothing is here\"}\n", "which readers hear");
    is_string(ask(w, "GET", "/livez/", HTTP_MAY_READ),
              "404 {\"ok\":false,\"error\":\"nothing is here\"}\n", "a path as a whole");
    is_string(ask(w, "POST", "/livez", HTTP_MAY_OPERATE),
              "Allow: GET, HEAD\r\n405 {\"ok\":false,\"error\":\"a method that is not known "
              "here\"}\n",
              "another method");
    const char *status = ask(w, "GET", "/api/status", HTTP_MAY_READ);
    ok(strncmp(status, "200 {\"ok\":true,", 14) == 0 && strstr(status, "\"access\":\"read\""));
    status = ask(w, "GET", "/status.json", HTTP_MAY_OPERATE);
    ok(strstr(status, "\"access\":\"operate\"") && strstr(status, "\"site_totals\""));
}

/* The question that the log's level is, as admin/startup/ answers it. */
static json_t *
on_level(void *context, const json_t *request)
{
    (void)context;
    if (json_object_get(request, "for_ms") == NULL || json_object_get(request, "by") == NULL)
        return NULL;
    const char *level = json_string_value(json_object_get(request, "level"));
    if (level != NULL && strcmp(level, "loud") == 0)
        return questions_refuse("no such level");
    return json_pack("{s:b,s:O}", "ok", true, "asked", (json_t *)(uintptr_t)request);
}

static void
test_live(struct world *w)
{
    is_string(ask(w, "GET", "/events", HTTP_MAY_NOTHING),
              "401 {\"ok\":false,\"error\":\"a key or token is needed: run `petrel page`, or send http_token\"}\n", "events");
    is_string(ask(w, "GET", "/events", HTTP_MAY_READ), "X-Accel-Buffering: no\r\n200 ", "for readers");
    is_string(ask(w, "GET", "/events?from=0", HTTP_MAY_READ), "X-Accel-Buffering: no\r\n200 ", "from a place");
    is_number(live_readers(w_live), 0, "each was freed");
    const char *refused = "400 {\"ok\":false,\"error\":\"from is a number that an event had as its id\"}\n";
    is_string(ask(w, "GET", "/events?from=", HTTP_MAY_READ), refused, "nothing");
    is_string(ask(w, "GET", "/events?from=-1", HTTP_MAY_READ), refused, "less than nothing");
    is_string(ask(w, "GET", "/events?from=99999999999999999999", HTTP_MAY_READ), refused, "too much");
    is_string(ask(w, "GET", "/events?to=1", HTTP_MAY_READ), refused, "another parameter");
    struct live_reader *readers[LIVE_READERS_MAX];
    for (int i = 0; i < LIVE_READERS_MAX; i++)
        readers[i] = live_begin(w_live, &(struct live_place){.is_set = false}, nothing, NULL);
    is_string(ask(w, "GET", "/events", HTTP_MAY_READ),
              "503 {\"ok\":false,\"error\":\"too many clients read the events: close a page\"}\n", "too many");
    for (int i = 0; i < LIVE_READERS_MAX; i++)
        live_end(&readers[i]);
}

static void
test_series(struct world *w)
{
    ok(strncmp(ask(w, "GET", "/api/series", HTTP_MAY_READ), "200 {\"ok\":true,\"now_ms\":", 24) == 0);
    is_string(ask(w, "GET", "/api/series?from=1", HTTP_MAY_READ),
              "400 {\"ok\":false,\"error\":\"a parameter that is not known\"}\n", "a parameter");
}

static void
test_level(struct world *w)
{
    static const struct {
        const char *body, *answer;
    } rows[] = {
        {"{\"level\":\"info\"}", "200 {\"ok\":true,\"asked\":{\"level\":\"info\",\"for_ms\":3600000,"
                               "\"command\":\"log-level\",\"by\":\"client=192.0.2.1\"}}\n"},
        {"{\"for_ms\":0}", "200 {\"ok\":true,\"asked\":{\"for_ms\":0,\"command\":\"log-level\","
                         "\"by\":\"client=192.0.2.1\"}}\n"},
        {"{\"level\":\"loud\"}", "400 {\"ok\":false,\"error\":\"no such level\"}\n"},
        {"", "400 {\"ok\":false,\"error\":\"the body must be a JSON object\"}\n"},
        {"{\"by\":\"root\"}", "400 {\"ok\":false,\"error\":\"only level and for_ms are known here\"}\n"},
        {"{\"level\":null}", "400 {\"ok\":false,\"error\":\"level is a word, for_ms an integer\"}\n"},
        {"{\"for_ms\":\"1h\"}", "400 {\"ok\":false,\"error\":\"level is a word, for_ms an integer\"}\n"},
    };
    questions_on(control_server_questions(w->control), "log-level", on_level, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        body = rows[i].body;
        is_string(ask(w, "POST", "/api/log-level", HTTP_MAY_OPERATE), rows[i].answer, rows[i].body);
    }
    is_string(ask(w, "POST", "/api/log-level", HTTP_MAY_READ),
              "403 {\"ok\":false,\"error\":\"this key may only read: run `petrel page` for one that may act\"}\n", "readers do not change it");
    body = "";
}

static void
test_test(struct world *w)
{
    static const struct {
        const char *body, *answer;
    } rows[] = {
        {"{\"to\":\"a@b.test\",\"cc\":\"\"}", "400 {\"ok\":false,\"error\":\"the only members are to and from\"}\n"},
        {"{\"to\":[\"a@b.test\"]}", "400 {\"ok\":false,\"error\":\"to and from must be strings\"}\n"},
        {"{\"to\":\"a@b.test\"}", "503 {\"ok\":false,\"error\":\"no test messages are sent from here: run `petrel test`\"}\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        body = rows[i].body;
        is_string(ask(w, "POST", "/api/test", HTTP_MAY_OPERATE), rows[i].answer, rows[i].body);
    }
    body = "";
}

int
main(void)
{
    struct world w;
    char folder[100];
    folder_make(folder, sizeof(folder), "routes");
    control_world_begin(&w, folder, TEXT("* error:5.0.0 no"));
    w_live = live_new(&(struct live_setup){.loop = w.loop, .events = w.events});
    w_series = series_new(
        &(struct series_setup){.loop = w.loop, .events = w.events, .waiting = none_wait});
    test_health(&w);
    test_access(&w);
    test_queue_paths(&w);
    test_live(&w);
    test_series(&w);
    test_level(&w);
    test_test(&w);
    live_free(&w_live);
    series_free(&w_series);
    control_world_end(&w);
    folder_remove(folder);
    return done();
}
