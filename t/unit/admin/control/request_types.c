/* Every member of every command of the control socket has one type; another one is refused
 * by the names of the member and both types. */
#include "admin/control/request.h"

#include "t/support/tap.h"

#include <string.h>

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
