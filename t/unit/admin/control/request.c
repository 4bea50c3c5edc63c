/* Commands as lines of JSON: what is written is read, and nothing is read by halves. */
#include "admin/control/request.h"

#include "t/support/tap.h"

#define ONE "01JD3ZK5Q8-9F3K2C7A"
#define TWO "01JD3ZK5Q9-9F3K2C7A"

static bool
parse(struct filter *f, const char *words)
{
    static char copies[32][80];
    char *arguments[32];
    int count = 0;
    struct text rest = text_from(words), word;
    while (text_word(&rest, " ", &word)) {
        text_copy(copies[count], sizeof(copies[0]), word);
        arguments[count] = copies[count];
        count++;
    }
    return filter_parse(f, count, arguments);
}

static bool
same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool
same(const struct filter *a, const struct filter *b)
{
    bool ids = a->id_count == b->id_count;
    for (size_t i = 0; ids && i < a->id_count; i++)
        ids = id_compare(a->ids[i].id, b->ids[i].id) == 0;
    return ids && a->everything == b->everything && a->older_ms == b->older_ms && id_compare(a->first, b->first) == 0 &&
           same_text(a->to, b->to) && same_text(a->from, b->from) &&
           same_text(a->place, b->place);
}

TEST(round_trip)
{
    static const char *const selections[] = {
        "--all",
        ONE,
        ONE " " TWO " --queue hold",
        "--to x.test",
        "--from <>",
        "--from=a@b.test --to=c --older 3d --queue deferred --all",
        "--older 0s",
        ("--first " TWO),
        "--queue maildrop",
    };
    static struct filter written, read;
    for (size_t i = 0; i < sizeof(selections) / sizeof(*selections); i++)
        for (int v = MANAGER_HOLD; v <= MANAGER_REMOVE; v++) {
            enum manager_verb verb = (enum manager_verb)(MANAGER_REMOVE - v);
            ok(parse(&written, selections[i]));
            json_t *request = request_write((enum manager_verb)v, &written);
            const char *error = request_read(request, &verb, &read);
            ok(error == NULL && (int)verb == v && same(&written, &read));
            json_decref(request);
        }
}

TEST(words)
{
    enum manager_verb verb;
    ok(request_find_verb("rm", &verb) && verb == MANAGER_REMOVE);
    ok(!request_find_verb("ls", &verb) && !request_find_verb("", &verb));
    is_string(request_word(MANAGER_BOUNCE), "bounce", "a word");
}

TEST(bad)
{
    static const char *const bad[] = {
        "{}",
        "[]",
        "7",
        "{\"command\":\"rm\"}",
        "{\"command\":7,\"all\":true}",
        "{\"command\":\"remove\",\"all\":true}",
        "{\"command\":\"rm\",\"all\":\"yes\"}",
        "{\"command\":\"rm\",\"all\":true,\"to\":\"\"}",
        "{\"command\":\"rm\",\"all\":true,\"older\":5}",
        "{\"command\":\"rm\",\"older_ms\":1.5}",
        "{\"command\":\"rm\",\"older_ms\":-2}",
        "{\"command\":\"rm\",\"first\":\"nonsense\"}",
        "{\"command\":\"rm\",\"first\":7}",
        "{\"command\":\"rm\",\"place\":\"HOLD\"}",
        "{\"command\":\"rm\",\"place\":null}",
        "{\"command\":\"rm\",\"ids\":[]}",
        "{\"command\":\"rm\",\"ids\":{}}",
        "{\"command\":\"rm\",\"ids\":[\"" ONE "\",\"" ONE "x\"]}",
        "{\"command\":\"rm\",\"ids\":[\"" ONE "\",null]}",
    };
    static struct filter f;
    enum manager_verb verb;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        json_t *request = json_loads(bad[i], JSON_DECODE_ANY, NULL);
        ok_named(request && request_read(request, &verb, &f) != NULL, bad[i]);
        json_decref(request);
    }
    ok_named(request_read(NULL, &verb, &f) != NULL, "nothing at all");
}

TEST(many)
{
    static struct filter f;
    enum manager_verb verb;
    json_t *ids = json_array(), *request = json_object();
    char name[ID_LENGTH + 1];
    for (unsigned i = 0; i < FILTER_IDS_MAX; i++) {
        id_format((struct id){.time_ms = i, .hash = 1}, name);
        json_array_append_new(ids, json_string(name));
    }
    json_object_set_new(request, "command", json_string("hold"));
    json_object_set_new(request, "ids", ids);
    ok(request_read(request, &verb, &f) == NULL);
    is_number(f.id_count, FILTER_IDS_MAX, "as many as can be named");
    char *line = json_dumps(request, JSON_COMPACT);
    ok_named(line && strlen(line) < 32 * 1024, "fit into a request");
    free(line);
    json_array_append_new(ids, json_string(ONE));
    ok_named(request_read(request, &verb, &f) != NULL, "one more does not");
    json_decref(request);
}

/* An argument that is no UTF-8 must not come to mean everybody. */
TEST(bytes)
{
    static struct filter written, read;
    enum manager_verb verb;
    filter_clear(&written);
    written.to = "\xff\xfe.test";
    json_t *request = request_write(MANAGER_REMOVE, &written);
    ok(request_read(request, &verb, &read) == NULL && read.to && read.to[0]);
    json_decref(request);
}
