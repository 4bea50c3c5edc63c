/* Proves which paths there are, who may ask, and what health says. */
#include "admin/http/http_routes.h"

#include "t/support/control_world.h"
#include "t/support/folder.h"

static struct health_check given[HEALTH_CHECKS_MAX];
static size_t given_count;

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
    static char out[20000];
    struct health health = {.look = checks};
    struct http_routes routes = {.loop = w->loop, .log = w->log, .manager = w->manager,
                                 .questions = control_server_questions(w->control),
                                 .health = &health};
    struct http_reader request = {.method = text_from(method)};
    struct http_exchange x = {.request = &request, .may = may};
    const char *why;
    buffer_init(&x.body, HTTP_ANSWER_MAX);
    buffer_init(&x.fields, HTTP_FIELDS_MAX);
    ok(http_target_read(text_from(path), &x.target, &why) == 0);
    http_routes_answer(&routes, &x);
    snprintf(out, sizeof(out), "%.*s%u %.*s", TEXT_ARGS(buffer_text(&x.fields)), x.status,
             TEXT_ARGS(buffer_text(&x.body)));
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

/* Patterns, and who may. */
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
        {"GET", "/api/sites?from=-1", HTTP_MAY_READ, "400"},
        {"GET", "/api/sites?from=1&to=2", HTTP_MAY_READ, "400"},
        {"POST", "/api/queue/rm", HTTP_MAY_READ, "403"},
        {"POST", "/api/queue/rm", HTTP_MAY_OPERATE, "400"},
        {"POST", "/api/queue/x", HTTP_MAY_OPERATE, "Allow: GET, HEAD\r\n405"},
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
    const char *key = "401 {\"ok\":false,\"error\":\"a key or token is needed\"}\n";
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

int
main(void)
{
    struct world w;
    char folder[100];
    folder_make(folder, sizeof(folder), "routes");
    control_world_begin(&w, folder, TEXT("* error:5.0.0 no"));
    test_health(&w);
    test_access(&w);
    test_queue_paths(&w);
    control_world_end(&w);
    folder_remove(folder);
    return done();
}
