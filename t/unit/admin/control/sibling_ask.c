/* Questions of other hosts: their lines, an asker that is full or goes, too many, and too
 * long an answer. */
#include "admin/control/sibling_ask.h"

#include "queue/queue_operator.h"
#include "t/support/control_world.h"
#include "t/support/folder.h"
#include "t/support/until.h"

enum { SOME = 20, MESSAGES = 150, RECIPIENTS = 1600 };

static char folder[40];
static struct world w;

struct caller {
    struct asking *asking;
    char first[300]; /* the first line that is no sign of life, as much as fits; the last */
    char last[300];
    unsigned lines, ends;
    size_t bytes, longest, since, full_at;
};

static void
on_line(void *context, struct text json)
{
    struct caller *c = context;
    if (text_starts(json, TEXT("{\"seen\"")))
        return;
    if (c->lines++ == 0)
        (void)!text_copy(c->first, sizeof(c->first), json);
    (void)!text_copy(c->last, sizeof(c->last), json);
    c->bytes += json.length;
    c->since += json.length;
    c->longest = json.length > c->longest ? json.length : c->longest;
}

static void
on_end(void *context)
{
    struct caller *c = context;
    c->ends++;
    sibling_ask_drop(&c->asking);
}

static bool
is_full(void *context)
{
    const struct caller *c = context;
    return c->since >= c->full_at;
}

static void
ask(struct caller *c, const char *line, size_t full_at)
{
    *c = (struct caller){.full_at = full_at};
    c->asking = sibling_ask(control_server_service(w.control), text_from(line),
                            &(struct sibling_asker){on_line, on_end, is_full, c});
    if (c->asking == NULL || c->lines > 0 || c->ends > 0)
        abort();
}

TEST(answers)
{
    static const struct {
        const char *line, *first;
    } rows[] = {
        {"{\"command\":\"status\"}",                    "{\"ok\":true,\"version\":"                               },
        {"{\"command\":\"rm\",\"all\":true}",           "{\"ok\":false,\"error\":\"other hosts of the group may"  },
        {"{\"command\":\"list\",\"limit\":0}",          "{\"ok\":false,\"error\":\"limit is 1 to 10000\"}"        },
        {"",                                            "{\"ok\":false,\"error\":\"a request must be a JSON object\"}"},
        {"{\"command\":\"status\"",                     "{\"ok\":false,\"error\":\"a request must be a JSON object\"}"},
        {"{\"command\":\"list\",\"limit\":1}",          "{\"queue_name\":"                                        },
        {"{\"command\":\"trace\",\"q\":[\"x\"]}",       "{\"ok\":false,\"error\":\"there is no history\"}"        },
        {"{\"command\":\"hold\",\"to\":\"no.test\"}",   "{\"ok\":true,\"end\":true}"                              },
    };
    struct caller c;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ask(&c, rows[i].line, SIZE_MAX);
        until(&w, c.ends > 0);
        ok_named(text_starts(text_from(c.first), text_from(rows[i].first)), rows[i].line);
        is_number(c.ends, 1, "ends once");
        ok(c.asking == NULL);
    }
}

TEST(full)
{
    struct caller c;
    unsigned pieces = 0;
    ask(&c, "{\"command\":\"list\",\"limit\":100}", 200 * 1000);
    control_turns(&w, SOME);
    ok_named(c.since >= 200 * 1000 && c.since < 300 * 1000, "an asker that is full gets no more");
    is_number(c.ends, 0, "and it waits");
    for (; c.ends == 0 && pieces < 1000; pieces++) {
        c.since = 0;
        sibling_ask_resume(c.asking);
        control_turns(&w, SOME);
    }
    is_number(c.lines, 101, "all lines come");
    ok_named(pieces > 20, "in pieces");
    ok_named(c.longest <= SIBLING_LINE_MAX, "no line is longer than lines may be");
    ask(&c, "{\"command\":\"list\",\"limit\":100}", 1);
    control_turns(&w, SOME);
    sibling_ask_drop(&c.asking);
    control_turns(&w, SOME);
    ok_named(c.ends == 0 && c.asking == NULL, "a caller that has gone hears no more");
    ask(&c, "{\"command\":\"list\"}", SIZE_MAX);
    sibling_ask_drop(&c.asking);
    control_turns(&w, SOME);
    ok_named(c.lines == 0, "nor one that went before it began");
}

TEST(too_long)
{
    struct caller c;
    ask(&c, "{\"command\":\"list\",\"limit\":10000}", SIZE_MAX);
    until(&w, c.ends > 0);
    is_string(c.last, "{\"ok\":false,\"error\":\"the answer is longer than 8 MiB: ask for less\"}", "an answer has an end");
    ok_named(c.bytes <= SIBLING_ANSWER_MAX + 100, "in time");
    is_number(c.ends, 1, "once");
}

TEST(too_many)
{
    static struct caller callers[SIBLING_ASKED_MAX + 2];
    unsigned ends = 0, refused = 0;
    for (size_t i = 0; i < SIBLING_ASKED_MAX + 2; i++)
        ask(&callers[i], "{\"command\":\"state\",\"id\":\"\"}", SIZE_MAX);
    control_turns(&w, SOME);
    for (size_t i = 0; i < SIBLING_ASKED_MAX + 2; i++) {
        ends += callers[i].ends;
        refused += strstr(callers[i].first, "too many questions") != NULL;
    }
    is_number(ends, SIBLING_ASKED_MAX + 2, "all are answered");
    is_number(refused, 2, "two too many are refused");
    ask(&callers[0], "{\"command\":\"status\"}", SIZE_MAX);
    control_turns(&w, SOME);
    ok_named(strstr(callers[0].first, "\"version\"") != NULL, "later ones are not");
}

int
main(void)
{
    folder_make(folder, sizeof(folder), "sibling");
    control_world_begin(&w, folder, TEXT("* hold"));
    control_turns(&w, SOME);
    for (unsigned i = 0; i < MESSAGES; i++)
        post_mail(&w, RECIPIENTS, "keep.test");
    until(&w, w.accepted == MESSAGES && queue_count_apart(manager_queue(w.manager)).held == MESSAGES);
    tap_tests("");
    control_world_end(&w);
    folder_remove(folder);
    return done();
}
