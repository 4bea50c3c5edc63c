/* admin/answer/suppression_answer.c: pages, lines and addresses of requests, and what is refused. */
/* link: t/sim/loop.c */
#include "admin/answer/suppression_answer.h"
#include "t/support/manager_world.h"

#define NOW_MS INT64_C(1750000000000)

static json_t *
ask(struct world *w, const char *request)
{
    json_t *object = json_loads(request, 0, NULL);
    json_t *answer = suppression_answer(w->manager, NOW_MS, object);
    json_decref(object);
    return answer;
}

/* The answer, as text, has the part. */
static void
says(struct world *w, const char *request, const char *part)
{
    json_t *answer = ask(w, request);
    char *text = json_dumps(answer, JSON_COMPACT);
    ok_named(text != NULL && strstr(text, part) != NULL, request);
    if (text != NULL && strstr(text, part) == NULL)
        printf("# %s\n", text);
    free(text);
    json_decref(answer);
}

TEST(off)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://x");
    says(&w, "{\"command\":\"suppress-list\"}", "\"error\":\"no list is kept: set suppress = yes\"");
    ok(ask(&w, "{\"command\":\"other\"}") == NULL);
}

TEST(requests)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://x");
    w.settings.suppression = (struct suppression_settings){.is_on = true, .limit = 3};
    manager_reload(w.manager, &w.settings, w.routes);
    says(&w, "{\"command\":\"suppress-add\",\"lines\":[\"a@b.test,x\",\"nonsense\",\"\",\"c@b.test\",\"d@e.test\",\"f@e.test\"]}",
         "\"added\":3,\"bad\":[{\"index\":1,\"error\":\"not an address\"},{\"index\":5,\"error\":\"the list is full: see "
         "suppress_limit\"}]");
    says(&w, "{\"command\":\"suppress-add\",\"lines\":\"a@b.test\"}", "\"ok\":false");
    says(&w, "{\"command\":\"suppress-list\",\"limit\":2}", "\"count\":3,\"next\":2,\"entries\":[{\"address\":\"a@b.test\"");
    says(&w, "{\"command\":\"suppress-list\",\"limit\":2,\"from\":2}",
         "\"next\":0,\"entries\":[{\"address\":\"d@e.test\",\"sender_domain\":\"\",\"class\":\"manual\",\"reason\":\"\","
         "\"strikes\":0,\"at_ms\":1750000000000,\"until_ms\":0}]");
    says(&w, "{\"command\":\"suppress-list\",\"q\":\"E.TEST\"}", "\"entries\":[{\"address\":\"d@e.test\"");
    says(&w, "{\"command\":\"suppress-list\",\"q\":\"nobody\"}", "\"entries\":[]");
    says(&w, "{\"command\":\"suppress-list\",\"from\":-1}", "\"ok\":false");
    says(&w, "{\"command\":\"suppress-remove\",\"addresses\":[\"A@b.test\",\"nonsense\",\"a@b.test\"]}", "\"removed\":[1,0,0]");
    says(&w, "{\"command\":\"suppress-remove\"}", "\"ok\":false");
}
