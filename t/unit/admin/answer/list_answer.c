/* The queue by the control socket: lines, limits, and where the next request goes on. */
#include "admin/answer/list_answer.h"

#include "admin/view/control_client.h"
#include "t/support/control_world.h"
#include "t/support/folder.h"
#include "t/support/until.h"

enum { SOME = 20, MESSAGES = 150 };

static char folder[40];
static struct world w;
static struct control_client *a;
static char next[ID_LENGTH + 1];

/* How many lines come; next is where the answer goes on, "" at the end. */
static unsigned
listed(json_t *request)
{
    unsigned count = 0;
    json_t *line = control_client_question(a, request);
    while (line != NULL && json_object_get(line, "ok") == NULL) {
        count += json_object_get(line, "queue_id") != NULL;
        json_decref(line);
        line = control_client_next(a);
    }
    ok(json_is_true(json_object_get(line, "end")));
    const char *rest = json_string_value(json_object_get(line, "next"));
    text_copy(next, sizeof(next), text_from(rest != NULL ? rest : ""));
    json_decref(line);
    return count;
}

TEST(lines)
{
    is_number(listed(json_pack("{s:s}", "command", "list")), LIST_ANSWER_DEFAULT, "as many as usual");
    ok_named(next[0] != '\0', "there are more");
    is_number(listed(json_pack("{s:s,s:s}", "command", "list", "after", next)), MESSAGES - LIST_ANSWER_DEFAULT, "the rest");
    is_string(next, "", "which is all");
    is_number(listed(json_pack("{s:s,s:i}", "command", "list", "limit", LIST_ANSWER_MAX)), MESSAGES, "all");
    is_number(listed(json_pack("{s:s,s:i}", "command", "list", "limit", 1)), 1, "one");
    is_number(listed(json_pack("{s:s,s:i}", "command", "list", "bytes", 1)), 1, "one, which is so many bytes");
    ok_named(next[0] != '\0', "of more");
    unsigned some = listed(json_pack("{s:s,s:i}", "command", "list", "bytes", 2000));
    ok_named(some > 3 && some < 20, "some");
    char name[ID_LENGTH + 1];
    id_format(w.id, name);
    is_number(listed(json_pack("{s:s,s:[s]}", "command", "list", "ids", name)), 1, "by its id");
    is_number(listed(json_pack("{s:s,s:s}", "command", "list", "place", "active")), 0, "none is active");
    is_number(listed(json_pack("{s:s,s:s,s:i}", "command", "list", "to", "keep.test", "limit", 500)), MESSAGES, "by recipient");
    json_t *answer = control_client_question(a, json_pack("{s:s}", "command", "findings"));
    ok_named(json_is_true(json_object_get(answer, "ok")), "the connection goes on");
    json_decref(answer);
}

TEST(refused)
{
    static const struct {
        const char *request, *why;
    } rows[] = {
        {"{\"command\":\"list\",\"limit\":0}",       "limit is 1 to 10000"},
        {"{\"command\":\"list\",\"limit\":10001}",   "limit is 1 to 10000"},
        {"{\"command\":\"list\",\"bytes\":0}",       "bytes is a number from 1 on"},
        {"{\"command\":\"list\",\"limit\":\"1\"}",   "limit must be a whole number, not a string"},
        {"{\"command\":\"list\",\"after\":\"x\"}",   "after is an id"     },
        {"{\"command\":\"list\",\"after\":1}",       "after must be a string, not a whole number"},
        {"{\"command\":\"list\",\"place\":\"x\"}",   "bad selection"      },
        {"{\"command\":\"list\",\"colour\":\"x\"}",  "bad selection"      },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *answer = control_client_question(a, json_loads(rows[i].request, 0, NULL));
        is_string(json_string_value(json_object_get(answer, "error")), rows[i].why, rows[i].request);
        json_decref(answer);
    }
}

/* A client that goes in the middle ends it. */
TEST(leaving)
{
    char error[300];
    struct control_client *b = control_client_new(w.loop, w.path, error, sizeof(error));
    control_client_send(b, json_pack("{s:s,s:i}", "command", "list", "limit", LIST_ANSWER_MAX));
    control_client_free(&b);
    control_turns(&w, SOME);
    is_number(listed(json_pack("{s:s,s:i}", "command", "list", "limit", 500)), MESSAGES, "others go on");
}

int
main(void)
{
    char error[300] = "";
    folder_make(folder, sizeof(folder), "list");
    control_world_begin(&w, folder, TEXT("keep.test hold\n* discard"));
    control_turns(&w, SOME);
    for (unsigned i = 0; i < MESSAGES; i++)
        post_mail(&w, 1, "keep.test");
    until(&w, w.accepted == MESSAGES && queue_count_apart(manager_queue(w.manager)).held == MESSAGES);
    a = control_client_new(w.loop, w.path, error, sizeof(error));
    ok_named(a != NULL, error);
    tap_tests("");
    control_client_free(&a);
    control_world_end(&w);
    folder_remove(folder);
    return done();
}
