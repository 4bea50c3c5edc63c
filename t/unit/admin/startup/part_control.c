/* Questions about the daemon itself: the level of the log and its end, lockouts, reloads
 * that are answered later. */
#include "admin/startup/parts.h"

#include "admin/view/control_client.h"
#include "smtp/access/lockout.h"
#include "t/support/listener_world.h"
#include "t/support/tap.h"

static struct configuration configuration;

struct given {
    struct world w;
    struct control_server *control;
    struct daemon d;
    int reloads;
    char path[100];
};

/* A reload has read the settings. */
static void
on_reload(void *context)
{
    struct given *g = context;
    g->reloads++;
}

static void
begin(struct given *g)
{
    char error[300];
    const struct server_rules rules = {.hostname = "mx.test"};
    memset(g, 0, sizeof(*g));
    listener_world_start(&g->w, &rules, false, true);
    snprintf(g->path, sizeof(g->path), "%s/control", g->w.spool);
    g->control = control_server_new(g->w.loop, g->w.net, g->w.log, g->w.manager, g->path, error, sizeof(error));
    g->d = (struct daemon){.sources.file = "/dev/null", .loop = g->w.loop, .log = g->w.log, .manager = g->w.manager,
                           .listener = g->w.listener, .control = g->control, .configuration = &configuration,
                           .reload = {.loop = g->w.loop, .log = g->w.log, .done = on_reload, .context = g}};
    is_number(part_answers_start(&g->d), 0, "it answers");
}

static void
end(struct given *g)
{
    part_answers_stop(&g->d);
    reload_stop(&g->d.reload);
    control_server_free(&g->control);
    listener_world_end(&g->w);
}

static void
says(struct given *g, const char *request, const char *want)
{
    json_t *question = json_loads(request, 0, NULL);
    json_t *answer = questions_answer(control_server_questions(g->control), question);
    char *got = json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS);
    is_string(got ? got : "(later)", want, request);
    free(got);
    json_decref(answer);
    json_decref(question);
}

static void
level(void)
{
    FIXTURE(given, g, begin, end);
    const char *of = log_level_name(log_level(g.w.log));
    char plain[200];
    snprintf(plain, sizeof(plain), "{\"configured\":\"%s\",\"level\":\"%s\",\"ok\":true,\"until_ms\":0}", of, of);
    says(&g, "{\"command\":\"log-level\"}", plain);
    says(&g, "{\"command\":\"log-level\",\"level\":\"loud\"}", "{\"error\":\"level is error, warning, info or debug\",\"ok\":false}");
    says(&g, "{\"command\":\"log-level\",\"level\":\"error\",\"for_ms\":-1}", "{\"error\":\"a level lasts at most a year\",\"ok\":false}");
    says(&g, "{\"command\":\"log-level\"}", plain);
    json_t *question = json_pack("{s:s,s:s,s:i}", "command", "log-level", "level", "error", "for_ms", 1);
    json_decref(questions_answer(control_server_questions(g.control), question));
    json_decref(question);
    is_number(log_level(g.w.log), LOG_LEVEL_ERROR, "changed");
    while (log_level(g.w.log) == LOG_LEVEL_ERROR)
        loop_turn(g.w.loop, 10);
    says(&g, "{\"command\":\"log-level\"}", plain);
    question = json_pack("{s:s,s:s}", "command", "log-level", "level", "error");
    json_decref(questions_answer(control_server_questions(g.control), question));
    json_decref(question);
    is_number(g.d.answers.level_until_ms, 0, "without a time: until a reload");
    is_number(log_level(g.w.log), LOG_LEVEL_ERROR, "changed again");
    log_restyle(g.w.log, log_style(g.w.log), LOG_LEVEL_WARNING);
    part_answers_reloaded(&g.d, NULL, "");
    says(&g, "{\"command\":\"log-level\"}", "{\"configured\":\"warning\",\"level\":\"warning\",\"ok\":true,\"until_ms\":0}");
}

