/* The description that a host gives to the others, and the hosts that it asks. */
#include "admin/startup/parts.h"

#include "admin/metrics/metrics.h"
#include "t/support/control_world.h"
#include "t/support/folder.h"
#include "t/support/siblings_memory.h"
#include "t/support/until.h"

enum { SOME = 20 };

static char folder[40];
static struct world w;
static struct siblings_memory m;
static struct configuration configuration;
static struct daemon d;

/* calls NULL: there is no peer door. */
static void
start(const struct sibling_calls *calls)
{
    d.manager = w.manager;
    d.control = w.control;
    d.configuration = d.started = &configuration;
    d.peer.give.calls = calls;
    d.drain.state = DRAIN_LEAVING;
    is_number(part_cluster_start(&d), 0, "it starts");
}

static json_t *
summary(void)
{
    json_t *question = json_pack("{s:s}", "command", "summary");
    json_t *answer = questions_answer(control_server_questions(w.control), question);
    json_decref(question);
    return answer;
}

static const char *
word(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "";
}

/* --- An asker in memory --------------------------------------------------------------- */

static char last[400];
static unsigned done_count;

static void
on_line(void *context, struct text json)
{
    (void)context;
    (void)text_copy(last, sizeof(last), json);
}

static bool
is_never_full(void *context)
{
    (void)context;
    return false;
}

static void
on_done(void *context)
{
    (void)context;
    done_count++;
}

TEST(alone)
{
    start(NULL);
    json_t *said = summary();
    ok_named(json_is_true(json_object_get(said, "ok")), "an answer");
    is_string(word(said, "state"), "leaving", "the state");
    is_string(word(said, "version"), PETREL_VERSION, "the version");
    ok_named(json_is_integer(json_object_get(said, "waiting")), "what waits");
    ok_named(json_object_get(said, "busy") == NULL, "nobody measures how busy it is");
    ok_named(json_is_null(json_object_get(said, "group")), "there is no group");
    ok_named(json_object_size(json_object_get(said, "settings")) > 25, "settings to compare");
    ok_named(json_is_array(json_object_get(said, "sites")), "and sites");
    json_decref(said);
    ok_named(control_server_service(w.control)->cluster == NULL, "and nobody else to ask");
    part_cluster_stop(&d);
}

TEST(group)
{
    struct group_settings settings = {.name = "mail", .host = "relay1", .egress = "shared"};
    static char peer[1][GROUP_HOST_MAX + 1] = {"relay2"};
    (void)text_copy(configuration.group.host, sizeof(configuration.group.host), TEXT("relay1"));
    settings.peers = peer;
    settings.peer_count = 1;
    d.group.group = group_new(&(struct group_setup){.loop = w.loop, .log = w.log, .manager = w.manager, .settings = &settings});
    struct control_service *service = control_server_service(w.control);
    struct control_session *session = control_session_new(service, &(struct control_transport){.line = on_line, .is_full = is_never_full, .is_idle = is_never_full, .done = on_done});
    start(NULL);
    ok(control_session_take(session, TEXT("{\"command\":\"list\",\"cluster\":true}")));
    ok_named(strstr(last, "this host has no peer door: cluster_secret is not set") != NULL, "a group without a door");
    part_cluster_stop(&d);
    siblings_memory_begin(&m, w.loop, "relay1");
    siblings_memory_add(&m, "relay2");
    start(&m.calls);
    ok(!control_session_take(session, TEXT("{\"command\":\"list\",\"cluster\":true}")));
    until(&w, done_count == 1);
    ok_named(strstr(last, "\"hosts\":2,\"silent\":1") != NULL, "the other host is asked, or would be if its address were known");
    ok(!control_session_take(session, TEXT("{\"command\":\"list\",\"cluster\":true}")));
    part_cluster_stop(&d);
    is_number(done_count, 2, "the daemon stops: so do questions to others");
    ok_named(strstr(last, "the daemon stops") != NULL, "which is said");
    ok(control_session_take(session, TEXT("{\"command\":\"list\",\"cluster\":true}")));
    ok_named(strstr(last, "this host is in no group") != NULL, "and no other begins");
    control_session_free(&session);
    control_turns(&w, SOME);
    group_free(&d.group.group);
}

int
main(void)
{
    folder_make(folder, sizeof(folder), "view");
    control_world_begin(&w, folder, TEXT("* hold"));
    control_turns(&w, SOME);
    configuration.settings = settings_new(options_rows, "PETREL", &configuration.options);
    settings_apply(configuration.settings);
    tap_tests("");
    settings_free(&configuration.settings);
    control_world_end(&w);
    folder_remove(folder);
    return done();
}
