/* Questions are found by their name; the status gets the parts that others add. */
#include "admin/answer/questions.h"

#include "t/support/control_world.h"
#include "t/support/folder.h"

static json_t *
ask(struct questions *q, const char *request)
{
    json_t *question = json_loads(request, 0, NULL), *answer;
    answer = questions_answer(q, question);
    json_decref(question);
    return answer;
}

static bool
is_refused(struct questions *q, const char *request, const char *why)
{
    json_t *answer = ask(q, request);
    const char *error = json_string_value(json_object_get(answer, "error"));
    bool refused = json_is_false(json_object_get(answer, "ok")) && error != NULL &&
                   strcmp(error, why) == 0;
    json_decref(answer);
    return refused;
}

static const char unknown[] = "unknown command or invalid id";

static void
refuses_what_it_does_not_know(struct questions *q)
{
    ok_named(is_refused(q, "{}", unknown), "no name");
    ok_named(is_refused(q, "{\"command\":7}", unknown), "a name that is a number");
    ok_named(is_refused(q, "{\"command\":\"statu\"}", unknown), "a part of a name");
    ok_named(is_refused(q, "{\"command\":\"why\"}", unknown), "no id");
    ok_named(is_refused(q, "{\"command\":\"why\",\"id\":5}", unknown), "an id of digits");
    ok_named(is_refused(q, "{\"command\":\"state\",\"id\":\"x\"}", unknown), "a wrong id");
    ok_named(is_refused(q, "{\"command\":\"states\",\"ids\":[\"x\"]}", unknown),
       "a wrong id among many");
    ok_named(is_refused(q, "{\"command\":\"sites\",\"from\":-1}", "invalid start"),
       "a start below 0");
}

static json_t *
make_part(void *context)
{
    return *(const bool *)context ? json_integer(7) : NULL;
}

static void
adds_parts(struct questions *q)
{
    bool is_there = false;
    questions_on_part(q, "seven", make_part, &is_there);
    json_t *without = ask(q, "{\"command\":\"status\"}");
    ok_named(json_object_get(without, "seven") == NULL, "a part that is not there now");
    is_there = true;
    json_t *with = ask(q, "{\"command\":\"status\"}");
    ok_named(json_integer_value(json_object_get(with, "seven")) == 7, "a part of the status");
    ok_named(json_object_get(with, "sandbox") == NULL, "no sandbox is reported unless set");
    json_decref(with);
    json_decref(without);
}

static json_t *
answer_of_others(void *context, const json_t *request)
{
    return json_pack("{s:b,s:O,s:s}", "ok", true, "echo", json_object_get(request, "say"), "mine", (const char *)context);
}

static json_t *
answer_later(void *context, const json_t *request)
{
    (void)request;
    ++*(int *)context;
    return NULL;
}

static void
asks_others(struct questions *q)
{
    int asked = 0;
    char mine[] = "x";
    questions_on(q, "other", answer_of_others, mine);
    questions_on(q, "later", answer_later, &asked);
    json_t *answer = ask(q, "{\"command\":\"other\",\"say\":7}");
    ok(json_integer_value(json_object_get(answer, "echo")) == 7);
    ok(strcmp(json_string_value(json_object_get(answer, "mine")), "x") == 0);
    json_decref(answer);
    ok(ask(q, "{\"command\":\"later\"}") == NULL && asked == 1);
    ok_named(is_refused(q, "{\"command\":\"other2\"}", unknown), "not a part of its name");
}

int
main(void)
{
    struct world w;
    char folder[100];
    folder_make(folder, sizeof(folder), "questions");
    control_world_begin(&w, folder, TEXT("* error:5.0.0 no"));
    refuses_what_it_does_not_know(control_server_questions(w.control));
    adds_parts(control_server_questions(w.control));
    asks_others(control_server_questions(w.control));
    control_world_end(&w);
    folder_remove(folder);
    return done();
}