static void
lockouts(void)
{
    struct lockout_key key;
    FIXTURE(given, g, begin, end);
    struct lockout *l = listener_lockout(g.w.listener);
    says(&g, "{\"command\":\"lockouts\"}", "{\"count\":0,\"lockouts\":[],\"ok\":true}");
    lockout_set_limit(l, 1);
    ok(lockout_key_parse(TEXT("2001:db8::1"), &key));
    (void)lockout_failed(l, &key, loop_monotonic_ms(g.w.loop));
    json_t *question = json_pack("{s:s}", "command", "lockouts");
    json_t *answer = questions_answer(control_server_questions(g.control), question);
    const json_t *entry = json_array_get(json_object_get(answer, "lockouts"), 0);
    is_string(json_string_value(json_object_get(entry, "client")), "2001:db8::/64", "its network");
    is_number(json_integer_value(json_object_get(entry, "until_ms")) - loop_now_ms(g.w.loop), LOCKOUT_FIRST_MS, "until when");
    json_decref(answer);
    json_decref(question);
    says(&g, "{\"command\":\"unlock\",\"clients\":[\"2001:db8::99\",\"192.0.2.1\"]}",
         "{\"clients\":[{\"client\":\"2001:db8::/64\",\"locked\":true},{\"client\":\"192.0.2.1\",\"locked\":false}],\"ok\":true}");
    says(&g, "{\"command\":\"lockouts\"}", "{\"count\":0,\"lockouts\":[],\"ok\":true}");
    static const char *const bad[] = {"{\"command\":\"unlock\"}", "{\"command\":\"unlock\",\"clients\":7}", "{\"command\":\"unlock\",\"clients\":[7]}",
                                      "{\"command\":\"unlock\",\"clients\":[\"192.0.2.1\",\"a.test\"]}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        says(&g, bad[i], "{\"error\":\"clients are at most 1,000 of: an IP address, an IPv6 network of 64 bits, or uid NUMBER\",\"ok\":false}");
}

/* A client of the control socket that has asked, and what it has heard. */
static json_t *
line(struct given *g, struct control_client *client, const json_t *errors)
{
    part_answers_reloaded(&g->d, errors, "listen");
    return control_client_next(client);
}

static void
reloads(void)
{
    char error[300];
    FIXTURE(given, g, begin, end);
    struct control_client *one = control_client_new(g.w.loop, g.path, error, sizeof(error));
    struct control_client *two = control_client_new(g.w.loop, g.path, error, sizeof(error));
    ok(one != NULL && two != NULL);
    control_client_send(one, json_pack("{s:s}", "command", "reload"));
    control_client_send(two, json_pack("{s:s}", "command", "reload"));
    for (int i = 0; i < 50 || g.reloads == 0; i++)
        loop_turn(g.w.loop, 1);
    is_number(g.reloads, 1, "one reload for both");
    json_t *a = line(&g, one, NULL), *b = control_client_next(two);
    is_string(json_string_value(json_object_get(a, "restart")), "listen", "the answer");
    ok_named(json_equal(a, b), "to both");
    json_decref(a);
    json_decref(b);
    control_client_send(one, json_pack("{s:s}", "command", "reload"));
    while (g.reloads < 2)
        loop_turn(g.w.loop, 10);
    json_t *errors = json_pack("[s]", "line 1: no such setting");
    a = line(&g, one, errors);
    ok(json_is_false(json_object_get(a, "ok")) && json_equal(json_object_get(a, "errors"), errors));
    json_decref(errors);
    json_decref(a);
    control_client_send(one, json_pack("{s:s}", "command", "reload"));
    while (g.reloads < 3)
        loop_turn(g.w.loop, 10);
    g.d.draining = 1;
    part_answers_stop(&g.d);
    a = control_client_next(one);
    is_string(json_string_value(json_object_get(a, "error")), "the daemon stops", "one that is under way");
    json_decref(a);
    says(&g, "{\"command\":\"reload\"}", "{\"error\":\"the daemon stops\",\"ok\":false}");
    control_client_free(&one);
    control_client_free(&two);
}

int
main(void)
{
    level();
    lockouts();
    reloads();
    return done();
}
