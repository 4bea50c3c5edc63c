/* Commands as lines of JSON: what is written is read, and nothing is read by halves. */
#include "admin/answer/request.h"

#include "t/support/tap.h"

#include <string.h>

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

enum { STRING, STRINGS, INTEGER, BOOLEAN };

static const char *const types[] = {"a string", "a list of strings", "a whole number", "true or false"};

static const struct {
    const char *commands; /* with blanks between them */
    const char *member;
    int type;
} rows[] = {
    {"hold release retry bounce rm list", "ids",      STRINGS},
    {"hold release retry bounce rm list", "all",      BOOLEAN},
    {"hold release retry bounce rm list", "to",       STRING },
    {"hold release retry bounce rm list", "from",     STRING },
    {"hold release retry bounce rm list", "older_ms", INTEGER},
    {"hold release retry bounce rm list", "place",    STRING },
    {"list",                              "limit",    INTEGER},
    {"list",                              "after",    STRING },
    {"trace",                             "q",        STRINGS},
    {"trace",                             "since_ms", INTEGER},
    {"trace",                             "limit",    INTEGER},
    {"follow state why",                  "id",       STRING },
    {"states",                            "ids",      STRINGS},
    {"sites fragments",                   "from",     INTEGER},
    {"site",                              "name",     STRING },
    {"quota-reset",                       "who",      STRING },
    {"forget-limits",                     "site",     STRING },
    {"log-level",                         "level",    STRING },
    {"log-level",                         "for_ms",   INTEGER},
    {"log-level",                         "by",       STRING },
    {"unlock",                            "clients",  STRINGS},
    {"drain",                             "wait_ms",  INTEGER},
    {"drain",                             "empty",    BOOLEAN},
    {"drain",                             "cancel",   BOOLEAN},
    {"drain",                             "progress", BOOLEAN},
    {"page",                              "access",   STRING },
    {"adopt",                             "slice",    INTEGER},
    {"test",                              "to",       STRING },
    {"test",                              "from",     STRING },
    {"cluster-forget",                    "host",     STRING },
    {"cluster-adopt",                     "host",     STRING },
};

static const struct {
    const char *json, *words;
    int type; /* -1: of no member */
} values[] = {
    {"\"\"",         "a string",                                STRING },
    {"\"5\"",        "a string",                                STRING },
    {"0",            "a whole number",                          INTEGER},
    {"-7",           "a whole number",                          INTEGER},
    {"1.0",          "a number with a fraction or an exponent", -1     },
    {"1e3",          "a number with a fraction or an exponent", -1     },
    {"true",         "true or false",                           BOOLEAN},
    {"false",        "true or false",                           BOOLEAN},
    {"null",         "null",                                    -1     },
    {"{}",           "an object",                               -1     },
    {"{\"a\":\"b\"}", "an object",                              -1     },
    {"[]",           "a list",                                  STRINGS},
    {"[\"a\",\"b\"]", "a list",                                 STRINGS},
};

static bool
passes(const char *text, char why[REQUEST_TYPES_WHY_MAX])
{
    json_t *request = json_loads(text, JSON_DECODE_ANY, NULL);
    snprintf(why, REQUEST_TYPES_WHY_MAX, "%s", "");
    bool good = request_types_check(request, why);
    json_decref(request);
    return good;
}

static void
test_member(const char *command, const char *member, int type)
{
    char request[200], why[REQUEST_TYPES_WHY_MAX], wanted[200];
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        snprintf(request, sizeof(request), "{\"command\":\"%s\",\"%s\":%s}", command, member, values[i].json);
        bool good = passes(request, why);
        if (values[i].type == type) {
            ok_named(good, request);
            continue;
        }
        snprintf(wanted, sizeof(wanted), "%s must be %s, not %s", member, types[type], values[i].words);
        ok_named(!good, request);
        is_string(why, wanted, request);
    }
}

TEST(all)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct text rest = text_from(rows[i].commands), word;
        while (text_word(&rest, " ", &word)) {
            char command[40];
            text_copy(command, sizeof(command), word);
            test_member(command, rows[i].member, rows[i].type);
        }
    }
}

TEST(items)
{
    char why[REQUEST_TYPES_WHY_MAX];
    ok(!passes("{\"command\":\"hold\",\"ids\":[\"a\",7]}", why));
    is_string(why, "ids must be a list of strings, but has a whole number", "an item");
    ok(!passes("{\"command\":\"unlock\",\"clients\":[[\"a\"]]}", why));
    is_string(why, "clients must be a list of strings, but has a list", "a list in a list");
    ok(!passes("{\"command\":\"trace\",\"q\":[null]}", why));
    is_string(why, "q must be a list of strings, but has null", "nothing in a list");
}

TEST(requests)
{
    static const char *const none[] = {"[]", "7", "null", "\"status\"", "true", "[{\"command\":\"status\"}]"};
    char why[REQUEST_TYPES_WHY_MAX];
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        ok(!passes(none[i], why));
        is_string(why, "a request must be a JSON object", none[i]);
    }
    ok_named(!request_types_check(NULL, why), "what is no JSON");
    ok(!passes("{\"command\":[\"hold\"]}", why));
    is_string(why, "command must be a string, not a list", "the command");
    ok_named(passes("{}", why) && passes("{\"command\":\"x\",\"id\":7}", why), "others know commands");
    ok_named(passes("{\"command\":\"status\",\"from\":{}}", why), "another command's members are none of it");
    ok_named(passes("{\"command\":\"sites\",\"from\":1,\"to\":null}", why), "members that it has not");
}
