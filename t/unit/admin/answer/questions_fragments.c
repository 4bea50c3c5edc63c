/* Proves the JSON of sets of fragments: addresses are escaped, what is not known is null, pages. */
#include "admin/answer/questions.h"

#include "t/support/control_world.h"
#include "t/support/folder.h"

static struct manager_set sets[3];
static size_t set_count;
static size_t asked_from;

static size_t
list(void *context, size_t from, size_t count, manager_set_saw *each, void *each_context)
{
    (void)context;
    size_t listed = 0;
    asked_from = from;
    for (size_t i = from; i < set_count && listed < count; i++, listed++)
        each(each_context, &sets[i]);
    return listed;
}

static enum manager_offered
offer(void *context, struct manager_offer *o)
{
    (void)context;
    (void)o;
    return MANAGER_PASS;
}

static bool
explain(void *context, struct id id, char *out, size_t size)
{
    (void)context;
    (void)id;
    snprintf(out, size, "no");
    return false;
}

static void
is_page(struct world *w, size_t from, size_t count, const char *wanted, const char *name)
{
    json_t *page = questions_fragments(w->manager, from, count);
    char *text = json_dumps(page, JSON_COMPACT);
    is_string(text, wanted, name);
    free(text);
    json_decref(page);
}

static void
is_answer(struct world *w, json_t *question, const char *wanted, const char *name)
{
    json_t *answer = questions_answer(control_server_questions(w->control), question);
    char *text = json_dumps(answer, JSON_COMPACT);
    is_string(text, wanted, name);
    free(text);
    json_decref(answer);
    json_decref(question);
}

int
main(void)
{
    struct world w;
    char folder[100];
    folder_make(folder, sizeof(folder), "fragments");
    control_world_begin(&w, folder, TEXT("* hold"));
    is_page(&w, 0, 10, "[]", "nothing reassembles fragments");
    post_mail(&w, 1, "x.test");
    control_turns(&w, 50);
    struct manager_defragment plug = {.offer = offer, .explain = explain};
    manager_set_defragment(w.manager, &plug);
    is_page(&w, 0, 10, "[]", "what reassembles has no list");
    plug.list = list;
    sets[0] = (struct manager_set){.name = "0123456789ab",
                                   .first = w.id,
                                   .recipient = TEXT("b\n@x.test"),
                                   .owner = "this host",
                                   .recipients = 2,
                                   .messages = 3,
                                   .have = 2,
                                   .total = 4,
                                   .bytes = 77,
                                   .since_ms = 1000,
                                   .until_ms = 2000,
                                   .there = {1, 3},
                                   .there_count = 2,
                                   .missing = {2, 4},
                                   .missing_count = 2};
    sets[1] = (struct manager_set){.name = "ba9876543210",
                                   .first = {1, 1},
                                   .recipient = TEXT("c@x.test"),
                                   .owner = "b.test",
                                   .is_reassembling = true};
    sets[2] = (struct manager_set){.name = "ffffffffffff", .recipient = TEXT(""), .owner = ""};
    set_count = 3;
#define ONE                                                                                                          \
    "{\"set\":\"0123456789ab\",\"sender\":\"\",\"recipient\":\"b\\\\x0a@x.test\",\"recipients\":2,"         \
    "\"messages\":3,\"bytes\":77,\"have\":[1,3],\"missing\":[2,4],\"have_count\":2,\"total\":4,\"since_ms\":1000,"     \
    "\"until_ms\":2000,\"owner\":\"this host\",\"reassembling\":false}"
#define TWO                                                                                                          \
    "{\"set\":\"ba9876543210\",\"sender\":null,\"recipient\":\"c@x.test\",\"recipients\":0,\"messages\":0,\"bytes\":0,"  \
    "\"have\":[],\"missing\":[],\"have_count\":0,\"total\":null,\"since_ms\":0,\"until_ms\":0,\"owner\":\"b.test\","   \
    "\"reassembling\":true}"
    is_page(&w, 0, 2, "[" ONE "," TWO "]", "two sets");
    is_page(&w, 1, 1, "[" TWO "]", "a page");
    json_t *page = questions_fragments(w.manager, 2, 10);
    is_number(json_array_size(page), 1, "one that is ending");
    json_decref(page);
    is_answer(&w, json_pack("{s:s,s:i}", "command", "fragments", "from", 3), "{\"ok\":true,\"sets\":[]}", "a question");
    is_number(asked_from, 3, "with its place");
    is_answer(&w, json_pack("{s:s}", "command", "fragments"), "{\"ok\":false,\"error\":\"invalid start\"}", "none");
    manager_set_defragment(w.manager, NULL);
    control_world_end(&w);
    folder_remove(folder);
    return done();
}
